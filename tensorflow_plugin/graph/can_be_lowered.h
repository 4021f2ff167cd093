// Which loops and branches TensorFlow may lower: replace by nodes of the graph around them.
#ifndef TENSORFLOW_PLUGIN_GRAPH_CAN_BE_LOWERED_H_
#define TENSORFLOW_PLUGIN_GRAPH_CAN_BE_LOWERED_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace xpu::graph {

// Answers for the ops of one graph whether the nodes of a loop's or a branch's functions may take its place, with the
// same results. Such an op runs a whole function before anything that follows. Nodes of a graph wait for values and
// control edges alone. So an op that changes something must be a control output of its function. Loops of nodes also
// need a condition that is a bool, and a body whose results are the loop's variables. Else TensorFlow tells of an error
// when it runs the op.
class CanBeLowered {
 public:
  // `library`: the graph's functions. It lives longer.
  explicit CanBeLowered(const tensorflow::FunctionLibraryDefinition& library) : library_(library) {}

  bool operator()(const tensorflow::NodeDef& node);

  static bool IsLoop(const tensorflow::NodeDef& node);
  // True for an op that calls the functions that it names, and does nothing else.
  static bool IsCall(const tensorflow::NodeDef& node);
  // The functions that a node names.
  static std::vector<std::string> FunctionsOf(const tensorflow::NodeDef& node);

 private:
  bool HasFunctionsThatFit(const tensorflow::NodeDef& loop) const;

  // The changes that a function, or an op in it, makes.
  enum class Effects : uint8_t { kNone, kOrdered, kUnordered };
  Effects EffectsOf(const std::string& function);
  Effects EffectsOf(const tensorflow::NodeDef& node);
  Effects EffectsOfAll(const std::vector<std::string>& functions);

  const tensorflow::FunctionLibraryDefinition& library_;
  std::map<std::string, Effects> functions_;
};

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_CAN_BE_LOWERED_H_
