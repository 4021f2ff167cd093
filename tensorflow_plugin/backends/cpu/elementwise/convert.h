// half and bfloat16 to float and back, for kernels that have a good form for float only.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CONVERT_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CONVERT_H_

#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {

// `type` is half or bfloat16.
void ToFloat(DType type, const void* from, float* to, int64_t n, const host_runtime::ThreadTeam& team);
void FromFloat(DType type, const float* from, void* to, int64_t n, const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CONVERT_H_
