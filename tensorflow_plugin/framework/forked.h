// What TensorFlow has for a device that a forked process lacks: the threads that poll events and call back who waits
// for one. And what the child may find locked: the allocators of a device's memory.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_FORKED_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_FORKED_H_

namespace tensorflow {
class Device;
}

namespace xpu {

// From now on a process that forks has the device's allocators to itself at that moment, and in the child TensorFlow
// gets other threads for the device before it may want them (EnsureOtherThreads in device/stream_handle.h). `owner`
// goes with the device.
void PrepareForForks(tensorflow::Device* device, const void* owner);
void ForgetForForks(const void* owner);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_FORKED_H_
