// The core's entry points: a table of contents. The loader (loader/) calls them in TensorFlow's order. Only
// XpuCore_SE_InitPlugin may fail: the loader then offers no devices.
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/experimental/grappler/grappler.h"
#include "tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow_plugin/backends/backends.h"
#include "tensorflow_plugin/cluster/assert_op.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/dump.h"
#include "tensorflow_plugin/cluster/host_variable_op.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/cluster/transfer_op.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/device/describe.h"
#include "tensorflow_plugin/device/glue.h"
#include "tensorflow_plugin/device/interop.h"
#include "tensorflow_plugin/device/memory_report.h"
#include "tensorflow_plugin/device/options.h"
#include "tensorflow_plugin/device/platform.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/device/told.h"
#include "tensorflow_plugin/direct_call/function_graph.h"
#include "tensorflow_plugin/faults/faulty_backend.h"
#include "tensorflow_plugin/framework/bookkeeping.h"
#include "tensorflow_plugin/framework/kernel.h"
#include "tensorflow_plugin/framework/left_out.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/framework/registry.h"
#include "tensorflow_plugin/framework/variables.h"
#include "tensorflow_plugin/graph/cluster_pass.h"
#include "tensorflow_plugin/graph/lowering_pass.h"
#include "tensorflow_plugin/graph/placement_pass.h"
#include "tensorflow_plugin/loader/json.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/primitives/determinism.h"
#include "tensorflow_plugin/primitives/float_precision.h"
#include "tensorflow_plugin/profiler/profiler.h"
#include "tensorflow_plugin/tf_internals/checks.h"
#include "tensorflow_plugin/tf_internals/copies.h"
#include "tensorflow_plugin/tf_internals/jit.h"
#include "tensorflow_plugin/tf_internals/table.h"

#define XPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace xpu {
namespace {

std::vector<std::string> SubdeviceTypes() {
  std::vector<std::string> names;
  for (const Backend* b : Backends()) names.push_back(b->subdevice_type());
  return names;
}

// The options that the environment chose, and the mistakes in it.
struct Choice {
  Options options;
  const Backend* backend = nullptr;
  std::vector<std::string> warnings;
  Choice() {
    const auto total_memory = [](const std::string& name) { return FindBackend(name)->TotalMemory(); };
    options = ReadOptions(SubdeviceTypes(), commands::PassNames(), total_memory, &warnings);
    backend = FindBackend(options.subdevice);
    const int devices = options.faults.empty() ? 0 : backend->DeviceCount(options.backend);
    for (const FaultRule& rule : options.faults) {
      if (rule.device < devices) continue;
      options.remarks.push_back("TF_XPU_FAULT=" + rule.text +
                                " has no effect: " + (devices == 1 ? "there is one device, " : "the last device is ") +
                                "xpu:" + std::to_string(devices - 1));
    }
    if (!options.faults.empty()) backend = new FaultyBackend(*backend, options.faults);
  }
};

// Says each remark once in a process.
void Remark(const Choice& choice) {
  static auto* const said = new std::set<std::string>;
  for (const std::string& remark : choice.options.remarks) {
    if (said->insert(remark).second) std::fprintf(stderr, "tensorflow_xpu: %s\n", remark.c_str());
  }
}

// The environment is read once, and again by XpuCore_Reconfigure. Choices live for ever: devices refer to them.
std::atomic<const Choice*>& CurrentChoice() {
  static auto* const current = [] {
    const auto* first = new Choice;
    for (const std::string& w : first->warnings) std::fprintf(stderr, "tensorflow_xpu: %s\n", w.c_str());
    Remark(*first);
    return new std::atomic<const Choice*>(first);
  }();
  return *current;
}
const Choice& TheChoice() { return *CurrentChoice().load(); }

// The change that is too late once the plugin is registered; empty if there is none.
std::string FixedChange(const Options& now, const Options& next) {
  if (next.device_type != now.device_type) return "TF_XPU_DEVICE_TYPE";
  if (next.backend.pool_memory != now.backend.pool_memory) return "TF_XPU_ALLOCATOR";
  if (next.fusion != now.fusion) return "TF_XPU_FUSION";
  if (next.without_passes != now.without_passes) return "TF_XPU_FUSION_WITHOUT";
  if (next.direct_calls != now.direct_calls) return "TF_XPU_DIRECT_CALLS";
  if (next.dump_folder != now.dump_folder) return "TF_XPU_DUMP_FUSION";
  return "";
}

Described DevicesOf(const Backend& backend, const Options& options) {
  Described described{backend.subdevice_type(), {}, ""};
  for (int i = 0; i < backend.DeviceCount(options.backend); ++i) {
    DeviceInfo info;
    const Status status = backend.Describe(i, options.backend, &info);
    described.devices.push_back(status.ok() ? info : DeviceInfo{status.message()});
  }
  if (described.devices.empty()) {
    DeviceInfo info;
    described.why_none = backend.Describe(0, options.backend, &info).message();
  }
  return described;
}

// Kernels with all arguments in host memory run at once on the host, whatever the device is. They use the loops of its
// backend, or of another where that has none.
std::unique_ptr<Device> NewHostExecutor(const Choice& choice) {
  const int threads = choice.options.backend.threads;
  std::unique_ptr<Device> executor = choice.backend->NewHostExecutor(threads);
  for (size_t i = 0; executor == nullptr && i < Backends().size(); ++i) {
    executor = Backends()[i]->NewHostExecutor(threads);
  }
  return WithWrongResults(std::move(executor), choice.options.faults);
}

// Checks the hooks, and leaves out whatever those that are off are for.
void HeedHooks(const Options& options) {
  if (!options.fusion) tf_internals::LeaveOut("clusters", "TF_XPU_FUSION=0");
  if (!options.direct_calls) tf_internals::LeaveOut("direct_calls", "TF_XPU_DIRECT_CALLS=0");
  tf_internals::CheckOthers();
  if (tf_internals::IsOn("tf32")) SetTf32Query(tf_internals::Tf32Query());
  SetDeterminismQuery(&Construction::DeterminismRequired);
  if (!tf_internals::IsOn("tensor_lists")) LeaveOutOpsWith(OpTrait::kAddsTensorLists);
  if (!tf_internals::IsOn("tensor_arrays")) LeaveOutOpsWith(OpTrait::kUsesTensorArray);
  if (!tf_internals::IsOn("fork_threads")) RefuseForkedProcesses();
  if (!tf_internals::IsOn("direct_calls")) direct_call::SwitchOff();
}

}  // namespace
}  // namespace xpu

