#include "tensorflow_plugin/primitives/canonical.h"

namespace xpu {

namespace {

int64_t LdaOf(const MatMulDesc& d) { return d.lda != 0 ? d.lda : d.transpose_a ? d.m : d.k; }
int64_t LdbOf(const MatMulDesc& d) { return d.ldb != 0 ? d.ldb : d.transpose_b ? d.k : d.n; }
int64_t LdcOf(const MatMulDesc& d) { return d.ldc != 0 ? d.ldc : d.n; }

void MergeBatch(int64_t matrix, Dims* batch, Dims* a, Dims* b, Dims* c) {
  if (batch->empty()) return;
  if (c->empty()) {
    *c = DenseStrides(*batch);
    for (int64_t& stride : *c) stride *= matrix;
  }
  Dims* const strides[] = {a, b, c};
  MergeDims(batch, strides, 3);
}

}  // namespace

MatMulLayout::MatMulLayout(const MatMulDesc& desc)
    : batch(desc.batch),
      a_strides(desc.a_batch_strides),
      b_strides(desc.b_batch_strides),
      c_strides(desc.c_batch_strides),
      lda(LdaOf(desc)),
      ldb(LdbOf(desc)),
      ldc(LdcOf(desc)) {
  MergeBatch(desc.m * desc.n, &batch, &a_strides, &b_strides, &c_strides);
}

void Canonicalize(MatMulDesc* d) {
  d->lda = LdaOf(*d);
  d->ldb = LdbOf(*d);
  d->ldc = LdcOf(*d);
  MergeBatch(d->m * d->n, &d->batch, &d->a_batch_strides, &d->b_batch_strides, &d->c_batch_strides);
  if (d->batch.rank() != 1) return;
  if (!d->transpose_a && d->b_batch_strides[0] == 0 && d->a_batch_strides[0] == d->m * d->lda &&
      d->c_batch_strides[0] == d->m * d->ldc) {
    d->m *= d->batch[0];
    d->batch[0] = 1;
  }
  if (d->batch[0] == 1) d->batch = d->a_batch_strides = d->b_batch_strides = d->c_batch_strides = Dims();
}

}  // namespace xpu
