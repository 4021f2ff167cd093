// Copies off an XPU and to it, which TensorFlow's device leaves to an object. Ours stands in its place.
//
// A copy in a graph then tells of the device's failures when it has run, in the device's words. TensorFlow's own says
// nothing, and the synchronisation that follows "PluggableDevice SyncAll failed". Where it is TensorFlow's own, copies
// to the host wait for the commands before them, and have these words, too (device/stream_handle.h's copies_wait).
//
// With the hook `direct_copies` a copy is also done when it is asked for. TensorFlow 2.21 enqueues each copy on a
// stream of its own behind an event, polls for that, and hands its end to another thread. That takes 60 microseconds in
// which the graph waits for its inputs, every step. The host could move the bytes in one.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_COPIES_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_COPIES_H_

#include <string>

namespace tensorflow {
class Device;
}

namespace xpu {

// From now on a device of this plugin has our object. Any number of calls, from any thread; does nothing if the device
// is not made as expected.
void TakeOverCopies(tensorflow::Device* device);

// Copies between two devices of this type have a function of ours. To be called before TensorFlow has registered its
// own: it calls the first one.
void TakeOverCopiesBetween(const std::string& device_type);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_COPIES_H_
