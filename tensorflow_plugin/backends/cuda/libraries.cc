#include "tensorflow_plugin/backends/cuda/libraries.h"

#include <dlfcn.h>
#include <glob.h>

namespace xpu::cuda {
namespace {

// The folders that match patterns such as "/usr/lib/python3/nvidia/*/lib", in order.
std::vector<std::string> Matching(const std::vector<std::string>& patterns) {
  std::vector<std::string> folders;
  for (const std::string& pattern : patterns) {
    glob_t found{};
    if (glob(pattern.c_str(), GLOB_ONLYDIR, nullptr, &found) == 0) {
      for (size_t i = 0; i < found.gl_pathc; ++i) folders.emplace_back(found.gl_pathv[i]);
    }
    globfree(&found);
  }
  return folders;
}

// Every folder above this library, the nearest first: one of them has the environment's packages.
std::vector<std::string> FoldersAbove() {
  std::vector<std::string> folders;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&FoldersAbove), &info) == 0 || info.dli_fname == nullptr) return folders;
  std::string path = info.dli_fname;
  for (size_t slash = path.rfind('/'); slash != std::string::npos && slash != 0; slash = path.rfind('/')) {
    path.resize(slash);
    folders.push_back(path);
  }
  return folders;
}

std::vector<std::string> LibraryFolders() {
  std::vector<std::string> patterns;
  for (const std::string& folder : FoldersAbove()) patterns.push_back(folder + "/nvidia/*/lib");
  return Matching(patterns);
}

}  // namespace

void* OpenLibrary(const std::vector<std::string>& names, const std::string& package, std::string* why) {
  std::vector<std::string> folders = LibraryFolders();
  for (std::string& folder : folders) folder += '/';
  folders.emplace_back();  // where the system's loader looks
  folders.emplace_back("/usr/local/cuda/lib64/");
  std::string error;
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      if (void* const library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
      const char* const said = dlerror();
      // A library that is there and cannot be opened says more than one that is not there.
      if (error.empty() && said != nullptr && std::string(said).find("No such file") == std::string::npos) error = said;
    }
  }
  *why = names.front() + " was not found (pip install " + package + ")" + (error.empty() ? "" : ": " + error);
  return nullptr;
}

}  // namespace xpu::cuda
