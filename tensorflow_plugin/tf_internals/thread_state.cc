#include "tensorflow_plugin/tf_internals/thread_state.h"

#include <memory>
#include <string>

namespace xpu::tf_internals {
namespace {

struct Release {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Held = std::unique_ptr<PyObject, Release>;

// The words of Python's exception, which is gone then.
std::string TakeFailure() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Held held_type(type), held_value(value), held_traceback(traceback);
  const Held text(value == nullptr ? nullptr : PyObject_Repr(value));
  const char* const said = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (said == nullptr) PyErr_Clear();
  return said == nullptr ? "it raises something" : std::string("it raises ") + said;
}

// Python's side of the same: it writes the state, and begins and ends tapes.
class Python {
 public:
  // Null with an exception set.
  template <typename... Arguments>
  Held Call(const char* name, Arguments... arguments) const {
    const Held function(module_ ? PyObject_GetAttrString(module_.get(), name) : nullptr);
    return Held(function ? PyObject_CallFunctionObjArgs(function.get(), arguments..., nullptr) : nullptr);
  }

 private:
  const Held module_{PyImport_ImportModule("tensorflow.python.pywrap_tfe")};
};

PyObject* Yes(PyObject*, PyObject*) { Py_RETURN_TRUE; }
PyMethodDef yes = {"yes", Yes, METH_NOARGS, nullptr};

void CheckState(const Python& python, Check& check) {
  // A context of nobody's, and objects that nothing else is.
  const Held context(PyList_New(0)), device_spec(PyUnicode_FromString("the default"));
  const Held device_name(PyUnicode_FromString("/job:localhost")), options(PyList_New(0)), callbacks(PyList_New(0));
  const Held is_eager(PyCFunction_New(&yes, nullptr));  // TensorFlow asks once per thread
  if (!check.Works(context && device_spec && device_name && options && callbacks && is_eager ? "" : TakeFailure())) {
    return;
  }
  const Held state(python.Call("EagerContextThreadLocalData", context.get(), is_eager.get(), device_spec.get()));
  if (!check.Works(state ? "" : TakeFailure())) return;
  const tensorflow::EagerContextThreadLocalData* const seen = StateOfThread(context.get());
  if (!check.Works(seen != nullptr ? "" : TakeFailure())) return;
  const bool written = PyObject_SetAttrString(state.get(), "device_name", device_name.get()) == 0 &&
                       PyObject_SetAttrString(state.get(), "function_call_options", options.get()) == 0 &&
                       PyObject_SetAttrString(state.get(), "op_callbacks", callbacks.get()) == 0;
  if (!check.Works(written ? "" : TakeFailure())) return;
  if (!check.Is("whether a thread runs ops eagerly", seen->is_eager, true) ||
      !check.Is("a thread's device", seen->device_name.get(), device_name.get()) ||
      !check.Is("a thread's options for calls", seen->function_call_options.get(), options.get()) ||
      !check.Is("a thread's callbacks", seen->op_callbacks.get(), callbacks.get())) {
    return;
  }
  if (!check.Works(PyObject_SetAttrString(state.get(), "is_eager", Py_False) == 0 ? "" : TakeFailure())) return;
  check.Is("whether a thread that builds a graph runs ops eagerly", seen->is_eager, false);
}

void CheckTapes(const Python& python, Check& check) {
  const int before = HasNoTape();
  const Held tape(python.Call("TFE_Py_TapeSetNew", Py_False, Py_False));
  const int within = tape ? HasNoTape() : -1;
  const Held removed(tape ? python.Call("TFE_Py_TapeSetRemove", tape.get()) : Held());
  if (!check.Works(removed ? "" : TakeFailure())) return;
  if (!check.Is("whether a tape sees the ops of its thread", within == 0, true)) return;
  check.Is("whether one sees them after its end", HasNoTape() == before, true);
}

}  // namespace

const tensorflow::EagerContextThreadLocalData* StateOfThread(PyObject* context) {
  return tensorflow::GetEagerContextThreadLocalData(context);
}

int HasNoTape() {
  const Held none(TFE_Py_TapeSetIsEmpty());
  return none == nullptr ? -1 : none.get() == Py_True ? 1 : 0;
}

void CheckThreadState(Check& check) {
  const Python python;
  CheckState(python, check);
  if (check.why().empty()) CheckTapes(python, check);
}

}  // namespace xpu::tf_internals
