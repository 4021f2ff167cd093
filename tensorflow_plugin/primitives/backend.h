// The interface that a vendor implements: a Backend that makes Devices. A Device has memory, streams, events, timers
// and one Launch per primitive. Nothing here knows TensorFlow.
//
// The comments below are the contract. These rules hold for all of it:
//  - Any thread may call anything at any time, on objects that exist.
//  - No function waits for the device unless its comment says so. A thread may have to wait that has enqueued many more
//    commands than have run (XPU_HOST: 1024). A host callback never has to.
//  - A backend's own kernels give the same bits in every run on one machine: no sum depends on which thread comes
//    first. Libraries may do otherwise unless the program wants the same bits (determinism.h).
//  - A process may end with commands queued, and nothing is destroyed then. Threads of the backend neither hold it up
//    nor touch memory that is gone.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_BACKEND_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/command_list.h"
#include "tensorflow_plugin/primitives/descriptors.h"
#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu {

// A point in a stream's order. Created once, recorded any number of times: it stands for the last Record and for none
// before. It may be destroyed while threads or streams wait for it.
class Event {
 public:
  virtual ~Event() = default;
  // True once the work before the last Record has finished, whether or not it failed; true if never recorded.
  virtual bool Done() const = 0;
  // Blocks the calling thread until Done().
  virtual void Wait() const = 0;
};

// An in-order queue of commands. Commands from several threads run in some interleaving of their orders. A command that
// fails leaves its status in the stream (see TakeStatus). Later commands still run, and events are reached.
class Stream {
 public:
  // Waits until everything enqueued has run.
  virtual ~Stream() = default;

  virtual void Record(Event& event) = 0;
  // Commands enqueued here from now on run after the event, or after all work enqueued on `other` so far. The event
  // stands for the work that it stands for at this moment; later records and later work of `other` change nothing. Both
  // may be of another device of this backend.
  virtual void WaitFor(Event& event) = 0;
  virtual void WaitFor(Stream& other) = 0;
  // Runs `callback` once, in stream order, and destroys it before later commands run. Both sides may rely on this:
  //  - It runs on a thread of the backend's. The thread that enqueues it may hold a lock that it takes.
  //  - The backend holds no lock meanwhile. The callback may enqueue commands on any stream, on this one too.
  //  - It may block. This stream waits then, and so do others on a device that has but one queue.
  //  - It does not wait for the device and neither allocates nor frees device memory. These might wait for itself.
  //  - It does not throw. A failure that it returns becomes the stream's, and later commands run all the same.
  virtual void HostCallback(std::function<Status()> callback) = 0;

  // Copies and fills in stream order. Sizes are in bytes, and may be 0; MemsetU32 needs a multiple of 4.
  // Host memory must stay valid until the copy is done.
  virtual Status CopyHostToDevice(void* device_dst, const void* host_src, size_t size) = 0;
  virtual Status CopyDeviceToHost(void* host_dst, const void* device_src, size_t size) = 0;
  virtual Status CopyDeviceToDevice(void* device_dst, const void* device_src, size_t size) = 0;
  virtual Status Memset(void* device_dst, uint8_t value, size_t size) = 0;
  virtual Status MemsetU32(void* device_dst, uint32_t value, size_t size) = 0;

  // As CopyHostToDevice, but the host's memory may be written and freed when it returns. Bytes that cannot be copied at
  // once are kept until their turn comes.
  virtual Status Write(void* device_dst, const void* host_src, size_t size);

  // Copies bytes to the host once all commands that were enqueued so far and may write them have run, and then returns.
  // A stream that knows the memory that its commands write need not wait for other queued commands.
  virtual Status Read(void* host_dst, const void* device_src, size_t size);

  // True when nothing is queued or running.
  virtual bool Idle() const = 0;
  // Blocks until everything enqueued so far has run.
  virtual void Wait() = 0;
  // The first failure since the last TakeStatus, which this clears.
  virtual Status TakeStatus() = 0;
  // The same without clearing it.
  virtual Status PeekStatus() const = 0;
};

// Measures the time between two points of a stream. It may be used again, and destroyed before its points are reached.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual void Start(Stream& stream) = 0;
  virtual void Stop(Stream& stream) = 0;
  // Between the two, in ns; blocks until Stop's point was reached; 0 if not both were called.
  virtual uint64_t Nanoseconds() = 0;
};

