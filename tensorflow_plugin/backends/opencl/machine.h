// An OpenCL device's context, memory and kernels.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_MACHINE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_MACHINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow_plugin/backends/gpu/event_times.h"
#include "tensorflow_plugin/backends/gpu/machine.h"
#include "tensorflow_plugin/backends/opencl/compiler.h"
#include "tensorflow_plugin/backends/opencl/driver.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"
#include "tensorflow_plugin/backends/opencl/memory.h"

namespace xpu::opencl {

struct BufferTable final : public gpu::Table {
  explicit BufferTable(Handle<cl_mem> made) : buffer(std::move(made)) {}
  const Handle<cl_mem> buffer;
};

class Machine final : public gpu::Machine {
 public:
  static Status Create(const Hardware& hardware, const Memory::Options& memory, std::unique_ptr<Machine>* machine);

  const Hardware& hardware() const override { return hardware_; }
  Compiler& compiler() override { return compiler_; }
  Status Read(void* host_dst, const void* device_src, size_t size) override {
    return memory_->Read(host_dst, device_src, size);
  }
  cl_context context() const { return context_.get(); }
  Memory& memory() override { return *memory_; }
  gpu::EventTimes& event_times() { return event_times_; }

 protected:
  Status MakeTable(const std::vector<int64_t>& numbers, std::shared_ptr<const gpu::Table>* table) override;

 private:
  Machine(const Hardware& hardware, Handle<cl_context> context);

  const Hardware& hardware_;
  const Handle<cl_context> context_;
  gpu::EventTimes event_times_;
  Compiler compiler_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_MACHINE_H_
