#include "tensorflow_plugin/interop/python_error.h"

#include <string>

namespace xpu::interop {

int Raise(const Status& status) {
  PyObject* type = PyExc_RuntimeError;
  if (status.code() == Code::kInvalidArgument || status.code() == Code::kUnimplemented) type = PyExc_BufferError;
  if (status.code() == Code::kResourceExhausted) type = PyExc_MemoryError;
  PyErr_SetString(type, status.message().c_str());
  return -1;
}

int Raise(const absl::Status& status) {
  const std::string message(status.message());
  Owned errors(PyImport_ImportModule("tensorflow.python.framework.errors_impl"));
  if (!errors) return -1;
  Owned type(PyObject_CallMethod(errors.get(), "exception_type_from_error_code", "i", static_cast<int>(status.code())));
  if (!type) return -1;
  Owned error(PyObject_CallFunction(type.get(), "OOs", Py_None, Py_None, message.c_str()));
  if (error) PyErr_SetObject(type.get(), error.get());
  return -1;
}

}  // namespace xpu::interop
