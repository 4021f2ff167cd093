#include "tensorflow_plugin/backends/cpu/convolution/onednn_panels.h"

#include <algorithm>
#include <cstring>

namespace xpu::cpu {

void OnednnPanels::Pack(const float* matrix, int64_t stride, float* to, const host_runtime::ThreadTeam& team) const {
  // Some rows of a panel at a time, so that there is work for all threads.
  constexpr int64_t kRows = 64, kGrain = 1 << 15;  // elements
  const int64_t down = (rows + kRows - 1) / kRows;
  team.ParallelFor(panels() * down, std::max<int64_t>(1, kGrain / (kRows * width)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t panel = i / down, first = i % down * kRows, last = std::min(first + kRows, rows);
      const int64_t count = std::min(width, cols - panel * width);
      float* out = to + (panel * rows + first) * width;
      for (int64_t row = first; row < last; ++row, out += width) {
        std::memcpy(out, matrix + row * stride + panel * width, count * sizeof(float));
        std::memset(out + count, 0, (width - count) * sizeof(float));
      }
    }
  });
}

OnednnPanels OnednnPanelsOf(const dnnl::memory::desc& wanted, const std::vector<int>& row, int col) {
  const auto blocks = wanted.get_inner_blks(), blocked = wanted.get_inner_idxs();
  const auto dims = wanted.get_dims(), strides = wanted.get_strides();
  if (blocks.size() != 1 || blocked[0] != col) return {};
  OnednnPanels panels{1, dims[col], blocks[0]};
  for (size_t i = row.size(); i-- > 0;) {
    const int64_t extent = dims[row[i]];
    if (extent > 1 && strides[row[i]] != panels.rows * panels.width) return {};
    panels.rows *= extent;
  }
  if (panels.panels() > 1 && strides[col] != panels.rows * panels.width) return {};
  return static_cast<size_t>(panels.elements()) * sizeof(float) == wanted.get_size() ? panels : OnednnPanels();
}

}  // namespace xpu::cpu
