#include "tensorflow_plugin/backends/cuda/hardware.h"

#include <algorithm>
#include <cctype>

#include "tensorflow_plugin/backends/cuda/nvrtc.h"

namespace xpu::cuda {
namespace {

// Kernels count on what Volta and later have.
constexpr int kLeastCapability = 70;

int AttributeOf(DeviceId device, DeviceAttribute attribute) {
  int value = 0;
  return Cu().DeviceGetAttribute(&value, attribute, device) == kSuccess ? value : 0;
}

Hardware Look(DeviceId device) {
  Hardware h;
  h.id = device;
  char text[256] = {};
  if (Cu().DeviceGetName(text, sizeof(text), device) == kSuccess) h.name = text;
  text[0] = '\0';
  if (Cu().DeviceGetPCIBusId(text, sizeof(text), device) == kSuccess) h.pci_bus_id = text;
  std::transform(h.pci_bus_id.begin(), h.pci_bus_id.end(), h.pci_bus_id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  size_t bytes = 0;
  if (Cu().DeviceTotalMem(&bytes, device) == kSuccess) h.memory_bytes = static_cast<int64_t>(bytes);
  h.capability = 10 * AttributeOf(device, kComputeCapabilityMajor) + AttributeOf(device, kComputeCapabilityMinor);
  h.vendor = "NVIDIA";
  h.version = errors::Concat("compute capability ", h.capability / 10, ".", h.capability % 10);
  h.has_double = true;
  h.local_memory_bytes = AttributeOf(device, kMaxSharedMemoryPerBlock);
  h.largest_group = static_cast<size_t>(std::max(1, AttributeOf(device, kMaxThreadsPerBlock)));
  h.compute_units = std::max(1, AttributeOf(device, kMultiprocessorCount));
  // Memory transfers twice in a cycle of its clock.
  const int64_t clock_khz = AttributeOf(device, kMemoryClockRateKhz), bits = AttributeOf(device, kMemoryBusWidthBits);
  if (clock_khz > 0 && bits > 0) h.bandwidth_bytes_per_s = 2 * clock_khz * 1000 * (bits / 8);
  if (h.capability < kLeastCapability) {
    h.lacks = "it has " + h.version + ", and 7.0 is needed";
  }
  return h;
}

struct Found {
  std::vector<Hardware> used;
  std::string why;  // there is none
};

Found LookForAll() {
  Found found;
  const Driver* const driver = FindDriver(&found.why);
  if (driver == nullptr) return found;
  int count = 0;
  if (driver->DeviceGetCount(&count) != kSuccess || count == 0) {
    found.why = "the NVIDIA driver of this machine has no GPU (nvidia-smi lists what there is)";
    return found;
  }
  std::string no_compiler;
  if (FindNvrtc(&no_compiler) == nullptr) {
    found.why = "the NVIDIA GPU needs the compiler of CUDA: " + no_compiler;
    return found;
  }
  for (int i = 0; i < count; ++i) {
    DeviceId device = 0;
    if (driver->DeviceGet(&device, i) != kSuccess) continue;
    Hardware hardware = Look(device);
    if (hardware.lacks.empty()) {
      found.used.push_back(std::move(hardware));
    } else {
      found.why += (found.why.empty() ? "" : "; ") + hardware.name + " cannot be used: " + hardware.lacks;
    }
  }
  return found;
}

const Found& All() {
  static const auto* const found = new Found(LookForAll());
  return *found;
}

}  // namespace

const std::vector<Hardware>& UsedHardware() { return All().used; }

std::string WhyNone() { return All().why; }

}  // namespace xpu::cuda
