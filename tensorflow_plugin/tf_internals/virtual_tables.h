// Tables of virtual functions of the running TensorFlow, compared with what this library was compiled for.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_VIRTUAL_TABLES_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_VIRTUAL_TABLES_H_

#include <cstdint>
#include <cstring>
#include <string>

namespace xpu::tf_internals {

// At which place of a table this library calls a virtual function; -1 if it is none.
template <typename Method>
int PlaceOf(Method method) {
  struct {
    std::uintptr_t function, adjustment;
  } raw;
  static_assert(sizeof(method) == sizeof(raw));
  std::memcpy(&raw, &method, sizeof(raw));
#if defined(__aarch64__)
  return raw.adjustment & 1 ? static_cast<int>(raw.function / sizeof(void*)) : -1;
#else
  return raw.function & 1 ? static_cast<int>(raw.function / sizeof(void*)) : -1;
#endif
}

// Functions of a class, in order.
using VirtualTable = void* const*;
// Before the first function a table has an offset and the class's type.
inline constexpr int kBeforeFunctions = 2;

// That of an object.
inline VirtualTable TableOf(const void* object) { return *static_cast<const VirtualTable*>(object); }
// That of a class in libtensorflow_framework, by the class's mangled name; null if it is not there.
VirtualTable FindTable(const std::string& mangled_class);

// The mangled name of the function there; empty if TensorFlow does not export it.
std::string NameAt(VirtualTable table, int place);
// True if a library of TensorFlow's has the symbol at this address. Quicker than NameAt, which takes 20 ms for a
// function of libtensorflow_cc.
bool IsAt(const void* address, const char* library, const char* symbol);

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_VIRTUAL_TABLES_H_
