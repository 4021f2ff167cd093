// Which ops may wait for other ops of the same step, though no edge of the graph says so.
#ifndef TENSORFLOW_PLUGIN_GRAPH_MAY_WAIT_H_
#define TENSORFLOW_PLUGIN_GRAPH_MAY_WAIT_H_

#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// Remembers which ops TensorFlow and the plugin have registered so far. Ops that come later are unknown, and so they
// may wait. The plugin calls it once, when it loads.
void RememberKnownOps();

// Answers the question for the nodes of one graph. An op may wait unless it is known that it cannot:
// - an op that keeps nothing and refers to nothing cannot wait, but for a few that hold back their callers;
// - an op that uses what is there at once (a variable, a table, a random generator) cannot wait;
// - a call, a branch or a loop may wait if its functions may.
class MayWait {
 public:
  // `library`: the graph's functions. It lives longer.
  explicit MayWait(const tensorflow::FunctionLibraryDefinition& library) : library_(library) {}

  bool operator()(const tensorflow::Node& node);
  bool operator()(const tensorflow::NodeDef& node);

 private:
  bool Op(const tensorflow::OpDef& op, tensorflow::AttrSlice attributes);
  bool Function(const std::string& name);
  bool AnyFunction(tensorflow::AttrSlice attributes);

  const tensorflow::FunctionLibraryDefinition& library_;
  std::map<std::string, bool> functions_;
};

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_MAY_WAIT_H_
