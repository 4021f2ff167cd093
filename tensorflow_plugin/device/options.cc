#include "tensorflow_plugin/device/options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <system_error>

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
constexpr char kWinograd[] = "TF_XPU_WINOGRAD";  // the host backend's, which asks the environment itself
// All options, those of the loader, of backends and of the Python package too, and the variable with the file's name.
constexpr const char* kNames[] = {
#include "tensorflow_plugin/device/option_names.inc"
    "TF_XPU_CONFIG"};
constexpr char kSystemsLargePages[] = "/sys/kernel/mm/transparent_hugepage/enabled";
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

// "TF_XPU_DEVICE_COUNT=abc (in /etc/xdg/tensorflow_xpu/config)".
std::string Given(const std::string& name, const std::string& value) {
  const auto origin = Origins().find(name);
  const std::string from = origin == Origins().end() ? "" : " (in " + origin->second + ")";
  return name + "=" + value + from;
}

// "TF_XPU_DEVICE_COUNT=abc is ignored: expected a whole number ...".
std::string Ignored(const char* name, const std::string& value, const std::string& expected, const std::string& used) {
  return Given(name, value) + " is ignored: expected " + expected + "; using " + used;
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

// How many characters have to be inserted, left out or replaced to make the one text of the other.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// Variables that look like options and are none.
void RemarkOnUnknown(std::vector<std::string>* remarks) {
  constexpr char kPrefix[] = "TF_XPU_";
  constexpr size_t kAlike = 4;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (text.rfind(kPrefix, 0) != 0 || equals == std::string::npos) continue;
    const std::string name = text.substr(0, equals);
    const auto* const nearest = std::min_element(
        std::begin(kNames), std::end(kNames), [&](auto* a, auto* b) { return Distance(name, a) < Distance(name, b); });
    const size_t distance = Distance(name, *nearest);
    if (distance == 0) continue;
    remarks->push_back(Given(name, text.substr(equals + 1)) + " has no effect: there is no such option" +
                       (distance <= kAlike ? std::string("; did you mean ") + *nearest + "?"
                                           : ". `python -m tensorflow_xpu config` lists those there are"));
  }
}

// Makes the folder if it is not there. Returns what keeps files from being written there, or "".
std::string MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return error.message();
  if (!std::filesystem::is_directory(path, error)) return "it is no folder";
  return access(path.c_str(), W_OK | X_OK) == 0 ? "" : std::strerror(errno);
}

bool SystemHasNoLargePages() {
  std::string text;
  std::getline(std::ifstream(kSystemsLargePages), text);
  return text.find("[never]") != std::string::npos;
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
  const int64_t total = memory.empty() ? 0 : total_memory(options.subdevice);
  options.backend.memory_limit = memory.empty() ? 0 : ParseMemorySize(memory, total);
  const int64_t limit = options.backend.memory_limit, devices = options.backend.device_count;
  if (total > 0 && limit > total / devices) {
    options.remarks.push_back(Given(kMemoryLimit, memory) + " is more than there is: " +
                              (devices == 1 ? "" : "for " + std::to_string(devices) + " devices ") +
                              std::to_string(total) + " bytes in all. Allocations may fail before the limit");
  }
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
  read_choice(kWinograd, "1", "0");
  options.dump_folder = Environment(kDumpFusion);
  const std::string trouble =
      options.dump_folder.empty() || !options.fusion ? std::string() : MakeFolder(options.dump_folder);
  if (!trouble.empty()) {
    warnings->push_back(Ignored(kDumpFusion, options.dump_folder, "a folder to write to (" + trouble + ")", "none"));
    options.dump_folder.clear();
  }
  if (!options.fusion) {
    for (const char* name : {kFusionWithout, kDumpFusion}) {
      const std::string value = Environment(name);
      if (!value.empty()) options.remarks.push_back(Given(name, value) + " has no effect with " + kFusion + "=0");
    }
  }
  options.backend.isolate_memory = read_choice(kIsolateMemory, "0", "1") == 1;
  options.backend.pool_memory = read_choice(kAllocator, "bfc", "pool") == 1;
  options.backend.large_pages = read_choice(kLargePages, "1", "0") == 0;
  if (Environment(kLargePages) == "1" && SystemHasNoLargePages()) {
    options.remarks.push_back(Given(kLargePages, "1") + " has no effect: the system gives none (" + kSystemsLargePages +
                              " is never)");
  }

  const std::string faults = Environment(kFault);
  if (!faults.empty() && !ParseFaultRules(faults, &options.faults)) {
    warnings->push_back(Ignored(kFault, faults, kFaultGrammar, "none"));
  }
  RemarkOnUnknown(&options.remarks);
  return options;
}

}  // namespace xpu
