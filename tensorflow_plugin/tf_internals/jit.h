// tf.function(jit_compile=True) on a device that XLA has no compiler for.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_JIT_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_JIT_H_

#include <string>

namespace xpu {

// True if TensorFlow can replace an op, a branch or a loop, by nodes of the graph around it.
using IsInlined = bool (*)(const std::string& op);

// After this call, functions that are to be compiled with XLA run as ordinary functions on devices of this type. One
// line per process says so. On other devices nothing changes, unless the hook `jit` is off (table.h): then they run
// there as ordinary functions, too. Call it once. `knows_nodes`: whether two passes may make ordinary calls of them in
// graphs. They are no matter of speed, and look at nodes alone, so they do not need the hook `graphs`.
void RunJitFunctionsWithoutXla(const std::string& device_type, IsInlined is_inlined, bool knows_nodes);

namespace tf_internals {
class Check;
// Looks at XLA's creator, before it is replaced.
void CheckJit(Check& check);
}  // namespace tf_internals

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_JIT_H_
