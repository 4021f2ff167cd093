#include "tensorflow_plugin/tf_internals/copies.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <typeinfo>
#include <utility>

#include "tensorflow_plugin/tf_internals/tensorflow_stream.h"
// After it:
#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/pluggable_device/pluggable_device.h"
#include "tensorflow/core/common_runtime/pluggable_device/pluggable_device_context.h"
#include "tensorflow/core/common_runtime/pluggable_device/pluggable_device_util.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/device/stream_uses.h"
#include "tensorflow_plugin/device/told.h"
#include "tensorflow_plugin/primitives/fork.h"
#include "tensorflow_plugin/tf_internals/checks.h"
#include "tensorflow_plugin/tf_internals/forked.h"
#include "tensorflow_plugin/tf_internals/table.h"
#include "tensorflow_plugin/tf_internals/virtual_tables.h"

namespace xpu {
namespace {

namespace tf = tensorflow;
using Usual = tf::PluggableDeviceContext;

// Up to this size what comes from the host is kept until its turn comes: the copy is cheaper than waiting for it.
constexpr size_t kKeptUpTo = 1 << 20;

constexpr char kHook[] = "copies";
std::atomic<bool> given_up{false};

// PluggableDevice::device_context_ is private. The language lets an explicit instantiation name private members.
using ContextMember = Usual* tf::PluggableDevice::*;
ContextMember ContextOf();
template <ContextMember member>
struct Expose {
  friend ContextMember ContextOf() { return member; }
};
template struct Expose<&tf::PluggableDevice::device_context_>;

absl::InlinedVector<stream_executor::Stream*, 4UL> StreamsBetweenDevices(const Usual& usual) {
  absl::InlinedVector<stream_executor::Stream*, 4UL> streams{usual.device_to_device_stream(0)};
  constexpr int kMost = 4;  // of TensorFlow; it counts on from the first one
  for (int i = 1; i < kMost && usual.device_to_device_stream(i) != streams[0]; ++i) {
    streams.push_back(usual.device_to_device_stream(i));
  }
  return streams;
}

// Tells profiles what each stream is for. Last the one that all depends on: whatever else it serves, it is that.
void NameStreams(const Usual& usual) {
  for (stream_executor::Stream* stream : StreamsBetweenDevices(usual)) {
    SetUse(HandleOf(stream), "copies between devices");
  }
  SetUse(HandleOf(usual.host_to_device_stream()), "copies from the host");
  SetUse(HandleOf(usual.device_to_host_stream()), "copies to the host");
  SetUse(HandleOf(usual.stream()), "compute");
}

// TensorFlow's device asks this object for copies. It leaves to its base class all that it declines.
class Copies final : public Usual {
 public:
  // Keeps `usual`, which a running thread may have in use. `direct`: what can be done at once is.
  Copies(const Usual& usual, bool direct)
      : Usual(usual.stream_id(), usual.stream(), usual.host_to_device_stream(), usual.device_to_host_stream(),
              StreamsBetweenDevices(usual)),
        handle_(*HandleOf(usual.stream())),
        compute_(*handle_.stream),
        direct_(direct) {}
  ~Copies() override { ForgetForForks(this); }

  // In the order of the compute stream, where whatever had the memory before and whatever reads it come as well.
  void CopyCPUTensorToDevice(const tf::Tensor* from, tf::Device* device, tf::Tensor* to, tf::StatusCallback done,
                             bool sync_dst_compute) const override {
    const size_t bytes = from->TotalBytes();
    EnsureOtherThreads();
    if (!direct_ || !IsPlain(*from, *to) || (bytes > kKeptUpTo && !compute_.Idle())) {
      return Usual::CopyCPUTensorToDevice(from, device, to, std::move(done), sync_dst_compute);
    }
    done(Guarded([&] {
      return bytes == 0 ? OkStatus() : compute_.Write(tf::DMAHelper::base(to), tf::DMAHelper::base(from), bytes);
    }));
  }

