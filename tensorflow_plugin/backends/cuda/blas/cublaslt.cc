#include "tensorflow_plugin/backends/cuda/blas/cublaslt.h"

#include <dlfcn.h>

#include "tensorflow_plugin/backends/cuda/libraries.h"

namespace xpu::cuda {
namespace {

struct Found {
  CublasLt library;
  std::string why;
};

Found Open() {
  Found found;
  void* const library = OpenLibrary({"libcublasLt.so.13", "libcublasLt.so.12"}, "tensorflow_xpu[cuda]", &found.why);
  if (library == nullptr) return found;
#define XPU_RESOLVE(name, symbol, parameters)                                                  \
  found.library.name = reinterpret_cast<decltype(found.library.name)>(dlsym(library, symbol)); \
  if (found.library.name == nullptr && found.why.empty()) found.why = "libcublasLt lacks " symbol;
  XPU_CUBLASLT_FUNCTIONS(XPU_RESOLVE)
#undef XPU_RESOLVE
  return found;
}

}  // namespace

const CublasLt* FindCublasLt(std::string* why) {
  static const auto* const found = new Found(Open());
  if (why != nullptr) *why = found->why;
  return found->why.empty() ? &found->library : nullptr;
}

}  // namespace xpu::cuda
