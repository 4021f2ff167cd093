#include "tensorflow_plugin/device/options.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <map>
#include <sstream>

namespace xpu {
namespace {

constexpr char kDeviceType[] = "TF_XPU_DEVICE_TYPE";
constexpr char kSubdevice[] = "TF_XPU_SUBDEVICE";
constexpr char kDeviceCount[] = "TF_XPU_DEVICE_COUNT";
constexpr char kMemoryLimit[] = "TF_XPU_MEMORY_LIMIT";
constexpr char kFault[] = "TF_XPU_FAULT";
constexpr char kIsolateMemory[] = "TF_XPU_ISOLATE_MEMORY";
constexpr char kAllocator[] = "TF_XPU_ALLOCATOR";
constexpr char kLargePages[] = "TF_XPU_LARGE_PAGES";
constexpr char kThreads[] = "TF_XPU_THREADS";
constexpr char kFusion[] = "TF_XPU_FUSION";
constexpr char kFusionWithout[] = "TF_XPU_FUSION_WITHOUT";
constexpr char kDirectCalls[] = "TF_XPU_DIRECT_CALLS";
constexpr char kDumpFusion[] = "TF_XPU_DUMP_FUSION";
constexpr int kMaxDevices = 64;
constexpr int kMaxThreads = 1024;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Where settings come from that were not in the environment when the process started, by their names.
std::map<std::string, std::string>& Origins() {
  static auto* const origins = new std::map<std::string, std::string>;
  return *origins;
}

// "TF_XPU_DEVICE_COUNT=abc is ignored: expected a whole number ...".
std::string Ignored(const char* name, const std::string& value, const std::string& expected, const std::string& used) {
  const auto origin = Origins().find(name);
  const std::string from = origin == Origins().end() ? "" : " (in " + origin->second + ")";
  return std::string(name) + "=" + value + from + " is ignored: expected " + expected + "; using " + used;
}

std::string Join(const std::vector<std::string>& names, const char* separator) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : separator) + name;
  return joined;
}

// A whole number in decimal digits, -1 for anything else.
int64_t ParseDigits(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return -1;
  errno = 0;
  const int64_t value = std::strtoll(text.c_str(), nullptr, 10);
  return errno ? -1 : value;
}

}  // namespace

void SettingCameFrom(const std::string& name, const std::string& origin) { Origins()[name] = origin; }

int64_t ParseMemorySize(const std::string& text, int64_t machine_bytes) {
  constexpr int64_t kMin = int64_t{1} << 20;
  const size_t digits = text.find_first_not_of("0123456789");
  const int64_t number = ParseDigits(text.substr(0, digits));
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  if (number <= 0) return 0;
  if (unit == "%") return number <= 100 ? std::max(kMin, machine_bytes / 100 * number) : 0;
  static constexpr struct {
    const char* name;
    int64_t bytes;
  } kUnits[] = {{"", 1},
                {"KB", 1000},
                {"MB", 1000 * 1000},
                {"GB", 1000 * 1000 * 1000},
                {"TB", int64_t{1000} * 1000 * 1000 * 1000},
                {"KiB", int64_t{1} << 10},
                {"MiB", int64_t{1} << 20},
                {"GiB", int64_t{1} << 30},
                {"TiB", int64_t{1} << 40}};
  for (const auto& u : kUnits) {
    if (unit != u.name) continue;
    if (number > std::numeric_limits<int64_t>::max() / u.bytes) return 0;
    return number * u.bytes >= kMin ? number * u.bytes : 0;
  }
  return 0;
}

Options ReadOptions(const std::vector<std::string>& subdevices, const std::vector<std::string>& passes,
                    const std::function<int64_t(const std::string&)>& total_memory,
                    std::vector<std::string>* warnings) {
  Options options;
  options.subdevice = subdevices.empty() ? "" : subdevices.front();

  const std::string subdevice = Environment(kSubdevice);
  if (std::find(subdevices.begin(), subdevices.end(), subdevice) != subdevices.end()) {
    options.subdevice = subdevice;
  } else if (!subdevice.empty()) {
    warnings->push_back(Ignored(kSubdevice, subdevice, Join(subdevices, " or "), options.subdevice));
  }

  const auto read_number = [warnings](const char* name, int max, const std::string& hint, const std::string& fallback,
                                      int* value) {
    const std::string text = Environment(name);
    const int64_t number = ParseDigits(text);
    if (number >= 1 && number <= max) {
      *value = static_cast<int>(number);
    } else if (!text.empty()) {
      warnings->push_back(Ignored(name, text, "a whole number from 1 to " + std::to_string(max) + hint, fallback));
    }
  };
  read_number(kDeviceCount, kMaxDevices, " (for no device at all set TF_XPU_DISABLE=1)", "1",
              &options.backend.device_count);
  read_number(kThreads, kMaxThreads, "", "each device's share of the processors", &options.backend.threads);

  const std::string memory = Environment(kMemoryLimit);
  options.backend.memory_limit = memory.empty() ? 0 : ParseMemorySize(memory, total_memory(options.subdevice));
  if (!memory.empty() && options.backend.memory_limit == 0) {
    warnings->push_back(Ignored(
        kMemoryLimit, memory,
        "bytes, or a number with KB, MB, GB, TB, KiB, MiB, GiB, TiB or % (of the machine's or container's memory), "
        "at least 1MiB",
        "what the machine offers"));
  }

  // `first` is the default.
  const auto read_choice = [warnings](const char* name, const char* first, const char* second) {
    const std::string text = Environment(name);
    if (text == second) return 1;
    if (!text.empty() && text != first) {
      warnings->push_back(Ignored(name, text, Join({first, second}, " or "), first));
    }
    return 0;
  };
  options.device_type = read_choice(kDeviceType, "XPU", "GPU") == 0 ? "XPU" : "GPU";
  options.fusion = read_choice(kFusion, "1", "0") == 0;
  std::stringstream without(Environment(kFusionWithout));
  for (std::string name; std::getline(without, name, ',');) options.without_passes.push_back(name);
  for (const std::string& name : options.without_passes) {
    if (std::find(passes.begin(), passes.end(), name) != passes.end()) continue;
    warnings->push_back(
        Ignored(kFusionWithout, without.str(), "of these, with commas between: " + Join(passes, ", "), "all"));
    options.without_passes.clear();
    break;
  }
  options.direct_calls = read_choice(kDirectCalls, "1", "0") == 0;
  options.dump_folder = Environment(kDumpFusion);
  struct stat found;
  if (!options.dump_folder.empty() && (stat(options.dump_folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode))) {
    warnings->push_back(Ignored(kDumpFusion, options.dump_folder, "a folder that exists", "none"));
    options.dump_folder.clear();
  }
  options.backend.isolate_memory = read_choice(kIsolateMemory, "0", "1") == 1;
  options.backend.pool_memory = read_choice(kAllocator, "bfc", "pool") == 1;
  options.backend.large_pages = read_choice(kLargePages, "1", "0") == 0;

  const std::string faults = Environment(kFault);
  if (!faults.empty() && !ParseFaultRules(faults, &options.faults)) {
    warnings->push_back(Ignored(kFault, faults, kFaultGrammar, "none"));
  }
  return options;
}

}  // namespace xpu
