#include "tensorflow_plugin/framework/tensor_arrays.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/kernels/tensor_array.h"
#include "tensorflow_plugin/framework/native.h"

namespace xpu {
namespace {

namespace tf = tensorflow;

// TensorFlow's class does the rest; it is told by these types whose the elements are that it adds up or sets to zero.
struct OnXpu {};
struct AnyType {};

absl::Status Add(tf::OpKernelContext* native, const tf::Tensor& a, const tf::Tensor& b, tf::Tensor* sum) {
  const DType type = FastFromTf(sum->dtype());
  if (!IsDefined(Opcode::kAdd, type)) {
    return absl::InvalidArgumentError(
        errors::Concat("tensor_array::AddToTensor type not supported: ", tf::DataTypeString(sum->dtype())));
  }
  Context ctx(reinterpret_cast<TF_OpKernelContext*>(native), false);
  ElementwiseDesc desc;
  desc.program = SingleOpProgram(Opcode::kAdd, type);
  desc.shape = {sum->NumElements()};
  desc.in_strides[0] = desc.in_strides[1] = {1};
  return ToNative(ctx.Launch(desc, {a.data(), b.data()}, {sum->data()}));
}

absl::Status SetZero(tf::OpKernelContext* native, tf::Tensor* value) {
  Context ctx(reinterpret_cast<TF_OpKernelContext*>(native), false);
  return ToNative(ctx.Zero(value->data(), value->TotalBytes()));
}

}  // namespace
}  // namespace xpu

namespace tensorflow::tensor_array {

template <>
absl::Status AddToTensor<xpu::OnXpu, xpu::AnyType>(OpKernelContext* ctx, Tensor* sum, const Tensor* current,
                                                   const Tensor* add) {
  return xpu::Add(ctx, *current, *add, sum);
}

template <>
absl::Status TensorSetZero<xpu::OnXpu, xpu::AnyType>(OpKernelContext* ctx, Tensor* value) {
  return xpu::SetZero(ctx, value);
}

}  // namespace tensorflow::tensor_array

