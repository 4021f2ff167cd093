// An empty shared library under any name.
#ifndef TENSORFLOW_PLUGIN_CONFORMANCE_EMPTY_LIBRARY_H_
#define TENSORFLOW_PLUGIN_CONFORMANCE_EMPTY_LIBRARY_H_

#include <string>

namespace xpu::conformance {

// Loads a shared library that holds nothing and that the dynamic linker takes for `name` where another library needs
// one of that name. Functions that should have been in it are missed when they are called, and not before. Returns
// whether it could.
bool LoadEmptyLibrary(const std::string& name);

}  // namespace xpu::conformance

#endif  // TENSORFLOW_PLUGIN_CONFORMANCE_EMPTY_LIBRARY_H_
