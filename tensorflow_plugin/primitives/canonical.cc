#include "tensorflow_plugin/primitives/canonical.h"

namespace xpu {

MatMulLayout::MatMulLayout(const MatMulDesc& desc)
    : batch(desc.batch),
      a_strides(desc.a_batch_strides),
      b_strides(desc.b_batch_strides),
      c_strides(desc.c_batch_strides),
      lda(desc.lda != 0      ? desc.lda
          : desc.transpose_a ? desc.m
                             : desc.k),
      ldb(desc.ldb != 0      ? desc.ldb
          : desc.transpose_b ? desc.k
                             : desc.n),
      ldc(desc.ldc != 0 ? desc.ldc : desc.n) {
  if (c_strides.empty()) {
    c_strides = DenseStrides(batch);
    for (int64_t& stride : c_strides) stride *= desc.m * desc.n;
  }
  Dims* const strides[] = {&a_strides, &b_strides, &c_strides};
  MergeDims(&batch, strides, 3);
}

MatMulDesc Canonical(const MatMulDesc& desc) {
  const MatMulLayout layout(desc);
  MatMulDesc d = desc;
  d.batch = layout.batch;
  d.a_batch_strides = layout.a_strides;
  d.b_batch_strides = layout.b_strides;
  d.c_batch_strides = layout.c_strides;
  d.lda = layout.lda;
  d.ldb = layout.ldb;
  d.ldc = layout.ldc;
  if (d.batch.rank() != 1) return d;
  if (!d.transpose_a && d.b_batch_strides[0] == 0 && d.a_batch_strides[0] == d.m * d.lda &&
      d.c_batch_strides[0] == d.m * d.ldc) {
    d.m *= d.batch[0];
    d.batch[0] = 1;
  }
  if (d.batch[0] == 1) d.batch = d.a_batch_strides = d.b_batch_strides = d.c_batch_strides = Dims();
  return d;
}

}  // namespace xpu
