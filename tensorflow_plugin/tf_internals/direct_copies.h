// Copies between the host and an XPU that are done when they are asked for.
//
// TensorFlow 2.21 enqueues each copy on a stream of its own behind an event, polls for that, and hands its end to
// another thread. That takes 60 microseconds in which the graph waits for its inputs, every step. The host could move
// the bytes in one.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_DIRECT_COPIES_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_DIRECT_COPIES_H_

namespace tensorflow {
class Device;
}

namespace xpu {

// From now on a device of this plugin copies so what is small, or comes while it has nothing to do. Any number of
// calls, from any thread; does nothing if the device is not made as expected.
void CopyDirectly(tensorflow::Device* device);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_DIRECT_COPIES_H_
