// The core's answers to the DLPack exchange (interop/) about its devices. They are C functions, found with dlsym, since
// the two are separate libraries. `release.h` defines XPU_RELEASE: the name of a symbol of the library that all cores
// share. Cores and the interop module look for it. Those of another release do not find it, and say so before they meet
// objects that they do not know.
#ifndef TENSORFLOW_PLUGIN_DEVICE_INTEROP_H_
#define TENSORFLOW_PLUGIN_DEVICE_INTEROP_H_

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow_plugin/device/release.h"

extern "C" {

// Its name alone says the release. It is empty.
extern const char XPU_RELEASE[];

// 1 if everything enqueued on the stream has run and no failure waits to be reported.
int XpuCore_StreamIsSettled(SP_Stream stream);

// Blocks until everything enqueued on the stream has run. `status`: the first failure since somebody last asked.
void XpuCore_SettleStream(SP_Stream stream, TF_Status* status);

// The same, and a failure stays for the next caller that asks. In a process forked from one that has used the device,
// where nothing more will run, it returns at once.
void XpuCore_WaitForStream(SP_Stream stream);

// Copies `size` bytes of the stream's device to the host. It returns when the stream's commands that may write them
// have run and the bytes are there (xpu::Stream::Read). `status`: the first failure so far that nobody has been told
// of; what was copied is then no result.
void XpuCore_Read(SP_Stream stream, void* host, const void* device, size_t size, TF_Status* status);

// 1 if the host may read and write what lies at this address, 0 if only the device that gave it out can.
int XpuCore_HostCanAddress(const void* address);

// TensorFlow's name of the devices' type.
const char* XpuCore_DeviceType();

// 1 if the devices work on host memory as they do on their own.
int XpuCore_SharesHostMemory();

// Call this before device memory is shared with somebody who may write into it. Nothing that was computed from its
// contents is reused after that.
void XpuCore_WillWrite(const void* address);

// The state of a hook that is not the core's (tf_internals/table.h).
void XpuCore_TakeHook(const char* name, const char* state);

// Calls of functions: direct_call/function_graph.h's ExpectGraph and TakeCall. The latter gives a
// direct_call::DirectCall, the caller's, for a tensorflow::ProcessFunctionLibraryRuntime.
void XpuCore_ExpectGraph(const char* function);
void* XpuCore_TakeCall(const void* library);

}  // extern "C"

#endif  // TENSORFLOW_PLUGIN_DEVICE_INTEROP_H_
