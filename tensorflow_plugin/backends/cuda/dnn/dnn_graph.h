// A convolution as a graph of cuDNN's operations, with what may follow it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_DNN_GRAPH_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_DNN_GRAPH_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/backends/cuda/dnn/cudnn.h"
#include "tensorflow_plugin/backends/cuda/dnn/dnn_descriptor.h"
#include "tensorflow_plugin/primitives/descriptors.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::cuda {

// The tensors of a graph that have memory, by their numbers in it, and those between its operations.
enum DnnGraphTensor : int64_t {
  kDnnImages = 1,
  kDnnFilter = 2,
  kDnnResults = 3,
  kDnnBias = 4,
  kDnnAdded = 5,
  kDnnFirstBetween = 10
};
inline constexpr int kDnnTensors = 5;

// The steps that follow the convolution in its graph.
struct DnnSteps {
  bool added = false, bias = false, relu = false;
  bool any() const { return added || bias || relu; }
};

// A graph, and what it is made of.
struct DnnGraph {
  DnnDescriptor convolution, graph;
  std::vector<DnnDescriptor> tensors, pointwise, operations;
};

// `alignments` are those of the tensors that have memory, in bytes. The order of steps is fixed: what is added, the
// bias, Relu. Engines that need not be compiled know this order alone.
Status MakeDnnGraph(DnnHandle handle, const ConvolutionDesc& desc, const DnnSteps& steps, const int64_t* alignments,
                    DnnGraph* parts);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_DNN_GRAPH_H_