namespace xpu {
namespace {

using ArrayPtr = tf::core::RefCountPtr<tf::TensorArray>;

Status Find(tf::OpKernelContext* ctx, ArrayPtr* array) {
  tf::TensorArray* found = nullptr;
  if (ctx->input_dtype(0) == tf::DT_RESOURCE) {
    XPU_RETURN_IF_ERROR(FromNative(tf::LookupResource(ctx, tf::HandleFromInput(ctx, 0), &found)));
  } else {
    const tf::Tensor handle = tf::IsRefType(ctx->input_dtype(0)) ? ctx->mutable_input(0, false) : ctx->input(0);
    XPU_REQUIRE(handle.NumElements() == 2,
                errors::InvalidArgument("Tensor array handle must be 2-element vector, but had shape: ",
                                        handle.shape().DebugString()));
    XPU_REQUIRE(ctx->resource_manager() != nullptr, errors::Internal("No resource manager."));
    const auto names = handle.flat<tf::tstring>();
    XPU_RETURN_IF_ERROR(FromNative(
        ctx->step_container()->Lookup(ctx->resource_manager(), std::string(names(0)) + std::string(names(1)), &found)));
  }
  array->reset(found);
  return OkStatus();
}

Status CheckWritten(tf::DataType type, const tf::TensorArray& array) {
  XPU_REQUIRE(type == array.ElemType(),
              errors::InvalidArgument("TensorArray dtype is ", tf::DataTypeString(array.ElemType()),
                                      " but Op is trying to write dtype ", tf::DataTypeString(type), "."));
  return OkStatus();
}

Status Index(const tf::Tensor& t, int32_t* index) {
  XPU_REQUIRE(tf::TensorShapeUtils::IsScalar(t.shape()),
              errors::InvalidArgument("TensorArray index must be scalar, but had shape: ", t.shape().DebugString()));
  *index = t.scalar<int32_t>()();
  return OkStatus();
}

Status Indices(const tf::Tensor& t, std::vector<int32_t>* indices) {
  XPU_REQUIRE(
      tf::TensorShapeUtils::IsVector(t.shape()),
      errors::InvalidArgument("Expected indices to be a vector, but received shape: ", t.shape().DebugString()));
  const auto values = t.vec<int32_t>();
  indices->assign(values.data(), values.data() + values.size());
  return OkStatus();
}

std::vector<int32_t> All(int32_t n) {
  std::vector<int32_t> indices(std::max(n, 0));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// Rows [begin, begin + n) of a tensor, with another shape: the same memory where a tensor may begin there, a copy
// elsewhere.
Status Part(Context& ctx, const tf::Tensor& value, int64_t begin, int64_t n, const tf::TensorShape& shape,
            tf::Tensor* part) {
  const tf::Tensor rows = value.Slice(begin, begin + n);
  if (rows.NumElements() > 0 && rows.TotalBytes() % tf::Allocator::kAllocatorAlignment == 0 &&
      begin * (rows.TotalBytes() / n) % tf::Allocator::kAllocatorAlignment == 0) {
    XPU_REQUIRE(part->CopyFrom(rows, shape), errors::Internal("a part of a value has another number of elements"));
    return OkStatus();
  }
  XPU_RETURN_IF_ERROR(FromNative(Native(ctx)->allocate_temp(value.dtype(), shape, part)));
  return ctx.Copy(part->data(), rows.data(), rows.TotalBytes());
}

// One after another, into a tensor that has room for all of them.
Status CopyAll(Context& ctx, const std::vector<tf::Tensor>& values, tf::Tensor* out) {
  char* to = static_cast<char*>(out->data());
  for (const tf::Tensor& value : values) {
    XPU_RETURN_IF_ERROR(ctx.Copy(to, value.data(), value.TotalBytes()));
    to += value.TotalBytes();
  }
  return OkStatus();
}

}  // namespace

struct TensorArrayKernel::Native {
  OnTensorArray what;
  tf::DataType dtype = tf::DT_INVALID;  // of ops that give elements
  tf::PartialTensorShape shape;         // of an element, for kConcat without its first dimension

  Status CheckRead(const tf::TensorArray& array) const {
    XPU_REQUIRE(dtype == array.ElemType(),
                errors::InvalidArgument("TensorArray dtype is ", tf::DataTypeString(array.ElemType()),
                                        " but Op requested dtype ", tf::DataTypeString(dtype), "."));
    return OkStatus();
  }

