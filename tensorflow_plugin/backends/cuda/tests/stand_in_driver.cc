// A stand-in for libcuda.so.1, for tests on machines without a GPU. Device memory is the host's. A stream is a thread
// that runs its commands in order, each only when its turn comes. So code that does not wait reads old data. As the
// driver does, loading a kernel and freeing memory wait until all streams are empty, and meanwhile hold what other
// calls need. Copies and fills outside of memory lose the context. STAND_IN_DEVICES says how many devices there are,
// each with a context and memory of its own. Errors are injected (stand_in.h).
//
// Kernels do nothing and are noted down, unless their image is the name of a shared library (stand_in_nvrtc.cc). Then
// the processor runs them, and the thread of their stream waits.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_in.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_in_objects.h"

using namespace xpu::cuda;

namespace {

constexpr Result kInvalidValue = 1, kInvalidImage = 200, kInvalidContext = 201, kInvalidHandle = 400, kNotFound = 500,
                 kIllegalAddress = 700, kPeerAccessAlreadyEnabled = 704, kCaptureInvalidated = 901;
constexpr size_t kMemory = size_t{1} << 30;  // of each device
constexpr int kMostDevices = 8;

struct Allocation {
  size_t bytes;
  ContextHandle context;
};

struct Failure {
  int skipped, error;
  bool for_ever;
};
struct State {
  std::mutex driver;  // what calls need that take part in the work of the GPU
  std::mutex mutex;
  std::set<CUstream_st*> streams;
  std::map<std::string, Failure> failures;
  std::map<uint64_t, Allocation> allocations;
  std::map<uint64_t, size_t> pinned;
  size_t allocated[kMostDevices] = {};
  std::vector<StandInLaunch> launches;
  int before_report = -1;  // launches; -1: none is to report
  uint32_t report = 0;
  std::map<std::string, int> calls;  // of functions that Counted was told of
  std::atomic<int> sticky{0};
};
State& The() {
  static auto& state = *new State;
  return state;
}

void Counted(const char* symbol) {
  std::lock_guard<std::mutex> lock(The().mutex);
  ++The().calls[symbol];
}

Result Injected(const char* symbol) {
  Counted(symbol);
  State& state = The();
  if (state.sticky != 0) return state.sticky;
  std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.failures.find(symbol);
  if (found == state.failures.end() || found->second.skipped-- > 0) return kSuccess;
  const int error = found->second.error;
  if (found->second.for_ever) {
    state.sticky = error;
  } else {
    state.failures.erase(found);
  }
  return error;
}
// True if the bytes are in memory that is allocated now, in that context, or in any if it is null. Else the context is
// lost, as it is on a GPU.
bool IsThere(DeviceAddress address, size_t bytes, ContextHandle context) {
  State& state = The();
  std::lock_guard<std::mutex> lock(state.mutex);
  const auto after = state.allocations.upper_bound(address);
  if (after != state.allocations.begin()) {
    const auto& [begin, allocation] = *std::prev(after);
    const size_t offset = address - begin;
    const bool is_within = offset <= allocation.bytes && bytes <= allocation.bytes - offset;
    if (is_within && (context == nullptr || context == allocation.context)) return true;
  }
  state.sticky = kIllegalAddress;
  return false;
}
// Returns when no other call has the driver to itself.
void AwaitDriver() { std::lock_guard<std::mutex> lock(The().driver); }

thread_local ContextHandle current = nullptr;

// As the driver does with streams of another context than the thread's.
#define RETURN_IF_OTHER_CONTEXT(stream) \
  if (current == nullptr || (stream)->context != current) return kInvalidHandle

#define RETURN_IF_INJECTED(symbol) \
  if (const Result injected = Injected(symbol); injected != kSuccess) return injected

// 90: compute capability 9.0, unless the environment says otherwise.
int Capability() {
  const char* const text = std::getenv("STAND_IN_CAPABILITY");
  return text == nullptr ? 90 : std::atoi(text);
}

// 1, unless the environment says otherwise.
int Devices() {
  const char* const text = std::getenv("STAND_IN_DEVICES");
  return text == nullptr ? 1 : std::min(kMostDevices, std::atoi(text));
}

// Takes an image: a text, or an ELF file, which ends with the table of its sections.
std::string Contents(const char* image) {
  if (std::strncmp(image,
                   "\x7f"
                   "ELF",
                   4) != 0)
    return image;
  uint64_t table = 0;
  uint16_t entry = 0, entries = 0;
  std::memcpy(&table, image + 40, sizeof(table));
  std::memcpy(&entry, image + 58, sizeof(entry));
  std::memcpy(&entries, image + 60, sizeof(entries));
  return std::string(image, table + uint64_t{entry} * entries);
}

void* Pointer(DeviceAddress address) { return reinterpret_cast<void*>(address); }

// Waits until all streams are empty, and meanwhile holds what other calls need.
void AwaitStreams() {
  std::lock_guard<std::mutex> driver(The().driver);
  std::set<CUstream_st*> streams;
  {
    std::lock_guard<std::mutex> lock(The().mutex);
    streams = The().streams;
  }
  for (CUstream_st* stream : streams) {
    std::unique_lock<std::mutex> lock(stream->mutex);
    stream->changed.wait(lock, [&] { return stream->pending == 0; });
  }
}

// A kernel of the host's, or only a note.
void Launch(const CUfunc_st& function, const unsigned (&grid)[3], const unsigned (&block)[3],
            std::vector<uint64_t> values) {
  if (function.run != nullptr) {
    std::vector<void*> arguments;
    for (uint64_t& value : values) arguments.push_back(&value);
    // Its items' places and its groups' memory are variables of its library.
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    return function.run(grid, block, arguments.data());
  }
  StandInLaunch launch{{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, {}};
  std::copy_n(values.begin(), std::min<size_t>(values.size(), StandInLaunch::kArguments), launch.arguments);
  State& state = The();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.before_report >= 0 && state.before_report-- == 0)
    *static_cast<uint32_t*>(Pointer(values.back())) = state.report;
  state.launches.push_back(launch);
}

}  // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT void StandInFail(const char* symbol, int skipped, int error, bool for_ever) {
  std::lock_guard<std::mutex> lock(The().mutex);
  The().failures[symbol] = {skipped, error, for_ever};
}
EXPORT void StandInReset() {
  std::lock_guard<std::mutex> lock(The().mutex);
  The().failures.clear();
  The().launches.clear();
  The().calls.clear();
  The().before_report = -1;
  The().sticky = 0;
}
EXPORT int StandInLaunches(StandInLaunch* launches, int most) {
  std::lock_guard<std::mutex> lock(The().mutex);
  const int count = static_cast<int>(The().launches.size());
  for (int i = 0; i < count && i < most; ++i) launches[i] = The().launches[static_cast<size_t>(i)];
  return count;
}

