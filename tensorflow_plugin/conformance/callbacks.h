// The callbacks of the StreamExecutor C API, as tables: their names, and what TensorFlow does about one that is null.
#ifndef TENSORFLOW_PLUGIN_CONFORMANCE_CALLBACKS_H_
#define TENSORFLOW_PLUGIN_CONFORMANCE_CALLBACKS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace xpu::conformance {

enum class Need {
  kRequired,   // TensorFlow ends the process at registration
  kUnchecked,  // TensorFlow calls it without looking
  kUnified,    // required with supports_unified_memory
  kOptional,
};

struct Callback {
  const char* name;
  size_t offset;  // in its struct
  Need need;
};

const std::vector<Callback>& PlatformCallbacks();      // SP_PlatformFns
const std::vector<Callback>& ExecutorCallbacks();      // SP_StreamExecutor
const std::vector<Callback>& RegistrationCallbacks();  // SE_PlatformRegistrationParams

// "a, b" of those that TensorFlow needs and that are null in `table`; empty if all is well.
std::string Missing(const std::vector<Callback>& callbacks, const void* table, bool unified_memory);

// The name of a member of SP_StreamExecutor.
template <typename Function>
const char* NameOf(Function SP_StreamExecutor::* member) {
  static const SP_StreamExecutor table{};
  const size_t offset = reinterpret_cast<const char*>(&(table.*member)) - reinterpret_cast<const char*>(&table);
  for (const Callback& callback : ExecutorCallbacks()) {
    if (callback.offset == offset) return callback.name;
  }
  return "";
}

}  // namespace xpu::conformance

#endif  // TENSORFLOW_PLUGIN_CONFORMANCE_CALLBACKS_H_
