#include <cstdint>

#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {
namespace {

template <typename T>
Status Compact(const CompactDesc& desc, const T* x, int64_t* out) {
  using C = ComputeTypeT<T>;
  const int64_t n = desc.shape.num_elements();
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += static_cast<C>(x[i]) != C(0);
  XPU_REQUIRE(count == desc.count,
              errors::InvalidArgument("Compact: ", count, " elements are not zero, expected ", desc.count));
  const int rank = desc.shape.rank();
  for (int64_t i = 0; i < n; ++i) {
    if (static_cast<C>(x[i]) == C(0)) continue;
    int64_t rest = i;
    for (int axis = rank - 1; axis >= 0; --axis) {
      out[axis] = rest % desc.shape[axis];
      rest /= desc.shape[axis];
    }
    out += rank;
  }
  return OkStatus();
}

}  // namespace

Status ReferenceKernels::Run(const CompactDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  Status status;
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = Compact(desc, static_cast<const T*>(args.in[0]), static_cast<int64_t*>(args.out[0]));
  });
  return status;
}

}  // namespace xpu::reference
