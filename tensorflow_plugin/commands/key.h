// Keys that tell commands from each other: bytes, one value behind the other.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_KEY_H_
#define TENSORFLOW_PLUGIN_COMMANDS_KEY_H_

#include <cstdint>
#include <string>

#include "tensorflow_plugin/primitives/dims.h"

namespace xpu::commands {

inline void Append(const void* bytes, size_t size, std::string* key) {
  key->append(static_cast<const char*>(bytes), size);
}
inline void Append(int64_t value, std::string* key) { Append(&value, sizeof(value), key); }
inline void Append(const Dims& dims, std::string* key) {
  Append(dims.rank(), key);
  Append(dims.begin(), sizeof(int64_t) * dims.rank(), key);
}

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_KEY_H_
