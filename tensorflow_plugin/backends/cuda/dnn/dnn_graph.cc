#include "tensorflow_plugin/backends/cuda/dnn/dnn_graph.h"

#include <algorithm>
#include <utility>

#include "tensorflow_plugin/backends/cuda/library_types.h"

namespace xpu::cuda {
namespace {

// cuDNN has two spatial axes or three. A line is an image one pixel high.
using Extents = std::vector<int64_t>;
Extents SpatialOf(const ConvolutionDesc& desc, const int64_t* extents, int64_t of_missing) {
  Extents spatial(extents, extents + desc.spatial_rank);
  if (spatial.size() == 1) spatial.insert(spatial.begin(), of_missing);
  return spatial;
}

Status MakeTensor(const ConvolutionDesc& desc, int64_t id, int64_t first, int64_t channels, const int64_t* spatial,
                  int64_t alignment, DnnDescriptor* tensor) {
  Extents shape = {first, channels};
  const Extents pixels = SpatialOf(desc, spatial, 1);
  shape.insert(shape.end(), pixels.begin(), pixels.end());
  Extents strides(shape.size());
  int64_t stride = 1;
  const auto lay = [&](size_t axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  };
  if (desc.order == ChannelOrder::kLast) lay(1);
  for (size_t axis = shape.size() - 1; axis >= 2; --axis) lay(axis);
  if (desc.order == ChannelOrder::kFirst) lay(1);
  lay(0);
  const bool is_virtual = id >= kDnnFirstBetween;
  const DnnNumber number = is_virtual ? kDnnFloat : DnnNumberOf(desc.type).value_or(kDnnFloat);
  XPU_RETURN_IF_ERROR(tensor->Create(kDnnTensor));
  if (is_virtual) XPU_RETURN_IF_ERROR(tensor->Set(kDnnTensorIsVirtual, kDnnTypeBool, is_virtual));
  XPU_RETURN_IF_ERROR(tensor->Set(kDnnTensorId, kDnnTypeInt64, id));
  XPU_RETURN_IF_ERROR(tensor->Set(kDnnTensorNumber, kDnnTypeNumber, number));
  XPU_RETURN_IF_ERROR(tensor->Set(kDnnTensorAlignment, kDnnTypeInt64, alignment));
  XPU_RETURN_IF_ERROR(tensor->Set(kDnnTensorShape, kDnnTypeInt64, shape));
  XPU_RETURN_IF_ERROR(tensor->Set(kDnnTensorStrides, kDnnTypeInt64, strides));
  return tensor->Finalize();
}

Status MakeConvolution(const ConvolutionDesc& desc, DnnDescriptor* convolution) {
  XPU_RETURN_IF_ERROR(convolution->Create(kDnnConvolution));
  XPU_RETURN_IF_ERROR(
      convolution->Set(kDnnConvolutionSums, kDnnTypeNumber, desc.type == DType::kDouble ? kDnnDouble : kDnnFloat));
  XPU_RETURN_IF_ERROR(convolution->Set(kDnnConvolutionMode, kDnnTypeConvolutionMode, kDnnCrossCorrelation));
  const int64_t rank = std::max(2, desc.spatial_rank);
  XPU_RETURN_IF_ERROR(convolution->Set(kDnnConvolutionRank, kDnnTypeInt64, rank));
  const auto set = [&](DnnAttribute attribute, const int64_t* extents, int64_t of_missing) {
    return convolution->Set(attribute, kDnnTypeInt64, SpatialOf(desc, extents, of_missing));
  };
  XPU_RETURN_IF_ERROR(set(kDnnConvolutionDilations, desc.dilation, 1));
  XPU_RETURN_IF_ERROR(set(kDnnConvolutionStrides, desc.stride, 1));
  XPU_RETURN_IF_ERROR(set(kDnnConvolutionPadBefore, desc.pad_before, 0));
  XPU_RETURN_IF_ERROR(set(kDnnConvolutionPadAfter, desc.pad_after, 0));
  return convolution->Finalize();
}

// `results` may be what later steps read.
Status MakeOperation(const ConvolutionDesc& desc, const DnnDescriptor& convolution, const DnnDescriptor& images,
                     const DnnDescriptor& filter, const DnnDescriptor& results, DnnDescriptor* operation) {
  DnnKind kind = kDnnForward;
  int first = kDnnForwardFirst;
  if (desc.direction == Direction::kDataGradient) {
    kind = kDnnDataGradient;
    first = kDnnDataGradientFirst;
  } else if (desc.direction == Direction::kFilterGradient) {
    kind = kDnnFilterGradient;
    first = kDnnFilterGradientFirst;
  }
  // The attributes of all three come in the same order.
  XPU_RETURN_IF_ERROR(operation->Create(kind));
  if (desc.type == DType::kDouble) {
    XPU_RETURN_IF_ERROR(operation->Set(first, kDnnTypeDouble, 1.0));
    XPU_RETURN_IF_ERROR(operation->Set(first + 1, kDnnTypeDouble, 0.0));
  } else {
    XPU_RETURN_IF_ERROR(operation->Set(first, kDnnTypeFloat, 1.0F));
    XPU_RETURN_IF_ERROR(operation->Set(first + 1, kDnnTypeFloat, 0.0F));
  }
  XPU_RETURN_IF_ERROR(operation->Set(first + 2, convolution));
  XPU_RETURN_IF_ERROR(operation->Set(first + 3, filter));
  XPU_RETURN_IF_ERROR(operation->Set(first + 4, images));
  XPU_RETURN_IF_ERROR(operation->Set(first + 5, results));
  return operation->Finalize();
}

Status MakePointwise(int mode, const DnnDescriptor& first, const DnnDescriptor* second, const DnnDescriptor& result,
                     DnnDescriptor* pointwise, DnnDescriptor* operation) {
  XPU_RETURN_IF_ERROR(pointwise->Create(kDnnPointwise));
  XPU_RETURN_IF_ERROR(pointwise->Set(kDnnPointwiseMode, kDnnTypePointwiseMode, mode));
  XPU_RETURN_IF_ERROR(pointwise->Set(kDnnPointwiseNumber, kDnnTypeNumber, kDnnFloat));
  if (mode == kDnnRelu) XPU_RETURN_IF_ERROR(pointwise->Set(kDnnPointwiseNan, kDnnTypeNan, kDnnPropagateNan));
  XPU_RETURN_IF_ERROR(pointwise->Finalize());
  XPU_RETURN_IF_ERROR(operation->Create(kDnnPointwiseOperation));
  XPU_RETURN_IF_ERROR(operation->Set(kDnnPointwiseOf, *pointwise));
  XPU_RETURN_IF_ERROR(operation->Set(kDnnPointwiseFirst, first));
  if (second != nullptr) XPU_RETURN_IF_ERROR(operation->Set(kDnnPointwiseSecond, *second));
  XPU_RETURN_IF_ERROR(operation->Set(kDnnPointwiseResult, result));
  return operation->Finalize();
}

}  // namespace

Status MakeDnnGraph(DnnHandle handle, const ConvolutionDesc& desc, const DnnSteps& steps, const int64_t* alignments,
                    DnnGraph* parts) {
  XPU_RETURN_IF_ERROR(MakeConvolution(desc, &parts->convolution));
  DnnDescriptor images, filter, results;
  XPU_RETURN_IF_ERROR(MakeTensor(desc, kDnnImages, desc.batch, desc.in_channels, desc.input, alignments[0], &images));
  XPU_RETURN_IF_ERROR(MakeTensor(desc, kDnnFilter, desc.out_channels, desc.in_channels / desc.groups, desc.filter,
                                 alignments[1], &filter));
  int left = steps.added + steps.bias + steps.relu;
  int64_t next = kDnnFirstBetween;
  const auto make_result = [&](DnnDescriptor* result) {
    return MakeTensor(desc, left == 0 ? int64_t{kDnnResults} : next++, desc.batch, desc.out_channels, desc.output,
                      alignments[2], result);
  };
  XPU_RETURN_IF_ERROR(make_result(&results));
  DnnDescriptor operation;
  XPU_RETURN_IF_ERROR(MakeOperation(desc, parts->convolution, images, filter, results, &operation));
  parts->operations.push_back(std::move(operation));
  parts->tensors.push_back(std::move(images));
  parts->tensors.push_back(std::move(filter));
  const auto add_step = [&](int mode, DnnDescriptor* second) -> Status {
    --left;
    DnnDescriptor result, pointwise, its_operation;
    XPU_RETURN_IF_ERROR(make_result(&result));
    XPU_RETURN_IF_ERROR(MakePointwise(mode, results, second, result, &pointwise, &its_operation));
    parts->pointwise.push_back(std::move(pointwise));
    parts->operations.push_back(std::move(its_operation));
    parts->tensors.push_back(std::move(results));
    if (second != nullptr) parts->tensors.push_back(std::move(*second));
    results = std::move(result);
    return OkStatus();
  };
  if (steps.added) {
    DnnDescriptor added;
    XPU_RETURN_IF_ERROR(
        MakeTensor(desc, kDnnAdded, desc.batch, desc.out_channels, desc.output, alignments[kDnnAdded - 1], &added));
    XPU_RETURN_IF_ERROR(add_step(kDnnAdd, &added));
  }
  if (steps.bias) {
    constexpr int64_t kOnePixel[ConvolutionDesc::kMaxSpatial] = {1, 1, 1};
    DnnDescriptor bias;
    XPU_RETURN_IF_ERROR(MakeTensor(desc, kDnnBias, 1, desc.out_channels, kOnePixel, alignments[kDnnBias - 1], &bias));
    XPU_RETURN_IF_ERROR(add_step(kDnnAdd, &bias));
  }
  if (steps.relu) XPU_RETURN_IF_ERROR(add_step(kDnnRelu, nullptr));
  parts->tensors.push_back(std::move(results));

  std::vector<DnnDescriptorHandle> operations;
  for (const DnnDescriptor& each : parts->operations) operations.push_back(each.handle());
  XPU_RETURN_IF_ERROR(parts->graph.Create(kDnnGraph));
  XPU_RETURN_IF_ERROR(parts->graph.Set(kDnnGraphHandle, kDnnTypeHandle, handle));
  XPU_RETURN_IF_ERROR(parts->graph.Set(kDnnGraphOperations, kDnnTypeDescriptor, operations));
  return parts->graph.Finalize();
}

}  // namespace xpu::cuda
