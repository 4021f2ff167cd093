// Prepares TensorFlow and Keras for an XPU in scripts that know nothing of this package.
#ifndef TENSORFLOW_PLUGIN_LOADER_PYTHON_HOOK_H_
#define TENSORFLOW_PLUGIN_LOADER_PYTHON_HOOK_H_

#include <string>

namespace xpu::loader {

// Runs the module `name` of the package in the folder `package_path` (tensorflow_xpu) in a namespace of its own,
// without importing the package, if this process is a Python interpreter; does nothing elsewhere or if the file is
// missing.
void RunPythonHook(const std::string& package_path, const std::string& name);

}  // namespace xpu::loader

#endif  // TENSORFLOW_PLUGIN_LOADER_PYTHON_HOOK_H_
