// The name of a device in messages and profiles: its type to TensorFlow, and its number.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_DEVICE_NAME_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_DEVICE_NAME_H_

#include <string>

namespace xpu {

// "XPU:0"; "GPU:0" where the devices have that type.
std::string DeviceName(int ordinal);

// The type of all devices of the process, "XPU" if nobody says another. Before the first device is made; lives for
// ever.
void SetDeviceTypeName(const char* type);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_DEVICE_NAME_H_
