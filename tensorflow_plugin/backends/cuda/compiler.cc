#include "tensorflow_plugin/backends/cuda/compiler.h"

#include "tensorflow_plugin/backends/cuda/nvrtc.h"
#include "tensorflow_plugin/backends/gpu/codegen/sources.h"

namespace xpu::cuda {

Kernel::~Kernel() {
  if (module != nullptr) (void)Cu().ModuleUnload(module);
}

std::string Compiler::Device() const {
  return errors::Concat("CUDA\n", hardware_.name, "\ndriver ", Cu().version, ", NVRTC ", FindNvrtc(nullptr)->version);
}

Status Compiler::Compile(const std::string& body, std::unique_ptr<gpu::Kernel>* kernel) {
  const Nvrtc& nvrtc = *FindNvrtc(nullptr);  // without it there is no device
  const std::string source = gpu::kCudaPrelude + body;
  const std::string key = Device() + "\n" + OptionsFor(nvrtc, hardware_.capability) + "\n" + source;
  XPU_RETURN_IF_CUDA_ERROR(Cu().CtxSetCurrent(context_), "the context of " + hardware_.name);
  auto made = std::make_unique<Kernel>();
  std::string image = cache().Load(key);
  if (image.empty() || Cu().ModuleLoadData(&made->module, image.data()) != kSuccess) {
    XPU_RETURN_IF_ERROR(CompileSource(nvrtc, source, hardware_.capability, &image));
    XPU_RETURN_IF_CUDA_ERROR(Cu().ModuleLoadData(&made->module, image.data()), "loading a kernel on " + hardware_.name);
    cache().Store(key, image);
  }
  XPU_RETURN_IF_CUDA_ERROR(Cu().ModuleGetFunction(&made->function, made->module, kKernelName),
                           "a kernel for " + hardware_.name);
  int largest = 0;
  XPU_RETURN_IF_CUDA_ERROR(Cu().FuncGetAttribute(&largest, kFunctionMaxThreadsPerBlock, made->function),
                           "the size of a kernel's groups on " + hardware_.name);
  made->largest_group = static_cast<size_t>(largest);
  *kernel = std::move(made);
  return OkStatus();
}

}  // namespace xpu::cuda
