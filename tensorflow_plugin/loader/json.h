// Strings in JSON: header-only, since the loader links against nothing.
#ifndef TENSORFLOW_PLUGIN_LOADER_JSON_H_
#define TENSORFLOW_PLUGIN_LOADER_JSON_H_

#include <cstdio>
#include <string>

namespace xpu {

// `text` as a JSON string, with its quotes.
inline std::string JsonString(const std::string& text) {
  std::string json = "\"";
  for (const unsigned char c : text) {
    if (c < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      json += escaped;
    } else {
      if (c == '"' || c == '\\') json += '\\';
      json += static_cast<char>(c);
    }
  }
  return json + '"';
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_LOADER_JSON_H_
