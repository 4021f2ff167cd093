#include "tensorflow_plugin/loader/process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace xpu::loader {

std::vector<std::string> LoadedObjects() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (info->dlpi_name && *info->dlpi_name)
          static_cast<std::vector<std::string>*>(out)->push_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

void* SymbolOfObject(const std::string& path, const char* name) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return nullptr;
  void* symbol = dlsym(handle, name);
  dlclose(handle);  // gives back what RTLD_NOLOAD took; the object stays
  return symbol;
}

void* TensorFlowSymbol(const char* name) {
  if (void* symbol = dlsym(RTLD_DEFAULT, name)) return symbol;
  for (const std::string& path : LoadedObjects()) {
    const std::string file = path.substr(path.rfind('/') + 1);
    if (file.rfind("libtensorflow", 0) != 0 && file.rfind("_pywrap_tensorflow", 0) != 0) continue;
    if (void* symbol = SymbolOfObject(path, name)) return symbol;
  }
  return nullptr;
}

std::string ObjectOf(const void* address) {
  Dl_info info;
  return address && dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

std::string DirName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash ? slash : 1);
}

std::vector<std::string> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  if (DIR* dir = opendir(path.c_str())) {
    while (const dirent* entry = readdir(dir)) names.push_back(entry->d_name);
    closedir(dir);
  }
  return names;
}

bool IsWholeLibrary(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto read = [&file](uint64_t offset, auto* out) {
    return file.seekg(offset) && file.read(reinterpret_cast<char*>(out), sizeof *out);
  };
  ElfW(Ehdr) header;
  if (!read(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  file.seekg(0, std::ios::end);
  const uint64_t size = file.tellg();
  for (int i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    if (!read(header.e_phoff + static_cast<uint64_t>(i) * header.e_phentsize, &segment)) return false;
    if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > size) return false;
  }
  return true;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void Warn(const std::string& message) {
  std::string line = "tensorflow_xpu: " + message;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  line += '\n';
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace xpu::loader
