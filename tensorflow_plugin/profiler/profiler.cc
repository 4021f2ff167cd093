#include "tensorflow_plugin/profiler/profiler.h"

#include <cstring>
#include <mutex>
#include <string>

#include "tensorflow_plugin/device/glue.h"
#include "tensorflow_plugin/device/memory_report.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/device/stream_uses.h"
#include "tensorflow_plugin/primitives/device_name.h"
#include "tensorflow_plugin/primitives/fork.h"
#include "tensorflow_plugin/profiler/xspace.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::profiler {
namespace {

// TensorFlow has one session at a time.
struct Session {
  Mutex mutex;
  bool recording = false;
  std::string xspace;  // of the last session, until it is fetched
};
Session& TheSession() {
  static auto* const session = new Session;
  return *session;
}

void Start(const TP_Profiler*, TF_Status* status) {
  Guard(status, []() -> Status {
    Session& session = TheSession();
    std::lock_guard<std::mutex> lock(session.mutex);
    session.xspace.clear();
    XPU_REQUIRE(trace::Start(), errors::FailedPrecondition("the XPU is being profiled already"));
    session.recording = true;
    return OkStatus();
  });
}

void Stop(const TP_Profiler*, TF_Status* status) {
  Guard(status, [] {
    Session& session = TheSession();
    std::lock_guard<std::mutex> lock(session.mutex);
    if (!session.recording) return OkStatus();
    // Work that the program has enqueued belongs to the session.
    std::vector<DeviceSpeed> speeds;
    ForEachReportedDevice([&speeds](int ordinal, Device& device) {
      if (!forked_from_user) device.Synchronize();
      speeds.push_back({DeviceName(ordinal), device.info()});
    });
    session.recording = false;
    trace::Trace recorded = trace::Stop();
    for (auto& line : recorded.lines) line.what = UseOf(line.device, line.what);
    session.xspace = EncodeXSpace(recorded, speeds);
    return OkStatus();
  });
}

// Called for the size, and then with a buffer of it.
void Collect(const TP_Profiler*, uint8_t* buffer, size_t* size, TF_Status* status) {
  Guard(status, [&]() -> Status {
    Session& session = TheSession();
    std::lock_guard<std::mutex> lock(session.mutex);
    const size_t room = *size;
    *size = session.xspace.size();
    if (buffer == nullptr) return OkStatus();
    XPU_REQUIRE(room >= session.xspace.size(),
                errors::InvalidArgument("the profile takes ", session.xspace.size(), " bytes, the buffer has ", room));
    std::memcpy(buffer, session.xspace.data(), session.xspace.size());
    session.xspace = std::string();
    return OkStatus();
  });
}

}  // namespace

void InitProfiler(TF_ProfilerRegistrationParams* params, const char* device_type) {
  TP_Profiler profiler{};
  profiler.device_type = device_type;
  Fill(params->profiler, profiler, TP_PROFILER_STRUCT_SIZE);
  TP_ProfilerFns functions{};
  functions.start = Start;
  functions.stop = Stop;
  functions.collect_data_xspace = Collect;
  Fill(params->profiler_fns, functions, TP_PROFILER_FNS_STRUCT_SIZE);
  // TensorFlow calls these at registration, before it uses what they would destroy.
  params->destroy_profiler = [](TP_Profiler*) {};
  params->destroy_profiler_fns = [](TP_ProfilerFns*) {};
}

}  // namespace xpu::profiler
