// How C++ that has one of TensorFlow's streams gets to ours.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_TENSORFLOW_STREAM_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_TENSORFLOW_STREAM_H_

#include "tensorflow_plugin/tf_internals/differences.h"
// After it:
#include "tensorflow/c/experimental/stream_executor/stream_executor_internal.h"

namespace xpu {

// `stream`: of a device of this plugin.
inline SP_Stream HandleOf(stream_executor::Stream* stream) {
  return static_cast<stream_executor::CStream*>(stream)->Handle();
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_TENSORFLOW_STREAM_H_
