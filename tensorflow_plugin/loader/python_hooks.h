// Prepares TensorFlow and Keras for an XPU in scripts that know nothing of this package.
#ifndef TENSORFLOW_PLUGIN_LOADER_PYTHON_HOOKS_H_
#define TENSORFLOW_PLUGIN_LOADER_PYTHON_HOOKS_H_

#include <string>

namespace xpu::loader {

// Runs the file _hooks.py of the package in the folder `package_path` (tensorflow_xpu) in a namespace of its own,
// without importing the package, if this process is a Python interpreter; a file that is missing costs a line. Does
// nothing elsewhere.
void RunPythonHooks(const std::string& package_path);

}  // namespace xpu::loader

#endif  // TENSORFLOW_PLUGIN_LOADER_PYTHON_HOOKS_H_
