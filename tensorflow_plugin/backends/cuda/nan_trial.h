// A trial of a library's command on nothing but NaN. Its documentation does not say that Relu keeps it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_NAN_TRIAL_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_NAN_TRIAL_H_

#include <cstddef>
#include <functional>

#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cuda {

class Machine;

// `nan` has `operand_bytes` bytes of NaN, which all operands may share. `out` gets the results.
using NanTrial = std::function<Status(void* nan, void* out, void* scratch, StreamHandle stream)>;

// True if the results of a floating type are NaN. The first and the last are looked at. Waits for the device.
bool KeepsNan(Machine& machine, DType type, size_t operand_bytes, size_t result_bytes, size_t scratch_bytes,
              const NanTrial& run);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_NAN_TRIAL_H_
