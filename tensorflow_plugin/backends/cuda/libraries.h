// Libraries of CUDA that are opened when they are first needed: NVRTC, cuBLASLt and cuDNN.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_LIBRARIES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_LIBRARIES_H_

#include <string>
#include <vector>

namespace xpu::cuda {

// Opens the first of these file names that is found. It looks in the folders of the nvidia packages of the Python
// environment that this library is in. Then it looks where the system's loader does (LD_LIBRARY_PATH among them), then
// in /usr/local/cuda. The result is nullptr if none is there; `why` says so and which package has it.
void* OpenLibrary(const std::vector<std::string>& names, const std::string& package, std::string* why);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_LIBRARIES_H_
