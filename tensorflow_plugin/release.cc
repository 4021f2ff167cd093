// The shared library's release, for the libraries that are loaded beside it (device/interop.h).
#include "tensorflow_plugin/device/release.h"

extern "C" const char XPU_RELEASE[] = "";
