#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/indices.h"
#include "tensorflow_plugin/backends/host_runtime/scatter_op.h"
#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {
namespace {

// Where each update goes: a row of the buffer, or -1 for one that is left out.
struct Targets {
  std::vector<int64_t> rows;
  Status status;  // of the first index out of range
};

template <typename I>
Targets TargetsOf(const ScatterDesc& desc, const I* indices) {
  const int depth = desc.dims.rank();
  Targets targets{std::vector<int64_t>(desc.num_indices), OkStatus()};
  for (int64_t j = 0; j < desc.num_indices; ++j) {
    const I* index = indices + j * depth;
    targets.rows[j] = host_runtime::RowOf(index, desc.dims);
    if (targets.rows[j] >= 0 || !targets.status.ok()) continue;
    const bool negative = std::any_of(index, index + depth, [](I i) { return i < I{0}; });
    if (desc.skip_negative && negative) continue;
    targets.status = host_runtime::IndexError(std::to_string(j), index, desc.dims);
  }
  return targets;
}

template <ScatterKind kind, typename T>
Status Scatter(const ScatterDesc& desc, const Targets& targets, const T* updates, T* buffer) {
  Status division;
  for (int64_t j = 0; j < desc.num_indices; ++j) {
    if (targets.rows[j] < 0) continue;
    for (int64_t k = 0; k < desc.inner; ++k) {
      const T update = desc.scalar_update ? updates[0] : updates[j * desc.inner + k];
      T& element = buffer[targets.rows[j] * desc.inner + k];
      if constexpr (kind == ScatterKind::kDiv && std::is_integral_v<T>) {
        if (update == T{0} && division.ok()) division = host_runtime::DivisionByZero(j, k);
      }
      element = host_runtime::Combine<kind>(element, update);
    }
  }
  return targets.status.ok() ? division : targets.status;
}

}  // namespace

Status ReferenceKernels::Run(const ScatterDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  Targets targets;
  XPU_RETURN_IF_ERROR(host_runtime::VisitIndexType(desc.index_type, [&](auto tag) {
    using I = typename decltype(tag)::type;
    targets = TargetsOf(desc, static_cast<const I*>(args.in[0]));
    return OkStatus();
  }));
  Status status;
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    host_runtime::VisitScatter<T>(desc.kind, [&](auto kind) {
      status = Scatter<kind.value>(desc, targets, static_cast<const T*>(args.in[1]), static_cast<T*>(args.out[0]));
    });
  });
  return status;
}

}  // namespace xpu::reference
