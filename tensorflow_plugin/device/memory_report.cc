#include "tensorflow_plugin/device/memory_report.h"

#include <map>
#include <mutex>

#include "tensorflow_plugin/primitives/fork.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu {
namespace {

// Lives for ever, as TensorFlow destroys no devices at the end of the process.
struct Reported {
  Mutex mutex;
  struct Entry {
    Device* device;
    const char* allocator;
  };
  std::map<int, Entry> devices;
};
Reported& All() {
  static auto* const all = new Reported;
  return *all;
}

}  // namespace

void AddReportedDevice(int ordinal, Device* device, const char* allocator) {
  std::lock_guard<std::mutex> lock(All().mutex);
  All().devices[ordinal] = {device, allocator};
}

void RemoveReportedDevice(int ordinal, const Device* device) {
  std::lock_guard<std::mutex> lock(All().mutex);
  const auto found = All().devices.find(ordinal);
  if (found != All().devices.end() && found->second.device == device) All().devices.erase(found);
}

std::string MemoryReport(int ordinal) {
  std::lock_guard<std::mutex> lock(All().mutex);
  const auto found = All().devices.find(ordinal);
  if (found == All().devices.end()) return "null";
  const AllocatorStats s = found->second.device->Stats();
  return errors::Concat("{\"allocator\": \"", found->second.allocator, "\", \"bytes_in_use\": ", s.bytes_in_use,
                        ", \"peak_bytes_in_use\": ", s.peak_bytes_in_use, ", \"bytes_reserved\": ", s.bytes_reserved,
                        ", \"peak_bytes_reserved\": ", s.peak_bytes_reserved, ", \"bytes_limit\": ", s.bytes_limit,
                        ", \"num_allocs\": ", s.num_allocs, ", \"largest_alloc_size\": ", s.largest_alloc_size, "}");
}

void ResetMemoryReport(int ordinal) {
  std::lock_guard<std::mutex> lock(All().mutex);
  const auto found = All().devices.find(ordinal);
  if (found != All().devices.end()) found->second.device->ResetStats();
}

bool SynchronizeReported(int ordinal) {
  std::lock_guard<std::mutex> lock(All().mutex);  // the device stays meanwhile
  const auto found = All().devices.find(ordinal);
  if (found == All().devices.end()) return false;
  found->second.device->Synchronize();
  return true;
}

void ForEachReportedDevice(const std::function<void(int ordinal, Device& device)>& visit) {
  std::map<int, Reported::Entry> devices;
  {
    std::lock_guard<std::mutex> lock(All().mutex);
    devices = All().devices;
  }
  for (const auto& [ordinal, entry] : devices) visit(ordinal, *entry.device);
}

}  // namespace xpu
