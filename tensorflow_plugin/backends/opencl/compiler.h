// From OpenCL C to kernels: each source is compiled once for a device, kept for the life of the device and, as the
// driver's binary, on disk.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_COMPILER_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_COMPILER_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "tensorflow_plugin/backends/opencl/binary_cache.h"
#include "tensorflow_plugin/backends/opencl/driver.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"

namespace xpu::opencl {

// A compiled kernel. Its arguments are set and it is enqueued under the lock: they belong to the object.
struct Kernel {
  std::mutex mutex;
  Handle<cl_kernel> kernel;
  size_t largest_group = 1;
};

class Compiler {
 public:
  // Of a source, the name of its one kernel.
  static constexpr char kKernelName[] = "run";

  // Hardware and context outlive it.
  Compiler(const Hardware& hardware, cl_context context, std::string cache_folder)
      : hardware_(hardware), context_(context), cache_(std::move(cache_folder)) {}

  // The kernel that `source()` makes, which is asked once for each key. A source that does not compile is Internal, and
  // is in a file, with what the compiler said, that the message names. Kernels live as long as the compiler.
  Status Get(const std::string& key, const std::function<std::string()>& source, Kernel** kernel);

  // What was found out about this device with this driver, for later processes; empty: nothing is known of that.
  std::string Note(const std::string& what) const { return cache_.Load(Device() + "\nnote\n" + what); }
  void WriteNote(const std::string& what, const std::string& note) const {
    cache_.Store(Device() + "\nnote\n" + what, note);
  }

 private:
  // Which device it is, and its driver.
  std::string Device() const {
    return hardware_.platform_name + "\n" + hardware_.name + "\n" + hardware_.version + "\n" + hardware_.driver_version;
  }
  struct CompiledEntry {
    std::once_flag once;
    Status status;
    Kernel kernel;
  };
  Status Compile(const std::string& source, Kernel* kernel);
  Status Build(const std::string& source, const std::string& options, Handle<cl_program>* program);
  Handle<cl_program> BuildFromBinary(const std::string& binary, const std::string& options);

  const Hardware& hardware_;
  const cl_context context_;
  const BinaryCache cache_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<CompiledEntry>> entries_;
};

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_COMPILER_H_
