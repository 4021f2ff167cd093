// From source to kernels: each source is compiled once for a device. It is kept for the life of the device and, as the
// driver's binary, on disk.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_COMPILER_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_COMPILER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "tensorflow_plugin/backends/gpu/binary_cache.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::gpu {

// A compiled kernel; each runtime has a class of its own.
class Kernel {
 public:
  virtual ~Kernel() = default;
  size_t largest_group = 1;
};

class Compiler {
 public:
  // The name of the one kernel of a source.
  static constexpr char kKernelName[] = "run";

  explicit Compiler(std::string cache_folder) : cache_(std::move(cache_folder)) {}
  virtual ~Compiler() = default;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  // The kernel that `source()` makes, which is asked once for each key. A source that does not compile is Internal, and
  // is in a file, with what the compiler said, that the message names. Kernels live as long as the compiler.
  Status Get(const std::string& key, const std::function<std::string()>& source, Kernel** kernel);

  // A fact that was found out about this device with this driver, for later processes; empty if it is not known.
  std::string Note(const std::string& what) const { return cache_.Load(Device() + "\nnote\n" + what); }
  void WriteNote(const std::string& what, const std::string& note) const {
    cache_.Store(Device() + "\nnote\n" + what, note);
  }

 protected:
  // Takes a source without the prelude, which is the runtime's own.
  virtual Status Compile(const std::string& source, std::unique_ptr<Kernel>* kernel) = 0;
  // Which device it is, and its driver.
  virtual std::string Device() const = 0;
  const BinaryCache& cache() const { return cache_; }

 private:
  struct CompiledEntry {
    std::once_flag once;
    Status status;
    std::unique_ptr<Kernel> kernel;
  };
  const BinaryCache cache_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<CompiledEntry>> entries_;
};

// Writes a source that does not compile, with what the compiler said, into a file of the folder for temporary files.
// Returns the end of a sentence about the source, which names the file.
std::string WriteUncompiled(const std::string& source, const std::string& options, const std::string& log);

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_COMPILER_H_
