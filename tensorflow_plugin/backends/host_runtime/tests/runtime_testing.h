// Devices on host memory with kernels of the tests' own, so that nothing but the runtime is on trial.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_TESTS_RUNTIME_TESTING_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_TESTS_RUNTIME_TESTING_H_

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <thread>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/host_runtime/host_backend.h"
#include "tensorflow_plugin/backends/host_runtime/host_device.h"

namespace xpu::host_runtime {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

inline void Sleep(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }

// Random writes 1.0 to its n floats after sleeping `key` ms; CopyStrided copies densely; Gather always fails;
// Softmax throws. The rest is not there.
class TestKernels final : public KernelSet {
 public:
  bool Supports(const RandomDesc&) const override { return true; }
  bool Supports(const CopyStridedDesc&) const override { return true; }
  bool Supports(const GatherDesc&) const override { return true; }
  bool Supports(const SoftmaxDesc&) const override { return true; }
  bool Supports(const ElementwiseDesc& desc) const override {
    return desc.program == SingleOpProgram(Opcode::kNeg, DType::kFloat);
  }
  int64_t EstimateNs(const RandomDesc& desc) const override { return desc.n; }
  int64_t EstimateNs(const CopyStridedDesc&) const override { return 100; }
  int64_t EstimateNs(const GatherDesc&) const override { return 100; }
  int64_t EstimateNs(const SoftmaxDesc&) const override { return 100; }
  int64_t EstimateNs(const ElementwiseDesc&) const override { return 100; }
  Status Run(const RandomDesc& desc, const Args& args, const ThreadTeam&) const override {
    Sleep(static_cast<int>(desc.key));
    std::fill_n(static_cast<float*>(args.out[0]), desc.n, 1.0f);
    return OkStatus();
  }
  Status Run(const CopyStridedDesc& desc, const Args& args, const ThreadTeam&) const override {
    std::memcpy(args.out[0], args.in[0], static_cast<size_t>(desc.shape.num_elements()) * desc.element_size);
    return OkStatus();
  }
  Status Run(const GatherDesc&, const Args&, const ThreadTeam&) const override {
    return errors::InvalidArgument("index 7 is out of range");
  }
  Status Run(const SoftmaxDesc&, const Args&, const ThreadTeam&) const override { throw std::bad_alloc(); }
  Status Run(const ElementwiseDesc&, const Args&, const ThreadTeam&) const override { return OkStatus(); }
};
inline const TestKernels kKernels;

inline std::unique_ptr<Device> NewDevice(bool isolate = false, int64_t memory = int64_t{64} << 20) {
  HostDeviceOptions options;
  options.isolate_memory = isolate;
  DeviceInfo info;
  info.memory_bytes = memory;
  std::unique_ptr<Device> device;
  EXPECT_TRUE(HostDevice::Create(kKernels, info, options, &device).ok());
  return device;
}

inline RandomDesc FillOnes(int64_t n, int sleep_ms = 0) {
  RandomDesc desc;
  desc.n = n;
  desc.key = static_cast<uint64_t>(sleep_ms);
  return desc;
}

// The estimate of a sleeping fill is that of its elements: many elements make it go to the worker.
inline constexpr int64_t kQueued = 1 << 16;

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_TESTS_RUNTIME_TESTING_H_
