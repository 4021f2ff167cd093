// tf.function(jit_compile=True) on a device that XLA has no compiler for.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_JIT_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_JIT_H_

#include <string>

namespace xpu {

// After this call, functions that are to be compiled with XLA run as ordinary functions on devices of this type. One
// line per process says so; on other devices nothing changes. Returns what went wrong, or nothing; call it once.
std::string RunJitFunctionsWithoutXla(const std::string& device_type);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_JIT_H_
