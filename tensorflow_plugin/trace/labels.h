// The facts that are known of a command before it runs: its name, its op, and how much it computes and moves.
#ifndef TENSORFLOW_PLUGIN_TRACE_LABELS_H_
#define TENSORFLOW_PLUGIN_TRACE_LABELS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/command_list.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::trace {

// Operations of floating point (of integers, for programs of integers) that the mathematics of a command needs. An
// addition, a multiplication and a function of the library are one each; operations that an implementation saves or
// repeats do not count. 0 where elements are only moved, compared or made up, or where the number depends on data.
template <typename Desc>
int64_t Flops(const Desc&) {
  return 0;
}
int64_t Flops(const ElementwiseDesc& desc);
int64_t Flops(const ReduceDesc& desc);
int64_t Flops(const MatMulDesc& desc);
int64_t Flops(const WeightMatMulDesc& desc);
int64_t Flops(const QuantizeRowsDesc& desc);
int64_t Flops(const ConvolutionDesc& desc);
int64_t Flops(const PoolDesc& desc);
int64_t Flops(const NormalizeDesc& desc);
int64_t Flops(const SoftmaxDesc& desc);
int64_t Flops(const ScatterDesc& desc);
int64_t Flops(const ScanDesc& desc);
int64_t Flops(const SampleDesc& desc);
int64_t Flops(const ResampleDesc& desc);
int64_t Flops(const FftDesc& desc);
int64_t Flops(const FactorizeDesc& desc);
int64_t Flops(const SolveDesc& desc);

// Those of its operands, each once.
int64_t BytesOf(const Footprint& footprint);

// "MatMul of float".
template <typename Desc>
NameId WhatOf(const Desc& desc) {
  return Intern(Name(desc));
}
// Names each program once a thread: it takes as long as the smallest of them.
NameId WhatOf(const ElementwiseDesc& desc);

// The label of what this thread is about to enqueue.
template <typename Desc>
Label LabelOf(const Desc& desc, const Footprint& footprint) {
  Label label;
  label.what = WhatOf(desc);
  label.flops = Flops(desc);
  label.bytes = BytesOf(footprint);
  ScopedOp::Fill(&label);
  return label;
}
// A copy's bytes count twice, as they are read and written.
Label LabelOf(Kind kind, const char* what, int64_t bytes);

// The labels of every command, the op left open.
std::vector<Label> LabelsOf(const CommandList& list);

}  // namespace xpu::trace

#endif  // TENSORFLOW_PLUGIN_TRACE_LABELS_H_
