// What the core tells the DLPack exchange (interop/) of its devices: C functions, found with dlsym, since the two are
// separate libraries.
#ifndef TENSORFLOW_PLUGIN_DEVICE_INTEROP_H_
#define TENSORFLOW_PLUGIN_DEVICE_INTEROP_H_

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_status.h"

extern "C" {

// 1 if everything enqueued on the stream has run and no failure waits to be reported.
int XpuCore_StreamIsSettled(SP_Stream stream);

// Blocks until everything enqueued on the stream has run. `status`: the first failure since somebody last asked.
void XpuCore_SettleStream(SP_Stream stream, TF_Status* status);

// The same, and a failure stays for whoever asks next. In a process forked from one that has used the device, where
// nothing more will run, it returns at once.
void XpuCore_WaitForStream(SP_Stream stream);

// Copies `size` bytes of the stream's device to the host, and returns when they are there: what the stream's work that
// may write them has left (xpu::Stream::Read). `status`: the first failure so far that nobody has been told of; what
// was copied is then no result.
void XpuCore_Read(SP_Stream stream, void* host, const void* device, size_t size, TF_Status* status);

// 1 if the host may read and write what lies at this address, 0 if only the device that gave it out can.
int XpuCore_HostCanAddress(const void* address);

// What TensorFlow calls the devices' type.
const char* XpuCore_DeviceType();

// 1 if the devices work on host memory as they do on their own.
int XpuCore_SharesHostMemory();

// To be called before memory of the device is shared with somebody who may write into it: nothing that has been
// computed of what lies there is counted on any more.
void XpuCore_WillWrite(const void* address);

// Calls of functions: direct_call/function_graph.h's ExpectGraph and TakeCall. The latter gives a
// direct_call::DirectCall, the caller's, for a tensorflow::ProcessFunctionLibraryRuntime.
void XpuCore_ExpectGraph(const char* function);
void* XpuCore_TakeCall(const void* library);

}  // extern "C"

#endif  // TENSORFLOW_PLUGIN_DEVICE_INTEROP_H_
