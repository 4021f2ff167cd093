// The example backend as a plugin of its own, for example_conformance_test.
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow_plugin/backends/example/backend.h"
#include "tensorflow_plugin/device/platform.h"

extern "C" __attribute__((visibility("default"))) void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                                                     TF_Status*) {
  xpu::InitPlatform(params, xpu::example::TheBackend(), xpu::BackendOptions());
}
