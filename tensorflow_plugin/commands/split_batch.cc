#include "tensorflow_plugin/commands/split_batch.h"

#include <type_traits>
#include <variant>

#include "tensorflow_plugin/commands/work.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

// An operand that is read or written from beginning to end: the next part begins where one ends.
constexpr int64_t kDense = -1;

// The elements from one part to the next, by operand.
struct ElementSteps {
  std::vector<int64_t> in, out;
};

bool Divide(int64_t* extent, int64_t parts) {
  if (*extent % parts != 0) return false;
  *extent /= parts;
  return true;
}

// The first axis of more than one element; the rank if there is none.
int FirstAxis(const Dims& shape) {
  int axis = 0;
  while (axis < shape.rank() && shape[axis] == 1) ++axis;
  return axis;
}

// Inputs from the one with the number `first` on; an epilogue's first is the product.
bool CutProgram(int first, int64_t parts, ElementwiseDesc* d, ElementSteps* steps) {
  const int axis = FirstAxis(d->shape);
  if (axis == d->shape.rank() || !Divide(&d->shape[axis], parts)) return false;
  for (int i = first; i < d->program->num_inputs(); ++i) {
    steps->in.push_back(d->in_strides[i][axis] * d->shape[axis]);
  }
  steps->out.assign(d->program->num_outputs(), kDense);
  return true;
}

template <typename Desc>
bool CutEpilogue(int64_t parts, Desc* d, ElementSteps* steps) {
  return !HasEpilogue(*d) || CutProgram(1, parts, &d->epilogue, steps);
}

// The kinds that have a batch. Cut makes a descriptor that of one part; false if there is none.
template <typename Desc, typename... Kinds>
inline constexpr bool kIsOneOf = (std::is_same_v<Desc, Kinds> || ...);
template <typename Desc>
inline constexpr bool kHasBatch = kIsOneOf<Desc, ElementwiseDesc, ReduceDesc, ConvolutionDesc, MatMulDesc, PoolDesc,
                                           ResampleDesc, SoftmaxDesc, CopyStridedDesc>;

bool Cut(int64_t parts, ElementwiseDesc* d, ElementSteps* steps) { return CutProgram(0, parts, d, steps); }

bool Cut(int64_t parts, ReduceDesc* d, ElementSteps* steps) {
  // Asked of the shape before it is cut: an axis of one element may be left.
  const int axis = FirstAxis(d->source.shape);
  if (axis == d->source.shape.rank() || (d->axes >> axis & 1) != 0 || !CutProgram(0, parts, &d->source, steps)) {
    return false;
  }
  steps->out = {kDense};
  return true;
}

bool Cut(int64_t parts, ConvolutionDesc* d, ElementSteps* steps) {
  if (d->direction != Direction::kForward || !Divide(&d->batch, parts)) return false;
  steps->in.assign(NumOperands(*d), 0);
  steps->in[0] = kDense;
  steps->out = {kDense};
  return CutEpilogue(parts, d, steps);
}

// The rows of one product, or the products of a batch.
bool Cut(int64_t parts, MatMulDesc* d, ElementSteps* steps) {
  if (d->batch.empty()) {
    if (d->transpose_a || !Divide(&d->m, parts)) return false;
    steps->in = {d->m * (d->lda != 0 ? d->lda : d->k), 0};
    steps->out = {d->m * (d->ldc != 0 ? d->ldc : d->n)};
  } else {
    if (!Divide(&d->batch[0], parts)) return false;
    const auto step = [&](const Dims& strides) { return strides[0] * d->batch[0]; };
    steps->in = {step(d->a_batch_strides), step(d->b_batch_strides)};
    steps->out = {d->c_batch_strides.empty() ? kDense : step(d->c_batch_strides)};
  }
  return CutEpilogue(parts, d, steps);
}

bool Cut(int64_t parts, PoolDesc* d, ElementSteps* steps) {
  if (d->gradient || !Divide(&d->batch, parts)) return false;
  steps->in = {kDense};
  steps->out.assign(d->positions_type == DType::kInvalid ? 1 : 2, kDense);
  return true;
}

bool Cut(int64_t parts, ResampleDesc* d, ElementSteps* steps) {
  if (!Divide(&d->batch, parts)) return false;
  steps->in = {kDense, 0, 0, 0, 0};
  steps->out = {kDense};
  return true;
}

bool Cut(int64_t parts, SoftmaxDesc* d, ElementSteps* steps) {
  if ((d->kind != SoftmaxKind::kSoftmax && d->kind != SoftmaxKind::kLogSoftmax) || !Divide(&d->rows, parts)) {
    return false;
  }
  steps->in = {kDense};
  steps->out = {kDense};
  return true;
}

bool Cut(int64_t parts, CopyStridedDesc* d, ElementSteps* steps) {
  if (d->shape.empty() || !Divide(&d->shape[0], parts)) return false;
  steps->in = {d->src_strides[0] * d->shape[0]};
  steps->out = {d->dst_strides[0] * d->shape[0]};
  return true;
}

bool InBytes(const std::vector<int64_t>& elements, const Operand* operands, int count, std::vector<int64_t>* bytes) {
  if (static_cast<int>(elements.size()) != count) return false;
  for (int i = 0; i < count; ++i) {
    bytes->push_back(elements[i] == kDense ? operands[i].end : elements[i] * operands[i].element_size);
  }
  return true;
}

}  // namespace

std::optional<BatchParts> SplitBatch(const Capabilities& can, const Command& command, int64_t parts) {
  ++Steps();
  if (command.is_awaited() || command.workspace.buffer != BufferSlice::kNowhere) return std::nullopt;
  BatchParts split;
  split.first = command;
  split.first.footprint = {};
  ElementSteps steps;
  const bool is_cut = std::visit(
      [&](auto& desc) {
        if constexpr (kHasBatch<std::decay_t<decltype(desc)>>) {
          return Cut(parts, &desc, &steps) && Check(desc, &split.first.footprint).ok() && can.Supports(desc) &&
                 can.WorkspaceBytes(desc) == 0;
        }
        return false;
      },
      split.first.desc);
  const Footprint& footprint = split.first.footprint;
  if (!is_cut || !InBytes(steps.in, footprint.in, footprint.num_in, &split.in_steps) ||
      !InBytes(steps.out, footprint.out, footprint.num_out, &split.out_steps)) {
    return std::nullopt;
  }
  return split;
}

}  // namespace xpu::commands
