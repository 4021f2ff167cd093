// Python's calls of functions, made directly (direct_call/direct_call.h).
#ifndef TENSORFLOW_PLUGIN_INTEROP_DIRECT_CALLS_H_
#define TENSORFLOW_PLUGIN_INTEROP_DIRECT_CALLS_H_

#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow_plugin/direct_call/direct_call.h"

namespace xpu::interop {

// A function that can be called directly. All of it needs the interpreter's lock.
struct Callable {
  // The parts of an eager tensor of a result that are not the tensor.
  struct EagerResult {
    tensorflow::Device *device, *op_device, *resource_device;
  };

  std::string function;
  tensorflow::EagerContext* context;
  std::unique_ptr<direct_call::DirectCall> call;
  std::vector<EagerResult> results;
  // TensorFlow's context has begun anew, or forgotten the function: it is not to be called so any more.
  bool is_retired = false;

  // True if TensorFlow would take its caches for a call just now, and nobody looks at the ops.
  bool MayRun() const { return !is_retired && !context->Executor().Async() && !context->ShouldStoreGraphs(); }
  // Calls it with arguments that lie where they must, and more that nothing reads. Fills in the eager tensors, which
  // are the caller's; false with the exception set that TensorFlow would raise. `arguments` are let go.
  bool Run(std::vector<tensorflow::Tensor> arguments, std::vector<PyObject*>* outputs) const;
};

// True if an argument lies where the function expects it. `device`: null for the host's.
bool LiesAt(const direct_call::DirectCall::Placement& place, tensorflow::DataType type,
            const tensorflow::Device* device, const tensorflow::Device* resource_device);

// The content of a capsule of DirectCallOf. Null with an exception set for another object.
Callable* CallableOf(PyObject* capsule);

// Has this thread's next call of the function, which TensorFlow makes, looked at. False with an exception set for what
// is no name.
bool ExpectCall(PyObject* name);

// Makes the call direct from now on, if it can be: a capsule for `Call`, or None. `inputs` and `outputs`, lists of
// eager tensors (or None for no outputs), are those of the call that has been made. Null with an exception set.
PyObject* DirectCallOf(PyObject* name, PyObject* inputs, PyObject* outputs);

// Calls the function: a list of eager tensors. None if TensorFlow has to call it, because the arguments do not fit the
// optimised function, or somebody looks on. Null with the exception set that TensorFlow would raise.
PyObject* Call(PyObject* capsule, PyObject* inputs);

// Has a capsule's function not be called directly any more. False with an exception set if it is no such capsule.
bool Retire(PyObject* capsule);

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_DIRECT_CALLS_H_
