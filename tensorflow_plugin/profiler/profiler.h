// The device as a source of TensorFlow's profiler: tf.profiler.experimental.start and stop reach it through here.
#ifndef TENSORFLOW_PLUGIN_PROFILER_PROFILER_H_
#define TENSORFLOW_PLUGIN_PROFILER_PROFILER_H_

#include "tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h"

namespace xpu::profiler {

// `device_type` lives for ever.
void InitProfiler(TF_ProfilerRegistrationParams* params, const char* device_type);

}  // namespace xpu::profiler

#endif  // TENSORFLOW_PLUGIN_PROFILER_PROFILER_H_
