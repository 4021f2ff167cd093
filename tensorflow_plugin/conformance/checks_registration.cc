// The calls of TensorFlow while it is imported. Any error here ends the user's process.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"
#include "tensorflow_plugin/conformance/library.h"

namespace xpu::conformance {
namespace {

void Loads(const Subject& subject) {
  std::string error;
  if (!OpenLibrary(subject.library, &error)) Fail(error);
}

// A struct as a TensorFlow of another version passes it: `known` bytes of zeros, then bytes that are not the plugin's.
template <typename Struct>
class Guarded {
 public:
  Guarded(const char* name, size_t known) : name_(name), known_(known) {
    std::memset(bytes_, 0, known_);
    std::memset(bytes_ + known_, kCanary, sizeof bytes_ - known_);
    get()->struct_size = known_;
  }
  Struct* get() { return reinterpret_cast<Struct*>(bytes_); }

  // Appends a sentence for what is wrong. `own` is the size of the struct that this program knows.
  void Examine(size_t own, std::string* problems) {
    const auto say = [&](const std::string& text) { *problems += (problems->empty() ? "" : "; ") + text; };
    size_t end = sizeof bytes_;
    while (end > known_ && bytes_[end - 1] == kCanary) --end;
    if (end > known_) say(Text(name_, ": wrote ", end - known_, " bytes beyond the ", known_, " of its struct_size"));
    if (get()->struct_size == 0) say(Text(name_, ": struct_size is left at 0"));
    for (size_t i = own; i < known_; ++i) {
      if (bytes_[i] != 0) {
        return say(Text(name_, ": filled a field at byte ", i, " that no TensorFlow has yet, with ", int{bytes_[i]}));
      }
    }
  }

