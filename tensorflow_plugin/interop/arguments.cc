#include "tensorflow_plugin/interop/arguments.h"

#include "tensorflow_plugin/interop/python_error.h"

namespace xpu::interop {

bool ParseArguments(const char* function, const char* const* names, int count, int positional, PyObject* const* args,
                    Py_ssize_t given, PyObject* keywords, PyObject** values) {
  if (given > positional) {
    PyErr_Format(PyExc_TypeError, "%s() takes %d positional arguments but %zd were given", function, positional, given);
    return false;
  }
  for (Py_ssize_t i = 0; i < given; ++i) values[i] = args[i];
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject* const keyword = PyTuple_GET_ITEM(keywords, k);
    int i = 0;
    while (i < count && PyUnicode_CompareWithASCIIString(keyword, names[i]) != 0) ++i;
    if (i == count) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function, keyword);
      return false;
    }
    if (i < given) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", function, names[i]);
      return false;
    }
    values[i] = args[given + k];
  }
  return true;
}

bool ParseCopy(PyObject* value, Copy* copy) {
  if (value == Py_None) {
    *copy = Copy::kIfNeeded;
  } else if (PyBool_Check(value)) {
    *copy = value == Py_True ? Copy::kAlways : Copy::kNever;
  } else {
    PyErr_Format(PyExc_TypeError, "copy must be None, True or False, got %R", value);
    return false;
  }
  return true;
}

bool ParsePair(PyObject* value, const char* what, long pair[2]) {
  // Members of enumerations are integers here.
  if (PySequence_Check(value) && PySequence_Size(value) == 2) {
    bool integers = true;
    for (int i = 0; i < 2 && integers; ++i) {
      Owned item(PySequence_GetItem(value, i));
      Owned integer(item ? PyNumber_Index(item.get()) : nullptr);
      integers = static_cast<bool>(integer);
      if (integers) pair[i] = PyLong_AsLong(integer.get());
      integers = integers && !PyErr_Occurred();
    }
    if (integers) return true;
  }
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "%s must be None or a pair of integers, got %R", what, value);
  return false;
}

}  // namespace xpu::interop
