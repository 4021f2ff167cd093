#include <cstdint>
#include <cstring>
#include <string>

#include "tensorflow_plugin/backends/host_runtime/indices.h"
#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {
namespace {

template <typename I>
Status Gather(const GatherDesc& desc, const char* params, const I* indices, char* out) {
  const int depth = desc.dims.rank();
  const int64_t row_size = desc.inner * static_cast<int64_t>(desc.element_size);
  const int64_t rows = desc.dims.num_elements();
  Status status;
  for (int64_t b = 0; b < desc.batch; ++b) {
    for (int64_t o = 0; o < desc.outer; ++o) {
      for (int64_t j = 0; j < desc.num_indices; ++j) {
        const I* index = indices + (b * desc.num_indices + j) * depth;
        const int64_t row = host_runtime::RowOf(index, desc.dims);
        char* to = out + ((b * desc.outer + o) * desc.num_indices + j) * row_size;
        if (row >= 0) {
          if (row_size > 0) std::memcpy(to, params + ((b * desc.outer + o) * rows + row) * row_size, row_size);
        } else {
          if (row_size > 0) std::memset(to, 0, row_size);
          if (status.ok()) {
            const std::string position = (desc.batch > 1 ? std::to_string(b) + "," : "") + std::to_string(j);
            status = host_runtime::IndexError(position, index, desc.dims);
          }
        }
      }
    }
  }
  return status;
}

}  // namespace

Status ReferenceKernels::Run(const GatherDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  return host_runtime::VisitIndexType(desc.index_type, [&](auto tag) {
    using I = typename decltype(tag)::type;
    return Gather(desc, static_cast<const char*>(args.in[0]), static_cast<const I*>(args.in[1]),
                  static_cast<char*>(args.out[0]));
  });
}

}  // namespace xpu::reference
