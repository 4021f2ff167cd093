// tf.function(jit_compile=True) on a device that XLA has no compiler for.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_JIT_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_JIT_H_

#include <string>

namespace tensorflow {
class FunctionLibraryDefinition;
class NodeDef;
}  // namespace tensorflow

namespace xpu {

// True if nodes of the functions that an op names, a branch or a loop, may take its place.
using MayInline = bool (*)(const tensorflow::NodeDef& node, const tensorflow::FunctionLibraryDefinition& library);

// After this call, functions that are to be compiled with XLA run as ordinary functions on devices of this type. One
// line per process says so. On other devices nothing changes, unless the hook `jit` is off (table.h): then they run
// there as ordinary functions, too. Call it once. `knows_nodes`: whether two passes may make ordinary calls of them in
// graphs. They are no matter of speed, and look at nodes alone, so they do not need the hook `graphs`.
void RunJitFunctionsWithoutXla(const std::string& device_type, MayInline may_inline, bool knows_nodes);

namespace tf_internals {
class Check;
// Looks at XLA's creator, before it is replaced.
void CheckJit(Check& check);
}  // namespace tf_internals

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_JIT_H_
