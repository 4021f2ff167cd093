// NVRTC, the compiler of CUDA C++, opened when it is first asked for. It needs no GPU.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_NVRTC_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_NVRTC_H_

#include <cstddef>
#include <string>

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::cuda {

// V(field, symbol, parameters): the functions that are used; all return an nvrtcResult, 0 of success.
#define XPU_NVRTC_FUNCTIONS(V)                                                                             \
  V(Version, "nvrtcVersion", (int* major, int* minor))                                                     \
  V(GetNumSupportedArchs, "nvrtcGetNumSupportedArchs", (int* count))                                       \
  V(GetSupportedArchs, "nvrtcGetSupportedArchs", (int* archs))                                             \
  V(CreateProgram, "nvrtcCreateProgram",                                                                   \
    (void** program, const char* source, const char* name, int headers, const char* const* header_sources, \
     const char* const* header_names))                                                                     \
  V(CompileProgram, "nvrtcCompileProgram", (void* program, int options, const char* const* option))        \
  V(DestroyProgram, "nvrtcDestroyProgram", (void** program))                                               \
  V(GetCUBINSize, "nvrtcGetCUBINSize", (void* program, size_t* size))                                      \
  V(GetCUBIN, "nvrtcGetCUBIN", (void* program, char* cubin))                                               \
  V(GetPTXSize, "nvrtcGetPTXSize", (void* program, size_t* size))                                          \
  V(GetPTX, "nvrtcGetPTX", (void* program, char* ptx))                                                     \
  V(GetProgramLogSize, "nvrtcGetProgramLogSize", (void* program, size_t* size))                            \
  V(GetProgramLog, "nvrtcGetProgramLog", (void* program, char* log))

struct Nvrtc {
#define XPU_FIELD(name, symbol, parameters) int(*name) parameters = nullptr;
  XPU_NVRTC_FUNCTIONS(XPU_FIELD)
#undef XPU_FIELD
  std::string version;        // "13.0"
  int newest_capability = 0;  // that it makes machine code for
};

// nullptr where there is none. `why` may be null.
const Nvrtc* FindNvrtc(std::string* why);

// The options that sources are compiled with for GPUs of this compute capability (90: 9.0). GPUs that are newer than
// the compiler get PTX, which their driver compiles.
std::string OptionsFor(const Nvrtc& nvrtc, int capability);

// Compiles a whole source, with its prelude, into an image that the driver loads. A source that does not compile is
// Internal and lies in a file that the message names.
Status CompileSource(const Nvrtc& nvrtc, const std::string& source, int capability, std::string* image);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_NVRTC_H_
