// The view that the primitives' files have of a device: its hardware, its kernels and its queues. A runtime, such as
// OpenCL's, implements Machine and Queue.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_MACHINE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/gpu/compiler.h"
#include "tensorflow_plugin/backends/gpu/event_times.h"
#include "tensorflow_plugin/backends/gpu/hardware.h"
#include "tensorflow_plugin/backends/gpu/tile_search.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::gpu {

// Numbers in device memory that kernels read, extents and strides; each runtime has a class of its own.
class Table {
 public:
  virtual ~Table() = default;
};

// One argument of a kernel.
struct Argument {
  enum Kind : uint8_t {
    kValue,   // `size` bytes
    kMemory,  // an address in the device's memory, or null
    kReport,  // the report of that number (Queue::NewReport)
    kTable,
  };
  Kind kind = kValue;
  uint8_t size = 0;
  union {
    uint64_t value;  // its first `size` bytes
    const void* address;
    size_t report;
    const Table* table;
  };
};

// A kernel to be run with these arguments, in the order of its parameters.
struct Launch {
  Kernel* kernel = nullptr;
  std::vector<Argument> arguments;
  std::vector<std::shared_ptr<const Table>> tables;  // those among the arguments
  size_t groups[3] = {1, 1, 1};
  size_t local[3] = {1, 1, 1};  // items of a group
};

// A stream that runs kernels.
class Queue : public Stream {
 public:
  // `times` are told when commands ran, and outlive the queue. They may be null.
  explicit Queue(EventTimes* times) : trace_(times) {}

  // Enqueues a kernel. `time`, if not null, gets a clock that tells how long the kernel ran.
  virtual Status Run(const Launch& launch, std::shared_ptr<const CommandTime>* time) = 0;

  // True if kernels are only noted down, to run later: then there is nothing to time.
  virtual bool is_capturing() const { return false; }

  // A word of the device's memory in which a kernel reports, set to `initial` in stream order.
  virtual Status NewReport(uint32_t initial, size_t* report) = 0;
  // Waits until the commands so far have run, and reads it.
  virtual Status ReadReport(size_t report, uint32_t* number) = 0;
  // Gives it to `seen` later, with others that this thread asks for. False: ReadReport has to be called.
  virtual bool ReadReportLater(size_t /*report*/, std::function<void(uint32_t number)> /*seen*/) { return false; }
  // Reads it in stream order and calls `judge`, before later commands run. The status that it returns is the stream's.
  virtual Status JudgeReport(size_t report, std::function<Status(uint32_t number)> judge) = 0;

  // Called when the queue is destroyed, with nothing left to run.
  void OnDestruction(std::function<void()> call) { on_destruction_ = std::move(call); }
  // A profiler's view of it.
  QueueTrace& trace() { return trace_; }
  const QueueTrace& trace() const { return trace_; }

 protected:
  // For destructors.
  void NotifyOfDestruction() {
    if (on_destruction_) on_destruction_();
  }

 private:
  QueueTrace trace_;
  std::function<void()> on_destruction_;
};

// A device's memory.
class Memory {
 public:
  virtual ~Memory() = default;
  // 256-byte aligned; nullptr beyond the limit, or where the driver has none.
  virtual void* Allocate(size_t size) = 0;
  // At once, even if commands that use it are queued.
  virtual void Deallocate(void* address) = 0;
  virtual AllocatorStats Stats() const = 0;
  virtual void ResetStats() = 0;
  virtual void Usage(int64_t* free_bytes, int64_t* total_bytes) const = 0;
};

// A device's memory, its kernels and what they share.
class Machine {
 public:
  virtual ~Machine() = default;

  virtual const Hardware& hardware() const = 0;
  virtual Compiler& compiler() = 0;
  virtual Memory& memory() = 0;
  // Copies what lies in the device's memory to the host, in no stream's order; it is there when this returns.
  virtual Status Read(void* host_dst, const void* device_src, size_t size) = 0;

  TileSearch& tiles() { return tiles_; }
  // A table of these numbers. The same numbers give the same table; it is the caller's as long as `table` lives.
  Status FindTable(const std::vector<int64_t>& numbers, std::shared_ptr<const Table>* table);

 protected:
  virtual Status MakeTable(const std::vector<int64_t>& numbers, std::shared_ptr<const Table>* table) = 0;
  // Before what they are made of goes.
  void ForgetTables() { tables_.clear(); }

 private:
  TileSearch tiles_;
  std::mutex tables_mutex_;
  struct HashOfNumbers {
    size_t operator()(const std::vector<int64_t>& numbers) const;
  };
  std::unordered_map<std::vector<int64_t>, std::shared_ptr<const Table>, HashOfNumbers> tables_;
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_MACHINE_H_
