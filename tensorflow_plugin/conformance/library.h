// The library under examination, and TensorFlow's libraries where it needs them.
#ifndef TENSORFLOW_PLUGIN_CONFORMANCE_LIBRARY_H_
#define TENSORFLOW_PLUGIN_CONFORMANCE_LIBRARY_H_

#include <string>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace xpu::conformance {

// Loads the libraries of the TensorFlow package in `folder`. Some plugins need more of TensorFlow than the functions of
// TF_Status, which this program has itself. Returns why that is impossible, or "".
std::string LoadTensorFlow(const std::string& folder);

// SE_InitPlugin of the library at `path`; null, and why in `error`, if it does not load or has none. Libraries of
// TensorFlow that it needs and that are not to be found get stand-ins.
decltype(SE_InitPlugin)* OpenLibrary(const std::string& path, std::string* error);

// After this call TF_NewStatus and its like are those of the loaded library `handle`, if it has them. A plugin may pass
// a status to other functions of TensorFlow.
void UseStatusOf(void* handle);

}  // namespace xpu::conformance

#endif  // TENSORFLOW_PLUGIN_CONFORMANCE_LIBRARY_H_