  Status Write(tf::OpKernelContext* ctx) const;
  Status Read(tf::OpKernelContext* ctx) const;
  Status Stack(Context& ctx, tf::OpKernelContext* native) const;
  Status Concat(Context& ctx, tf::OpKernelContext* native) const;
  Status Unstack(Context& ctx, tf::OpKernelContext* native) const;
  Status Split(Context& ctx, tf::OpKernelContext* native) const;
};

Status TensorArrayKernel::Native::Write(tf::OpKernelContext* ctx) const {
  int32_t index;
  XPU_RETURN_IF_ERROR(Index(ctx->input(1), &index));
  ArrayPtr array;
  XPU_RETURN_IF_ERROR(Find(ctx, &array));
  const tf::Tensor& value = ctx->input(2);
  XPU_RETURN_IF_ERROR(CheckWritten(value.dtype(), *array));
  return FromNative(array->WriteOrAggregate<OnXpu, AnyType>(ctx, index, &value));
}

Status TensorArrayKernel::Native::Read(tf::OpKernelContext* ctx) const {
  int32_t index;
  XPU_RETURN_IF_ERROR(Index(ctx->input(1), &index));
  ArrayPtr array;
  XPU_RETURN_IF_ERROR(Find(ctx, &array));
  XPU_RETURN_IF_ERROR(CheckRead(*array));
  tf::Tensor value;
  XPU_RETURN_IF_ERROR(FromNative(array->Read<OnXpu, AnyType>(ctx, index, &value)));
  ctx->set_output(0, value);
  return OkStatus();
}

// kGather and kPack.
Status TensorArrayKernel::Native::Stack(Context& ctx, tf::OpKernelContext* native) const {
  ArrayPtr array;
  XPU_RETURN_IF_ERROR(Find(native, &array));
  XPU_RETURN_IF_ERROR(CheckRead(*array));
  XPU_RETURN_IF_ERROR(FromNative(array->SetElemShape(shape)));
  std::vector<int32_t> indices;
  if (what == OnTensorArray::kPack) {
    int32_t n;
    XPU_RETURN_IF_ERROR(FromNative(array->PackOrConcatSize(&n)));
    indices = All(n);
  } else {
    XPU_RETURN_IF_ERROR(Indices(native->input(1), &indices));
  }
  tf::Tensor* out = nullptr;
  tf::TensorShape out_shape;
  if (indices.empty()) {
    XPU_REQUIRE(shape.AsTensorShape(&out_shape),
                errors::Unimplemented("TensorArray has size zero, but element shape ", shape.DebugString(),
                                      " is not fully defined. Currently only static shapes are supported when packing "
                                      "zero-size TensorArrays."));
    out_shape.InsertDim(0, 0);
    return FromNative(native->allocate_output(0, out_shape, &out));
  }
  std::vector<tf::Tensor> values;
  XPU_RETURN_IF_ERROR(FromNative(array->ReadMany<OnXpu, AnyType>(native, indices, &values)));
  const tf::TensorShape& first = values[0].shape();
  XPU_REQUIRE(shape.IsCompatibleWith(first),
              errors::InvalidArgument("TensorArray was passed element_shape ", shape.DebugString(),
                                      " which does not match the Tensor at index 0: ", first.DebugString()));
  for (size_t i = 1; i < values.size(); ++i) {
    XPU_REQUIRE(
        values[i].shape() == first,
        errors::InvalidArgument("TensorArray has inconsistent shapes.  Index 0 has shape: ", first.DebugString(),
                                " but index ", i, " has shape: ", values[i].shape().DebugString()));
  }
  out_shape = first;
  out_shape.InsertDim(0, indices.size());
  XPU_RETURN_IF_ERROR(FromNative(native->allocate_output(0, out_shape, &out)));
  return CopyAll(ctx, values, out);
}

Status TensorArrayKernel::Native::Concat(Context& ctx, tf::OpKernelContext* native) const {
  ArrayPtr array;
  XPU_RETURN_IF_ERROR(Find(native, &array));
  XPU_RETURN_IF_ERROR(CheckRead(*array));
  int32_t n;
  XPU_RETURN_IF_ERROR(FromNative(array->PackOrConcatSize(&n)));
  tf::Tensor *out = nullptr, *lengths = nullptr;
  tf::TensorShape out_shape;
  if (n == 0) {
    XPU_REQUIRE(shape.AsTensorShape(&out_shape),
                errors::Unimplemented("TensorArray has size zero, but element_shape_except0 ", shape.DebugString(),
                                      " is not fully defined. Currently only static shapes are supported when "
                                      "concatenating zero-size TensorArrays."));
    out_shape.InsertDim(0, 0);
    XPU_RETURN_IF_ERROR(FromNative(native->allocate_output(0, out_shape, &out)));
    return FromNative(native->allocate_output(1, {0}, &lengths));
  }
  std::vector<tf::Tensor> values;
  XPU_RETURN_IF_ERROR(FromNative(array->ReadMany<OnXpu, AnyType>(native, All(n), &values)));
  XPU_RETURN_IF_ERROR(FromNative(native->allocate_output(1, {static_cast<int64_t>(values.size())}, &lengths)));
  tf::TensorShape rows;
  int64_t total = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    tf::TensorShape its_rows = values[i].shape();
    XPU_REQUIRE(its_rows.dims() > 0,
                errors::InvalidArgument("Concat saw a scalar shape at index ", i,
                                        " but requires at least vectors.  Did you mean to call pack?"));
    total += lengths->vec<int64_t>()(i) = its_rows.dim_size(0);
    its_rows.RemoveDim(0);
    if (i == 0) {
      rows = its_rows;
      XPU_REQUIRE(shape.IsCompatibleWith(rows),
                  errors::InvalidArgument("TensorArray was passed element_shape_except0 ", shape.DebugString(),
                                          " but index 0 has (excepting dimension 0) shape: ", rows.DebugString(),
                                          " which does not match."));
    }
    XPU_REQUIRE(its_rows == rows,
                errors::InvalidArgument("TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) "
                                        "shape: ",
                                        rows.DebugString(), " but index ", i,
                                        " has (excepting dimension 0) shape: ", its_rows.DebugString()));
  }
  out_shape = rows;
  out_shape.InsertDim(0, total);
  XPU_RETURN_IF_ERROR(FromNative(native->allocate_output(0, out_shape, &out)));
  return CopyAll(ctx, values, out);
}

// kScatter and kUnpack.
Status TensorArrayKernel::Native::Unstack(Context& ctx, tf::OpKernelContext* native) const {
  const bool unpack = what == OnTensorArray::kUnpack;
  ArrayPtr array;
  XPU_RETURN_IF_ERROR(Find(native, &array));
  const tf::Tensor& value = native->input(unpack ? 1 : 2);
  XPU_REQUIRE(value.dims() > 0,
              errors::InvalidArgument("Input value for unpack must be at least a vector but received shape: ",
                                      value.shape().DebugString()));
  const int64_t n = value.dim_size(0);
  XPU_REQUIRE(n < std::numeric_limits<int32_t>::max(), errors::InvalidArgument("tensor dim0 too large to unpack"));
  XPU_RETURN_IF_ERROR(CheckWritten(value.dtype(), *array));
  int32_t size;
  XPU_RETURN_IF_ERROR(FromNative(array->Size(&size)));
  std::vector<int32_t> indices;
  if (unpack) {
    indices = All(static_cast<int32_t>(n));
  } else {
    XPU_RETURN_IF_ERROR(Indices(native->input(1), &indices));
    XPU_REQUIRE(
        static_cast<int64_t>(indices.size()) == n,
        errors::InvalidArgument("Expected len(indices) == values.shape[0], but saw: ", indices.size(), " vs. ", n));
  }
  const int32_t last = indices.empty() ? -1 : *std::max_element(indices.begin(), indices.end());
  if (array->HasDynamicSize()) size = std::max(size, last + 1);
  if (unpack) {
    XPU_REQUIRE(n == size, errors::InvalidArgument("Input value must have first dimension equal to the array size (", n,
                                                   " vs. ", size, ")"));
  } else {
    XPU_REQUIRE(last < size,
                errors::InvalidArgument("Max scatter index must be < array size (", last, " vs. ", size, ")"));
  }
  tf::TensorShape element = value.shape();
  element.RemoveDim(0);
  std::vector<tf::Tensor> parts(n);
  for (int64_t i = 0; i < n; ++i) XPU_RETURN_IF_ERROR(Part(ctx, value, i, 1, element, &parts[i]));
  if (unpack) XPU_RETURN_IF_ERROR(FromNative(array->SetMarkedSize(size)));
  return FromNative(array->WriteOrAggregateMany<OnXpu, AnyType>(native, indices, &parts));
}

Status TensorArrayKernel::Native::Split(Context& ctx, tf::OpKernelContext* native) const {
  ArrayPtr array;
  XPU_RETURN_IF_ERROR(Find(native, &array));
  const tf::Tensor &value = native->input(1), &lengths_arg = native->input(2);
  XPU_REQUIRE(
      tf::TensorShapeUtils::IsVector(lengths_arg.shape()),
      errors::InvalidArgument("Expected lengths to be a vector, received shape: ", lengths_arg.shape().DebugString()));
  XPU_REQUIRE(lengths_arg.NumElements() < std::numeric_limits<int32_t>::max(),
              errors::InvalidArgument("Expected lengths to have < max int32 entries"));
  const int32_t n = static_cast<int32_t>(lengths_arg.NumElements());
  const auto lengths = lengths_arg.vec<int64_t>();
  XPU_REQUIRE(value.dims() > 0, errors::InvalidArgument("Expected value to be at least a vector, but received shape: ",
                                                        value.shape().DebugString()));
  int64_t total = 0;
  for (int32_t i = 0; i < n; ++i) {
    XPU_REQUIRE(lengths(i) >= 0,
                errors::InvalidArgument("Expected lengths to be non-negative, but lengths[", i, "] is ", lengths(i)));
    XPU_REQUIRE(!__builtin_add_overflow(total, lengths(i), &total),
                errors::InvalidArgument("Expected lengths to have a sum of less than 2**63"));
  }
  XPU_REQUIRE(total == value.dim_size(0),
              errors::InvalidArgument("Expected sum of lengths to be equal to values.shape[0], but sum of lengths is ",
                                      total, " and value's shape is: ", value.shape().DebugString()));
  int32_t size;
  XPU_RETURN_IF_ERROR(FromNative(array->Size(&size)));
  if (array->HasDynamicSize()) size = std::max(size, n);
  XPU_REQUIRE(size == n,
              errors::InvalidArgument("TensorArray's size is not equal to the size of lengths (", size, " vs. ", n,
                                      "), and the TensorArray is not marked as dynamically "
                                      "resizeable"));
  XPU_RETURN_IF_ERROR(CheckWritten(value.dtype(), *array));
  std::vector<tf::Tensor> parts(n);
  int64_t begin = 0;
  for (int32_t i = 0; i < n; ++i) {
    tf::TensorShape part = value.shape();
    XPU_RETURN_IF_ERROR(FromNative(part.SetDimWithStatus(0, lengths(i))));
    XPU_RETURN_IF_ERROR(Part(ctx, value, begin, lengths(i), part, &parts[i]));
    begin += lengths(i);
  }
  XPU_RETURN_IF_ERROR(FromNative(array->SetMarkedSize(size)));
  return FromNative(array->WriteOrAggregateMany<OnXpu, AnyType>(native, All(n), &parts));
}

TensorArrayKernel::TensorArrayKernel(Construction& c, OnTensorArray what) : native_(std::make_unique<Native>()) {
  native_->what = what;
  auto* construction = reinterpret_cast<tf::OpKernelConstruction*>(c.native());
  if (what == OnTensorArray::kRead || what == OnTensorArray::kGather || what == OnTensorArray::kPack ||
      what == OnTensorArray::kConcat) {
    c.Fail(FromNative(construction->GetAttr("dtype", &native_->dtype)));
  }
  if (what == OnTensorArray::kGather || what == OnTensorArray::kPack) {
    c.Fail(FromNative(construction->GetAttr("element_shape", &native_->shape)));
  }
  if (what == OnTensorArray::kConcat) {
    c.Fail(FromNative(construction->GetAttr("element_shape_except0", &native_->shape)));
  }
}

TensorArrayKernel::~TensorArrayKernel() = default;

Status TensorArrayKernel::Compute(Context& ctx) {
  tf::OpKernelContext* native = xpu::Native(ctx);
  switch (native_->what) {
    case OnTensorArray::kRead:
      return native_->Read(native);
    case OnTensorArray::kGather:
    case OnTensorArray::kPack:
      return native_->Stack(ctx, native);
    case OnTensorArray::kConcat:
      return native_->Concat(ctx, native);
    default:
      break;
  }
  // Ops that change the array pass the flow on, the last input.
  native->set_output(0, native->input(native->num_inputs() - 1));
  switch (native_->what) {
    case OnTensorArray::kWrite:
      return native_->Write(native);
    case OnTensorArray::kSplit:
      return native_->Split(ctx, native);
    default:
      return native_->Unstack(ctx, native);
  }
}

}  // namespace xpu
