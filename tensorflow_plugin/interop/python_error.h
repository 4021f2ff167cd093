// Failures as Python exceptions. All of this needs the interpreter's lock.
#ifndef TENSORFLOW_PLUGIN_INTEROP_PYTHON_ERROR_H_
#define TENSORFLOW_PLUGIN_INTEROP_PYTHON_ERROR_H_

#include <Python.h>

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "tensorflow_plugin/interop/end_of_process.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::interop {

// Sets the exception: BufferError for what DLPack cannot describe or carry, MemoryError, RuntimeError. Returns -1.
int Raise(const Status& status);
// Sets the exception that TensorFlow raises for this status. Returns -1.
int Raise(const absl::Status& status);

// Runs `f`, which returns false with an exception set if it fails, and lets nothing unwind into the caller.
template <typename F>
bool Guarded(F&& f) noexcept {
  try {
    return f();
  } catch (const abi::__forced_unwind&) {
    AwaitTheEnd();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
  return false;
}

// Gives up the interpreter's lock while in scope, if told to.
class WithoutLock {
 public:
  explicit WithoutLock(bool release = true) : state_(release ? PyEval_SaveThread() : nullptr) {}
  ~WithoutLock() {
    if (state_ != nullptr) UntilTheEnd([this] { PyEval_RestoreThread(state_); });
  }
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  PyThreadState* const state_;
};

// Keeps the exception that is set, if any, from what runs in its scope: deleters of other libraries may be Python.
class KeepError {
 public:
  KeepError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~KeepError() { PyErr_Restore(type_, value_, traceback_); }
  KeepError(const KeepError&) = delete;
  KeepError& operator=(const KeepError&) = delete;

 private:
  PyObject *type_, *value_, *traceback_;
};

// A reference that is given up at the end of the scope.
class Owned {
 public:
  explicit Owned(PyObject* object) : object_(object) {}
  ~Owned() {
    // A thread that the interpreter ends has lost the lock.
    if (object_ != nullptr && PyGILState_Check()) Py_DECREF(object_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* const object_;
};

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_PYTHON_ERROR_H_
