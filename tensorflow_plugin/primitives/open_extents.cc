#include <algorithm>

#include "tensorflow_plugin/primitives/check.h"

namespace xpu {

ElementwiseDesc OpenExtents(ElementwiseDesc desc) {
  desc.shape = {kAny};
  for (int i = 0; desc.program != nullptr && i < desc.program->num_inputs(); ++i) desc.in_strides[i] = {kAny};
  return desc;
}

ReduceDesc OpenExtents(ReduceDesc desc) {
  desc.source = OpenExtents(desc.source);
  desc.axes = 1;  // stands for any axes of the open shape
  return desc;
}

MatMulDesc OpenExtents(MatMulDesc desc) {
  desc.batch = desc.a_batch_strides = desc.b_batch_strides = desc.c_batch_strides = {kAny};
  desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = kAny;
  desc.epilogue = OpenExtents(desc.epilogue);
  return desc;
}

ConvolutionDesc OpenExtents(ConvolutionDesc desc) {
  desc.batch = desc.in_channels = desc.out_channels = desc.groups = kAny;
  for (int64_t* extents :
       {desc.input, desc.filter, desc.output, desc.stride, desc.dilation, desc.pad_before, desc.pad_after}) {
    std::fill_n(extents, desc.spatial_rank, kAny);
  }
  desc.epilogue = OpenExtents(desc.epilogue);
  return desc;
}

PoolDesc OpenExtents(PoolDesc desc) {
  desc.batch = desc.channels = kAny;
  for (int64_t* extents : {desc.input, desc.window, desc.output, desc.stride, desc.pad_before, desc.pad_after}) {
    std::fill_n(extents, desc.spatial_rank, kAny);
  }
  return desc;
}

NormalizeDesc OpenExtents(NormalizeDesc desc) {
  desc.batch = desc.spatial = desc.channels = kAny;
  return desc;
}

SoftmaxDesc OpenExtents(SoftmaxDesc desc) {
  desc.rows = desc.cols = kAny;
  desc.logits_row_stride = desc.logits_col_stride = desc.labels_row_stride = desc.labels_col_stride = kAny;
  return desc;
}

CopyStridedDesc OpenExtents(CopyStridedDesc desc) {
  desc.shape = desc.src_strides = desc.dst_strides = {kAny};
  desc.src_offset = desc.dst_offset = kAny;
  return desc;
}

GatherDesc OpenExtents(GatherDesc desc) {
  desc.batch = desc.outer = desc.inner = desc.num_indices = kAny;
  desc.dims = {kAny};
  return desc;
}

ScatterDesc OpenExtents(ScatterDesc desc) {
  desc.num_indices = desc.inner = kAny;
  desc.dims = {kAny};
  return desc;
}

RandomDesc OpenExtents(RandomDesc desc) {
  desc.n = desc.parameters = kAny;
  return desc;
}

CompactDesc OpenExtents(CompactDesc desc) {
  desc.shape = {kAny};
  desc.count = kAny;
  return desc;
}

ScanDesc OpenExtents(ScanDesc desc) {
  desc.outer = desc.n = desc.inner = kAny;
  return desc;
}

SortDesc OpenExtents(SortDesc desc) {
  desc.rows = desc.n = desc.k = kAny;
  return desc;
}

SearchDesc OpenExtents(SearchDesc desc) {
  desc.rows = desc.n = desc.m = kAny;
  return desc;
}

UniqueDesc OpenExtents(UniqueDesc desc) {
  desc.n = desc.inner = kAny;
  return desc;
}

SampleDesc OpenExtents(SampleDesc desc) {
  for (int64_t* extent :
       {&desc.images, &desc.height, &desc.width, &desc.channels, &desc.batch, &desc.out_h, &desc.out_w}) {
    *extent = kAny;
  }
  desc.y_strides = desc.x_strides = {kAny};
  return desc;
}

ResampleDesc OpenExtents(ResampleDesc desc) {
  for (int64_t* extent :
       {&desc.batch, &desc.height, &desc.width, &desc.channels, &desc.out_h, &desc.out_w, &desc.y_taps, &desc.x_taps}) {
    *extent = kAny;
  }
  return desc;
}

FftDesc OpenExtents(FftDesc desc) {
  desc.batch = kAny;
  desc.shape = {kAny};
  return desc;
}

FactorizeDesc OpenExtents(FactorizeDesc desc) {
  desc.batch = desc.rows = desc.cols = kAny;
  return desc;
}

SolveDesc OpenExtents(SolveDesc desc) {
  desc.batch = desc.n = desc.columns = kAny;
  return desc;
}

SuppressDesc OpenExtents(SuppressDesc desc) {
  desc.n = desc.most = kAny;
  return desc;
}

}  // namespace xpu
