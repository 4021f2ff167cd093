#include "tensorflow_plugin/backends/cuda/dnn/cudnn.h"

#include <dlfcn.h>

#include "tensorflow_plugin/backends/cuda/blas/cublaslt.h"
#include "tensorflow_plugin/backends/cuda/libraries.h"

namespace xpu::cuda {
namespace {

struct Found {
  Cudnn library;
  std::string why;
};

Found Open() {
  Found found;
  // cuDNN ends the process where it misses cuBLASLt, and finds the one that is open.
  if (FindCublasLt(&found.why) == nullptr) {
    found.why = "cuDNN needs cuBLASLt: " + found.why;
    return found;
  }
  void* const library = OpenLibrary({"libcudnn.so.9"}, "tensorflow_xpu[cuda]", &found.why);
  if (library == nullptr) return found;
#define XPU_RESOLVE(result, name, symbol, parameters)                                          \
  found.library.name = reinterpret_cast<decltype(found.library.name)>(dlsym(library, symbol)); \
  if (found.library.name == nullptr && found.why.empty()) found.why = "libcudnn lacks " symbol;
  XPU_CUDNN_FUNCTIONS(XPU_RESOLVE)
#undef XPU_RESOLVE
  if (!found.why.empty()) return found;
  constexpr size_t kLeastVersion = 90000, kEndOfVersions = 100000;
  const size_t version = found.library.GetVersion();
  if (version < kLeastVersion || version >= kEndOfVersions) {
    found.why = errors::Concat("libcudnn.so.9 says that it is version ", version, ", and 9 is needed");
  }
  return found;
}

}  // namespace

const Cudnn* FindCudnn(std::string* why) {
  static const auto* const found = new Found(Open());
  if (why != nullptr) *why = found->why;
  return found->why.empty() ? &found->library : nullptr;
}

}  // namespace xpu::cuda
