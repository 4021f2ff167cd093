// From OpenCL C to kernels.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_COMPILER_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_COMPILER_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tensorflow_plugin/backends/gpu/compiler.h"
#include "tensorflow_plugin/backends/opencl/driver.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"

namespace xpu::opencl {

// Its arguments are set and it is enqueued under the lock: they belong to the object.
struct Kernel final : public gpu::Kernel {
  std::mutex mutex;
  Handle<cl_kernel> kernel;
};

class Compiler final : public gpu::Compiler {
 public:
  // Hardware and context outlive it.
  Compiler(const Hardware& hardware, cl_context context, std::string cache_folder)
      : gpu::Compiler(std::move(cache_folder)), hardware_(hardware), context_(context) {}

 protected:
  Status Compile(const std::string& source, std::unique_ptr<gpu::Kernel>* kernel) override;
  std::string Device() const override {
    return hardware_.platform_name + "\n" + hardware_.name + "\n" + hardware_.version + "\n" + hardware_.driver_version;
  }

 private:
  Status Build(const std::string& source, const std::string& options, Handle<cl_program>* program);
  Handle<cl_program> BuildFromBinary(const std::string& binary, const std::string& options);

  const Hardware& hardware_;
  const cl_context context_;
};

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_COMPILER_H_
