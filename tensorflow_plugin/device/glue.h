// Between the C API's conventions and ours: statuses, exceptions, structs that grow from version to version.
#ifndef TENSORFLOW_PLUGIN_DEVICE_GLUE_H_
#define TENSORFLOW_PLUGIN_DEVICE_GLUE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "tensorflow/c/tf_status.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu {

inline void SetStatus(TF_Status* to, const Status& from) {
  if (from.ok() && TF_GetCode(to) == TF_OK) return;
  TF_SetStatus(to, static_cast<TF_Code>(from.code()), from.message().c_str());
}

// Runs `f`; what it throws goes to `tell`, as a code and a message: no exception may unwind into TensorFlow.
template <typename F, typename Tell>
void Catching(F&& f, Tell&& tell) noexcept {
  try {
    f();
  } catch (const std::bad_alloc&) {
    tell(TF_RESOURCE_EXHAUSTED, "the XPU plugin ran out of host memory");
  } catch (const std::exception& e) {
    tell(TF_INTERNAL, e.what());
  } catch (...) {
    tell(TF_INTERNAL, "unknown exception in the XPU plugin");
  }
}

// Runs `f`, a Status(), and reports what it returns or throws.
template <typename F>
void Guard(TF_Status* status, F&& f) noexcept {
  Catching([&] { SetStatus(status, f()); },
           [&](TF_Code code, const char* message) { TF_SetStatus(status, code, message); });
}

// The same for callbacks that return a value and have no status: `failed` if `f` throws. Why is a line on stderr, the
// first time that this callback fails: TensorFlow may call it thousands of times in a second.
template <typename T, typename F>
T GuardValue(const char* callback, T failed, F&& f) noexcept {
  static std::atomic<bool> told{false};  // of this callback: each has an F of its own
  T value = failed;
  Catching([&] { value = f(); },
           [&](TF_Code, const char* message) {
             if (!told.exchange(true)) std::fprintf(stderr, "tensorflow_xpu: %s failed: %s\n", callback, message);
           });
  return value;
}

// Fills a struct of the C API that TensorFlow owns. Its struct_size says how much of it the running TensorFlow knows.
// That may be less than this plugin was built with; nothing beyond it is written. Left behind is our own size.
template <typename Struct>
void Fill(Struct* to, Struct from, size_t own_size) {
  const size_t known = std::min(to->struct_size, own_size);
  from.struct_size = own_size;
  std::memcpy(static_cast<void*>(to), &from, known);
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_GLUE_H_
