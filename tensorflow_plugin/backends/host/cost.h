// What programs cost on one thread of this backend, roughly: good enough to tell what is worth another thread. What
// commands cost is HostKernels::EstimateNs.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_COST_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_COST_H_

#include "tensorflow_plugin/primitives/program.h"

namespace xpu::host {

// Nanoseconds that one element of a program takes, with reading and writing it.
double NsPerElement(const Program& program);

}  // namespace xpu::host

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_COST_H_
