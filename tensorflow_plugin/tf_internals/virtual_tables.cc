#include "tensorflow_plugin/tf_internals/virtual_tables.h"

#include <dlfcn.h>

#include "tensorflow/c/kernels.h"

namespace xpu::tf_internals {
VirtualTable FindTable(const std::string& mangled_class) {
  Dl_info framework;
  if (dladdr(reinterpret_cast<const void*>(&TF_GetInput), &framework) == 0) return nullptr;
  void* const library = dlopen(framework.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto table = static_cast<VirtualTable>(dlsym(library, ("_ZTV" + mangled_class).c_str()));
  dlclose(library);  // this library needs it, so it stays
  return table == nullptr ? nullptr : table + kBeforeFunctions;
}

std::string NameAt(VirtualTable table, int place) {
  Dl_info found;
  if (place < 0 || dladdr(table[place], &found) == 0 || found.dli_saddr != table[place]) return "";
  return found.dli_sname;
}

bool IsAt(const void* address, const char* library, const char* name) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  const void* const found = dlsym(handle == nullptr ? RTLD_DEFAULT : handle, name);
  if (handle != nullptr) dlclose(handle);
  return found != nullptr && found == address;
}

}  // namespace xpu::tf_internals
