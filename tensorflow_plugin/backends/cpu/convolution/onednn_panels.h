// A filter as oneDNN's convolutions read it. It is a matrix of all that a pixel of the output meets by output channels,
// in panels of a few columns. Each panel is a dense matrix of its own.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_ONEDNN_PANELS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_ONEDNN_PANELS_H_

#include <cstdint>
#include <vector>

#include "dnnl.hpp"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"

namespace xpu::cpu {

struct OnednnPanels {
  int64_t rows = 0, cols = 0;  // of the matrix, of float
  int64_t width = 0;           // columns of a panel; the last one is filled up with zeros

  int64_t panels() const { return (cols + width - 1) / width; }
  int64_t elements() const { return panels() * rows * width; }
  // Copies the matrix, whose rows are `stride` apart and dense.
  void Pack(const float* matrix, int64_t stride, float* to, const host_runtime::ThreadTeam& team) const;
};

// The layout that oneDNN wants for a matrix whose columns are dimension `col`. Its rows are the dimensions `row`, the
// last one fastest. A width of 0 if oneDNN wants something else.
OnednnPanels OnednnPanelsOf(const dnnl::memory::desc& wanted, const std::vector<int>& row, int col);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_ONEDNN_PANELS_H_
