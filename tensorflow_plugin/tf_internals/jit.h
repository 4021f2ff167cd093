// tf.function(jit_compile=True) on a device that XLA has no compiler for.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_JIT_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_JIT_H_

#include <string>

namespace tensorflow {
class FunctionDef;
class NodeDef;
}  // namespace tensorflow

namespace xpu {

// True for a call of a function with jit_compile=True.
bool MustCompile(const tensorflow::NodeDef& call);

// Loops and branches that are traced for XLA lack the mark by which TensorFlow puts nodes in their place. True if this
// function may have such ones. That is any function, once one for XLA was called: a function that both kinds call is
// traced once.
bool MayLackMarks(const tensorflow::FunctionDef& function);

// After this call, functions that are to be compiled with XLA run as ordinary functions on devices of this type. One
// line per process says so. On other devices nothing changes, unless the hook `jit` is off (table.h): then they run
// there as ordinary functions, too. Call it once. `knows_nodes`: whether a pass may make ordinary calls of them in
// graphs. It is no matter of speed, and looks at nodes alone, so it does not need the hook `graphs`.
void RunJitFunctionsWithoutXla(const std::string& device_type, bool knows_nodes);

namespace tf_internals {
class Check;
// Looks at XLA's creator, before it is replaced.
void CheckJit(Check& check);
}  // namespace tf_internals

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_JIT_H_
