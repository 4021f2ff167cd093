#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_BACKEND_H_

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cuda {

// XPU_CUDA: NVIDIA GPUs, by the driver and the libraries that are found at run time.
const Backend& TheBackend();

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_BACKEND_H_