XPU_EXPORT void XpuCore_SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  const xpu::Choice& choice = xpu::TheChoice();
  const std::string why = xpu::tf_internals::WhyNoXpu();
  if (!why.empty()) return TF_SetStatus(status, TF_FAILED_PRECONDITION, why.c_str());
  xpu::InitPlatform(params, *choice.backend, choice.options.backend, choice.options.device_type.c_str());
  xpu::TakeOverCopiesBetween(choice.options.device_type);
  TF_SetStatus(status, TF_OK, "");
}

XPU_EXPORT void XpuCore_TF_InitKernel() {
  const xpu::Choice& choice = xpu::TheChoice();
  xpu::SetHostExecutor(xpu::NewHostExecutor(choice).release());
  const std::string& device_type = choice.options.device_type;
  xpu::Registry registry(*choice.backend, device_type);
  xpu::HeedHooks(choice.options);
  xpu::RegisterAllOps(registry);
  for (const std::string& problem : registry.problems()) {
    std::fprintf(stderr, "tensorflow_xpu: kernel not registered: %s\n", problem.c_str());
  }
  if (xpu::tf_internals::IsOn("graphs")) xpu::graph::RegisterPlacementPass(device_type);
  bool has_clusters = xpu::tf_internals::IsOn("clusters");
  if (has_clusters) {
    xpu::cluster::LeaveOutPasses(choice.options.without_passes);
    xpu::cluster::SetDumpFolder(choice.options.dump_folder);
    std::string trouble = xpu::cluster::RegisterClusterOp(device_type);
    if (trouble.empty()) trouble = xpu::cluster::RegisterLoopOp(device_type);
    if (trouble.empty()) trouble = xpu::cluster::RegisterAssertOp(device_type);
    if (trouble.empty()) trouble = xpu::cluster::RegisterHostVariableOp(device_type);
    if (trouble.empty()) trouble = xpu::cluster::RegisterTransferOps(device_type);
    has_clusters = trouble.empty();
    if (has_clusters) {
      xpu::graph::RegisterClusterPass(device_type);
    } else {
      std::fprintf(stderr, "tensorflow_xpu: ops run one by one: %s\n", trouble.c_str());
    }
  }
  const bool knows_nodes = xpu::tf_internals::KnowsNodes();
  if (knows_nodes) xpu::graph::RegisterLoweringPass(device_type, has_clusters, {&xpu::MustCompile, &xpu::MayLackMarks});
  xpu::RunJitFunctionsWithoutXla(device_type, knows_nodes);
}

