// Another vendor's plugin: owns the device type XPU (or the platform name given at build time) with zero devices.
#include "tensorflow_plugin/loader/stand_in.h"

#ifndef PLATFORM_NAME
#define PLATFORM_NAME "OTHER_VENDOR"
#endif
#ifndef DEVICE_TYPE
#define DEVICE_TYPE "XPU"
#endif

extern "C" __attribute__((visibility("default"))) void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                                                     TF_Status*) {
  xpu::loader::StandInPlatform(params);
  params->platform->name = PLATFORM_NAME;
  params->platform->type = DEVICE_TYPE;
}
