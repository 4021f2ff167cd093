// The configuration file: settings that hold where the environment says nothing, in programs that know nothing of the
// Python package, too. `python -m tensorflow_xpu use` writes it; tensorflow_xpu/_settings.py reads it by the same
// rules.
#ifndef TENSORFLOW_PLUGIN_LOADER_SETTINGS_H_
#define TENSORFLOW_PLUGIN_LOADER_SETTINGS_H_

#include <map>
#include <string>

namespace xpu::loader {

struct Settings {
  std::string path;                           // of the file; empty: there is none
  std::map<std::string, std::string> values;  // by the name of the environment variable
  std::string error;                          // why the file is ignored as a whole; empty: it is not
};

// The file that the XDG Base Directory Specification leads to: tensorflow_xpu/config in $XDG_CONFIG_HOME (~/.config).
// If that is missing, the first of $XDG_CONFIG_DIRS (/etc/xdg) that has one. TF_XPU_CONFIG names another, or "none".
std::string SettingsPath();

// Lines "TF_XPU_... = value"; empty lines and those that begin with # say nothing.
Settings ReadSettings(const std::string& path);

// Reads the file and puts into the environment what is not there, so that everything that asks the environment finds
// it. `values` are then those that came from the file.
Settings ApplySettings();

}  // namespace xpu::loader

#endif  // TENSORFLOW_PLUGIN_LOADER_SETTINGS_H_
