#include "tensorflow_plugin/backends/opencl/hardware.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tensorflow_plugin/backends/host_runtime/machine.h"

namespace xpu::opencl {
namespace {

constexpr char kVariable[] = "TF_XPU_OPENCL_DEVICE";
// "1": processors run what other devices do, kernels of whole groups. They are slower at that, and it is for tests.
constexpr char kGroupsVariable[] = "XPU_TEST_OPENCL_GROUPS";

// PCI addresses: cl_khr_pci_bus_info, whose header opencl-c-headers has had since 2021.
constexpr cl_device_info kPciBusInfo = 0x410F;
struct PciBusInfo {
  cl_uint domain, bus, device, function;
};

std::string TextOf(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (Cl().GetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (Cl().GetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(size - 1);  // its terminator
  const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::string NameOf(cl_platform_id platform) {
  size_t size = 0;
  if (Cl().GetPlatformInfo(platform, CL_PLATFORM_NAME, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (Cl().GetPlatformInfo(platform, CL_PLATFORM_NAME, size, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(size - 1);
  return text;
}

// T{} of what the driver does not know.
template <typename T>
T ValueOf(cl_device_id device, cl_device_info what) {
  T value{};
  return Cl().GetDeviceInfo(device, what, sizeof(value), &value, nullptr) == CL_SUCCESS ? value : T{};
}

bool HasExtension(const std::string& extensions, const std::string& name) {
  return (" " + extensions + " ").find(" " + name + " ") != std::string::npos;
}

// "OpenCL 3.0 ..." -> 300.
int VersionOf(const std::string& text) {
  int major = 0, minor = 0;
  return std::sscanf(text.c_str(), "OpenCL %d.%d", &major, &minor) == 2 ? major * 100 + minor * 10 : 0;
}

std::string Lacks(const Hardware& h, cl_device_id device, const std::string& extensions) {
  if (!ValueOf<cl_bool>(device, CL_DEVICE_AVAILABLE)) return "it is not available";
  if (!ValueOf<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE)) return "its driver has no compiler";
  if (VersionOf(h.version) < 120) return "it has " + h.version + ", and 1.2 is needed";
  if (!ValueOf<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE)) return "it is big-endian";
  const bool full = TextOf(device, CL_DEVICE_PROFILE) == "FULL_PROFILE";
  if (!full && !HasExtension(extensions, "cles_khr_int64")) return "it has no 64-bit integers";
  if (h.largest_group < 64) return "its groups have fewer than 64 items";
  const auto config = ValueOf<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG);
  if ((config & CL_FP_INF_NAN) == 0 || (config & CL_FP_ROUND_TO_NEAREST) == 0) {
    return "its single precision has no infinities, or does not round to nearest";
  }
  return "";
}

Hardware Look(cl_platform_id platform, cl_device_id device) {
  Hardware h;
  h.id = device;
  h.platform = platform;
  h.platform_name = NameOf(platform);
  h.name = TextOf(device, CL_DEVICE_NAME);
  h.vendor = TextOf(device, CL_DEVICE_VENDOR);
  h.version = TextOf(device, CL_DEVICE_VERSION);
  h.driver_version = TextOf(device, CL_DRIVER_VERSION);
  const std::string extensions = TextOf(device, CL_DEVICE_EXTENSIONS);
  if (HasExtension(extensions, "cl_khr_pci_bus_info")) {
    const auto pci = ValueOf<PciBusInfo>(device, kPciBusInfo);
    char text[32];
    std::snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0xff,
                  pci.function & 0xf);
    h.pci_bus_id = text;
  }
  // A simulator, which is of every type, runs what other devices do.
  const auto type = ValueOf<cl_device_type>(device, CL_DEVICE_TYPE);
  const char* const groups = std::getenv(kGroupsVariable);
  h.is_processor = (type & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU)) == CL_DEVICE_TYPE_CPU &&
                   (groups == nullptr || std::string(groups) != "1");
  h.has_double = ValueOf<cl_device_fp_config>(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  h.rounds_correctly =
      (ValueOf<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  h.shares_host_memory = ValueOf<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  h.memory_bytes = static_cast<int64_t>(ValueOf<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE));
  // A processor's memory is the host's: of a container's share the driver may know nothing.
  const int64_t of_machine = h.is_processor ? host_runtime::TotalMachineMemory() : 0;
  if (of_machine > 0) h.memory_bytes = std::min(h.memory_bytes, of_machine);
  h.largest_allocation = static_cast<int64_t>(ValueOf<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  h.local_memory_bytes = static_cast<int64_t>(ValueOf<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE));
  h.largest_group = std::max<size_t>(ValueOf<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE), 1);
  h.compute_units = std::max(static_cast<int>(ValueOf<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS)), 1);
  h.lacks = Lacks(h, device, extensions);
  return h;
}

std::vector<Hardware> LookForAll() {
  std::vector<Hardware> all;
  const Driver* const cl = FindDriver(nullptr);
  cl_uint n = 0;
  if (cl == nullptr || cl->GetPlatformIDs(0, nullptr, &n) != CL_SUCCESS || n == 0) return all;
  std::vector<cl_platform_id> platforms(n);
  if (cl->GetPlatformIDs(n, platforms.data(), nullptr) != CL_SUCCESS) return all;
  for (cl_platform_id platform : platforms) {
    if (cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &n) != CL_SUCCESS || n == 0) continue;
    std::vector<cl_device_id> devices(n);
    if (cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, devices.data(), nullptr) != CL_SUCCESS) continue;
    for (cl_device_id device : devices) all.push_back(Look(platform, device));
  }
  return all;
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool IsNumber(const std::string& text) {
  return text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::string Describe(const Hardware& h, size_t number) {
  std::string text = errors::Concat(number, ": ", h.name, " (", h.platform_name, ")");
  if (!h.lacks.empty()) text += ", which cannot be used: " + h.lacks;
  return text;
}

const std::vector<Hardware>& AllHardware() {
  static const auto* const all = new std::vector<Hardware>(LookForAll());
  return *all;
}

std::vector<const Hardware*> Choose(const std::vector<Hardware>& all, const std::string& value, std::string* warning) {
  std::vector<const Hardware*> usable, named;
  std::string list;
  for (size_t i = 0; i < all.size(); ++i) {
    const Hardware& h = all[i];
    list += (i == 0 ? "" : "; ") + Describe(h, i);
    if (!h.lacks.empty()) continue;
    usable.push_back(&h);
    const bool is_named = IsNumber(value)
                              ? i == std::strtoull(value.c_str(), nullptr, 10)
                              : Lower(h.name + "\n" + h.platform_name).find(Lower(value)) != std::string::npos;
    if (is_named) named.push_back(&h);
  }
  if (value.empty() || !named.empty()) return value.empty() ? usable : named;
  *warning = errors::Concat(kVariable, "=", value, " is ignored: expected a part of the name or the number of one of ",
                            list, "; using ", usable.size() == 1 ? "the one" : "all", " that can be used");
  return usable;
}

std::vector<const Hardware*> UsedHardware() {
  // Asked on every listing of devices: by value of the variable, which may change before devices are made.
  static auto* const mutex = new std::mutex;
  static auto* const chosen = new std::map<std::string, std::vector<const Hardware*>>;
  const char* const text = std::getenv(kVariable);
  const std::string value = text == nullptr ? "" : text;
  const std::vector<Hardware>& all = AllHardware();
  std::lock_guard<std::mutex> lock(*mutex);
  const auto [entry, first] = chosen->try_emplace(value);
  if (first) {
    std::string warning;
    entry->second = Choose(all, value, &warning);
    // Without a device there is nothing to choose from; WhyNone says that to who asks.
    if (!warning.empty() && !entry->second.empty()) std::fprintf(stderr, "tensorflow_xpu: %s\n", warning.c_str());
  }
  return entry->second;
}

std::string WhyNone() {
  std::string why;
  if (FindDriver(&why) == nullptr) return why;
  const std::vector<Hardware>& all = AllHardware();
  if (all.empty()) {
    return "no OpenCL driver on this machine has a device: install the driver of the accelerator, or pocl-opencl-icd "
           "for the processor (clinfo lists what there is)";
  }
  why = "no OpenCL device of this machine can be used";
  for (size_t i = 0; i < all.size(); ++i) why += (i == 0 ? ": " : "; ") + Describe(all[i], i);
  return why;
}

}  // namespace xpu::opencl
