// The graphs that a Python function calls, by the kind of its arguments.
//
// TensorFlow finds them anew with each call: it builds types of the arguments, and looks up the graph that it has
// traced for them. Here the kind of the arguments is a text of some bytes, which is compared with those of earlier
// calls. From there to the results no Python runs.
#ifndef TENSORFLOW_PLUGIN_INTEROP_KNOWN_CALLS_H_
#define TENSORFLOW_PLUGIN_INTEROP_KNOWN_CALLS_H_

#include <Python.h>

namespace xpu::interop {

// The functions below are for hooks/functions.py, which says what the arguments mean. All may return null with an
// exception set.

// Watches what a call may depend on besides its arguments: a dict of objects of TensorFlow's, by the names that
// known_calls.cc lists. To be called before the others.
PyObject* Watch(PyObject* objects);

// Makes the call that is known of the function's arguments, and gives its results. It gives `learn` if nothing is known
// of them yet, and the call can be looked at. It gives `leave` if TensorFlow has to make the call.
PyObject* CallKnown(PyObject* function, PyObject* args, PyObject* named, PyObject* learn, PyObject* leave);

// The list of tensors and arrays in such arguments, in the order in which `Learn` counts them. None if there is
// something in them that is TensorFlow's business.
PyObject* TensorsIn(PyObject* args, PyObject* named);

// Has calls with such arguments make the call that is described by a dict, or, None, be TensorFlow's business.
PyObject* Learn(PyObject* function, PyObject* args, PyObject* named, PyObject* description);

// The calls that have been made since it was asked the last time.
PyObject* TakeCount(PyObject* function);

// Three numbers: kinds of arguments that are known by their calls, kinds that are TensorFlow's business, and calls that
// have been made in all.
PyObject* Kinds(PyObject* function);

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_KNOWN_CALLS_H_
