// Arguments of Python calls with the fast calling convention.
#ifndef TENSORFLOW_PLUGIN_INTEROP_ARGUMENTS_H_
#define TENSORFLOW_PLUGIN_INTEROP_ARGUMENTS_H_

#include <Python.h>

#include "tensorflow_plugin/interop/eager.h"

namespace xpu::interop {

// Sorts the arguments of a call by name into `values`, in the order of `names`; those not given stay as they are. The
// first `positional` may be given without a name. False with TypeError set for what does not fit.
bool ParseArguments(const char* function, const char* const* names, int count, int positional, PyObject* const* args,
                    Py_ssize_t given, PyObject* keywords, PyObject** values);

// None, True or False. False with TypeError set for anything else.
bool ParseCopy(PyObject* value, Copy* copy);

// A pair of integers. False with TypeError set, naming `what`, for anything else.
bool ParsePair(PyObject* value, const char* what, long pair[2]);

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_ARGUMENTS_H_