EXPORT void StandInReport(int skipped, uint32_t number) {
  std::lock_guard<std::mutex> lock(The().mutex);
  The().before_report = skipped;
  The().report = number;
}
EXPORT int StandInCalls(const char* symbol) {
  std::lock_guard<std::mutex> lock(The().mutex);
  return The().calls[symbol];
}

EXPORT Result cuInit(unsigned) {
  RETURN_IF_INJECTED("cuInit");
  return kSuccess;
}
EXPORT Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
EXPORT Result cuGetErrorName(Result error, const char** name) {
  *name = error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : nullptr;
  return *name != nullptr ? kSuccess : kInvalidValue;
}
EXPORT Result cuGetErrorString(Result error, const char** text) {
  *text = error == kOutOfMemory ? "out of memory" : "an illegal memory access was encountered";
  return kSuccess;
}
EXPORT Result cuDeviceGetCount(int* count) {
  *count = Devices();
  return kSuccess;
}
EXPORT Result cuDeviceGet(DeviceId* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
EXPORT Result cuDeviceGetName(char* name, int length, DeviceId) {
  std::strncpy(name, "stand-in", static_cast<size_t>(length));
  return kSuccess;
}
EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, DeviceId) {
  *bytes = kMemory;
  return kSuccess;
}
EXPORT Result cuDeviceGetAttribute(int* value, int attribute, DeviceId) {
  switch (attribute) {
    case kMaxThreadsPerBlock:
      *value = 1024;
      break;
    case kMaxSharedMemoryPerBlock:
      *value = 48 << 10;
      break;
    case kMultiprocessorCount:
      *value = 132;
      break;
    case kComputeCapabilityMajor:
      *value = Capability() / 10;
      break;
    case kComputeCapabilityMinor:
      *value = Capability() % 10;
      break;
    default:
      *value = 0;
  }
  return kSuccess;
}
EXPORT Result cuDeviceGetPCIBusId(char* id, int length, DeviceId device) {
  const std::string text = "0000:3" + std::string(1, static_cast<char>('B' + device)) + ":00.0";
  std::strncpy(id, text.c_str(), static_cast<size_t>(length));
  return kSuccess;
}
EXPORT Result cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceId device) {
  static CUctx_st all[kMostDevices];
  all[device].device = device;
  *context = &all[device];
  return kSuccess;
}
EXPORT Result cuDevicePrimaryCtxRelease_v2(DeviceId) { return kSuccess; }
EXPORT Result cuCtxSetCurrent(ContextHandle context) {
  AwaitDriver();
  current = context;
  return kSuccess;
}
EXPORT Result cuDeviceCanAccessPeer(int* can, DeviceId device, DeviceId peer) {
  *can = device != peer && std::getenv("STAND_IN_NO_PEERS") == nullptr;
  return kSuccess;
}
EXPORT Result cuCtxEnablePeerAccess(ContextHandle peer, unsigned flags) {
  Counted("cuCtxEnablePeerAccess");
  if (current == nullptr || peer == nullptr || peer == current || flags != 0) return kInvalidValue;
  static std::mutex mutex;
  static auto& enabled = *new std::set<std::pair<ContextHandle, ContextHandle>>;
  std::lock_guard<std::mutex> lock(mutex);
  return enabled.insert({current, peer}).second ? kSuccess : kPeerAccessAlreadyEnabled;
}
EXPORT Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
EXPORT Result cuMemAlloc_v2(DeviceAddress* address, size_t bytes) {
  AwaitDriver();
  RETURN_IF_INJECTED("cuMemAlloc_v2");
  if (current == nullptr) return kInvalidContext;
  State& state = The();
  std::lock_guard<std::mutex> lock(state.mutex);
  size_t& allocated = state.allocated[current->device];
  if (bytes > kMemory - allocated) return kOutOfMemory;
  void* const made = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(made, 0xcd, bytes);
  *address = reinterpret_cast<DeviceAddress>(made);
  state.allocations[*address] = {bytes, current};
  allocated += bytes;
  return kSuccess;
}
EXPORT Result cuMemFree_v2(DeviceAddress address) {
  Counted("cuMemFree_v2");
  AwaitStreams();
  State& state = The();
  std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.allocations.find(address);
  if (found == state.allocations.end()) return kInvalidValue;
  state.allocated[found->second.context->device] -= found->second.bytes;
  state.allocations.erase(found);
  std::free(Pointer(address));
  return kSuccess;
}
EXPORT Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (current == nullptr) return kInvalidContext;
  std::lock_guard<std::mutex> lock(The().mutex);
  *total = kMemory;
  *free = kMemory - The().allocated[current->device];
  return kSuccess;
}
EXPORT Result cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::lock_guard<std::mutex> lock(The().mutex);
  The().pinned[reinterpret_cast<DeviceAddress>(*address)] = bytes;
  return kSuccess;
}
EXPORT Result cuPointerGetAttribute(void* value, int, DeviceAddress address) {
  std::lock_guard<std::mutex> lock(The().mutex);
  const auto after = The().pinned.upper_bound(address);
  if (after == The().pinned.begin() || address - std::prev(after)->first >= std::prev(after)->second) {
    return kInvalidValue;
  }
  *static_cast<unsigned*>(value) = 1;
  return kSuccess;
}
EXPORT Result cuLaunchHostFunc(StreamHandle stream, void (*call)(void*), void* data) {
  stream->Add([=] { call(data); });
  return kSuccess;
}
EXPORT Result cuMemFreeHost(void* address) {
  {
    std::lock_guard<std::mutex> lock(The().mutex);
    The().pinned.erase(reinterpret_cast<DeviceAddress>(address));
  }
  std::free(address);
  return kSuccess;
}
EXPORT Result cuMemcpyHtoDAsync_v2(DeviceAddress to, const void* from, size_t bytes, StreamHandle stream) {
  AwaitDriver();
  RETURN_IF_INJECTED("cuMemcpyHtoDAsync_v2");
  RETURN_IF_OTHER_CONTEXT(stream);
  stream->Add([=] {
    if (IsThere(to, bytes, stream->context)) std::memcpy(Pointer(to), from, bytes);
  });
  return kSuccess;
}
EXPORT Result cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, size_t bytes, StreamHandle stream) {
  AwaitDriver();
  RETURN_IF_INJECTED("cuMemcpyDtoHAsync_v2");
  RETURN_IF_OTHER_CONTEXT(stream);
  stream->Add([=] {
    if (IsThere(from, bytes, stream->context)) std::memcpy(to, Pointer(from), bytes);
  });
  return kSuccess;
}
EXPORT Result cuMemcpyAsync(DeviceAddress to, DeviceAddress from, size_t bytes, StreamHandle stream) {
  RETURN_IF_OTHER_CONTEXT(stream);
  stream->Add([=] {
    const bool are_there = IsThere(to, bytes, nullptr) && IsThere(from, bytes, nullptr);
    if (are_there) std::memmove(Pointer(to), Pointer(from), bytes);
  });
  return kSuccess;
}
EXPORT Result cuMemsetD8Async(DeviceAddress to, unsigned char value, size_t n, StreamHandle stream) {
  RETURN_IF_OTHER_CONTEXT(stream);
  stream->Add([=] {
    if (IsThere(to, n, stream->context)) std::memset(Pointer(to), value, n);
  });
  return kSuccess;
}
EXPORT Result cuMemsetD32Async(DeviceAddress to, unsigned value, size_t n, StreamHandle stream) {
  RETURN_IF_OTHER_CONTEXT(stream);
  stream->Add([=] {
    if (!IsThere(to, n * sizeof(unsigned), stream->context)) return;
    for (size_t i = 0; i < n; ++i) static_cast<unsigned*>(Pointer(to))[i] = value;
  });
  return kSuccess;
}
EXPORT Result cuStreamCreateWithPriority(StreamHandle* stream, unsigned, int) {
  RETURN_IF_INJECTED("cuStreamCreateWithPriority");
  if (current == nullptr) return kInvalidContext;
  *stream = new CUstream_st(current);
  std::lock_guard<std::mutex> lock(The().mutex);
  The().streams.insert(*stream);
  return kSuccess;
}
EXPORT Result cuStreamDestroy_v2(StreamHandle stream) {
  {
    std::lock_guard<std::mutex> lock(The().mutex);
    The().streams.erase(stream);
  }
  delete stream;
  return kSuccess;
}
EXPORT Result cuStreamSynchronize(StreamHandle stream) {
  Counted("cuStreamSynchronize");
  AwaitDriver();
  std::unique_lock<std::mutex> lock(stream->mutex);
  stream->changed.wait(lock, [&] { return stream->pending == 0; });
  return The().sticky;
}
EXPORT Result cuStreamQuery(StreamHandle stream) {
  if (The().sticky != 0) return The().sticky;
  std::lock_guard<std::mutex> lock(stream->mutex);
  return stream->pending == 0 ? kSuccess : kNotReady;
}
EXPORT Result cuEventCreate(EventHandle* event, unsigned flags) {
  if (current == nullptr) return kInvalidContext;
  const auto made = std::make_shared<CUevent_st>();
  made->context = current;
  made->has_time = (flags & kEventDisableTiming) == 0;
  made->own = made;
  *event = made.get();
  return kSuccess;
}
EXPORT Result cuEventDestroy_v2(EventHandle event) {
  event->own = nullptr;
  return kSuccess;
}
EXPORT Result cuEventRecord(EventHandle event, StreamHandle stream) {
  if (event->context != stream->context) return kInvalidHandle;
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    number = ++event->recorded;
  }
  stream->Add([event = event->shared_from_this(), number] {
    std::lock_guard<std::mutex> lock(event->mutex);
    event->reached = number;
    event->time = std::chrono::steady_clock::now();
    event->changed.notify_all();
  });
  return kSuccess;
}
EXPORT Result cuEventQuery(EventHandle event) {
  std::lock_guard<std::mutex> lock(event->mutex);
  return event->reached == event->recorded ? kSuccess : kNotReady;
}
EXPORT Result cuEventSynchronize(EventHandle event) {
  AwaitDriver();
  std::unique_lock<std::mutex> lock(event->mutex);
  event->changed.wait(lock, [&, number = event->recorded] { return event->reached >= number; });
  return The().sticky;
}
EXPORT Result cuEventElapsedTime(float* milliseconds, EventHandle begin, EventHandle end) {
  if (begin->context != end->context) return kInvalidHandle;
  std::chrono::steady_clock::time_point times[2];
  for (int i = 0; i < 2; ++i) {
    const EventHandle event = i == 0 ? begin : end;
    std::lock_guard<std::mutex> lock(event->mutex);
    if (!event->has_time || event->recorded == 0) return kInvalidHandle;
    if (event->reached != event->recorded) return kNotReady;
    times[i] = event->time;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
  return kSuccess;
}
EXPORT Result cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    number = event->recorded;
  }
  stream->Add([event = event->shared_from_this(), number] {
    std::unique_lock<std::mutex> lock(event->mutex);
    event->changed.wait(lock, [&] { return event->reached >= number; });
  });
  return kSuccess;
}
EXPORT Result cuStreamBeginCapture_v2(StreamHandle stream, int) {
  std::lock_guard<std::mutex> lock(stream->mutex);
  stream->captured = std::make_unique<CUgraph_st>();
  return kSuccess;
}
EXPORT Result cuStreamEndCapture(StreamHandle stream, GraphHandle* graph) {
  std::lock_guard<std::mutex> lock(stream->mutex);
  if (stream->captured == nullptr) return kCaptureInvalidated;
  *graph = stream->captured.release();
  return kSuccess;
}
EXPORT Result cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph, uint64_t) {
  RETURN_IF_INJECTED("cuGraphInstantiateWithFlags");
  if (current == nullptr) return kInvalidContext;
  *exec = new CUgraphExec_st{graph->commands, current};
  return kSuccess;
}
EXPORT Result cuGraphLaunch(GraphExecHandle exec, StreamHandle stream) {
  if (exec->context != stream->context) return kInvalidHandle;
  for (const std::function<void()>& command : exec->commands) stream->Add(command);
  return kSuccess;
}
EXPORT Result cuGraphExecDestroy(GraphExecHandle exec) {
  delete exec;
  return kSuccess;
}
EXPORT Result cuGraphDestroy(GraphHandle graph) {
  delete graph;
  return kSuccess;
}
EXPORT Result cuModuleLoadData(ModuleHandle* module, const void* image) {
  RETURN_IF_INJECTED("cuModuleLoadData");
  if (current == nullptr) return kInvalidContext;
  AwaitStreams();
  auto made = std::make_unique<CUmod_st>();
  made->function.context = current;
  made->image = Contents(static_cast<const char*>(image));
  if (made->image.front() == '/') {
    made->library = dlopen(made->image.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (made->library == nullptr) return kInvalidImage;
    made->function.run = reinterpret_cast<RunOnHost*>(dlsym(made->library, "StandInRun"));
  }
  *module = made.release();
  return kSuccess;
}
EXPORT Result cuModuleUnload(ModuleHandle module) {
  if (module->library != nullptr) (void)dlclose(module->library);
  delete module;
  return kSuccess;
}
// Machine code has its kernel in a section of its name. NVRTC compiles a source without a kernel, too.
EXPORT Result cuModuleGetFunction(FunctionHandle* function, ModuleHandle module, const char* name) {
  *function = &module->function;
  const bool is_code = module->image.compare(0, 4,
                                             "\x7f"
                                             "ELF") == 0;
  return is_code && module->image.find(std::string(".text.") + name) == std::string::npos ? kNotFound : kSuccess;
}
EXPORT Result cuFuncGetAttribute(int* value, int, FunctionHandle) {
  *value = 1024;
  return kSuccess;
}
EXPORT Result cuLaunchKernel(FunctionHandle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned, StreamHandle stream, void** arguments, void**) {
  RETURN_IF_INJECTED("cuLaunchKernel");
  RETURN_IF_OTHER_CONTEXT(stream);
  if (function->context != current) return kInvalidHandle;
  std::vector<uint64_t> values;
  for (; *arguments != nullptr; ++arguments) std::memcpy(&values.emplace_back(), *arguments, sizeof(uint64_t));
  stream->Add([=] { Launch(*function, {gx, gy, gz}, {bx, by, bz}, values); });
  std::this_thread::yield();  // other threads' commands may come next
  return kSuccess;
}

// NVRTC asks for tables of the driver's own; it compiles without them.
EXPORT Result cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}

}  // extern "C"
