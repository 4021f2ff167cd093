// From CUDA C++ to kernels, by NVRTC.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_COMPILER_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_COMPILER_H_

#include <memory>
#include <string>
#include <utility>

#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/backends/cuda/hardware.h"
#include "tensorflow_plugin/backends/gpu/compiler.h"

namespace xpu::cuda {

struct Kernel final : public gpu::Kernel {
  ~Kernel() override;
  ModuleHandle module = nullptr;
  FunctionHandle function = nullptr;
};

class Compiler final : public gpu::Compiler {
 public:
  // The hardware and the context outlive it.
  Compiler(const Hardware& hardware, ContextHandle context, std::string cache_folder)
      : gpu::Compiler(std::move(cache_folder)), hardware_(hardware), context_(context) {}

 protected:
  Status Compile(const std::string& source, std::unique_ptr<gpu::Kernel>* kernel) override;
  std::string Device() const override;

 private:
  const Hardware& hardware_;
  const ContextHandle context_;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_COMPILER_H_
