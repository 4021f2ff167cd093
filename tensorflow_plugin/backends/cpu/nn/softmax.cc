#include <algorithm>
#include <new>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/nn/softmax_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

constexpr int64_t kGrainElements = 1 << 14;

template <typename T>
const T* Dense(const T* row, int64_t stride, int64_t n, T* copy) {
  if (stride == 1) return row;
  for (int64_t i = 0; i < n; ++i) copy[i] = row[i * stride];
  return copy;
}

template <typename T>
void RunRows(const SoftmaxDesc& d, const Args& args, int64_t begin, int64_t end) {
  const T* logits = static_cast<const T*>(args.in[0]);
  T* first = static_cast<T*>(args.out[0]);
  ScratchFrame frame;
  float* exps = frame.Get<float>(d.cols);
  switch (d.kind) {
    case SoftmaxKind::kSoftmax:
    case SoftmaxKind::kLogSoftmax: {
      const auto run = d.kind == SoftmaxKind::kSoftmax ? XPU_PICK_ISA(SoftmaxRows<T>) : XPU_PICK_ISA(LogSoftmaxRows<T>);
      return run(logits + begin * d.cols, first + begin * d.cols, end - begin, d.cols, exps);
    }
    case SoftmaxKind::kCrossEntropy: {
      const T* labels = static_cast<const T*>(args.in[1]);
      T* backprop = static_cast<T*>(args.out[1]);
      T *logits_copy = frame.Get<T>(d.cols), *labels_copy = frame.Get<T>(d.cols);
      const auto run = XPU_PICK_ISA(CrossEntropyRow<T>);
      for (int64_t r = begin; r < end; ++r) {
        run(Dense(logits + r * d.logits_row_stride, d.logits_col_stride, d.cols, logits_copy),
            Dense(labels + r * d.labels_row_stride, d.labels_col_stride, d.cols, labels_copy), first + r,
            backprop + r * d.cols, d.cols, exps);
      }
      return;
    }
    case SoftmaxKind::kSparseCrossEntropy: {
      T* backprop = static_cast<T*>(args.out[1]);
      const auto run = XPU_PICK_ISA(SparseCrossEntropyRow<T>);
      for (int64_t r = begin; r < end; ++r) {
        const int64_t label = d.label_type == DType::kInt32 ? static_cast<const int32_t*>(args.in[1])[r]
                                                            : static_cast<const int64_t*>(args.in[1])[r];
        run(logits + r * d.cols, label, first + r, backprop + r * d.cols, d.cols, exps);
      }
      return;
    }
  }
}

}  // namespace

Status CpuKernels::Run(const SoftmaxDesc& d, const Args& args, const ThreadTeam& team) const {
  const bool labels_fit =
      d.kind != SoftmaxKind::kSparseCrossEntropy || d.label_type == DType::kInt32 || d.label_type == DType::kInt64;
  // Refused there, or too rare to deserve vectors of double.
  if (!labels_fit || !IsFloating(d.type) || d.type == DType::kDouble || d.cols <= 0) {
    return plain::Run(d, args);
  }
  try {
    team.ParallelFor(d.rows, std::max<int64_t>(1, kGrainElements / d.cols), [&](int64_t begin, int64_t end) {
      d.type == DType::kFloat  ? RunRows<float>(d, args, begin, end)
      : d.type == DType::kHalf ? RunRows<Half>(d, args, begin, end)
                               : RunRows<BFloat16>(d, args, begin, end);
    });
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for the temporaries of a softmax over ", d.cols, " columns");
  }
  return OkStatus();
}

}  // namespace xpu::cpu
