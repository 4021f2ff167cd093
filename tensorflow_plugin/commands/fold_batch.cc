// Replaces a product for each of a batch, whose results are all added up, by one product over a longer sum. The
// gradient of weights that a whole batch was multiplied with is such a sum.
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

// The sum over the first `batches` parts of a dense array, of so many elements each.
bool SumsOver(const ReduceDesc& d, int64_t batches, int64_t elements) {
  const Program& p = *d.source.program;
  const Dims& shape = d.source.shape;
  if (d.kind != ReduceKind::kSum || !p.instrs().empty() || p.num_inputs() != 1 ||
      d.source.in_strides[0] != DenseStrides(shape)) {
    return false;
  }
  int64_t reduced = 1, kept = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_reduced = d.axes >> i & 1;
    if (is_reduced && kept != 1) return false;
    (is_reduced ? reduced : kept) *= shape[i];
  }
  return reduced == batches && kept == elements;
}

// Makes one product of those of a batch; false where the matrices do not lie so behind each other.
bool Lengthen(MatMulDesc* d) {
  if (d->batch.empty() || !d->c_batch_strides.empty() || d->ldc != 0 || HasEpilogue(*d)) return false;
  Dims* const strides[] = {&d->a_batch_strides, &d->b_batch_strides};
  MergeDims(&d->batch, strides, 2);
  if (d->batch.rank() != 1) return false;
  // Between the ends of the sums of two products: a row of a turned `a`, or a column of the other; likewise `b`.
  const int64_t lda = d->lda != 0 ? d->lda : d->transpose_a ? d->m : d->k;
  const int64_t ldb = d->ldb != 0 ? d->ldb : d->transpose_b ? d->k : d->n;
  if (d->a_batch_strides[0] != (d->transpose_a ? d->k * lda : d->k)) return false;
  if (d->b_batch_strides[0] != (d->transpose_b ? d->k : d->k * ldb)) return false;
  d->lda = lda;
  d->ldb = ldb;
  d->k *= d->batch[0];
  d->batch = d->a_batch_strides = d->b_batch_strides = Dims();
  return true;
}

}  // namespace

void FoldMatMulBatch(const Capabilities& can, CommandList* list) {
  const BufferUses uses = UsesOf(*list);
  std::vector<bool> gone(list->commands.size(), false);
  for (Command& sum : list->commands) {
    const auto* reduce = std::get_if<ReduceDesc>(&sum.desc);
    if (reduce == nullptr || sum.in[0].buffer == BufferSlice::kNowhere || sum.workspace.buffer != BufferSlice::kNowhere)
      continue;
    const BufferUses::OfBuffer& of_terms = uses.buffers[sum.in[0].buffer];
    if (of_terms.kept || of_terms.writers.size() != 1 || of_terms.readers.size() != 1) continue;
    const int writer = of_terms.writers[0];
    Command& product = list->commands[writer];
    const auto* desc = std::get_if<MatMulDesc>(&product.desc);
    // Each of the products is rounded if it is of 16 bits.
    if (desc == nullptr || IsReducedFloat(desc->type) || product.workspace.buffer != BufferSlice::kNowhere ||
        !WritesWhole(*list, product, 0) || !SumsOver(*reduce, desc->batch.num_elements(), desc->m * desc->n)) {
      continue;
    }
    // It is written where the product was: nobody must look there before.
    const BufferSlice to = sum.out[0];
    if (list->buffers[to.buffer].kind != Buffer::Kind::kComputed || uses.buffers[to.buffer].writers.size() != 1) {
      continue;
    }
    Command one;
    MatMulDesc longer = *desc;
    if (!Lengthen(&longer) || !Check(longer, &one.footprint).ok() || !can.Supports(longer)) continue;
    one.desc = longer;
    one.in = product.in;
    one.out = {to};
    one.origin = product.origin;
    if (const int64_t bytes = can.WorkspaceBytes(longer); bytes > 0) {
      one.workspace = {static_cast<int>(list->buffers.size()), 0};
      list->buffers.push_back({Buffer::Kind::kComputed, bytes, nullptr});
    }
    gone[&sum - list->commands.data()] = true;
    product = std::move(one);
  }
  Remove(gone, list);
}

}  // namespace xpu::commands
