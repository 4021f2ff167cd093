#include <cstdint>

#include "tensorflow_plugin/backends/plain/scan_totals.h"
#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {

Status ReferenceKernels::Run(const ScanDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  plain::VisitScan(desc, [&](auto tag, auto kind) {
    using T = typename decltype(tag)::type;
    using C = ComputeTypeT<T>;
    const T* x = static_cast<const T*>(args.in[0]);
    T* y = static_cast<T*>(args.out[0]);
    for (int64_t line = 0; line < desc.outer * desc.inner; ++line) {
      const int64_t begin = line / desc.inner * desc.n * desc.inner + line % desc.inner;
      C total = plain::StartOfTotal<kind(), C>();
      for (int64_t i = 0; i < desc.n; ++i) {
        const int64_t at = begin + (desc.reverse ? desc.n - 1 - i : i) * desc.inner;
        const C before = total;
        total = plain::Total<kind(), C>(total, static_cast<C>(x[at]));
        y[at] = static_cast<T>(desc.exclusive ? before : total);
      }
    }
  });
  return OkStatus();
}

}  // namespace xpu::reference
