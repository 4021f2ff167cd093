#include <algorithm>
#include <unordered_map>

#include "tensorflow_plugin/trace/labels.h"

namespace xpu::trace {
namespace {

// A product and a sum of complex numbers are four of each of real ones.
int64_t PerMultiplyAdd(DType type) { return IsComplex(type) ? 8 : 2; }

int64_t Product(const int64_t* extents, int rank) {
  int64_t product = 1;
  for (int i = 0; i < rank; ++i) product *= extents[i];
  return product;
}

// The operations of one element; a conversion is none.
int64_t OfProgram(const Program& program) {
  return std::count_if(program.instrs().begin(), program.instrs().end(),
                       [](const Instr& instr) { return instr.op != Opcode::kCast; });
}

int64_t OfSource(const ElementwiseDesc& d) { return d.shape.num_elements() * OfProgram(*d.program); }
template <typename Desc>
int64_t OfEpilogue(const Desc& d) {
  return HasEpilogue(d) ? OfSource(d.epilogue) : 0;
}

int64_t Log2(int64_t n) {
  int64_t log = 0;
  while (n > 1) n = (n + 1) / 2, ++log;
  return log;
}

Label LabelOfDescriptor(const CopyBytes& d, const Footprint&) {
  return LabelOf(Kind::kCopy, "copy on the device", static_cast<int64_t>(d.bytes));
}
Label LabelOfDescriptor(const FillBytes& d, const Footprint&) {
  return LabelOf(Kind::kFill, "fill", static_cast<int64_t>(d.bytes));
}
Label LabelOfDescriptor(const FillWords& d, const Footprint&) {
  return LabelOf(Kind::kFill, "fill", static_cast<int64_t>(d.bytes));
}
Label LabelOfDescriptor(const CopyConstant& d, const Footprint&) {
  return LabelOf(Kind::kCopy, "copy from the host", static_cast<int64_t>(d.bytes->size()));
}
Label LabelOfDescriptor(const CopyFromHost& d, const Footprint&) {
  return LabelOf(Kind::kCopy, "copy from the host", static_cast<int64_t>(d.bytes));
}
Label LabelOfDescriptor(const CopyToHost& d, const Footprint&) {
  return LabelOf(Kind::kCopy, "copy to the host", static_cast<int64_t>(d.bytes));
}
template <typename Desc>
Label LabelOfDescriptor(const Desc& d, const Footprint& footprint) {
  return LabelOf(d, footprint);
}

}  // namespace

NameId WhatOf(const ElementwiseDesc& desc) {
  thread_local std::unordered_map<const Program*, NameId> names;  // equal programs are one, and live for ever
  NameId& name = names[desc.program];
  if (name == 0) name = Intern(Name(desc));
  return name;
}

int64_t Flops(const ElementwiseDesc& d) { return OfSource(d); }

int64_t Flops(const ReduceDesc& d) { return d.source.shape.num_elements() + OfSource(d.source); }

int64_t Flops(const MatMulDesc& d) {
  const int64_t products = PerMultiplyAdd(d.type) * d.batch.num_elements() * d.m * d.n * d.k;
  return products + OfEpilogue(d);
}

// An element has a product and a rounding, a row a sum and a quotient.
int64_t Flops(const QuantizeRowsDesc& d) { return d.rows * (2 * d.cols + 2); }

int64_t Flops(const WeightMatMulDesc& d) { return PerMultiplyAdd(d.type) * d.m * d.n * d.k + OfEpilogue(d); }

// The same in every direction: each element of the output, or of its gradient, meets each of its window.
int64_t Flops(const ConvolutionDesc& d) {
  if (d.direction == Direction::kPackFilter) return 0;
  const int64_t outputs = d.batch * Product(d.output, d.spatial_rank) * d.out_channels;
  const int64_t products = outputs * Product(d.filter, d.spatial_rank) * (d.in_channels / d.groups);
  return PerMultiplyAdd(d.type) * products + OfEpilogue(d);
}

int64_t Flops(const PoolDesc& d) {
  return d.batch * d.channels * Product(d.output, d.spatial_rank) * Product(d.window, d.spatial_rank);
}

// Forward: the two statistics, where they are taken, and a multiplication and an addition. Backward: two sums of
// products, and what is left of each element.
int64_t Flops(const NormalizeDesc& d) {
  const int64_t elements = d.batch * d.spatial * d.channels;
  if (d.gradient) return (d.training ? 9 : 5) * elements;
  return (d.training ? 6 : 2) * elements;
}

// The maximum, a subtraction, an exponential, a sum, a division; entropies multiply, add and subtract, too.
int64_t Flops(const SoftmaxDesc& d) { return (d.kind == SoftmaxKind::kCrossEntropy ? 8 : 5) * d.rows * d.cols; }

int64_t Flops(const ScatterDesc& d) { return d.kind == ScatterKind::kUpdate ? 0 : d.num_indices * d.inner; }

int64_t Flops(const ScanDesc& d) { return d.outer * d.n * d.inner; }

// Three interpolations of three operations each.
int64_t Flops(const SampleDesc& d) {
  return d.kind == SampleKind::kNearest ? 0 : 9 * d.batch * d.out_h * d.out_w * d.channels;
}

int64_t Flops(const ResampleDesc& d) { return 2 * d.batch * d.out_h * d.out_w * d.channels * (d.y_taps + d.x_taps); }

// The customary 5 n log2 n, half of it where one side is real.
int64_t Flops(const FftDesc& d) {
  const int64_t n = d.shape.num_elements();
  return d.batch * 5 * n * Log2(n) / (d.kind == FftKind::kComplex ? 1 : 2);
}

// Those of the textbook's algorithms (Golub, Van Loan), of which the iterations of eigenvalues and singular values are
// an estimate.
int64_t Flops(const FactorizeDesc& d) {
  const int64_t m = std::max(d.rows, d.cols), n = std::min(d.rows, d.cols);
  const auto each = [&]() -> int64_t {
    switch (d.kind) {
      case FactorizeKind::kCholesky:
        return n * n * n / 3;
      case FactorizeKind::kLu:
        return 2 * n * n * n / 3;
      case FactorizeKind::kQr:
        return 4 * n * n * (m - n / 3);
      case FactorizeKind::kEigen:
        return (d.vectors ? 9 : 4) * n * n * n;
      case FactorizeKind::kSvd:
        return d.vectors ? 4 * m * n * n + 8 * n * n * n : 4 * m * n * n;
    }
    return 0;
  };
  return PerMultiplyAdd(d.type) / 2 * d.batch * each();
}

int64_t Flops(const SolveDesc& d) {
  const int64_t factor = PerMultiplyAdd(d.type) / 2 * d.batch;
  if (d.kind == SolveKind::kTridiagonal) return factor * 8 * d.n * d.columns;
  const int64_t substitution = d.n * d.n * d.columns;
  if (d.kind != SolveKind::kGeneral) return factor * substitution;
  return factor * (2 * d.n * d.n * d.n / 3 + 2 * substitution);
}

int64_t BytesOf(const Footprint& footprint) {
  int64_t bytes = 0;
  for (int i = 0; i < footprint.num_in; ++i) bytes += footprint.in[i].elements * footprint.in[i].element_size;
  for (int i = 0; i < footprint.num_out; ++i) bytes += footprint.out[i].elements * footprint.out[i].element_size;
  return bytes;
}

Label LabelOf(Kind kind, const char* what, int64_t bytes) {
  Label label;
  label.kind = kind;
  label.what = Intern(what);
  label.bytes = kind == Kind::kCopy ? 2 * bytes : bytes;
  ScopedOp::Fill(&label);
  return label;
}

std::vector<Label> LabelsOf(const CommandList& list) {
  std::vector<Label> labels;
  for (const Command& command : list.commands) {
    labels.push_back(
        std::visit([&](const auto& desc) { return LabelOfDescriptor(desc, command.footprint); }, command.desc));
    labels.back().op = labels.back().op_type = 0;
  }
  return labels;
}

}  // namespace xpu::trace
