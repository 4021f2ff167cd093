// Questions to the process that the loader was loaded into: where files are and which symbols exist. The loader links
// against nothing but libc. So it can say what is wrong even where TensorFlow is not the one it was built for.
#ifndef TENSORFLOW_PLUGIN_LOADER_PROCESS_H_
#define TENSORFLOW_PLUGIN_LOADER_PROCESS_H_

#include <string>
#include <vector>

namespace xpu::loader {

// Address of a symbol of the TensorFlow in this process, or nullptr. Python loads TensorFlow's libraries with
// RTLD_LOCAL, so the global scope alone does not do.
void* TensorFlowSymbol(const char* name);

// The same, typed by the declaration in TensorFlow's header: TensorFlowFunction<decltype(TF_Version)>("TF_Version").
template <typename Function>
Function* TensorFlowFunction(const char* name) {
  return reinterpret_cast<Function*>(TensorFlowSymbol(name));
}

// Paths of all shared objects in the process.
std::vector<std::string> LoadedObjects();

// A symbol of one loaded object or of what it depends on; nullptr if it has none or is not loaded.
void* SymbolOfObject(const std::string& path, const char* name);

// The path of the object that holds `address`; empty if unknown.
std::string ObjectOf(const void* address);

// "/a/b/c" -> "/a/b"; "c" -> ".".
std::string DirName(const std::string& path);

// Names in a folder; empty if it cannot be read.
std::vector<std::string> ListFolder(const std::string& path);

// True if the file has all the bytes that a shared library's headers promise. A full disk or an interrupted copy may
// cut a file short. dlopen() maps it without complaint, and the process then ends with SIGBUS.
bool IsWholeLibrary(const std::string& path);

// The value of an environment variable, "" if unset.
std::string Environment(const char* name);

// Writes "tensorflow_xpu: <message>" as one line to stderr.
void Warn(const std::string& message);

}  // namespace xpu::loader

#endif  // TENSORFLOW_PLUGIN_LOADER_PROCESS_H_
