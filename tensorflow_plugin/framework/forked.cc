#include "tensorflow_plugin/framework/forked.h"

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu {
namespace {

namespace tf = tensorflow;
using DeviceFacts = tf::DeviceBase::AcceleratorDeviceInfo;

// The language lets an explicit instantiation name private members.
void ForgetManagers(tf::EventMgrFactory& factory);
template <auto member>
struct ExposeManagers {
  friend void ForgetManagers(tf::EventMgrFactory& factory) { (factory.*member).clear(); }
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
template <auto member>
struct ExposeLock {
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

}  // namespace

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
