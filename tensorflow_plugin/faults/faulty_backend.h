// A backend that does the same as another. Where it is told to, it fails, takes its time, is wrong or asks for memory.
#ifndef TENSORFLOW_PLUGIN_FAULTS_FAULTY_BACKEND_H_
#define TENSORFLOW_PLUGIN_FAULTS_FAULTY_BACKEND_H_

#include <memory>
#include <vector>

#include "tensorflow_plugin/faults/rules.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {

// The calls are counted per device, each kind for itself:
// - an allocation of device memory; it fails as if there were no memory left
// - a copy to, from or within the device; it fails when it is enqueued
// - a command, a primitive or a fill; it fails when its turn comes on the stream, and does nothing
// Wrong results are made in stream order, by a fill, or by copies to the host and back. A stale one is made by not
// running the command. The scratch memory that a command is told to ask for is filled before and after it runs: other
// contents of it are lost.
class FaultyBackend final : public Backend {
 public:
  // `inner` lives for ever.
  FaultyBackend(const Backend& inner, std::vector<FaultRule> rules) : inner_(inner), rules_(std::move(rules)) {}

  const char* subdevice_type() const override { return inner_.subdevice_type(); }
  int DeviceCount(const BackendOptions& options) const override { return inner_.DeviceCount(options); }
  Status CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const override;
  Status Describe(int ordinal, const BackendOptions& options, DeviceInfo* info) const override {
    return inner_.Describe(ordinal, options, info);
  }
  int64_t TotalMemory() const override { return inner_.TotalMemory(); }
  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  bool HostCanAddress(const void* address, const BackendOptions& options) const override {
    return inner_.HostCanAddress(address, options);
  }
  bool SharesHostMemory(const BackendOptions& options) const override { return inner_.SharesHostMemory(options); }
  std::unique_ptr<Device> NewHostExecutor(int threads) const override { return inner_.NewHostExecutor(threads); }

 private:
  const Backend& inner_;
  const std::vector<FaultRule> rules_;
};

// `inner` with the rules about results, which it counts for itself, and about scratch memory. A device of their own
// runs kernels whose arguments are all in host memory.
std::unique_ptr<Device> WithWrongResults(std::unique_ptr<Device> inner, const std::vector<FaultRule>& rules);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FAULTS_FAULTY_BACKEND_H_
