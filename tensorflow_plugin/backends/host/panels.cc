#include "tensorflow_plugin/backends/host/panels.h"

#include <algorithm>
#include <cstring>

namespace xpu::host {

void Panels::Pack(const float* matrix, int64_t stride, float* to, const runtime::ThreadTeam& team) const {
  // Some rows of a panel at a time, so that there is work for all threads.
  constexpr int64_t kRows = 64, kGrain = 1 << 15;  // elements
  const int64_t down = (depth + kRows - 1) / kRows;
  team.ParallelFor(panels() * down, std::max<int64_t>(1, kGrain / (kRows * width)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t panel = i / down, first = i % down * kRows, last = std::min(first + kRows, depth);
      const int64_t count = std::min(width, cols - panel * width);
      float* out = to + (panel * depth + first) * width;
      for (int64_t row = first; row < last; ++row, out += width) {
        const int64_t there = row < rows ? count : 0;
        std::memcpy(out, matrix + row * stride + panel * width, there * sizeof(float));
        std::memset(out + there, 0, (width - there) * sizeof(float));
      }
    }
  });
}

Panels PanelsOf(const dnnl::memory::desc& wanted, const std::vector<int>& row, int col) {
  const auto blocks = wanted.get_inner_blks(), blocked = wanted.get_inner_idxs();
  const auto dims = wanted.get_dims(), strides = wanted.get_strides();
  if (blocks.empty() || blocks.size() > 2 || blocked.back() != col) return {};
  if (blocks.size() == 2 && blocked[0] != row.back()) return {};
  Panels panels;
  panels.width = blocks.back();
  panels.cols = dims[col];
  panels.rows = 1;
  int64_t stride = panels.width * (blocks.size() == 2 ? blocks[0] : 1);
  for (size_t i = row.size(); i-- > 0;) {
    const int d = row[i];
    const bool in_blocks = blocks.size() == 2 && i + 1 == row.size();
    const int64_t extent = in_blocks ? (dims[d] + blocks[0] - 1) / blocks[0] : dims[d];
    if (extent > 1 && strides[d] != stride) return {};
    stride *= extent;
    panels.rows *= dims[d];
  }
  if (panels.panels() > 1 && strides[col] != stride) return {};
  panels.depth = stride / panels.width;
  return static_cast<size_t>(panels.elements()) * sizeof(float) == wanted.get_size() ? panels : Panels();
}

}  // namespace xpu::host
