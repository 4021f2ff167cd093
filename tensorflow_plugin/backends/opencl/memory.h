// Device memory: buffers of the driver's, at addresses of our own.
//
// OpenCL's buffers have no addresses, and TensorFlow's allocator wants some to divide. So a device reserves a range of
// the process's addresses, without memory behind them and without access rights. An access of the host to one of them
// faults at once. Each allocation takes a part of the range and a buffer; what lies at an address is an offset in a
// buffer. Shared virtual memory would save kernels that offset, and ask for a second way to do everything: no
// descriptor makes a kernel follow a pointer.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_MEMORY_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "tensorflow_plugin/backends/gpu/machine.h"
#include "tensorflow_plugin/backends/host_runtime/host_access.h"
#include "tensorflow_plugin/backends/opencl/driver.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::opencl {

// So many bytes into a buffer.
struct MemorySlice {
  cl_mem buffer = nullptr;
  size_t offset = 0;
};

class Memory final : public gpu::Memory {
 public:
  struct Options {
    int64_t limit = 0;     // bytes, all allocations together
    std::string device;    // its name, for messages
    bool explain = false;  // says on stderr what an access from the host touched, before the process ends
    bool pooled = false;   // allocations are single tensors, for that explanation
  };
  // The hardware and the context outlive it.
  static Status Create(const Hardware& hardware, cl_context context, const Options& options,
                       std::unique_ptr<Memory>* memory);
  ~Memory() override;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* Allocate(size_t size) override;
  // The driver keeps the buffer for commands that are queued.
  void Deallocate(void* address) override;
  AllocatorStats Stats() const override;
  void ResetStats() override;
  void Usage(int64_t* free_bytes, int64_t* total_bytes) const override;

  // Where `size` bytes at an address lie; false if they are not all in one allocation of this device.
  bool Find(const void* address, size_t size, MemorySlice* place) const;
  // The same, as a status that names the device.
  Status Locate(const void* address, size_t size, MemorySlice* place) const;

  // Copies between the host and this device that are done when they return, in no stream's order. They serve copies
  // between devices, and callbacks on the host.
  Status Read(void* host_dst, const void* device_src, size_t size);
  Status Write(void* device_dst, const void* host_src, size_t size);

  // The device that has reserved the address; nullptr: none.
  static Memory* Owner(const void* address);

 private:
  struct AddressRange {
    size_t size;
    Handle<cl_mem> buffer;
  };
  Memory(const Hardware& hardware, cl_context context, const Options& options, uintptr_t begin, size_t span);
  // A gap of `size` bytes between the arenas; 0: there is none.
  uintptr_t FindGap(size_t size) const;

  Status Transfer(void* host, const void* device, size_t size, bool to_device);

  const Hardware& hardware_;
  const cl_context context_;
  const Options options_;
  const uintptr_t begin_;
  const size_t span_;
  const std::unique_ptr<host_runtime::IsolatedRange> explained_;  // null if nothing is to be explained

  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, AddressRange> arenas_;  // by address
  uintptr_t next_;                            // where the search for a gap begins
  AllocatorStats stats_;

  std::mutex transfers_mutex_;
  Handle<cl_command_queue> transfers_;  // made when it is first needed
};

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_MEMORY_H_
