#include "tensorflow_plugin/interop/import.h"

#include <cstring>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow_plugin/interop/export.h"
#include "tensorflow_plugin/interop/types.h"

namespace xpu::interop {
namespace {

using tensorflow::Tensor;

constexpr int kMaxRank = tensorflow::TensorShape::MaxDimensions();

// Memory that another library owns. That it does not own its memory tells TensorFlow never to reuse it for an output.
class ForeignBuffer final : public tensorflow::TensorBuffer {
 public:
  ForeignBuffer(void* data, size_t size, Foreign tensor, std::function<void()> before_release)
      : TensorBuffer(data), size_(size), tensor_(std::move(tensor)), before_release_(std::move(before_release)) {}
  ~ForeignBuffer() override {
    if (before_release_ != nullptr) before_release_();
  }

  size_t size() const override { return size_; }
  TensorBuffer* root_buffer() override { return this; }
  bool OwnsMemory() const override { return false; }
  void FillAllocationDescription(tensorflow::AllocationDescription* description) const override {
    description->set_requested_bytes(size_);
    description->set_allocator_name("dlpack");
  }

 private:
  const size_t size_;
  Foreign tensor_;
  const std::function<void()> before_release_;
};

// One axis of a strided copy, strides in bytes.
struct CopyAxis {
  int64_t size;
  int64_t stride;
};

template <int kBytes>
void CopyRow(char* to, const char* from, const CopyAxis& axis) {
  for (int64_t i = 0; i < axis.size; ++i) std::memcpy(to + i * kBytes, from + i * axis.stride, kBytes);
}

void CopyRow(char* to, const char* from, const CopyAxis& axis, int bytes) {
  if (axis.stride == bytes) {
    std::memcpy(to, from, axis.size * bytes);
    return;
  }
  switch (bytes) {
    case 1:
      return CopyRow<1>(to, from, axis);
    case 2:
      return CopyRow<2>(to, from, axis);
    case 4:
      return CopyRow<4>(to, from, axis);
    case 8:
      return CopyRow<8>(to, from, axis);
    default:
      return CopyRow<16>(to, from, axis);
  }
}

// Axes of size 1 dropped, neighbours that step alike made one. At least one axis is left.
std::vector<CopyAxis> Axes(const DLTensor& t, int element_bytes) {
  std::vector<CopyAxis> axes;
  int64_t row_major = element_bytes;
  std::vector<int64_t> strides(t.ndim);
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] == 1) continue;  // its stride may be anything
    strides[i] = t.strides == nullptr ? row_major : t.strides[i] * element_bytes;
    row_major *= t.shape[i];
  }
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] == 1) continue;
    int64_t whole;
    if (!axes.empty() && !__builtin_mul_overflow(strides[i], t.shape[i], &whole) && axes.back().stride == whole) {
      axes.back() = {axes.back().size * t.shape[i], strides[i]};
    } else {
      axes.push_back({t.shape[i], strides[i]});
    }
  }
  if (axes.empty()) axes.push_back({1, element_bytes});
  return axes;
}

void CopyStrided(char* to, const char* from, const std::vector<CopyAxis>& axes, int element_bytes) {
  const CopyAxis& row = axes.back();
  const int outer = static_cast<int>(axes.size()) - 1;
  std::vector<int64_t> index(outer, 0);
  while (true) {
    CopyRow(to, from, row, element_bytes);
    to += row.size * element_bytes;
    int i = outer - 1;
    for (; i >= 0; --i) {
      if (++index[i] < axes[i].size) {
        from += axes[i].stride;
        break;
      }
      from -= axes[i].stride * (axes[i].size - 1);
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

// From several elements in a byte, the first in the lowest bits, to one.
void Unpack(unsigned char* to, const unsigned char* from, int64_t count, DLDataType type) {
  const int bits = type.bits;
  const unsigned mask = (1u << bits) - 1;
  const unsigned sign = type.code == kDLInt ? 1u << (bits - 1) : 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t bit = i * bits;
    const unsigned value = from[bit / 8] >> (bit % 8) & mask;
    to[i] = static_cast<unsigned char>((value ^ sign) - sign);
  }
}

// True if the elements lie behind each other; also checks that addresses of all elements exist.
Status CheckStrides(const DLTensor& t, const char* first, int element_bytes, bool* row_major) {
  *row_major = true;
  if (t.strides == nullptr) return OkStatus();
  int64_t expected = 1, low = 0, high = element_bytes;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) *row_major = false;
    expected *= t.shape[i];
    int64_t reach;
    bool overflow = __builtin_mul_overflow(t.shape[i] - 1, t.strides[i], &reach);
    overflow |= __builtin_mul_overflow(reach, int64_t{element_bytes}, &reach);
    int64_t& end = reach < 0 ? low : high;
    overflow |= __builtin_add_overflow(end, reach, &end);
    XPU_REQUIRE(!overflow, errors::InvalidArgument("stride ", t.strides[i], " of dimension ", i, " of size ",
                                                   t.shape[i], " leads outside the address space"));
  }
  const auto address = reinterpret_cast<uintptr_t>(first);
  XPU_REQUIRE(address >= 0 - static_cast<uintptr_t>(low) && address <= UINTPTR_MAX - static_cast<uintptr_t>(high),
              errors::InvalidArgument("the strides lead outside the address space"));
  return OkStatus();
}

}  // namespace

