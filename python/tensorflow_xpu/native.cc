// The package's view into the libraries that TensorFlow has loaded: calls a function of theirs that returns text.
#include <dlfcn.h>
#include <pybind11/pybind11.h>

#include <optional>
#include <string>

namespace {

// The text that `function(args...)` of the library at `path` returns; None if the library is not loaded in this process
// or has no such function. Never loads the library: an unused one must not come to life by being asked about.
// Without Python's lock, since some of them wait for a device.
template <typename... Args>
std::optional<std::string> Ask(const std::string& path, const std::string& function, Args... args) {
  const pybind11::gil_scoped_release unlocked;
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return std::nullopt;
  auto* call = reinterpret_cast<const char* (*)(Args...)>(dlsym(library, function.c_str()));
  std::optional<std::string> answer;
  if (const char* text = call ? call(args...) : nullptr) answer = text;
  dlclose(library);
  return answer;
}

// None where there is no answer.
pybind11::object ToPython(const std::optional<std::string>& answer) {
  if (!answer) return pybind11::none();
  return pybind11::str(*answer);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  namespace py = pybind11;
  module.doc() = "Calls into the plugin's libraries as TensorFlow has loaded them.";
  module.def(
      "ask", [](const std::string& path, const std::string& function) { return ToPython(Ask(path, function)); },
      py::arg("path"), py::arg("function"),
      "The text that `function` of the loaded library at `path` returns, or None if it is not loaded.");
  module.def(
      "ask_of",
      [](const std::string& path, const std::string& function, int index) {
        return ToPython(Ask(path, function, index));
      },
      py::arg("path"), py::arg("function"), py::arg("index"), "The same of a function that takes a device's index.");
}
