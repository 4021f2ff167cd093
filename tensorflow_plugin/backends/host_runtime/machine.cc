#include "tensorflow_plugin/backends/host_runtime/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>
#include <vector>

namespace xpu::host_runtime {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// The number behind `name` in a file of "name: number" or "name number" lines; -1 if there is none.
int64_t Field(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key;
    int64_t value;
    if (words >> key >> value && (key == name || key == name + ":")) return value;
  }
  return -1;
}

// A file that holds one number; `none` for a missing file and for the word "max".
int64_t Number(const std::string& path, int64_t none) {
  std::ifstream file(path);
  int64_t value;
  return file >> value ? value : none;
}

// The text behind the colon of the first line of /proc/cpuinfo that starts with `key`.
std::string CpuInfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "";
}

// Control groups, version 2 and 1. Containers see their own group at these paths.
struct ControlGroup {
  const char *limit, *usage, *stat, *reclaimable;
};
constexpr ControlGroup kControlGroups[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "inactive_file"},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"},
};

std::vector<int> AllowedProcessors() {
  std::vector<int> processors;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

// Its folder in /sys has an entry "node3"; -1 without one.
int NodeOf(const std::string& root, int processor) {
  const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(processor);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.compare(0, 4, "node") == 0 && name.find_first_not_of("0123456789", 4) == std::string::npos) {
      return std::atoi(name.c_str() + 4);
    }
  }
  return -1;
}

// The control group's share of time, as a number of processors, rounded up. Version 2 has a file "quota period", where
// the quota may be "max"; version 1 has two files, where it may be -1.
int64_t ProcessorQuota(const std::string& root) {
  int64_t quota = Number(root + "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", -1);
  int64_t period = Number(root + "/sys/fs/cgroup/cpu/cpu.cfs_period_us", -1);
  std::ifstream file(root + "/sys/fs/cgroup/cpu.max");
  int64_t words[2];
  if (file >> words[0] >> words[1]) {
    quota = words[0];
    period = words[1];
  }
  return quota > 0 && period > 0 ? (quota + period - 1) / period : kNone;
}

}  // namespace

int64_t TotalMachineMemory(const std::string& root) {
  int64_t total = std::max<int64_t>(Field(root + "/proc/meminfo", "MemTotal"), 0) * 1024;
  for (const ControlGroup& group : kControlGroups) total = std::min(total, Number(root + group.limit, kNone));
  return total;
}

int64_t AvailableMachineMemory(const std::string& root) {
  int64_t available = std::max<int64_t>(Field(root + "/proc/meminfo", "MemAvailable"), 0) * 1024;
  for (const ControlGroup& group : kControlGroups) {
    const int64_t limit = Number(root + group.limit, kNone);
    if (limit == kNone) continue;
    const int64_t cache = std::max<int64_t>(Field(root + group.stat, group.reclaimable), 0);
    available = std::min(available, std::max<int64_t>(limit - Number(root + group.usage, 0) + cache, 0));
  }
  return available;
}

std::string ProcessorName() {
  std::string name = CpuInfo("model name");
  utsname machine;
  if (name.empty() && uname(&machine) == 0) name = machine.machine;
  return name.empty() ? "unknown" : name;
}

std::string ProcessorVendor() {
  const std::string vendor = CpuInfo("vendor_id");
  return vendor.empty() ? "unknown" : vendor;
}

int NumaNode(const std::string& root) {
  int node = -1;
  for (const int processor : AllowedProcessors()) {
    const int its_node = NodeOf(root, processor);
    if (its_node < 0 || (node >= 0 && its_node != node)) return -1;
    node = its_node;
  }
  return node;
}

int UsableProcessors(const std::string& root) {
  const int64_t allowed = std::max<int64_t>(static_cast<int64_t>(AllowedProcessors().size()), 1);
  return static_cast<int>(std::min(allowed, ProcessorQuota(root)));
}

bool FindOthers(int processor, cpu_set_t* usable, cpu_set_t* others) {
  if (processor < 0 || sched_getaffinity(0, sizeof(*usable), usable) != 0) return false;
  *others = *usable;
  CPU_CLR(processor, others);
  return CPU_COUNT(others) > 0;
}

bool LeaveProcessor(int processor) {
  if (sched_getcpu() != processor) return false;
  cpu_set_t usable, others;
  if (!FindOthers(processor, &usable, &others)) return true;
  // The system may move it again.
  if (sched_setaffinity(0, sizeof(others), &others) == 0) (void)sched_setaffinity(0, sizeof(usable), &usable);
  return true;
}

}  // namespace xpu::host_runtime