struct AllocatorStats {
  int64_t num_allocs = 0;
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t largest_alloc_size = 0;
  int64_t bytes_limit = 0;
  int64_t bytes_reserved = 0;  // in use, and kept for reuse
  int64_t peak_bytes_reserved = 0;
};

struct DeviceInfo {
  std::string hardware_name;
  std::string vendor;
  std::string pci_bus_id;              // in PCI's form: ffff:03:00.0, in domain ffff, of device 3 that is on no bus
  int numa_node = -1;                  // -1: not known
  int64_t memory_bytes = 0;            // what may be allocated
  int64_t bandwidth_bytes_per_s = -1;  // of device memory; -1: not measured
  double gflops = -1;                  // single precision; -1: not measured
  std::string instruction_set;         // of the kernels, for people: "avx2"
};

// Lets a caller of Launch allocate scratch memory only if the command needs it.
class WorkspaceSource {
 public:
  virtual ~WorkspaceSource() = default;
  // `bytes` of device memory, aligned as Device::Allocate aligns.
  virtual Status Allocate(int64_t bytes, void** address) = 0;
};

// Where a command's buffers are: device addresses as Allocate gave them (plus any offset).
struct Args {
  static constexpr int kMaxIn = Program::kMaxInputs;
  static constexpr int kMaxOut = Program::kMaxOutputs;
  const void* in[kMaxIn];
  void* out[kMaxOut];
  // Scratch memory of the device, of as many bytes as Capabilities::WorkspaceBytes says, where that is not 0. If there
  // is none, Launch takes it from `workspace_source`. The rule of Deallocate holds for it: it may be freed once the
  // command is enqueued.
  void* workspace = nullptr;
  WorkspaceSource* workspace_source = nullptr;
  // If set, Launch returns when the command has run. A failure that depends on data (a bad index, a division by zero)
  // is then written here instead of to the stream.
  Status* status = nullptr;
  // With `status`: turns the failure into the op's error. A device that only records the command needs it. If it is
  // null, the op handles the failure itself, so the command cannot be recorded.
  const DescribeError* explain = nullptr;
};

// Those of a list's command, buffer i of the list lying at addresses[i].
Args ArgsOf(const Command& command, char* const* addresses);

// The ways to compute the epilogue of a product, the cheapest first. It is computed on sums before they are stored, on
// parts of the result that are still in a cache, or on all of it.
enum class EpilogueWay : uint8_t { kInRegisters, kPartByPart, kAfterwards };

// The abilities of a backend, asked with whole descriptors. Answers never change, and any thread may ask.
class Capabilities {
 public:
  virtual ~Capabilities() = default;

