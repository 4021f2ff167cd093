#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow_plugin/framework/kernel.h"
#include "tensorflow_plugin/framework/native.h"
#include "tensorflow_plugin/tf_internals/tf_types.h"
#include "xla/tsl/util/determinism.h"

namespace xpu {
namespace {

struct ScopedStatus {
  TF_Status* s = TF_NewStatus();
  ~ScopedStatus() { TF_DeleteStatus(s); }
};

}  // namespace

std::string Construction::NodeName() const {
  const TF_StringView name = TF_OpKernelConstruction_GetName(native_);
  return std::string(name.data, name.len);
}

bool Construction::DeterminismRequired() { return tsl::OpDeterminismRequired(); }

void Construction::Check(TF_Status* status, const char* name) {
  if (TF_GetCode(status) != TF_OK) {
    Fail(Status(static_cast<Code>(TF_GetCode(status)), std::string("attribute '") + name + "': " + TF_Message(status)));
  }
}

bool Construction::HasAttr(const char* name) {
  ScopedStatus status;
  const bool has = TF_OpKernelConstruction_HasAttr(native_, name, status.s);
  return TF_GetCode(status.s) == TF_OK && has;
}

namespace {

// Length of a list attribute, or total bytes of a string; 0 if there is no such attribute (see `status`).
void AttrSize(TF_OpKernelConstruction* native, const char* name, int32_t* length, int32_t* bytes, TF_Status* status) {
  *length = 0;
  *bytes = 0;
  TF_OpKernelConstruction_GetAttrSize(native, name, length, bytes, status);
}

template <typename T>
using Getter = void (*)(TF_OpKernelConstruction*, const char* name, T* value, TF_Status*);
template <typename T>
using ListGetter = void (*)(TF_OpKernelConstruction*, const char* name, T* values, int max, TF_Status*);

template <typename T>
T Read(TF_OpKernelConstruction* native, const char* name, Getter<T> get, TF_Status* status) {
  T value{};
  get(native, name, &value, status);
  return value;
}

template <typename T>
std::vector<T> ReadList(TF_OpKernelConstruction* native, const char* name, ListGetter<T> get, TF_Status* status) {
  int32_t length, bytes;
  AttrSize(native, name, &length, &bytes, status);
  std::vector<T> values(length > 0 && TF_GetCode(status) == TF_OK ? length : 0);
  if (!values.empty()) get(native, name, values.data(), length, status);
  return values;
}

}  // namespace

template <>
bool Construction::Attr<bool>(const char* name) {
  ScopedStatus status;
  const TF_Bool value = Read<TF_Bool>(native_, name, TF_OpKernelConstruction_GetAttrBool, status.s);
  Check(status.s, name);
  return value != 0;
}

template <>
DType Construction::Attr<DType>(const char* name) {
  ScopedStatus status;
  const TF_DataType value = Read<TF_DataType>(native_, name, TF_OpKernelConstruction_GetAttrType, status.s);
  Check(status.s, name);
  return FromTf(value);
}

template <>
std::string Construction::Attr<std::string>(const char* name) {
  ScopedStatus status;
  int32_t length, bytes;
  AttrSize(native_, name, &length, &bytes, status.s);
  std::string value(bytes > 0 && TF_GetCode(status.s) == TF_OK ? bytes : 0, '\0');
  if (!value.empty()) TF_OpKernelConstruction_GetAttrString(native_, name, &value[0], value.size(), status.s);
  Check(status.s, name);
  return value;
}

template <>
std::vector<DType> Construction::Attr<std::vector<DType>>(const char* name) {
  ScopedStatus status;
  std::vector<DType> types;
  for (TF_DataType t : ReadList<TF_DataType>(native_, name, TF_OpKernelConstruction_GetAttrTypeList, status.s)) {
    types.push_back(FromTf(t));
  }
  Check(status.s, name);
  return types;
}

#define XPU_ATTR(T, read, getter)                                                     \
  template <>                                                                         \
  T Construction::Attr<T>(const char* name) {                                         \
    ScopedStatus status;                                                              \
    T value = read(native_, name, TF_OpKernelConstruction_GetAttr##getter, status.s); \
    Check(status.s, name);                                                            \
    return value;                                                                     \
  }
XPU_ATTR(int64_t, Read<int64_t>, Int64)
XPU_ATTR(float, Read<float>, Float)
XPU_ATTR(std::vector<int64_t>, ReadList<int64_t>, Int64List)
XPU_ATTR(std::vector<float>, ReadList<float>, FloatList)
#undef XPU_ATTR

// TensorFlow's C functions for 32 bits cut numbers off; its kernels refuse them.
template <>
int32_t Construction::Attr<int32_t>(const char* name) {
  const auto wide = Attr<int64_t>(name);
  const auto value = static_cast<int32_t>(wide);
  if (value != wide) {
    Fail(errors::InvalidArgument("Attr ", name, " has value ", wide, " out of range for an int32"));
    return 0;
  }
  return value;
}

template <>
std::vector<int32_t> Construction::Attr<std::vector<int32_t>>(const char* name) {
  std::vector<int32_t> values;
  for (int64_t wide : Attr<std::vector<int64_t>>(name)) {
    values.push_back(static_cast<int32_t>(wide));
    if (values.back() == wide) continue;
    Fail(errors::InvalidArgument("Attr ", name, " has value ", wide, " out of range for an int32"));
    return {};
  }
  return values;
}

Dims Construction::ShapeAttr(const char* name) {
  tensorflow::TensorShape shape;
  auto* native = reinterpret_cast<tensorflow::OpKernelConstruction*>(native_);
  const Status status = FromNative(native->GetAttr(name, &shape));
  if (!status.ok()) Fail(Status(status.code(), std::string("attribute '") + name + "': " + status.message()));
  Dims dims;
  for (int i = 0; i < shape.dims(); ++i) dims.push_back(shape.dim_size(i));
  return dims;
}

}  // namespace xpu
