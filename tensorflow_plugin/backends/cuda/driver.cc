#include "tensorflow_plugin/backends/cuda/driver.h"

#include <dlfcn.h>

namespace xpu::cuda {
namespace {

constexpr int kLeastVersion = 12000;

struct Found {
  Driver driver;
  std::string why;  // there is none; empty: there is
};

Found Open() {
  Found found;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    found.why = "there is no NVIDIA driver on this machine: libcuda.so.1 was not found; install the driver of the GPU";
    return found;
  }
#define XPU_RESOLVE(name, symbol, parameters)                                                                    \
  found.driver.name = reinterpret_cast<decltype(found.driver.name)>(dlsym(library, symbol));                     \
  if (found.driver.name == nullptr && found.why.empty()) {                                                       \
    found.why = "the NVIDIA driver is too old: its libcuda.so.1 lacks " symbol ", CUDA 12.0 or later is needed"; \
  }
  XPU_CUDA_FUNCTIONS(XPU_RESOLVE)
#undef XPU_RESOLVE
  if (!found.why.empty()) return found;
  const Result error = found.driver.Init(0);
  if (error != kSuccess) {
    const char* name = nullptr;
    (void)found.driver.GetErrorName(error, &name);
    found.why = errors::Concat("the NVIDIA driver cannot be used: cuInit failed with ",
                               name != nullptr ? name : "an unknown error", "; nvidia-smi may say more");
    return found;
  }
  (void)found.driver.DriverGetVersion(&found.driver.version);
  if (found.driver.version < kLeastVersion) {
    found.why = errors::Concat("the NVIDIA driver is too old: it is for CUDA ", found.driver.version / 1000, ".",
                               found.driver.version % 1000 / 10, ", 12.0 or later is needed");
  }
  return found;
}

const Found& TheDriver() {
  static const auto* const found = new Found(Open());
  return *found;
}

}  // namespace

const Driver* FindDriver(std::string* why) {
  const Found& found = TheDriver();
  if (why != nullptr) *why = found.why;
  return found.why.empty() ? &found.driver : nullptr;
}

const Driver& Cu() { return TheDriver().driver; }

std::string ErrorName(Result error) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (Cu().GetErrorName(error, &name) != kSuccess || name == nullptr) return errors::Concat("CUDA error ", error);
  if (Cu().GetErrorString(error, &text) != kSuccess || text == nullptr) return name;
  return errors::Concat(name, " (", text, ")");
}

Status ToStatus(Result error, const std::string& what) {
  if (error == kSuccess) return OkStatus();
  const std::string message = what + " failed with " + ErrorName(error);
  return error == kOutOfMemory ? errors::ResourceExhausted(message) : errors::Internal(message);
}

}  // namespace xpu::cuda