  void CopyDeviceTensorToCPU(const tf::Tensor* from, absl::string_view name, tf::Device* device, tf::Tensor* to,
                             tf::StatusCallback done) override {
    EnsureOtherThreads();
    if (const Status again = TellAgain(tf::DMAHelper::base(from)); !again.ok()) return done(Native(again));
    // Nothing here may wait for the device: the thread may be the one that has something else to do.
    if (!direct_ || !IsPlain(*from, *to) || !compute_.Idle()) {
      const CopyThatTells::Enqueuing enqueuing;
      return Usual::CopyDeviceTensorToCPU(from, name, device, to, Telling(std::move(done), tf::DMAHelper::base(from)));
    }
    done(Guarded([&]() -> Status {
      if (const size_t bytes = from->TotalBytes(); bytes > 0) {
        XPU_RETURN_IF_ERROR(compute_.Read(tf::DMAHelper::base(to), tf::DMAHelper::base(from), bytes));
      }
      Status failure = TakeEarlierFailure(compute_);
      NoteCopy(tf::DMAHelper::base(from), failure);
      return failure;
    }));
  }

  // For a copy off the device that is about to be enqueued: what to do at its end. `bytes`: those that somebody may
  // read again.
  tf::StatusCallback Telling(tf::StatusCallback done, const void* bytes = nullptr) const {
    return [copy = CopyThatTells(handle_), bytes, done = std::move(done)](const absl::Status& copied) {
      const Status failure = copy.Told();
      if (!failure.ok()) NoteCopy(bytes, failure);
      done(copied.ok() ? Native(failure) : copied);
    };
  }

 private:
  // A tensor without elements stands for a control edge between devices: TensorFlow sends one.
  static bool IsPlain(const tf::Tensor& from, const tf::Tensor& to) {
    return from.TotalBytes() == to.TotalBytes() && from.dtype() == to.dtype() && from.IsInitialized() &&
           to.IsInitialized() && tf::DMAHelper::CanUseDMA(&from);
  }

  template <typename F>
  static absl::Status Guarded(const F& copy) {
    Status status = RequireNotForked();
    try {
      if (status.ok()) status = copy();
    } catch (const std::exception& error) {
      status = errors::ResourceExhausted("a copy between host and device failed: ", error.what());
    }
    return Native(status);
  }
  static absl::Status Native(const Status& status) {
    return absl::Status(static_cast<absl::StatusCode>(status.code()), status.message());
  }

