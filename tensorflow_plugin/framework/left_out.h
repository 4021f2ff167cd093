// Ops that this process has no kernels of.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_LEFT_OUT_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_LEFT_OUT_H_

#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu {

// After this call, ops with one of these traits are not registered. TensorFlow runs them on the CPU, and they have no
// traits.
void LeaveOutOpsWith(OpTraits traits);
bool IsLeftOut(OpTraits traits);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_LEFT_OUT_H_
