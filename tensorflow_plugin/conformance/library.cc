#include "tensorflow_plugin/conformance/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "tensorflow_plugin/conformance/empty_library.h"

namespace xpu::conformance {
namespace {

constexpr char kFramework[] = "libtensorflow_framework.so.2";

std::string LastError() {
  const char* error = dlerror();
  return error ? error : "unknown error";
}

}  // namespace

std::string LoadTensorFlow(const std::string& folder) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", /*overwrite=*/0);
  // That does not silence what TensorFlow writes while it is loaded.
  const int errors = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDERR_FILENO);
  void* framework = dlopen((folder + "/" + kFramework).c_str(), RTLD_NOW | RTLD_GLOBAL);
  const std::string error = framework ? "" : LastError();
  // Has TF_Version and what graph optimizers use; a TensorFlow without it is fine.
  if (framework) dlopen((folder + "/libtensorflow_cc.so.2").c_str(), RTLD_NOW | RTLD_GLOBAL);
  dup2(errors, STDERR_FILENO);
  close(errors);
  close(nowhere);
  if (!framework) return error;
  UseStatusOf(framework);
  return "";
}

decltype(SE_InitPlugin)* OpenLibrary(const std::string& path, std::string* error) {
  // A name without a folder would be looked for in the system's.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* handle = nullptr;
  std::string missing;
  while (!(handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL))) {
    *error = LastError();
    const std::string last = std::exchange(missing, error->substr(0, error->find(": cannot open shared object file")));
    const bool of_tensorflow = missing.find("tensorflow") != std::string::npos;
    if (of_tensorflow && missing.find('/') == std::string::npos && missing != last && LoadEmptyLibrary(missing))
      continue;
    if (error->find("undefined symbol") != std::string::npos) {
      *error += " (if that is of TensorFlow's libraries: --tensorflow FOLDER)";
    }
    return nullptr;
  }
  // It may have brought TensorFlow along.
  if (void* framework = dlopen(kFramework, RTLD_LAZY | RTLD_NOLOAD)) UseStatusOf(framework);
  auto* init = reinterpret_cast<decltype(SE_InitPlugin)*>(dlsym(handle, "SE_InitPlugin"));
  if (!init) *error = "it has no SE_InitPlugin, so TensorFlow sees no device in it";
  return init;
}

}  // namespace xpu::conformance
