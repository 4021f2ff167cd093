// Python's calls of functions, made directly (direct_call/direct_call.h).
#ifndef TENSORFLOW_PLUGIN_INTEROP_DIRECT_CALLS_H_
#define TENSORFLOW_PLUGIN_INTEROP_DIRECT_CALLS_H_

#include <Python.h>

namespace xpu::interop {

// Has this thread's next call of the function, which TensorFlow makes, looked at. False with an exception set for what
// is no name.
bool ExpectCall(PyObject* name);

// Makes the call direct from now on, if it can be: a capsule for `Call`, or None. `inputs` and `outputs`, lists of
// eager tensors (or None for no outputs), are those of the call that has been made. Null with an exception set.
PyObject* DirectCallOf(PyObject* name, PyObject* inputs, PyObject* outputs);

// Calls the function: a list of eager tensors. None if TensorFlow has to call it, because the arguments do not fit the
// optimised function, or somebody looks on. Null with the exception set that TensorFlow would raise.
PyObject* Call(PyObject* capsule, PyObject* inputs);

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_DIRECT_CALLS_H_