// Grappler knows what GPUs are good at, and rewrites their graphs: layouts that cuDNN prefers, ops that cuDNN fuses. A
// GPU of ours is none, so these rewrites are off in graphs that have one; clusters fuse more.
XPU_EXPORT void XpuCore_TF_InitGraph(TP_OptimizerRegistrationParams* params, TF_Status* status) {
  const std::string& device_type = xpu::TheChoice().options.device_type;
  TF_SetStatus(status, TF_OK, "");
  if (device_type != xpu::kGpu) return;
  params->device_type = device_type.c_str();
  params->optimizer_configs->layout_optimizer = TF_TriState_Off;
  params->optimizer_configs->remapping = TF_TriState_Off;
}

XPU_EXPORT void XpuCore_TF_InitProfiler(TF_ProfilerRegistrationParams* params, TF_Status* status) {
  xpu::profiler::InitProfiler(params, xpu::TheChoice().options.device_type.c_str());
  TF_SetStatus(status, TF_OK, "");
}

// The description that the Python package shows: JSON, see device/describe.h. Makes no device, and TensorFlow need not
// have made its. Good until the next call of this thread.
XPU_EXPORT const char* XpuCore_DescribeDevices() {
  thread_local std::string json;
  const xpu::Choice& choice = xpu::TheChoice();
  json = xpu::DescribeDevices(xpu::SubdeviceTypes(), choice.options, xpu::DevicesOf(*choice.backend, choice.options));
  return json.c_str();
}

// The devices that the other backends would have in their place. Good until the next call of this thread.
XPU_EXPORT const char* XpuCore_DescribeOthers() {
  thread_local std::string json;
  const xpu::Options& options = xpu::TheChoice().options;
  std::vector<xpu::Described> others;
  for (const xpu::Backend* backend : xpu::Backends()) {
    if (backend->subdevice_type() != options.subdevice) others.push_back(xpu::DevicesOf(*backend, options));
  }
  json = xpu::DescribeDevices(options, others);
  return json.c_str();
}

// The names that options may have: JSON, {"subdevice_types": [str], "primitives": [str], "passes": [str]}. Good until
// the next call of this thread.
XPU_EXPORT const char* XpuCore_DescribeVocabulary() {
  thread_local std::string json;
#define XPU_NAME(name) #name,
  const std::vector<std::string> primitives = {XPU_PRIMITIVES(XPU_NAME)};
#undef XPU_NAME
  json = "{\"subdevice_types\": " + xpu::JsonStrings(xpu::SubdeviceTypes()) +
         ", \"primitives\": " + xpu::JsonStrings(primitives) +
         ", \"passes\": " + xpu::JsonStrings(xpu::commands::PassNames()) + "}";
  return json.c_str();
}

// Needs the symbol XPU_RELEASE: so this library does not load beside a shared one of another release.
XPU_EXPORT const char* XpuCore_Release() { return XPU_RELEASE; }

// The hooks of this library: JSON, see tf_internals/table.h. Good until the next call of this thread.
XPU_EXPORT const char* XpuCore_DescribeInternals() {
  thread_local std::string json;
  json = xpu::tf_internals::Describe();
  return json.c_str();
}

// Their lines if one of their checks is lied to. As above.
XPU_EXPORT const char* XpuCore_DescribeLies() {
  thread_local std::string json;
  json = xpu::tf_internals::DescribeLies();
  return json.c_str();
}

// The traits of ops: JSON, see framework/op_traits.h. Good until the next call of this thread.
XPU_EXPORT const char* XpuCore_DescribeOps() {
  thread_local std::string json;
  json = xpu::DescribeTraits();
  return json.c_str();
}

// Ops in which no device has anything to compute: a JSON list. As above.
XPU_EXPORT const char* XpuCore_DescribeBookkeeping() {
  thread_local std::string json;
  json = xpu::JsonStrings(xpu::BookkeepingOps());
  return json.c_str();
}

// For tests of traits: what kernels have done since the last call. The first call begins to look. JSON, as above.
XPU_EXPORT const char* XpuCore_TakeObserved() {
  thread_local std::string json;
  json = xpu::TakeObserved();
  return json.c_str();
}

// The iterations of loops that ran outside of clusters: JSON, see cluster/loop_op.h. As above.
XPU_EXPORT const char* XpuCore_DescribeLoops() {
  thread_local std::string json;
  json = xpu::cluster::DescribeLoops();
  return json.c_str();
}

// Called by the loader before XpuCore_SE_InitPlugin: the value that the environment has for `name` is from a file.
XPU_EXPORT void XpuCore_SettingCameFrom(const char* name, const char* origin) { xpu::SettingCameFrom(name, origin); }

