// The library in site-packages/tensorflow-plugins. TensorFlow calls the four entry points at the end of this file while
// it is imported. They go to the core (tensorflow_plugin/plugin.cc) built for the running TensorFlow. If there is a
// reason not to, they go to stand-ins with zero devices, after one line on stderr with the reason and the remedy.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tensorflow/c/c_api.h"
#include "tensorflow_plugin/loader/abi.h"
#include "tensorflow_plugin/loader/json.h"
#include "tensorflow_plugin/loader/process.h"
#include "tensorflow_plugin/loader/python_hooks.h"
#include "tensorflow_plugin/loader/settings.h"
#include "tensorflow_plugin/loader/stand_in.h"

#define XPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace xpu::loader {
namespace {

// The core's entry points; the last three are optional.
struct CoreEntryPoints {
  decltype(SE_InitPlugin)* init_plugin = nullptr;
  void (*init_kernel)() = nullptr;
  decltype(TF_InitGraph)* init_graph = nullptr;
  decltype(TF_InitProfiler)* init_profiler = nullptr;
  void (*came_from)(const char* name, const char* origin) = nullptr;
};

// The decision of the first initialisation. TensorFlow initialises one library again when it finds the same folder
// under two spellings (lib and lib64 of a Fedora virtual environment). Those later rounds get stand-ins.
struct LoaderState {
  int rounds = 0;
  bool active = false;   // this library's core is registered with TensorFlow
  bool forward = false;  // the round in progress goes to the core
  int device_count = 0;
  std::string loader_path, package_path, tensorflow_version, core_path, built_for, device_type, reason, report;
  Settings settings;
  CoreEntryPoints core;
};
LoaderState& TheState() {
  static LoaderState& state = *new LoaderState;  // never destroyed: TensorFlow may call until the process is gone
  return state;
}

constexpr char kCorePrefix[] = "libtensorflow_xpu_core_";
constexpr char kReinstall[] = "Fix: pip install --force-reinstall --no-deps tensorflow_xpu";

bool Enabled(const std::string& value) { return !value.empty() && value != "0" && value != "false"; }

// "2.21.0-rc1" -> "2.21"; empty if it does not start so.
std::string MinorOf(const std::string& version) {
  const size_t dot = version.find('.');
  if (dot == std::string::npos) return "";
  return version.substr(0, version.find_first_not_of("0123456789", dot + 1));
}

// The number of a version's minor part: 21 of "2.21".
int MinorNumber(const std::string& minor) { return std::atoi(minor.c_str() + minor.find('.') + 1); }

// The TensorFlow minor versions that the installed package has a core for, in order: {"2.20", "2.21"}.
std::vector<std::string> InstalledMinors(const std::string& folder) {
  std::vector<std::string> minors;
  for (const std::string& name : ListFolder(folder)) {
    if (name.rfind(kCorePrefix, 0) != 0 || name.size() < sizeof(kCorePrefix) + 3) continue;
    if (name.compare(name.size() - 3, 3, ".so") != 0) continue;
    std::string minor = name.substr(sizeof(kCorePrefix) - 1, name.size() - sizeof(kCorePrefix) - 2);
    std::replace(minor.begin(), minor.end(), '_', '.');
    minors.push_back(minor);
  }
  std::sort(minors.begin(), minors.end(), [](const auto& a, const auto& b) { return MinorNumber(a) < MinorNumber(b); });
  return minors;
}

// The folder of the running TensorFlow: site-packages/tensorflow.
std::string TensorFlowFolder() { return DirName(ObjectOf(TensorFlowSymbol("TF_NewStatus"))); }

// "tensorflow-cpu" or "tensorflow", whichever distribution the running TensorFlow came from.
std::string TensorFlowDistribution() {
  for (const std::string& name : ListFolder(DirName(TensorFlowFolder()))) {
    if (name.rfind("tensorflow-", 0) == 0 && name.find(".dist-info") != std::string::npos) return "tensorflow";
  }
  return "tensorflow-cpu";
}

std::string CorePath(const std::string& folder, std::string minor) {
  std::replace(minor.begin(), minor.end(), '.', '_');
  return folder + "/" + kCorePrefix + minor + ".so";
}

// The newest version that there is a core for; a release, if there is one.
std::string Recommended(const std::string& folder, const std::vector<std::string>& minors) {
  const auto of_release = [&](const std::string& minor) { return !IsPrerelease(BuiltFor(CorePath(folder, minor))); };
  const auto found = std::find_if(minors.rbegin(), minors.rend(), of_release);
  return found == minors.rend() ? minors.back() : *found;
}

std::string WrongVersion(const LoaderState& state, const std::string& folder, const std::vector<std::string>& minors) {
  std::string built_for;
  for (const std::string& minor : minors) {
    built_for += (built_for.empty() ? "" : minor == minors.back() ? " and " : ", ") + minor;
  }
  return "TensorFlow is version " + state.tensorflow_version + " but this plugin was built for " + built_for +
         ", so no XPU is available. Fix: pip install \"" + TensorFlowDistribution() +
         "==" + Recommended(folder, minors) + ".*\", or install a tensorflow_xpu built for TensorFlow " +
         MinorOf(state.tensorflow_version);
}

// Why the core for this minor version must not serve the running TensorFlow, or "". Releases of one minor version keep
// the layout of classes; candidates and nightlies need not.
std::string WrongAbi(const LoaderState& state, const std::string& core) {
  const std::string &running = state.tensorflow_version, &built_for = state.built_for;
  if (running == built_for || !(IsPrerelease(running) || IsPrerelease(built_for))) return "";
  std::string why = "was built for no version that it names";
  if (!built_for.empty()) {
    const std::string header = DifferingHeader(core, TensorFlowFolder());
    if (header.empty()) return "";
    why = "was built for " + built_for + ", whose " + header + " is another";
  }
  return "TensorFlow is version " + running + " and the core for " + MinorOf(running) + " " + why +
         ", so no XPU is available. Fix: install " + (built_for.empty() ? "a release of TensorFlow" : "that version") +
         ", or a tensorflow_xpu built for this one";
}

// The path of another copy of this library that has already given TensorFlow its devices; empty if there is none.
std::string OtherActiveCopy() {
  for (const std::string& path : LoadedObjects()) {
    auto* active = reinterpret_cast<int (*)()>(SymbolOfObject(path, "XpuLoader_Active"));
    if (active && ObjectOf(reinterpret_cast<void*>(active)) != TheState().loader_path && active()) return path;
  }
  return "";
}

// True if TensorFlow already has a device factory of this type. The function is C++ but stable: it takes a std::string
// and returns a pointer.
bool TypeIsTaken(const char* type) {
  auto* get_factory = reinterpret_cast<void* (*)(const std::string&)>(TensorFlowSymbol(
      "_ZN10tensorflow13DeviceFactory10GetFactoryERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"));
  return get_factory && get_factory(type);
}

// True if TensorFlow already has a StreamExecutor platform of this name. It is asked only of a TensorFlow that a core
// was built for, so the layout of absl::StatusOr<Platform*> is known. That is a word that is 1 for OK, then the
// pointer. The error of the usual answer, "not found", is a few bytes that are not freed.
bool PlatformIsTaken(const char* name) {
  struct StatusOrPlatform {
    uintptr_t status = 0;
    void* platform = nullptr;
    ~StatusOrPlatform() {}  // makes it returned through memory, as absl::StatusOr is
  };
  auto* with_name = reinterpret_cast<StatusOrPlatform (*)(std::string_view, bool)>(TensorFlowSymbol(
      "_ZN15stream_executor15PlatformManager16PlatformWithNameESt17basic_string_viewIcSt11char_traitsIcEEb"));
  return with_name && with_name(name, /*initialize_platform=*/false).status == 1;
}

// Opens the core, and with it libgomp, which reads its settings at that moment. Without any, its idle threads poll for
// some 10 ms before they sleep and take the cores from TensorFlow's threads. A busy machine then runs many times
// slower. This makes it some 50 microseconds, enough to bridge two commands, unless the user has chosen.
void* OpenWithOpenMp(const std::string& path) {
  constexpr char kSpinCount[] = "GOMP_SPINCOUNT";
  const bool choose = Environment(kSpinCount).empty() && Environment("OMP_WAIT_POLICY").empty();
  if (choose) setenv(kSpinCount, "1000", 1);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (choose) unsetenv(kSpinCount);
  return handle;
}

// Finds and opens the core. Returns why not, or "".
std::string OpenCore(LoaderState* state) {
  auto* version = TensorFlowFunction<decltype(TF_Version)>("TF_Version");
  if (!version)
    return "no TensorFlow was found in this process, so no XPU is available. Fix: load the plugin with TensorFlow";
  state->tensorflow_version = version();
  const std::string folder = state->package_path + "/lib";
  const std::vector<std::string> minors = InstalledMinors(folder);
  if (minors.empty()) {
    return "no plugin core was found in " + folder + ", so no XPU is available. " + kReinstall;
  }
  const std::string minor = MinorOf(state->tensorflow_version);
  if (std::find(minors.begin(), minors.end(), minor) == minors.end()) return WrongVersion(*state, folder, minors);
  const std::string path = CorePath(folder, minor);
  for (const std::string& name : ListFolder(folder)) {
    const std::string library = folder + "/" + name;
    const bool other_core = name.rfind(kCorePrefix, 0) == 0 && library != path;
    if (other_core || name.find(".so") == std::string::npos || IsWholeLibrary(library)) continue;
    return library + " is damaged, so no XPU is available. " + kReinstall;
  }
  state->built_for = BuiltFor(path);
  const std::string reason = WrongAbi(*state, path);
  if (!reason.empty()) return reason;
  void* handle = OpenWithOpenMp(path);
  if (!handle) {
    const char* error = dlerror();
    return "the plugin core does not load (" + std::string(error ? error : path) + "), so no XPU is available. " +
           kReinstall;
  }
  const auto resolve = [handle](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  if (!resolve(state->core.init_plugin, "XpuCore_SE_InitPlugin") ||
      !resolve(state->core.init_kernel, "XpuCore_TF_InitKernel")) {
    return "the plugin core " + path + " has no entry points, so no XPU is available. " + kReinstall;
  }
  resolve(state->core.init_graph, "XpuCore_TF_InitGraph");
  resolve(state->core.init_profiler, "XpuCore_TF_InitProfiler");
  resolve(state->core.came_from, "XpuCore_SettingCameFrom");
  state->core_path = path;
  return "";
}

// Lets the core fill in `params`. Returns why they must not be used, or "".
std::string RegisterCore(LoaderState* state, SE_PlatformRegistrationParams* params) {
  auto* new_status = TensorFlowFunction<decltype(TF_NewStatus)>("TF_NewStatus");
  auto* delete_status = TensorFlowFunction<decltype(TF_DeleteStatus)>("TF_DeleteStatus");
  auto* get_code = TensorFlowFunction<decltype(TF_GetCode)>("TF_GetCode");
  auto* message = TensorFlowFunction<decltype(TF_Message)>("TF_Message");
  if (!new_status || !delete_status || !get_code || !message) {
    return "TensorFlow's C API is not in this process, so no XPU is available. Fix: pip install --force-reinstall " +
           TensorFlowDistribution();
  }
  TF_Status* status = new_status();  // TensorFlow's own one must not see an error: it would abort
  std::string reason;
  for (const auto& [name, value] : state->settings.values) {
    if (state->core.came_from) state->core.came_from(name.c_str(), state->settings.path.c_str());
  }
  state->core.init_plugin(params, status);
  if (get_code(status) != TF_OK) {
    reason = "the plugin core failed to start (" + std::string(message(status)) +
             "), so no XPU is available. Fix: python -m tensorflow_xpu doctor says more";
  } else if (TypeIsTaken(params->platform->type)) {
    reason = "another plugin already provides the device type " + std::string(params->platform->type) +
             ", so this one offers no devices. Fix: pip uninstall one of the two plugins";
  } else if (PlatformIsTaken(params->platform->name)) {
    reason = "another plugin already provides the platform " + std::string(params->platform->name) +
             ", so this one offers no devices. Fix: pip uninstall one of the two plugins";
  } else {
    params->platform_fns->get_device_count(params->platform, &state->device_count, status);
    if (get_code(status) != TF_OK) {
      reason = "the plugin core cannot count its devices (" + std::string(message(status)) +
               "), so no XPU is available. Fix: python -m tensorflow_xpu doctor says more";
    }
  }
  delete_status(status);
  state->device_type = params->platform->type ? params->platform->type : "";
  return reason;
}

// Decides in the first round; "" means that the core is in `params`.
std::string Decide(LoaderState* state, SE_PlatformRegistrationParams* params) {
  state->loader_path = ObjectOf(reinterpret_cast<void*>(&TheState));
  state->package_path = DirName(DirName(state->loader_path)) + "/tensorflow_xpu";
  state->settings = ApplySettings();
  if (!state->settings.error.empty()) {
    Warn("the configuration file is ignored: " + state->settings.error +
         ". Fix: mend it, remove it, or write it anew with python -m tensorflow_xpu config");
  }
  const std::string disable = Environment("TF_XPU_DISABLE");
  if (Enabled(disable)) {
    const bool from_file = state->settings.values.count("TF_XPU_DISABLE") != 0;
    return "TF_XPU_DISABLE=" + disable + " is set" + (from_file ? " in " + state->settings.path : "") +
           ", so no XPU is available. Fix: " +
           (from_file ? "python -m tensorflow_xpu config --unset TF_XPU_DISABLE" : "unset TF_XPU_DISABLE");
  }
  const std::string other = OtherActiveCopy();
  if (!other.empty()) {
    return "the second copy of the plugin, " + state->loader_path + ", is not used because " + other +
           " is already loaded. Fix: remove one of them, or unset TF_PLUGGABLE_DEVICE_LIBRARY_PATH if it names it";
  }
  std::string reason = OpenCore(state);
  return reason.empty() ? RegisterCore(state, params) : reason;
}

}  // namespace
}  // namespace xpu::loader

