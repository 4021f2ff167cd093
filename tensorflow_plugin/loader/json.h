// Strings in JSON, and lists of them: header-only, since the loader links against nothing.
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

// The texts as a JSON array.
template <typename Texts>
std::string JsonStrings(const Texts& texts) {
  std::string json;
  for (const std::string& text : texts) json += (json.empty() ? "" : ", ") + JsonString(text);
  return "[" + json + "]";
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_LOADER_JSON_H_
