#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/nn/quantize_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

// Elements worth another thread.
constexpr int64_t kGrainElements = 1 << 16;

}  // namespace

Status CpuKernels::Run(const QuantizeRowsDesc& d, const Args& args, const host_runtime::ThreadTeam& team) const {
  const auto number = [&](int i) { return *static_cast<const float*>(args.in[i]); };
  const float epsilon = number(1), levels = number(2), most = number(3), least = number(4);
  const auto* x = static_cast<const float*>(args.in[0]);
  auto* q = static_cast<int8_t*>(args.out[0]);
  auto* scales = static_cast<float*>(args.out[1]);
  const auto largest = XPU_PICK_ISA(LargestMagnitude);
  const auto quantize = XPU_PICK_ISA(QuantizeRow);
  team.ParallelFor(d.rows, std::max<int64_t>(1, kGrainElements / d.cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* const from = x + row * d.cols;
      scales[row] = levels / (largest(from, d.cols) + epsilon);
      quantize(from, d.cols, scales[row], most, least, q + row * d.cols);
    }
  });
  return OkStatus();
}

}  // namespace xpu::cpu