using xpu::loader::TheState;

// 1 if this library gave TensorFlow its XPU devices.
XPU_EXPORT int XpuLoader_Active() { return TheState().active; }

// The decision, as JSON: `{"active": bool, "reason": str, "loader": path, "core": path, "built_for": version,
// "tensorflow_version": str, "device_count": int, "settings_file": path, "settings": {variable: value}}`. "built_for"
// is the TensorFlow that the core was compiled with, "settings" are from the file. Valid until the next call.
XPU_EXPORT const char* XpuLoader_Report() {
  using xpu::JsonString;
  auto& state = TheState();
  std::string settings;
  for (const auto& [name, value] : state.settings.values) {
    settings += (settings.empty() ? "" : ", ") + JsonString(name) + ": " + JsonString(value);
  }
  state.report = "{\"active\": " + std::string(state.active ? "true" : "false") +
                 ", \"reason\": " + JsonString(state.reason) + ", \"loader\": " + JsonString(state.loader_path) +
                 ", \"core\": " + JsonString(state.core_path) + ", \"built_for\": " + JsonString(state.built_for) +
                 ", \"tensorflow_version\": " + JsonString(state.tensorflow_version) +
                 ", \"device_count\": " + std::to_string(state.device_count) +
                 ", \"settings_file\": " + JsonString(state.settings.path) + ", \"settings\": {" + settings + "}}";
  return state.report.c_str();
}

