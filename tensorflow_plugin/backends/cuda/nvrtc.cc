#include "tensorflow_plugin/backends/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "tensorflow_plugin/backends/cuda/libraries.h"
#include "tensorflow_plugin/backends/gpu/compiler.h"

namespace xpu::cuda {
namespace {

struct Found {
  Nvrtc nvrtc;
  std::string why;
};

Found Open() {
  Found found;
  void* const library = OpenLibrary({"libnvrtc.so.13", "libnvrtc.so.12"}, "tensorflow_xpu[cuda]", &found.why);
  if (library == nullptr) return found;
#define XPU_RESOLVE(name, symbol, parameters)                                              \
  found.nvrtc.name = reinterpret_cast<decltype(found.nvrtc.name)>(dlsym(library, symbol)); \
  if (found.nvrtc.name == nullptr && found.why.empty()) {                                  \
    found.why = "its library libnvrtc lacks " symbol ", CUDA 12.0 or later is needed";     \
  }
  XPU_NVRTC_FUNCTIONS(XPU_RESOLVE)
#undef XPU_RESOLVE
  if (!found.why.empty()) return found;
  int major = 0, minor = 0, count = 0;
  (void)found.nvrtc.Version(&major, &minor);
  found.nvrtc.version = errors::Concat(major, ".", minor);
  if (found.nvrtc.GetNumSupportedArchs(&count) == 0 && count > 0) {
    std::vector<int> archs(static_cast<size_t>(count));
    if (found.nvrtc.GetSupportedArchs(archs.data()) == 0) {
      found.nvrtc.newest_capability = *std::max_element(archs.begin(), archs.end());
    }
  }
  return found;
}

const Found& TheCompiler() {
  static const auto* const found = new Found(Open());
  return *found;
}

// The architecture, as an option names it.
std::string ArchitectureFor(const Nvrtc& nvrtc, int capability) {
  const bool is_known = capability <= nvrtc.newest_capability;
  return errors::Concat(is_known ? "sm_" : "compute_", std::min(capability, nvrtc.newest_capability));
}

}  // namespace

const Nvrtc* FindNvrtc(std::string* why) {
  const Found& found = TheCompiler();
  if (why != nullptr) *why = found.why;
  return found.why.empty() ? &found.nvrtc : nullptr;
}

std::string OptionsFor(const Nvrtc& nvrtc, int capability) {
  return "--gpu-architecture=" + ArchitectureFor(nvrtc, capability) +
         "\n--std=c++17\n--fmad=false\n--device-as-default-execution-space";
}

Status CompileSource(const Nvrtc& nvrtc, const std::string& source, int capability, std::string* image) {
  std::string options = OptionsFor(nvrtc, capability);
  const std::string shown = options;
  std::vector<const char*> list = {options.data()};
  for (char& c : options) {
    if (c == '\n') {
      c = '\0';
      list.push_back(&c + 1);
    }
  }
  void* program = nullptr;
  int error = nvrtc.CreateProgram(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
  XPU_REQUIRE(error == 0, errors::Internal("nvrtcCreateProgram failed with ", error));
  error = nvrtc.CompileProgram(program, static_cast<int>(list.size()), list.data());
  Status status;
  size_t size = 0;
  if (error != 0) {
    std::string log;
    if (nvrtc.GetProgramLogSize(program, &size) == 0 && size > 1) {
      log.resize(size);
      (void)nvrtc.GetProgramLog(program, log.data());
      log.resize(size - 1);
    }
    status = errors::Internal("NVRTC ", nvrtc.version, " failed with error ", error, ". The source ",
                              gpu::WriteUncompiled(source, shown, log));
  } else {
    const bool is_ptx = capability > nvrtc.newest_capability;
    error = is_ptx ? nvrtc.GetPTXSize(program, &size) : nvrtc.GetCUBINSize(program, &size);
    image->resize(size);
    if (error == 0) error = is_ptx ? nvrtc.GetPTX(program, image->data()) : nvrtc.GetCUBIN(program, image->data());
    if (error != 0) status = errors::Internal("NVRTC ", nvrtc.version, " gave no code: error ", error);
  }
  (void)nvrtc.DestroyProgram(&program);
  return status;
}

}  // namespace xpu::cuda
