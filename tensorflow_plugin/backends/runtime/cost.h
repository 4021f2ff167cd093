// Rough estimates of how long a primitive takes on one thread: good enough to tell what is worth another thread.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_RUNTIME_COST_H_
#define TENSORFLOW_PLUGIN_BACKENDS_RUNTIME_COST_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::runtime {

// Nanoseconds, at least 1. The descriptor must have passed Check (check.h).
#define XPU_COST(name) int64_t EstimateNs(const name##Desc& desc);
XPU_PRIMITIVES(XPU_COST)
#undef XPU_COST

// Nanoseconds that one element of a program takes, with reading and writing it.
double NsPerElement(const Program& program);

// For copies and fills.
int64_t EstimateCopyNs(int64_t bytes);

}  // namespace xpu::runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_RUNTIME_COST_H_