// 1 if TensorFlow has a device factory of this type already, and thus ends the process when a plugin brings another.
XPU_EXPORT int XpuLoader_TypeIsTaken(const char* type) { return xpu::loader::TypeIsTaken(type); }

// The same of a platform's name. 0 where a core of this plugin is not in use: nothing is known of another TensorFlow.
XPU_EXPORT int XpuLoader_PlatformIsTaken(const char* name) {
  return TheState().active && xpu::loader::PlatformIsTaken(name);
}

XPU_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status*) {
  auto& state = TheState();
  state.forward = false;
  if (state.rounds++ == 0) {
    state.reason = xpu::loader::Decide(&state, params);
    state.active = state.forward = state.reason.empty();
    if (!state.active) xpu::loader::Warn(state.reason);
  }
  if (!state.forward) xpu::loader::StandInPlatform(params);
}

XPU_EXPORT void TF_InitKernel() {
  auto& state = TheState();
  if (!state.forward) return;
  state.core.init_kernel();
  if (state.device_count == 0) return;
  xpu::loader::RunPythonHooks(state.package_path, state.device_type);
}

XPU_EXPORT void TF_InitGraph(TP_OptimizerRegistrationParams* params, TF_Status* status) {
  auto& state = TheState();
  // TensorFlow ends the process where there is no optimizer. This one changes nothing, for a device type that nobody
  // has unless the core names its own.
  xpu::loader::StandInOptimizer(params);
  if (state.forward && state.core.init_graph) state.core.init_graph(params, status);
}

XPU_EXPORT void TF_InitProfiler(TF_ProfilerRegistrationParams* params, TF_Status* status) {
  auto& state = TheState();
  if (state.forward && state.core.init_profiler) return state.core.init_profiler(params, status);
  xpu::loader::StandInProfiler(params);
}