  SP_Stream_st& handle_;
  Stream& compute_;
  const bool direct_;
};

// Copies to another XPU, in place of TensorFlow's function, which it calls: these tell, too.
void CopyBetweenDevices(tf::DeviceContext* from, tf::DeviceContext* to, tf::Device* source, tf::Device* target,
                        tf::AllocatorAttributes of_source, tf::AllocatorAttributes of_target, const tf::Tensor* input,
                        tf::Tensor* output, int stream, tf::StatusCallback done) {
  const CopyThatTells::Enqueuing enqueuing;
  const auto* const copies = dynamic_cast<const Copies*>(from);  // TensorFlow's own leaves it to what is enqueued
  tf::PluggableDeviceUtil::DeviceToDeviceCopy(from, to, source, target, of_source, of_target, input, output, stream,
                                              copies != nullptr ? copies->Telling(std::move(done)) : std::move(done));
}

// From now on no further device has our object. A process that is forked then has none of TensorFlow's threads for this
// one.
void GiveUp(const std::string& why) {
  given_up = true;
  copies_wait = true;
  tf_internals::TurnOff(kHook, why);
  for (const char* name : {"direct_copies", "fork_threads"}) {
    tf_internals::TurnOff(name, std::string("it needs ") + kHook, /*quietly=*/true);
  }
  start_other_threads = [] { forked_from_user = true; };
}

// The first thing of a device that is not as expected; empty if there is none.
std::string WhyUnknown(const Usual* context, const tf::DeviceBase::AcceleratorDeviceInfo* info) {
  if (info == nullptr || info->default_context != context) {
    return "a device's context is not where PluggableDevice is expected to have it";
  }
  if (std::string(typeid(*context).name()) != "N10tensorflow22PluggableDeviceContextE") {
    return std::string("a device's context is an unknown class, ") + typeid(*context).name();
  }
  if (std::string(typeid(*context->stream()).name()) != "N15stream_executor7CStreamE") {
    return std::string("a device's stream is an unknown class, ") + typeid(*context->stream()).name();
  }
  return "";
}

}  // namespace

namespace tf_internals {

void CheckCopies(Check& check) {
  const VirtualTable table = FindTable("N10tensorflow22PluggableDeviceContextE");
  if (!check.Is("whether TensorFlow has a PluggableDeviceContext", table != nullptr, true)) return;
  const auto is_at = [&](int place, const char* name) { return NameAt(table, place).rfind(name, 0) == 0; };
  if (!check.Is("whether CopyCPUTensorToDevice is in its place",
                is_at(PlaceOf(&Usual::CopyCPUTensorToDevice),
                      "_ZNK10tensorflow22PluggableDeviceContext21CopyCPUTensorToDeviceE"),
                true) ||
      !check.Is("whether CopyDeviceTensorToCPU is in its place",
                is_at(PlaceOf(&Usual::CopyDeviceTensorToCPU),
                      "_ZN10tensorflow22PluggableDeviceContext21CopyDeviceTensorToCPUE"),
                true) ||
      !check.Is("whether CopyTensorInSameDevice is in its place",
                is_at(PlaceOf(&Usual::CopyTensorInSameDevice),
                      "_ZNK10tensorflow22PluggableDeviceContext22CopyTensorInSameDeviceE"),
                true)) {
    return;
  }
  check.Is("whether IsPluggableDevice is in its place",
           is_at(PlaceOf(&Usual::IsPluggableDevice), "_ZN10tensorflow22PluggableDeviceContext17IsPluggableDeviceE"),
           true);
}

void CheckDirectCopies(Check& check) {
  const tf::Tensor numbers(tf::DT_FLOAT, {3}), texts(tf::DT_STRING, {3});
  if (!check.Is("whether a tensor's bytes are where DMAHelper has them",
                tf::DMAHelper::base(&numbers) == numbers.tensor_data().data(), true) ||
      !check.Is("whether numbers can be copied as bytes", tf::DMAHelper::CanUseDMA(&numbers), true)) {
    return;
  }
  check.Is("whether texts can be", tf::DMAHelper::CanUseDMA(&texts), false);
}

}  // namespace tf_internals

void TakeOverCopiesBetween(const std::string& device_type) {
  const tf::DeviceType type(device_type);
  // Where that is refused, TensorFlow's function is called.
  (void)tf::CopyTensor::Register(type, type, CopyBetweenDevices, /*is_pluggable_device=*/true).ok();
}

void TakeOverCopies(tf::Device* device) {
  // Asked once: a process may be forked at any time, also while another thread asks.
  static const bool is_on = tf_internals::IsOn(kHook), direct = tf_internals::IsOn("direct_copies"),
                    forks = tf_internals::IsOn("fork_threads");
  if (!is_on) copies_wait = true;
  if (!is_on || given_up) return;
  static auto* const one_at_a_time = new Mutex;
  auto* const pluggable = dynamic_cast<tf::PluggableDevice*>(device->UnderlyingDevice());
  if (pluggable == nullptr) return;
  const std::lock_guard<std::mutex> lock(*one_at_a_time);
  Usual*& context = pluggable->*ContextOf();
  const auto* info = pluggable->tensorflow_accelerator_device_info();
  if (info != nullptr && info->default_context == context && dynamic_cast<Copies*>(context) != nullptr) return;
  const std::string why = WhyUnknown(context, info);
  if (!why.empty()) return GiveUp(why);
  NameStreams(*context);
  // The device gives up what it has here when it goes. The one before stays, since a running thread may have it in use.
  context = new Copies(*context, direct);
  if (forks) PrepareForForks(pluggable, context);
  const_cast<tf::DeviceBase::AcceleratorDeviceInfo*>(info)->default_context = context;
}

}  // namespace xpu