const char* TensorLayout::obstacle() const {
  if (packed) return "several elements share a byte";
  if (!row_major) return "its elements are not in row-major order without gaps";
  return "its data is not aligned to 64 bytes";
}

Status Examine(const Foreign& tensor, TensorLayout* layout) {
  XPU_REQUIRE(tensor.view() != nullptr,
              errors::Unimplemented("DLPack version ", tensor.version().major, ".", tensor.version().minor,
                                    " is not supported, expected ", DLPACK_MAJOR_VERSION, ".x"));
  const DLTensor& t = *tensor.view();
  layout->type = FromDl(t.dtype);
  XPU_REQUIRE(layout->type != tensorflow::DT_INVALID,
              errors::Unimplemented("TensorFlow has no type for DLPack tensors of ", NameOf(t.dtype)));
  XPU_REQUIRE(t.ndim >= 0 && t.ndim <= kMaxRank,
              errors::InvalidArgument("a DLPack tensor has ndim ", t.ndim, ", expected 0 to ", kMaxRank));
  XPU_REQUIRE(t.ndim == 0 || t.shape != nullptr,
              errors::InvalidArgument("a DLPack tensor with ndim ", t.ndim, " has no shape"));
  for (int i = 0; i < t.ndim; ++i) {
    XPU_REQUIRE(t.shape[i] >= 0, errors::InvalidArgument("dimension ", i, " of a DLPack tensor is ", t.shape[i],
                                                         ", expected at least 0"));
  }
  const absl::Status shaped =
      tensorflow::TensorShape::BuildTensorShape(absl::MakeConstSpan(t.shape, t.ndim), &layout->shape);
  XPU_REQUIRE(shaped.ok(), errors::InvalidArgument(std::string(shaped.message())));
  const int element_bytes = ElementBytes(layout->type);
  const int64_t elements = layout->shape.num_elements();
  XPU_REQUIRE(!__builtin_mul_overflow(elements, int64_t{element_bytes}, &layout->bytes),
              errors::InvalidArgument("a DLPack tensor of shape ", layout->shape.DebugString(), " and type ",
                                      NameOf(t.dtype), " is larger than memory can be"));
  layout->packed = IsSubByte(t.dtype) && !(tensor.flags() & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
  layout->row_major = true;
  layout->first = nullptr;
  if (elements == 0) return OkStatus();

  const auto data = reinterpret_cast<uintptr_t>(t.data);
  XPU_REQUIRE(t.data != nullptr, errors::InvalidArgument("a DLPack tensor of shape ", layout->shape.DebugString(),
                                                         " has null for its data"));
  XPU_REQUIRE(t.byte_offset <= UINTPTR_MAX - data,
              errors::InvalidArgument("byte_offset ", t.byte_offset, " leads outside the address space"));
  layout->first = reinterpret_cast<char*>(data + t.byte_offset);
  XPU_RETURN_IF_ERROR(CheckStrides(t, layout->first, element_bytes, &layout->row_major));
  XPU_REQUIRE(layout->row_major || !layout->packed,
              errors::Unimplemented("a packed DLPack tensor of ", NameOf(t.dtype), " with strides is not supported"));
  return OkStatus();
}

Tensor Share(Foreign tensor, const TensorLayout& layout, std::function<void()> before_release) {
  tensorflow::core::RefCountPtr<ForeignBuffer> buffer(
      new ForeignBuffer(layout.first, layout.bytes, std::move(tensor), std::move(before_release)));
  return Tensor(layout.type, layout.shape, buffer.get());
}

Status CopyFrom(const Foreign& tensor, const TensorLayout& layout, Tensor* out) {
  XPU_RETURN_IF_ERROR(AllocateOnHost(layout.type, layout.shape, out));
  if (layout.bytes == 0) return OkStatus();
  auto* to = static_cast<char*>(tensorflow::DMAHelper::base(out));
  const DLTensor& t = *tensor.view();
  if (layout.packed) {
    Unpack(reinterpret_cast<unsigned char*>(to), reinterpret_cast<const unsigned char*>(layout.first),
           layout.shape.num_elements(), t.dtype);
  } else if (layout.row_major) {
    std::memcpy(to, layout.first, layout.bytes);
  } else {
    CopyStrided(to, layout.first, Axes(t, ElementBytes(layout.type)), ElementBytes(layout.type));
  }
  return OkStatus();
}

}  // namespace xpu::interop
