// Failures of commands that nobody has been told of when it is too late for an exception: one line on stderr each.
#ifndef TENSORFLOW_PLUGIN_DEVICE_UNTOLD_H_
#define TENSORFLOW_PLUGIN_DEVICE_UNTOLD_H_

#include "tensorflow_plugin/device/stream_handle.h"

namespace xpu {

// When the process ends, the failures of this stream that nobody was told of are; until it is forgotten.
void TellWhenTheProcessEnds(SP_Stream_st* stream);
// Before the stream goes: waits for nothing.
void ForgetUntold(SP_Stream_st* stream);

// "tensorflow_xpu: what: why" on stderr. Takes the failure: nobody else is told.
void TellOnStderr(const char* what, const Status& failure);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_UNTOLD_H_
