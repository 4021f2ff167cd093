// Marks loops and branches that are ops with functions, so that TensorFlow lowers them to nodes of the graph around
// them.
#ifndef TENSORFLOW_PLUGIN_GRAPH_LOWERING_PASS_H_
#define TENSORFLOW_PLUGIN_GRAPH_LOWERING_PASS_H_

#include <string>

namespace tensorflow {
class FunctionDef;
class NodeDef;
}  // namespace tensorflow

namespace xpu::graph {

// The answers of tf_internals/jit.h.
struct JitPredicates {
  bool (*must_compile)(const tensorflow::NodeDef& call);
  bool (*may_lack_marks)(const tensorflow::FunctionDef& function);
};

// From now on loops and branches that can be lowered (can_be_lowered.h) get the mark that TensorFlow's newer Python
// functions give theirs. This is in functions that run on devices of this
// type, and in graphs of sessions with such a device.
// all_loops: any loop gets it, so that passes over placed graphs know what is in it, and clusters can have it.
// jit: in functions that may lack marks, branches get it, too. Without it each body runs on one device, without soft
// placement.
void RegisterLoweringPass(const std::string& device_type, bool all_loops, JitPredicates jit);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_LOWERING_PASS_H_
