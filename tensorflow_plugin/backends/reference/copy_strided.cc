#include <cstdint>
#include <cstring>

#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {

Status ReferenceKernels::Run(const CopyStridedDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  const int rank = desc.shape.rank();
  const char* src = static_cast<const char*>(args.in[0]);
  char* dst = static_cast<char*>(args.out[0]);
  const int64_t size = static_cast<int64_t>(desc.element_size);
  const int64_t n = desc.shape.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    int64_t from = desc.src_offset, to = desc.dst_offset, rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t position = rest % desc.shape[d];
      rest /= desc.shape[d];
      from += position * desc.src_strides[d];
      to += position * desc.dst_strides[d];
    }
    std::memcpy(dst + to * size, src + from * size, size);
  }
  return OkStatus();
}

}  // namespace xpu::reference
