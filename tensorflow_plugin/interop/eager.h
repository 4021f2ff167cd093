// Python's eager tensors. Bound to one minor version of TensorFlow: it uses C++ that TensorFlow keeps to itself. All
// functions need the interpreter's lock, and give it up while they wait.
#ifndef TENSORFLOW_PLUGIN_INTEROP_EAGER_H_
#define TENSORFLOW_PLUGIN_INTEROP_EAGER_H_

#include <Python.h>

#include <string>

#include "dlpack/dlpack.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow_plugin/interop/devices.h"
#include "tensorflow_plugin/interop/handles.h"
#include "tensorflow_plugin/interop/import.h"

namespace xpu::interop {

// Waits until the operation that makes the tensor has run (asynchronous eager execution); not for what it has queued
// on a device. False with an exception set if the object is no eager tensor, that operation failed, or the tensor is
// not in this process's memory.
bool ViewOf(PyObject* object, EagerView* view);
// Waits for the queued work, too, where the consumer cannot do that by itself. BufferError if the tensor's place is not
// known.
bool Settle(const EagerView& view);
inline bool SettledViewOf(PyObject* object, EagerView* view) { return ViewOf(object, view) && Settle(*view); }

// ReadyHandleOf, EagerTensorOf and MirrorOnHost may be called only where tf_internals/eager_tensors.h knows
// TensorFlow's classes.

// The handle of an eager tensor that is ready and in this process's memory; null for anything else, without an
// exception.
tensorflow::TensorHandle* ReadyHandleOf(PyObject* object);

// An eager tensor with what TensorFlow says of its devices.
PyObject* EagerTensorOf(tensorflow::Tensor tensor, tensorflow::Device* device, tensorflow::Device* op_device,
                        tensorflow::Device* resource_device, tensorflow::EagerContext* context);

// True if nothing else in TensorFlow uses the tensor's memory; false also where that is not known. Exports of it do not
// count, if they keep the handle alive and not the buffer.
bool IsExclusive(const EagerView& view);

// Another eager tensor over the same memory, which keeps it from being exclusive.
PyObject* Alias(PyObject* object);

// Gives an XPU's tensor the copy in host memory that TensorFlow would make and keep when it is read. That takes a
// microsecond; TensorFlow waits for all of the device's work and for threads that poll. Leaves other objects alone, and
// tensors that TensorFlow has to read itself. False with an exception set if the device's work failed.
bool MirrorOnHost(PyObject* object);

// Waits until all XPUs have run what has been enqueued on them. False with an exception set if some of it failed.
bool SettleAll();

// A copy in host memory of a tensor on any device.
bool CopyToHost(const EagerView& view, tensorflow::Tensor* copy);
// A copy in the same XPU's memory of a tensor there, made in the order of its compute stream.
bool CopyOnDevice(tensorflow::Device* device, const tensorflow::Tensor& tensor, tensorflow::Tensor* copy);
// Uninitialised memory of a device; false, without an exception, if it has none left.
bool AllocateOnDevice(tensorflow::Device* device, tensorflow::DataType type, const tensorflow::TensorShape& shape,
                      tensorflow::Tensor* out);

enum class Copy { kNever, kIfNeeded, kAlways };

// Makes an eager tensor of a foreign one, on `device` as TensorFlow names it, or, null, where the memory is. On success
// `foreign` has been taken or released; on failure, null with an exception set, it is the caller's still.
PyObject* ToEager(Foreign* foreign, Copy copy, const char* device);

// The device of that name, null with an exception set if there is none. Makes TensorFlow's context if need be.
tensorflow::Device* FindDevice(const char* name);

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_EAGER_H_
