#include "tensorflow_plugin/loader/settings.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tensorflow_plugin/loader/process.h"

namespace xpu::loader {
namespace {

constexpr char kChoice[] = "TF_XPU_CONFIG";
constexpr char kPrefix[] = "TF_XPU_";

bool Exists(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0;
}

std::string Trimmed(const std::string& text) {
  constexpr char kSpace[] = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

bool IsName(const std::string& name) {
  return name.rfind(kPrefix, 0) == 0 && name.size() > sizeof(kPrefix) - 1 && name != kChoice &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos;
}

}  // namespace

std::string SettingsPath() {
  const std::string chosen = Environment(kChoice);
  if (chosen == "none") return "";
  if (!chosen.empty()) return chosen;
  // Folders that are not absolute are to be ignored, says the specification.
  std::string home = Environment("XDG_CONFIG_HOME");
  if (home.empty() || home[0] != '/') home = Environment("HOME").empty() ? "" : Environment("HOME") + "/.config";
  std::string folders = Environment("XDG_CONFIG_DIRS");
  folders = home + ":" + (folders.empty() ? "/etc/xdg" : folders) + ":";
  for (size_t begin = 0, end; (end = folders.find(':', begin)) != std::string::npos; begin = end + 1) {
    if (folders[begin] != '/') continue;
    const std::string path = folders.substr(begin, end - begin) + "/tensorflow_xpu/config";
    if (Exists(path)) return path;
  }
  return "";
}

Settings ReadSettings(const std::string& path) {
  Settings settings;
  settings.path = path;
  struct stat found;
  std::ifstream file(path);
  if (!file || (stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode))) {
    settings.error = path + " cannot be read";
    return settings;
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string text = Trimmed(line);
    if (text.empty() || text[0] == '#') continue;
    const size_t equals = text.find('=');
    const std::string name = Trimmed(text.substr(0, equals));
    if (equals == std::string::npos || !IsName(name) || settings.values.count(name) != 0) {
      settings.error = path + ":" + std::to_string(number) + " has \"" + text.substr(0, 100) +
                       "\", expected TF_XPU_...=value, each name once";
      settings.values.clear();
      return settings;
    }
    settings.values[name] = Trimmed(text.substr(equals + 1));
  }
  return settings;
}

Settings ApplySettings() {
  const std::string path = SettingsPath();
  if (path.empty()) return {};
  Settings settings = ReadSettings(path);
  for (auto entry = settings.values.begin(); entry != settings.values.end();) {
    if (getenv(entry->first.c_str()) != nullptr) {
      entry = settings.values.erase(entry);
    } else {
      setenv(entry->first.c_str(), entry->second.c_str(), 0);
      ++entry;
    }
  }
  return settings;
}

}  // namespace xpu::loader
