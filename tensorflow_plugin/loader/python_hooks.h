// Prepares TensorFlow and Keras for an XPU in scripts that know nothing of this package.
#ifndef TENSORFLOW_PLUGIN_LOADER_PYTHON_HOOKS_H_
#define TENSORFLOW_PLUGIN_LOADER_PYTHON_HOOKS_H_

#include <string>

namespace xpu::loader {

// Runs the file hooks/start.py of the package in the folder `package_path` (tensorflow_xpu), if this process is a
// Python interpreter. It runs in a namespace of its own, without importing the package; a file that is missing costs a
// line. Does nothing elsewhere. The file finds the devices' type, XPU or GPU, as DEVICE_TYPE, and the texts of the
// options TF_XPU_HOOKS and TF_XPU_HOOKS_WITHOUT as HOOKS and HOOKS_WITHOUT.
void RunPythonHooks(const std::string& package_path, const std::string& device_type);

}  // namespace xpu::loader

#endif  // TENSORFLOW_PLUGIN_LOADER_PYTHON_HOOKS_H_
