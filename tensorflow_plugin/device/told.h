// The failure that a copy to the host has told, for a second reader of the same bytes.
//
// A failure is told once. NumPy swallows whatever the buffer of an object raises, and then asks the object for an
// array. It would take for a result what it was told is none. So who answers that second question reads again.
#ifndef TENSORFLOW_PLUGIN_DEVICE_TOLD_H_
#define TENSORFLOW_PLUGIN_DEVICE_TOLD_H_

#include "tensorflow_plugin/primitives/status.h"

namespace xpu {

// All of these are thread-safe.

// A copy of what is at this address of a device to the host has ended so. The last failures are kept, each until the
// same bytes are copied well.
void NoteCopy(const void* device_memory, const Status& status);
// Before a copy to the host: the failure that was kept of these bytes, if this thread reads again. It is forgotten.
Status TellAgain(const void* device_memory);

// While one lives, its thread reads again.
class ReadingAgain {
 public:
  ReadingAgain() { Begin(); }
  ~ReadingAgain() { End(); }
  ReadingAgain(const ReadingAgain&) = delete;
  ReadingAgain& operator=(const ReadingAgain&) = delete;
  static bool Now() { return current_ > 0; }

  static void Begin() { ++current_; }
  static void End() { --current_; }

 private:
  static inline thread_local int current_ = 0;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_TOLD_H_
