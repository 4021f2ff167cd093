#include "tensorflow_plugin/framework/tensor_lists.h"

#include <utility>

#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/kernels/tensor_list.h"
#include "tensorflow/core/kernels/tensor_list_util.h"
#include "tensorflow_plugin/framework/native.h"

namespace xpu {
namespace {

namespace tf = tensorflow;

// Elements may have more dimensions than arguments of a kernel; for a sum they need none.
tf::Tensor Flat(const tf::Tensor& t) {
  tf::Tensor flat(t.dtype());
  [[maybe_unused]] const bool fits = flat.CopyFrom(t, tf::TensorShape({t.NumElements()}));  // as many elements: it does
  return flat;
}

bool IsSet(const tf::Tensor& element) { return element.dtype() != tf::DT_INVALID; }

Status ListOf(const Context& ctx, int i, const tf::TensorList** list) {
  const tf::Tensor& t = Native(ctx)->input(i);
  XPU_REQUIRE(t.dtype() == tf::DT_VARIANT && t.dims() == 0,
              errors::InvalidArgument("input ", i, " must be a scalar variant, not ", tf::DataTypeString(t.dtype()),
                                      " of shape ", t.shape().DebugString()));
  *list = t.scalar<tf::Variant>()().get<tf::TensorList>();
  XPU_REQUIRE(*list != nullptr, errors::InvalidArgument("input ", i, " must be a TensorList, not ",
                                                        t.scalar<tf::Variant>()().DebugString()));
  return OkStatus();
}

Status Give(const Context& ctx, tf::TensorList list) {
  tf::AllocatorAttributes on_host;
  on_host.set_on_host(true);
  tf::Tensor* out = nullptr;
  XPU_RETURN_IF_ERROR(FromNative(Native(ctx)->allocate_output(0, tf::TensorShape({}), &out, on_host)));
  out->scalar<tf::Variant>()() = std::move(list);
  return OkStatus();
}

}  // namespace

Status AddTensorLists(Context& ctx, const AddElements& add) {
  const auto add_native = [&](tf::OpKernelContext* native, const tf::Tensor& a, const tf::Tensor& b,
                              tf::Tensor* sum) -> absl::Status {
    if (!IsSet(a) || !IsSet(b)) {
      *sum = IsSet(a) ? a : b;
      return absl::OkStatus();
    }
    if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
      return absl::InvalidArgumentError(errors::Concat(
          "Trying to add two tensors with incompatible element types or shapes. One is ", tf::DataTypeString(a.dtype()),
          a.shape().DebugString(), " and the other is ", tf::DataTypeString(b.dtype()), b.shape().DebugString()));
    }
    TF_RETURN_IF_ERROR(native->allocate_temp(a.dtype(), a.shape(), sum));
    const tf::Tensor x = Flat(a), y = Flat(b), z = Flat(*sum);
    return ToNative(add(Tensor(&x), Tensor(&y), Tensor(&z)));
  };
  const tf::TensorList* first = nullptr;
  XPU_RETURN_IF_ERROR(ListOf(ctx, 0, &first));
  tf::TensorList sum = *first;
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    const tf::TensorList* next = nullptr;
    XPU_RETURN_IF_ERROR(ListOf(ctx, i, &next));
    tf::TensorList both;
    XPU_RETURN_IF_ERROR(FromNative(tf::TensorListBinaryAdd(Native(ctx), sum, *next, &both, add_native)));
    sum = std::move(both);
  }
  return Give(ctx, std::move(sum));
}

Status ZeroTensorList(Context& ctx) {
  const auto zero = [&](tf::OpKernelContext* native, const tf::Tensor& like, tf::Tensor* zeros) -> absl::Status {
    if (!IsSet(like)) {
      *zeros = like;
      return absl::OkStatus();
    }
    TF_RETURN_IF_ERROR(native->allocate_temp(like.dtype(), like.shape(), zeros));
    return ToNative(ctx.Zero(zeros->data(), zeros->TotalBytes()));
  };
  const tf::TensorList* list = nullptr;
  XPU_RETURN_IF_ERROR(ListOf(ctx, 0, &list));
  tf::TensorList zeros;
  XPU_RETURN_IF_ERROR(FromNative(tf::TensorListZerosLike(Native(ctx), *list, &zeros, zero)));
  return Give(ctx, std::move(zeros));
}

}  // namespace xpu
