// The failure that a copy to the host has told, for a second reader of the same bytes.
//
// A failure is told once. NumPy swallows whatever the buffer of an object raises, and then asks the object for an
// array. It would take for a result what it was told is none. So who answers that second question asks here.
#ifndef TENSORFLOW_PLUGIN_DEVICE_TOLD_H_
#define TENSORFLOW_PLUGIN_DEVICE_TOLD_H_

#include "tensorflow_plugin/primitives/status.h"

namespace xpu {

// All of these are thread-safe.

// A copy of what is at this address of a device to the host has ended so. The last failure is kept, until the same
// bytes are copied well.
void NoteCopy(const void* device_memory, const Status& status);
// The failure that was kept, if it is of this address; it is forgotten then.
Status TakeTold(const void* device_memory);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_TOLD_H_