// Reads the environment again, before TensorFlow has made its devices. Returns "", or why nothing has changed. Kernels
// are registered for the backend that was chosen first; another that denies what they ask for says so when they run.
XPU_EXPORT const char* XpuCore_Reconfigure() {
  thread_local std::string trouble;
  static auto* const one_at_a_time = new std::mutex;
  std::lock_guard<std::mutex> lock(*one_at_a_time);
  const xpu::Choice& now = xpu::TheChoice();
  const auto* next = new xpu::Choice;
  trouble = xpu::FixedChange(now.options, next->options);
  if (!next->warnings.empty()) {
    trouble = next->warnings.front();
  } else if (!trouble.empty()) {
    trouble += " is read when TensorFlow is imported, which has happened";
  } else if (!xpu::ChangePlatform(*next->backend, next->options.backend)) {
    trouble = "TensorFlow has made its devices";
  } else {
    xpu::SetHostExecutor(xpu::NewHostExecutor(*next).release());  // nothing has run: no kernel without a device
    xpu::CurrentChoice() = next;
    xpu::Remark(*next);
  }
  return trouble.c_str();
}

// The memory of the device of this ordinal, see device/memory_report.h. The text is good until the next call of this
// thread.
XPU_EXPORT const char* XpuCore_MemoryReport(int ordinal) {
  thread_local std::string json;
  json = xpu::MemoryReport(ordinal);
  return json.c_str();
}

// The same, as it was before its peaks and counts begin anew.
XPU_EXPORT const char* XpuCore_ResetMemoryReport(int ordinal) {
  const char* before = XpuCore_MemoryReport(ordinal);
  xpu::ResetMemoryReport(ordinal);
  return before;
}

// Waits until the device of this ordinal has nothing to do. "true", or "false" where there is no such device.
XPU_EXPORT const char* XpuCore_Synchronize(int ordinal) { return xpu::SynchronizeReported(ordinal) ? "true" : "false"; }

// For python/tensorflow_xpu/hooks/arrays.py: what this thread does between the two reads again (device/told.h).
XPU_EXPORT void XpuCore_BeginReadingAgain() { xpu::ReadingAgain::Begin(); }
XPU_EXPORT void XpuCore_EndReadingAgain() { xpu::ReadingAgain::End(); }

// For interop/, see device/interop.h.

XPU_EXPORT int XpuCore_StreamIsSettled(SP_Stream stream) {
  return stream->stream->Idle() && stream->stream->PeekStatus().ok();
}

XPU_EXPORT void XpuCore_SettleStream(SP_Stream stream, TF_Status* status) {
  xpu::Guard(status, [stream]() -> xpu::Status {
    XPU_RETURN_IF_ERROR(xpu::RequireNotForked());
    stream->stream->Wait();
    return xpu::TakeEarlierFailure(*stream->stream);
  });
}

XPU_EXPORT void XpuCore_WaitForStream(SP_Stream stream) {
  if (!xpu::forked_from_user) stream->stream->Wait();
}

XPU_EXPORT void XpuCore_Read(SP_Stream stream, void* host, const void* device, size_t size, TF_Status* status) {
  xpu::Guard(status, [=]() -> xpu::Status {
    XPU_RETURN_IF_ERROR(xpu::RequireNotForked());
    XPU_RETURN_IF_ERROR(xpu::TellAgain(device));
    XPU_RETURN_IF_ERROR(stream->stream->Read(host, device, size));
    xpu::Status failure = xpu::TakeEarlierFailure(*stream->stream);
    xpu::NoteCopy(device, failure);
    return failure;
  });
}

XPU_EXPORT const char* XpuCore_DeviceType() { return xpu::TheChoice().options.device_type.c_str(); }

XPU_EXPORT int XpuCore_SharesHostMemory() {
  const xpu::Choice& choice = xpu::TheChoice();
  return choice.backend->SharesHostMemory(choice.options.backend);
}

XPU_EXPORT int XpuCore_HostCanAddress(const void* address) {
  const xpu::Choice& choice = xpu::TheChoice();
  return choice.backend->HostCanAddress(address, choice.options.backend);
}

XPU_EXPORT void XpuCore_WillWrite(const void* address) { xpu::WillWrite(address); }

XPU_EXPORT void XpuCore_TakeHook(const char* name, const char* state) { xpu::tf_internals::Take(name, state); }

XPU_EXPORT void XpuCore_ExpectGraph(const char* function) { xpu::direct_call::ExpectGraph(function); }

XPU_EXPORT void* XpuCore_TakeCall(const void* library) {
  return xpu::direct_call::TakeCall(*static_cast<const tensorflow::ProcessFunctionLibraryRuntime*>(library));
}
