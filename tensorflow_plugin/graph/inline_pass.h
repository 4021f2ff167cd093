// Loops that are ops with functions, which TensorFlow would call in every iteration.
#ifndef TENSORFLOW_PLUGIN_GRAPH_INLINE_PASS_H_
#define TENSORFLOW_PLUGIN_GRAPH_INLINE_PASS_H_

#include <string>

namespace tensorflow {
class FunctionLibraryDefinition;
class NodeDef;
}  // namespace tensorflow

namespace xpu::graph {

// True if nodes of the functions that an op names may take its place (may_be_inlined.h).
bool MayInline(const tensorflow::NodeDef& node, const tensorflow::FunctionLibraryDefinition& library);

// From now on loops without the mark that TensorFlow's newer Python functions give theirs get it, if they may. This is
// in functions that run on devices of this type, and in graphs of sessions with such a device. TensorFlow then puts
// nodes in their place. Passes over placed graphs know what is in them, and clusters can have it.
void RegisterInlinePass(const std::string& device_type);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_INLINE_PASS_H_
