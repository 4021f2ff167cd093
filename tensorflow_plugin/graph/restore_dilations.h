// Makes convolutions with dilations of the ops that TensorFlow has replaced them by.
#ifndef TENSORFLOW_PLUGIN_GRAPH_RESTORE_DILATIONS_H_
#define TENSORFLOW_PLUGIN_GRAPH_RESTORE_DILATIONS_H_

#include <string>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// TensorFlow's CPU has no gradients of convolutions with dilations and channels last. So TensorFlow builds another
// graph of them, on every device (tf.nn.convolution, with_space_to_batch). SpaceToBatchND makes images of the pixels
// that are a dilation apart. A plain convolution follows, and BatchToSpaceND puts the results back. This pass makes one
// convolution of the three. Gradients, which have three ops of their own, stay as they are.
absl::Status RestoreDilations(tensorflow::Graph* graph, const std::string& device_type);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_RESTORE_DILATIONS_H_
