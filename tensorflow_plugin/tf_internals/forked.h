// TensorFlow's threads for a device that a forked process lacks: those that poll events and run the callbacks of
// waiters. And what the child may find locked: the allocators of a device's memory.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_FORKED_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_FORKED_H_

namespace tensorflow {
class Device;
}

namespace xpu {

// After this call a process that forks has the device's allocators to itself at that moment. In the child, TensorFlow
// gets other threads for the device before it needs them (EnsureOtherThreads in device/stream_handle.h). `owner` goes
// with the device.
void PrepareForForks(tensorflow::Device* device, const void* owner);
void ForgetForForks(const void* owner);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_FORKED_H_
