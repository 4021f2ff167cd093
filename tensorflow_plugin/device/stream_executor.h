// The callbacks of SP_StreamExecutor and SP_TimerFns.
#ifndef TENSORFLOW_PLUGIN_DEVICE_STREAM_EXECUTOR_H_
#define TENSORFLOW_PLUGIN_DEVICE_STREAM_EXECUTOR_H_

#include <type_traits>
#include <utility>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace xpu {

// All fields set but struct_size.
SP_StreamExecutor StreamExecutorTable();
SP_TimerFns TimerTable();

void CreateStream(const SP_Device* device, int priority, SP_Stream* stream, TF_Status* status);

// TensorFlow 2.22 appended create_stream_with_options to SP_StreamExecutor. Sets it where the headers we are built
// with have it; Fill (glue.h) leaves it out where the TensorFlow that runs has not.
template <typename Table, typename = void>
struct StreamOptions {
  static void Set(Table*) {}
};
template <typename Table>
struct StreamOptions<Table, std::void_t<decltype(std::declval<Table>().create_stream_with_options)>> {
  struct Arguments {
    SP_Stream* stream = nullptr;
    TF_Status* status = nullptr;
    int priority = 0;
    void Take(SP_Stream* s) { stream = s; }
    void Take(TF_Status* s) { status = s; }
    template <typename Options>
    void Take(const Options* options) {
      if (options != nullptr && options->has_priority) priority = options->priority;
    }
  };
  static void Set(Table* table) {
    table->create_stream_with_options = [](const SP_Device* device, auto... rest) {
      Arguments arguments;
      (arguments.Take(rest), ...);
      CreateStream(device, arguments.priority, arguments.stream, arguments.status);
    };
  }
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_STREAM_EXECUTOR_H_
