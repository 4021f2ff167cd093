// A GPU's context, memory and kernels.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_MACHINE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_MACHINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/cuda/blas/blas_matmul.h"
#include "tensorflow_plugin/backends/cuda/clock.h"
#include "tensorflow_plugin/backends/cuda/compiler.h"
#include "tensorflow_plugin/backends/cuda/dnn/dnn_convolution.h"
#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/backends/cuda/hardware.h"
#include "tensorflow_plugin/backends/cuda/memory.h"
#include "tensorflow_plugin/backends/gpu/event_times.h"
#include "tensorflow_plugin/backends/gpu/machine.h"

namespace xpu::cuda {

struct DeviceTable final : public gpu::Table {
  DeviceAddress address = 0;
};

class Machine final : public gpu::Machine {
 public:
  // `device` is the name for messages. The hardware outlives it.
  static Status Create(const Hardware& hardware, int64_t memory_limit, const std::string& device,
                       std::unique_ptr<Machine>* machine);
  ~Machine() override;

  const Hardware& hardware() const override { return hardware_; }
  Compiler& compiler() override { return *compiler_; }
  Status Read(void* host_dst, const void* device_src, size_t size) override;
  // Gives commands to the driver's stream of the machine's own, beside all queues, and waits for them.
  Status RunAside(const std::function<Status(StreamHandle stream)>& enqueue);

  ContextHandle context() const { return context_; }
  Memory& memory() override { return *memory_; }
  Clock& clock() { return *clock_; }
  gpu::EventTimes& event_times() { return *event_times_; }
  BlasMatmul& blas() { return *blas_; }
  DnnConvolution& convolutions() { return *convolutions_; }

 protected:
  Status MakeTable(const std::vector<int64_t>& numbers, std::shared_ptr<const gpu::Table>* table) override;

 private:
  explicit Machine(const Hardware& hardware) : hardware_(hardware) {}

  const Hardware& hardware_;
  ContextHandle context_ = nullptr;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<BlasMatmul> blas_;
  std::unique_ptr<DnnConvolution> convolutions_;

  // Copies that wait for no stream of the caller's.
  std::mutex transfers_mutex_;
  StreamHandle transfers_ = nullptr;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<gpu::EventTimes> event_times_;
  // Tables lie one behind the other in blocks of device memory. They stay as long as the machine.
  static constexpr size_t kTableBlock = size_t{1} << 20;
  DeviceAddress table_block_ = 0;
  size_t table_bytes_left_ = 0;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_MACHINE_H_