 private:
  static constexpr uint8_t kCanary = 0xa5;
  const char* const name_;
  const size_t known_;
  alignas(16) uint8_t bytes_[2 * sizeof(Struct) + 256];
};

// How many bytes TensorFlow knows of a struct, whose last field begins at `last` and that ends at `end`.
using SizeRule = size_t (*)(size_t last, size_t end);

void RegisterWith(const Subject& subject, SizeRule rule) {
#define XPU_GUARDED(Struct, last, end) Guarded<Struct>(#Struct, rule(offsetof(Struct, last), end))
  auto platform = XPU_GUARDED(SP_Platform, force_memory_growth, SP_PLATFORM_STRUCT_SIZE);
  auto fns = XPU_GUARDED(SP_PlatformFns, destroy_timer_fns, SP_PLATFORM_FNS_STRUCT_SIZE);
  auto device = XPU_GUARDED(SP_Device, pci_bus_id, SP_DEVICE_STRUCT_SIZE);
  auto device_fns = XPU_GUARDED(SP_DeviceFns, get_gflops, SP_DEVICE_FNS_STRUCT_SIZE);
  auto executor = XPU_GUARDED(SP_StreamExecutor, host_callback, SP_STREAMEXECUTOR_STRUCT_SIZE);
  auto timer_fns = XPU_GUARDED(SP_TimerFns, nanoseconds, SP_TIMER_FNS_STRUCT_SIZE);
  auto stats = XPU_GUARDED(SP_AllocatorStats, largest_free_block_bytes, SP_ALLOCATORSTATS_STRUCT_SIZE);
#undef XPU_GUARDED

  Status status;
  Register(subject, platform.get(), fns.get(), status);
  status.Require("SE_InitPlugin");

  // Older structs leave no callback out that is called here.
  const SP_PlatformFns& f = *fns.get();
  FillTables(*platform.get(), f, device_fns.get(), executor.get(), timer_fns.get());
  int count = 0;
  CallPlatform("get_device_count", f.get_device_count, platform.get(), &count, status.get());
  status.Require("get_device_count");
  std::string problems;
  if (count > 0) {
    SE_CreateDeviceParams device_params{SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE, nullptr, 0, device.get()};
    CallPlatform("create_device", f.create_device, platform.get(), &device_params, status.get());
    status.Require("create_device");
    device.Examine(SP_DEVICE_STRUCT_SIZE, &problems);
    if (auto* get = executor.get()->get_allocator_stats) {
      Entering("get_allocator_stats");
      get(device.get(), stats.get());
      stats.Examine(SP_ALLOCATORSTATS_STRUCT_SIZE, &problems);
    }
  }
  platform.Examine(SP_PLATFORM_STRUCT_SIZE, &problems);
  fns.Examine(SP_PLATFORM_FNS_STRUCT_SIZE, &problems);
  device_fns.Examine(SP_DEVICE_FNS_STRUCT_SIZE, &problems);
  executor.Examine(SP_STREAMEXECUTOR_STRUCT_SIZE, &problems);
  timer_fns.Examine(SP_TIMER_FNS_STRUCT_SIZE, &problems);
  if (!problems.empty()) Fail(problems);
}

void OlderStructs(const Subject& subject) {
  RegisterWith(subject, [](size_t last, size_t) { return last; });
}

void FutureStructs(const Subject& subject) {
  RegisterWith(subject, [](size_t, size_t end) { return end + 64; });
}

void Succeeds(const Subject& subject) {
  SP_Platform platform{};
  platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  SP_PlatformFns fns{};
  fns.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  Status status;
  Register(subject, &platform, &fns, status);
  status.Require("SE_InitPlugin");
  if (!platform.struct_size || !fns.struct_size) Fail("a struct_size is 0 after SE_InitPlugin");
}

void Names(const Subject& subject) {
  Platform p(subject);
  const auto examine = [](const char* what, const char* name) {
    if (name == nullptr) Fail(what, " is null");
    const std::string text = name;
    const auto good = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
    if (text.empty() || text[0] == '_' || !std::all_of(text.begin(), text.end(), good)) {
      Fail(what, " is \"", text, "\", not a capital letter and then capital letters and underscores");
    }
  };
  examine("SP_Platform::name", p.platform.name);
  examine("SP_Platform::type", p.platform.type);
  if (p.platform.type == std::string("CPU")) Fail("SP_Platform::type is \"CPU\", which has kernels already");
}

void PlatformFunctions(const Subject& subject) {
  std::string missing;
  Platform p(subject);
  missing = Missing(RegistrationCallbacks(), &p.params, false);
  const std::string functions = Missing(PlatformCallbacks(), &p.fns, false);
  if (!functions.empty()) missing += (missing.empty() ? "" : ", ") + functions;
  if (!missing.empty()) Fail("not set: ", missing);
}

void ExecutorFunctions(const Subject& subject) {
  Platform p(subject);
  const std::string missing = Missing(ExecutorCallbacks(), &p.executor, p.platform.supports_unified_memory);
  if (!missing.empty()) Fail("not set: ", missing);
}

// TensorFlow initialises a library again that it finds under two paths, and ends the process if that gives it a name
// that it has.
void Again(const Subject& subject) {
  Platform first(subject), second(subject);
  const auto same = [](const char* a, const char* b) { return a && b && std::strcmp(a, b) == 0; };
  if (same(first.platform.type, second.platform.type) || same(first.platform.name, second.platform.name)) {
    NotOffered("a second SE_InitPlugin registers the same names, over which TensorFlow ends the process");
  }
}

}  // namespace

std::vector<Check> RegistrationChecks() {
  return {
      {"library.loads", "The library loads and has SE_InitPlugin.", Loads},
      {"registration.succeeds", "SE_InitPlugin reports no error, whatever hardware there is.", Succeeds},
      {"registration.names",
       "The platform's name and type are capital letters and underscores, the first a letter, and the type is not CPU.",
       Names},
      {"registration.platform_callbacks",
       "Every callback of SP_PlatformFns and SE_PlatformRegistrationParams that TensorFlow requires or calls unseen is "
       "set.",
       PlatformFunctions},
      {"registration.executor_callbacks",
       "Every callback of SP_StreamExecutor that TensorFlow requires or calls unseen is set.", ExecutorFunctions},
      {"registration.older_structs",
       "Given structs that end before their last field, as an older TensorFlow's may, nothing is written beyond their "
       "struct_size.",
       OlderStructs},
      {"registration.future_structs",
       "Given structs with fields that do not exist yet, the library works and leaves those fields alone.",
       FutureStructs},
      {"registration.again",
       "A second SE_InitPlugin in the process, as when TensorFlow finds the library under two paths, registers other "
       "names.",
       Again},
  };
}

}  // namespace xpu::conformance
