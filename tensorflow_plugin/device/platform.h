// Offers a backend to TensorFlow as a StreamExecutor platform.
#ifndef TENSORFLOW_PLUGIN_DEVICE_PLATFORM_H_
#define TENSORFLOW_PLUGIN_DEVICE_PLATFORM_H_

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {

// The body of SE_InitPlugin: fills what `params` points to. Cannot fail, as TensorFlow ends the process if it does.
// The device type is `type`, the platform's name the backend's subdevice type: capital letters and underscores, and
// they live for ever, as does `backend`.
void InitPlatform(SE_PlatformRegistrationParams* params, const Backend& backend, const BackendOptions& options,
                  const char* type = "XPU");

// From now on the platform has the devices of `backend` under `options`, its name and allocator staying what they were.
// False, and nothing is changed, if TensorFlow has made one of its devices. `backend` lives for ever.
bool ChangePlatform(const Backend& backend, const BackendOptions& options);

// From now on a process that is forked after it has made a device is told so when it uses one.
void RefuseForkedProcesses();

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_PLATFORM_H_
