// Registrations that are valid and do nothing. TensorFlow aborts the process when a plugin's registration fails. So a
// plugin that has nothing to offer registers a platform with zero devices under a name nobody else uses.
#ifndef TENSORFLOW_PLUGIN_LOADER_STAND_IN_H_
#define TENSORFLOW_PLUGIN_LOADER_STAND_IN_H_

#include "tensorflow/c/experimental/grappler/grappler.h"
#include "tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace xpu::loader {

// Fill in what TensorFlow asks for. Each call uses a name of its own (XPU_NONE_ABC...), since equal names abort too.
void StandInPlatform(SE_PlatformRegistrationParams* params);
void StandInOptimizer(TP_OptimizerRegistrationParams* params);
void StandInProfiler(TF_ProfilerRegistrationParams* params);

}  // namespace xpu::loader

#endif  // TENSORFLOW_PLUGIN_LOADER_STAND_IN_H_
