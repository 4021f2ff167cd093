#include "tensorflow_plugin/loader/python_hooks.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "tensorflow_plugin/loader/json.h"
#include "tensorflow_plugin/loader/process.h"

namespace xpu::loader {
namespace {

// An option as a Python string: os.environ, older than the configuration file's options, does not have those.
std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return JsonString(value ? value : "");
}

}  // namespace

void RunPythonHooks(const std::string& package_path, const std::string& device_type) {
  const std::string path = package_path + "/hooks/start.py";
  // The interpreter's symbols are global, whether Python is the executable or libpython; elsewhere there are none.
  const auto is_initialized = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  const auto ensure = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  const auto release = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
  const auto run = reinterpret_cast<int (*)(const char*, void*)>(dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags"));
  if (!is_initialized || !ensure || !release || !run || !is_initialized()) return;
  if (access(path.c_str(), R_OK) != 0) {
    return Warn(path + " cannot be read: let one thread at a time run eager ops, and use Keras's " +
                "compile(jit_compile=False). Fix: pip install --force-reinstall --no-deps tensorflow_xpu");
  }
  // One statement that binds no name: it runs in __main__, which belongs to the user. Reading
  // through a loader closes the file; an open() that nobody closes is a ResourceWarning. A JSON string is also a Python
  // string.
  const std::string quoted = JsonString(path);
  const std::string statement =
      "exec(compile(__import__('importlib.machinery').machinery.SourceFileLoader('', " + quoted + ").get_data(" +
      quoted + "), " + quoted + ", 'exec'), {'__name__': 'tensorflow_xpu.hooks.start', '__file__': " + quoted +
      ", 'DEVICE_TYPE': " + JsonString(device_type) + ", 'HOOKS': " + Setting("TF_XPU_HOOKS") +
      ", 'HOOKS_WITHOUT': " + Setting("TF_XPU_HOOKS_WITHOUT") + ", '__builtins__': __builtins__}, None)\n";
  const int state = ensure();
  run(statement.c_str(), nullptr);  // prints what it raises
  release(state);
}

}  // namespace xpu::loader
