// Compiled programs on disk, for the next process. Whatever is wrong with a file, or with the folder, makes it as if
// the file were not there.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_BINARY_CACHE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_BINARY_CACHE_H_

#include <string>
#include <utility>

namespace xpu::gpu {

class BinaryCache {
 public:
  // In a folder that is made when something is stored; an empty name: nothing is kept.
  explicit BinaryCache(std::string folder) : folder_(std::move(folder)) {}

  // tensorflow_xpu/`runtime` in the user's folder for caches; empty if there is none.
  static std::string UsersFolder(const std::string& runtime);

  // The binary that was stored for exactly this key (which says all that the binary depends on); empty if there is
  // none.
  std::string Load(const std::string& key) const;
  void Store(const std::string& key, const std::string& binary) const;

 private:
  const std::string folder_;
};

// The hash of a text, for names of files: 16 hexadecimal digits.
std::string HashOf(const std::string& text);

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_BINARY_CACHE_H_
