#include "tensorflow_plugin/tf_internals/forked.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "tensorflow_plugin/tf_internals/differences.h"
// After it:
#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/primitives/fork.h"
#include "tensorflow_plugin/tf_internals/checks.h"

namespace xpu {
namespace {

namespace tf = tensorflow;
using DeviceFacts = tf::DeviceBase::AcceleratorDeviceInfo;

// The language lets an explicit instantiation name private members.
void ForgetManagers(tf::EventMgrFactory& factory);
// How many there are, if that can be the size of a map; -1 otherwise.
int64_t CountManagers(tf::EventMgrFactory& factory);
template <typename Map>
int64_t CountIn(const Map& managers) {
  constexpr size_t kMost = 1 << 10;  // of devices
  const bool can_be = managers.size() <= managers.capacity() && managers.size() <= kMost;
  return can_be ? static_cast<int64_t>(managers.size()) : -1;
}
template <auto member>
struct ExposeManagers {
  friend void ForgetManagers(tf::EventMgrFactory& factory) { (factory.*member).clear(); }
  friend int64_t CountManagers(tf::EventMgrFactory& factory) { return CountIn(factory.*member); }
};
template struct ExposeManagers<&tf::EventMgrFactory::event_mgr_map_>;

// The allocator's lock, whose class and functions have other names in other versions.
template <typename M>
auto TryToTake(M& mutex, int) -> decltype(mutex.try_lock()) {
  return mutex.try_lock();
}
template <typename M>
auto TryToTake(M& mutex, long) -> decltype(mutex.TryLock()) {
  return mutex.TryLock();
}
template <typename M>
auto GiveBack(M& mutex, int) -> decltype(mutex.unlock()) {
  mutex.unlock();
}
template <typename M>
auto GiveBack(M& mutex, long) -> decltype(mutex.Unlock()) {
  mutex.Unlock();
}
template <typename M>
class AllocatorLock final : public ForkLock {
 public:
  explicit AllocatorLock(M& mutex) : mutex_(mutex) { Register(); }
  ~AllocatorLock() { Unregister(); }
  bool TryToTake() override { return xpu::TryToTake(mutex_, 0); }
  void GiveBack() override { xpu::GiveBack(mutex_, 0); }
  void Renew() override { new (&mutex_) M; }

 private:
  M& mutex_;
};
// It lives as long as the allocator, for ever.
void LockForForks(tf::BFCAllocator& allocator);
bool IsLocked(tf::BFCAllocator& allocator);
template <auto member>
struct ExposeLock {
  friend bool IsLocked(tf::BFCAllocator& allocator) {
    if (!xpu::TryToTake(allocator.*member, 0)) return true;
    xpu::GiveBack(allocator.*member, 0);
    return false;
  }
  friend void LockForForks(tf::BFCAllocator& allocator) {
    using M = std::remove_reference_t<decltype(allocator.*member)>;
    new AllocatorLock<M>(allocator.*member);
  }
};
template struct ExposeLock<&tf::BFCAllocator::mutex_>;

// Lives for ever.
struct Devices {
  Mutex mutex;
  std::unordered_map<const void*, DeviceFacts*> infos;        // by owner
  std::unordered_map<const tf::Allocator*, bool> allocators;  // that are locked for forks

  // The objects that the missing threads belong to stay as they are: callers that had asked them for something are
  // missing, too.
  void StartThreads() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!other_threads_are_missing) return;
    auto* const factory = tf::EventMgrFactory::Singleton();
    ForgetManagers(*factory);
    for (const auto& [owner, info] : infos) {
      info->event_mgr = factory->GetEventMgr(info->stream->parent(), tf::GPUOptions());
    }
    other_threads_are_missing = false;
  }
};
Devices& TheDevices() {
  static auto* const devices = new Devices;
  return *devices;
}

// Memory of an allocator that is looked at while it asks for some.
class LookingSource final : public tsl::SubAllocator {
 public:
  LookingSource() : SubAllocator({}, {}) {}
  void* Alloc(size_t, size_t bytes, size_t* received) override {
    *received = bytes;
    if (allocator != nullptr) was_locked = IsLocked(*allocator);
    return std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  }
  void Free(void* memory, size_t) override { std::free(memory); }
  bool SupportsCoalescing() const override { return false; }

  tf::BFCAllocator* allocator = nullptr;
  bool was_locked = false;

 private:
  static constexpr size_t kPage = 4096;
};

}  // namespace

namespace tf_internals {

void CheckForkThreads(Check& check) {
  constexpr size_t kBytes = 1 << 20;
  auto source = std::make_unique<LookingSource>();
  LookingSource* const looking = source.get();
  tf::BFCAllocator::Options options;
  options.allow_growth = true;
  tf::BFCAllocator allocator(std::move(source), kBytes, "xpu_probe", options);
  if (!check.Is("whether an allocator that nobody uses is locked", IsLocked(allocator), false)) return;
  looking->allocator = &allocator;
  void* const memory = allocator.AllocateRaw(1, 256);
  looking->allocator = nullptr;
  if (memory != nullptr) allocator.DeallocateRaw(memory);
  if (!check.Is("whether an allocator has memory", memory != nullptr, true) ||
      !check.Is("whether an allocator that asks for memory is locked", looking->was_locked, true) ||
      !check.Is("whether it is locked afterwards", IsLocked(allocator), false)) {
    return;
  }
  check.Is("whether the number of event managers can be one", CountManagers(*tf::EventMgrFactory::Singleton()) >= 0,
           true);
}

}  // namespace tf_internals

void PrepareForForks(tf::Device* device, const void* owner) {
  Devices& all = TheDevices();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.infos[owner] = const_cast<DeviceFacts*>(device->tensorflow_accelerator_device_info());
  start_other_threads = [] { TheDevices().StartThreads(); };
  tf::AllocatorAttributes on_device, on_host, for_copies;
  on_host.set_on_host(true);
  for_copies.set_on_host(true);
  for_copies.set_gpu_compatible(true);
  for (const auto& attributes : {on_device, on_host, for_copies}) {
    auto* const allocator = dynamic_cast<tf::BFCAllocator*>(device->GetAllocator(attributes));
    if (allocator != nullptr && !std::exchange(all.allocators[allocator], true)) LockForForks(*allocator);
  }
}

void ForgetForForks(const void* owner) {
  Devices& all = TheDevices();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.infos.erase(owner);
}

}  // namespace xpu
