#include "tensorflow_plugin/backends/gpu/binary_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace xpu::gpu {
namespace {

// A file is this, the hash of all that follows, the lengths of key and binary in 16 digits each, and these two.
constexpr char kMagic[] = "XPU-OPENCL-1\n";
constexpr size_t kDigits = 16;

std::string Hex(uint64_t value) {
  char text[kDigits + 1];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Contents(const std::string& key, const std::string& binary) {
  const std::string body = Hex(key.size()) + Hex(binary.size()) + key + binary;
  return kMagic + HashOf(body) + body;
}

bool MakeFolders(const std::string& folder) {
  for (size_t slash = folder.find('/', 1);; slash = folder.find('/', slash + 1)) {
    mkdir(folder.substr(0, slash).c_str(), 0700);  // or it is there, or cannot be made: the last one tells
    if (slash == std::string::npos) break;
  }
  struct stat found;
  return stat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace

std::string HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return Hex(hash);
}

std::string BinaryCache::UsersFolder(const std::string& runtime) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/tensorflow_xpu/" + runtime;
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/tensorflow_xpu/" + runtime : "";
}

std::string BinaryCache::Load(const std::string& key) const {
  if (folder_.empty()) return "";
  std::ifstream file(folder_ + "/" + HashOf(key), std::ios::binary);
  const std::string contents{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t head = sizeof(kMagic) - 1 + 3 * kDigits + key.size();
  if (contents.size() <= head) return "";
  std::string binary = contents.substr(head);
  return Contents(key, binary) == contents ? binary : "";
}

void BinaryCache::Store(const std::string& key, const std::string& binary) const {
  if (folder_.empty() || binary.empty() || !MakeFolders(folder_)) return;
  // Under a name of its own first: another process may be reading, or storing the same.
  static std::atomic<int> counter{0};
  const std::string path = folder_ + "/" + HashOf(key);
  const std::string part = path + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
  std::ofstream file(part, std::ios::binary);
  file << Contents(key, binary);
  file.close();
  if (!file || std::rename(part.c_str(), path.c_str()) != 0) std::remove(part.c_str());
}

}  // namespace xpu::gpu
