// What the primitives' files see of a device, and how they run a kernel on it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_MACHINE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_MACHINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/opencl/compiler.h"
#include "tensorflow_plugin/backends/opencl/driver.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"
#include "tensorflow_plugin/backends/opencl/memory.h"
#include "tensorflow_plugin/backends/opencl/queue.h"
#include "tensorflow_plugin/backends/opencl/tile_search.h"

namespace xpu::opencl {

// A device's context, memory and kernels.
class Machine {
 public:
  static Status Create(const Hardware& hardware, const Memory::Options& memory, std::unique_ptr<Machine>* machine);

  const Hardware& hardware() const { return hardware_; }
  cl_context context() const { return context_.get(); }
  Memory& memory() { return *memory_; }
  Compiler& compiler() { return *compiler_; }
  TileSearch& tiles() { return *tiles_; }
  Records& records() { return records_; }

  // A buffer of these numbers, for kernels to read: extents and strides. The same numbers give the same buffer; it is
  // the caller's as long as `table` lives.
  Status Table(const std::vector<int64_t>& numbers, std::shared_ptr<Handle<cl_mem>>* table);

 private:
  Machine(const Hardware& hardware, Handle<cl_context> context)
      : hardware_(hardware), context_(std::move(context)), records_(hardware, context_.get()) {}

  const Hardware& hardware_;
  const Handle<cl_context> context_;
  Records records_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<TileSearch> tiles_;
  std::mutex tables_mutex_;
  std::map<std::vector<int64_t>, std::shared_ptr<Handle<cl_mem>>> tables_;
};

// One run of a kernel: its arguments in the order of the kernel's parameters, then Run. Holds the kernel's lock, so
// that no other call may be made meanwhile by the same thread.
//
//   Call call(machine, queue, "fill float", [] { return source; });
//   call.Memory(args.out[0]).Value<cl_float>(x).Value<cl_ulong>(n);
//   return call.Run(n);
class Call {
 public:
  // `key` names the kernel among all of the device's; `source` makes its OpenCL C when it is needed for the first time,
  // to which kPrelude (sources.h) is put in front.
  Call(Machine& machine, Queue& queue, const std::string& key, const std::function<std::string()>& source);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Parameter MEMORY(name): an address in the device's memory. A null one is for what the kernel does not touch.
  Call& Memory(const void* address);
  // Parameter `const T name`.
  template <typename T>
  Call& Value(const T& value) {
    return Argument(sizeof(T), &value);
  }
  // Parameter `constant long* name`.
  Call& Table(const std::vector<int64_t>& numbers);
  // Parameter MEMORY(report): what FAIL (in kPrelude) writes to.
  Call& Report();
  // So many bytes of local memory: parameter `local T* name`.
  Call& Local(size_t bytes) { return Argument(bytes, nullptr); }

  // Items a kernel's group has unless it says otherwise.
  static constexpr size_t kGroup = 256;
  size_t group() const { return group_; }

  // Enqueues at least `items` of work in groups of group(), along one axis: what is beyond, the kernel leaves out.
  Status Run(int64_t items);
  // So many groups, each of `local` items, along three axes. `event` may be null.
  Status RunGroups(const size_t groups[3], const size_t local[3], Handle<cl_event>* event = nullptr);

  // What a failure is: `judge` gets the least number that any item reported.
  using Judge = std::function<Status(uint32_t number)>;
  // The same as Run for a kernel with a report. With args.status this waits and leaves the failure there, else in the
  // stream.
  Status RunChecked(int64_t items, const Args& args, Judge judge);
  // That which follows the run.
  Status Check(const Args& args, Judge judge);

 private:
  Call& At(const MemorySlice& place);
  Call& Argument(size_t size, const void* value);
  Status Enqueue(cl_uint axes, const size_t* global, const size_t* local, Handle<cl_event>* kept = nullptr);

  Machine& machine_;
  Queue& queue_;
  Kernel* kernel_ = nullptr;
  std::unique_lock<std::mutex> lock_;
  Status status_;  // the first that went wrong
  cl_uint arguments_ = 0;
  size_t group_ = kGroup;
  MemorySlice report_;
  std::vector<std::shared_ptr<Handle<cl_mem>>> tables_;
};

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_MACHINE_H_