  // True if commands of this descriptor run. A descriptor may leave its extents open (see kAny). Then true means that
  // every descriptor with those extents filled in is supported. Nobody asks about a descriptor that IsDefined (check.h)
  // denies.
#define XPU_SUPPORTS(name) \
  virtual bool Supports(const name##Desc&) const { return false; }
  XPU_PRIMITIVES(XPU_SUPPORTS)
#undef XPU_SUPPORTS

  // Bytes of scratch memory that a supported command needs on the device while it runs (Args::workspace).
#define XPU_WORKSPACE(name) \
  virtual int64_t WorkspaceBytes(const name##Desc&) const { return 0; }
  XPU_PRIMITIVES(XPU_WORKSPACE)
#undef XPU_WORKSPACE

  // Bytes of the filter of a forward convolution or a data gradient as Direction::kPackFilter makes them; 0 if it is
  // best as it is.
  virtual int64_t PackedFilterBytes(const ConvolutionDesc&) const { return 0; }

  // True if a supported forward convolution of bytes takes less time than the same one of floats.
  virtual bool BytesPay(const ConvolutionDesc&) const { return false; }

  // The way in which the epilogue of a supported product is computed, as far as its descriptor tells. A device that
  // computes all epilogues in one way need not say which: no program gains by being divided there.
  virtual EpilogueWay WayOfEpilogue(const MatMulDesc&) const { return EpilogueWay::kAfterwards; }
  virtual EpilogueWay WayOfEpilogue(const WeightMatMulDesc&) const { return EpilogueWay::kAfterwards; }
  virtual EpilogueWay WayOfEpilogue(const ConvolutionDesc&) const { return EpilogueWay::kAfterwards; }

  // Bytes that one command may write and the next one read without a way to memory: those of a cache that all threads
  // share. 0 if a list runs no faster for values of that size.
  virtual int64_t CacheBytes() const { return 0; }

  // How many strands of commands (Command::strand) run side by side; 1 if the device has no use for them.
  virtual int Strands() const { return 1; }
};

// Those of `inner`, which outlives this, for a class that changes some of them.
class ForwardedCapabilities : public Capabilities {
 public:
  explicit ForwardedCapabilities(const Capabilities& inner) : inner_(inner) {}

#define XPU_FORWARDED(name)                                                              \
  bool Supports(const name##Desc& desc) const override { return inner_.Supports(desc); } \
  int64_t WorkspaceBytes(const name##Desc& desc) const override { return inner_.WorkspaceBytes(desc); }
  XPU_PRIMITIVES(XPU_FORWARDED)
#undef XPU_FORWARDED
  EpilogueWay WayOfEpilogue(const MatMulDesc& desc) const override { return inner_.WayOfEpilogue(desc); }
  EpilogueWay WayOfEpilogue(const WeightMatMulDesc& desc) const override { return inner_.WayOfEpilogue(desc); }
  EpilogueWay WayOfEpilogue(const ConvolutionDesc& desc) const override { return inner_.WayOfEpilogue(desc); }
  int64_t PackedFilterBytes(const ConvolutionDesc& desc) const override { return inner_.PackedFilterBytes(desc); }
  bool BytesPay(const ConvolutionDesc& desc) const override { return inner_.BytesPay(desc); }
  int64_t CacheBytes() const override { return inner_.CacheBytes(); }
  int Strands() const override { return inner_.Strands(); }

 protected:
  const Capabilities& inner() const { return inner_; }

 private:
  const Capabilities& inner_;
};

// A list of commands made ready to run (Device::Prepare), any number of times and by several threads at once.
class Executable {
 public:
  virtual ~Executable() = default;
  // Enqueues the list on one of the device's streams and returns: what the commands do is what they would do enqueued
  // one by one. Buffer i lies at addresses[i]. The parts of the list stay until it has run, even without the
  // executable. `host_data` owns host memory that the list reads, and stays until then, too. Run waits for the last
  // awaited command (Command::is_awaited). If a command up to there fails, or cannot be enqueued, its failure is
  // returned, and `failed` says which it is. No later command runs then, except those that ran at its side because
  // neither touches what the other writes. None of these writes an input of the list. A command after the last awaited
  // one leaves its failure in the stream, and the others run.
  virtual Status Run(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data,
                     int* failed) const = 0;
};

class Device {
 public:
  // The caller has waited for the device's work (Synchronize), and then destroyed its streams, events and timers.
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // Device memory, 256-byte aligned; nullptr when there is not enough. It may wait as Deallocate does. Memory that is
  // kept for reuse goes back before an allocation fails. Memory holds nothing of other processes.
  virtual void* Allocate(size_t size) = 0;
  // Takes memory back; null is permitted. Commands that use the memory may still be queued or running. The caller
  // enqueues no further ones. Those commands find their data there and never reach memory outside of their device. The
  // backend waits for all enqueued commands, or keeps the memory until they have run. It may give the memory out again
  // at once. Callers enqueue the next owner's commands so that they run after all that was enqueued before.
  virtual void Deallocate(void* address) = 0;
  // Host memory suited to copies, 256-byte aligned.
  virtual void* AllocateHost(size_t size) = 0;
  virtual void DeallocateHost(void* address) = 0;
  virtual AllocatorStats Stats() const = 0;
  // From now on the peaks are those since this call, and the numbers of allocations count from 0.
  virtual void ResetStats() = 0;
  virtual void MemoryUsage(int64_t* free_bytes, int64_t* total_bytes) const = 0;

  // A stream that runs independently of the others, where the device can do that. A lower number is more urgent where
  // streams compete for the machine. A backend may ignore it. The usual number is 0.
  virtual std::unique_ptr<Stream> CreateStream(int priority) = 0;
  std::unique_ptr<Stream> CreateStream() { return CreateStream(0); }
  virtual std::unique_ptr<Event> CreateEvent() = 0;
  virtual std::unique_ptr<Timer> CreateTimer() = 0;
  // Blocks until every stream is empty.
  virtual void Synchronize() = 0;
  // True if a process that was forked from one with this device can use it (fork.h). There it has what it had.
  virtual bool SurvivesFork() const { return false; }

  // At least what the backend's capabilities say.
  virtual const Capabilities& capabilities() const = 0;
  template <typename Desc>
  bool Supports(const Desc& desc) const {
    return capabilities().Supports(desc);
  }

  // Enqueues a primitive on one of this device's streams and returns (but see Args::status). The descriptor is copied.
  // Fails at once with InvalidArgument for a descriptor that makes no sense (check.h), and for a missing workspace. It
  // does so, too, for a null address where there are elements. It fails with Unimplemented for descriptors that
  // Supports denies. A descriptor with empty extents is a no-op that succeeds.
#define XPU_LAUNCH(name) Status Launch(Stream& stream, const name##Desc& desc, const Args& args);
  XPU_PRIMITIVES(XPU_LAUNCH)
#undef XPU_LAUNCH

  // The part that a backend writes: Launch of a descriptor that it supports, that has been checked and has something to
  // do. Launch calls it, and so do executables and a device around this one.
#define XPU_ENQUEUE(name) \
  virtual Status Enqueue(Stream& stream, const name##Desc& desc, const Args& args, const Footprint& footprint);
  XPU_PRIMITIVES(XPU_ENQUEUE)
#undef XPU_ENQUEUE

  // Prepares a list whose commands this device supports. The device outlives the executable. In every run the buffers
  // that are in `memory` lie in one block as it says. By default the executable enqueues the commands one by one.
  virtual std::unique_ptr<Executable> Prepare(std::shared_ptr<const CommandList> list, const MemoryPlan& memory);

 private:
  template <typename Desc>
  Status LaunchAny(Stream& stream, const Desc& desc, const Args& args);
};

// The default: enqueues the commands one by one. A device may override Enqueue to observe each.
class SequentialExecutable : public Executable {
 public:
  // The device outlives it.
  SequentialExecutable(Device& device, std::shared_ptr<const CommandList> list);
  Status Run(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data, int* failed) const override;

 protected:
  // Command i; of one that may fail on data, `on_data` is what it failed with.
  virtual Status Enqueue(Stream& stream, size_t i, char* const* addresses, Status* on_data) const;
  const CommandList& list() const { return *list_; }

 private:
  Device& device_;
  const std::shared_ptr<const CommandList> list_;
  bool has_constants_ = false, has_copies_to_host_ = false;
};

struct BackendOptions {
  int device_count = 1;
  int64_t memory_limit = 0;  // bytes per device; 0: what the machine offers
  int threads = 0;           // that share one command of a device; 0: its share of the processors
  // Device addresses have no access rights on the host, where the backend can do that (those on host memory).
  bool isolate_memory = false;
  // Freed memory is kept for reuse: for a caller that allocates each tensor by itself.
  bool pool_memory = false;
  // Large allocations lie on large pages, where the backend can do that (those on host memory).
  bool large_pages = true;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // The subdevice type, such as "XPU_HOST".
  virtual const char* subdevice_type() const = 0;
  // The devices this machine offers under these options; 0 is no error. Describe then fails with the reason and the
  // remedy. TensorFlow asks often, so the answer costs nothing.
  virtual int DeviceCount(const BackendOptions& options) const = 0;
  virtual Status CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const = 0;
  // The info() of such a device.
  virtual Status Describe(int ordinal, const BackendOptions& options, DeviceInfo* info) const = 0;
  // Bytes of memory there are for all devices together, for limits that name a share of it; 0: not known.
  virtual int64_t TotalMemory() const { return 0; }

  // The capabilities of every device of this backend, askable before one is created (kernels register at load).
  virtual const Capabilities& capabilities() const = 0;
  template <typename Desc>
  bool Supports(const Desc& desc) const {
    return capabilities().Supports(desc);
  }

  // True if the host may read and write at the address of some tensor. That holds for host memory, and for device
  // memory that the host sees at the same address.
  virtual bool HostCanAddress(const void* address, const BackendOptions& options) const = 0;
  // True if that is so for all memory of all devices, which then work on host memory just as well.
  virtual bool SharesHostMemory(const BackendOptions&) const { return false; }

  // A device without memory of its own, for tensors that TensorFlow keeps in host memory (int32, by its convention).
  // Its commands run before Launch returns, on host addresses, on the calling thread and those that help it. There are
  // `threads` of these in all; 0 stands for as many as this process may use processors. Any number of threads may
  // launch on one of its streams; their failures are told apart by Args::status. If it is nullptr, this backend has
  // none, and another backend's host executor is used.
  virtual std::unique_ptr<Device> NewHostExecutor(int /*threads*/) const { return nullptr; }
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_BACKEND_H_
