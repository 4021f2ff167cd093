// The Python module tensorflow_xpu._interop_2_21, or that of another version: the parts from which
// tensorflow_xpu.dlpack is made. It is linked against one minor version of TensorFlow and refuses to be imported beside
// another.
#include <Python.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tensorflow/c/c_api.h"
#include "tensorflow_plugin/interop/devices.h"
#include "tensorflow_plugin/interop/direct_calls.h"
#include "tensorflow_plugin/interop/eager.h"
#include "tensorflow_plugin/interop/exchange_api.h"
#include "tensorflow_plugin/interop/handles.h"
#include "tensorflow_plugin/interop/known_calls.h"
#include "tensorflow_plugin/interop/protocol.h"
#include "tensorflow_plugin/interop/python_error.h"
#include "tensorflow_plugin/interop/shapes.h"
#include "tensorflow_plugin/tf_internals/eager_tensors.h"
#include "tensorflow_plugin/tf_internals/shape_layout.h"
#include "tensorflow_plugin/tf_internals/table.h"
#include "tensorflow_plugin/tf_internals/thread_state.h"

// TensorFlow's type of eager tensors; null until TensorFlow's Python modules have been imported.
extern "C" PyTypeObject* EagerTensorType;

namespace xpu::interop {
namespace {

#define XPU_TEXT_OF(tokens) #tokens
#define XPU_TEXT(macro) XPU_TEXT_OF(macro)
#define XPU_JOIN_OF(a, b) a##b
#define XPU_JOIN(a, b) XPU_JOIN_OF(a, b)
// The minor version, as files' names have it.
constexpr char kMinor[] = XPU_TEXT(XPU_TENSORFLOW_MINOR);
constexpr char kBuiltFor[] = XPU_TEXT(XPU_TENSORFLOW_VERSION);

// The members of TensorFlow's classes that are looked at are those of one version.
void CheckThisVersion(tf_internals::Check& check) {
  if (check.Is("TensorFlow's version", std::string(TF_Version()), kBuiltFor)) tf_internals::CheckEagerTensors(check);
}

// The hooks of this library, which has a table of its own (tf_internals/rows.cc).
constexpr char kEagerTensors[] = "eager_tensors", kHolders[] = "holders", kShapes[] = "shapes";
struct Hook {
  const char* name;
  void (*check)(tf_internals::Check&);
  const char* needs;  // or null
};
constexpr Hook kHooks[] = {{kEagerTensors, CheckThisVersion, nullptr},
                           {kHolders, tf_internals::CheckHolders, nullptr},
                           {kShapes, tf_internals::CheckShapes, nullptr},
                           {"thread_state", tf_internals::CheckThreadState, kEagerTensors}};
constexpr char kName[] = "_interop_" XPU_TEXT(XPU_TENSORFLOW_MINOR);

constexpr char kDoc[] =
    "DLPack for eager tensors, through TensorFlow's C++.\n\n"
    "exchange_api: the capsule for __dlpack_c_exchange_api__. dlpack, dlpack_of_variable, dlpack_device: method "
    "descriptors for tf.Tensor. from_dlpack, alias, connect_core, check_hook: functions. hooks: the states of this "
    "library's hooks. If eager_tensors is on also mirror_on_host, settle, and for calls expect_call, direct_call, "
    "call, retire, watch, call_known, tensors_in, learn, take_count, kinds.";

PyObject* Connect(PyObject*, PyObject* path) {
  const char* const text = PyUnicode_AsUTF8(path);
  if (text == nullptr) return nullptr;
  const bool connected = ConnectCore(text);
  if (connected) {
    for (const Hook& hook : kHooks) TakeHook(hook.name, tf_internals::StateOf(hook.name).c_str());
  }
  return PyBool_FromLong(connected);
}

PyObject* AliasOf(PyObject*, PyObject* tensor) {
  PyObject* alias = nullptr;
  Guarded([&] { return (alias = Alias(tensor)) != nullptr; });
  return alias;
}

PyMethodDef alias = {"alias", AliasOf, METH_O,
                     "alias(tensor, /)\n--\n\nAnother eager tensor over the same memory: while it lives, both are "
                     "exported by copy."};

PyObject* MirrorOf(PyObject*, PyObject* object) {
  if (!Guarded([&] { return MirrorOnHost(object); })) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef mirror_on_host = {"mirror_on_host", MirrorOf, METH_O,
                              "mirror_on_host(x, /)\n--\n\nCopies an eager tensor of an XPU to where TensorFlow finds "
                              "it when it reads the tensor; anything else is left alone."};

PyObject* SettleOf(PyObject*, PyObject*) {
  if (!Guarded([] { return SettleAll(); })) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef settle = {"settle", SettleOf, METH_NOARGS,
                      "settle()\n--\n\nWaits for the work of all XPUs, and raises what failed of it."};

PyObject* ExpectCallOf(PyObject*, PyObject* name) {
  if (!Guarded([&] { return ExpectCall(name); })) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef expect_call = {"expect_call", ExpectCallOf, METH_O,
                           "expect_call(name, /)\n--\n\nHas this thread's next call of the function looked at."};

PyObject* DirectCallFor(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 3) return PyErr_Format(PyExc_TypeError, "direct_call takes 3 arguments, not %zd", n);
  PyObject* call = nullptr;
  Guarded([&] { return (call = DirectCallOf(args[0], args[1], args[2])) != nullptr; });
  return call;
}

PyMethodDef direct_call = {
    "direct_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(DirectCallFor)), METH_FASTCALL,
    "direct_call(name, inputs, outputs, /)\n--\n\nWhat `call` takes to call the function, of whose call inputs and "
    "outputs are, directly; None if it cannot be called so."};

PyObject* CallOf(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "call takes 2 arguments, not %zd", n);
  PyObject* outputs = nullptr;
  Guarded([&] { return (outputs = Call(args[0], args[1])) != nullptr; });
  return outputs;
}

PyMethodDef call = {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(CallOf)), METH_FASTCALL,
                    "call(direct_call, inputs, /)\n--\n\nThe function's outputs, a list of eager tensors; None if "
                    "TensorFlow has to call it."};

PyObject* RetireOf(PyObject*, PyObject* capsule) {
  if (!Guarded([&] { return Retire(capsule); })) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef retire = {"retire", RetireOf, METH_O,
                      "retire(direct_call, /)\n--\n\nHas the function not be called directly any more."};

// A function of known_calls.h for Python.
template <auto function>
PyObject* OfOne(PyObject*, PyObject* object) {
  PyObject* result = nullptr;
  Guarded([&] { return (result = function(object)) != nullptr; });
  return result;
}

// The same of one that takes so many arguments.
template <auto function, size_t... i>
PyObject* Apply(PyObject* const* args, std::index_sequence<i...>) {
  PyObject* result = nullptr;
  Guarded([&] { return (result = function(args[i]...)) != nullptr; });
  return result;
}
template <auto function, size_t count>
PyObject* OfSeveral(PyObject*, PyObject* const* args, Py_ssize_t given) {
  if (given != count) return PyErr_Format(PyExc_TypeError, "expected %zu arguments, not %zd", count, given);
  return Apply<function>(args, std::make_index_sequence<count>());
}
template <auto function, size_t count>
PyCFunction Fast() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(OfSeveral<function, count>));
}

PyMethodDef known_calls[] = {
    {"watch", OfOne<Watch>, METH_O, "watch(objects, /)\n--\n\nSays what a call may depend on besides its arguments."},
    {"call_known", Fast<CallKnown, 5>(), METH_FASTCALL,
     "call_known(function, args, named, learn, leave, /)\n--\n\nThe results of what is known of a function's "
     "arguments; `learn` if nothing is, `leave` if TensorFlow has to make the call."},
    {"tensors_in", Fast<TensorsIn, 2>(), METH_FASTCALL,
     "tensors_in(args, named, /)\n--\n\nThe tensors in arguments, in the order of `learn`; None if there is something "
     "in them that is TensorFlow's business."},
    {"learn", Fast<Learn, 4>(), METH_FASTCALL,
     "learn(function, args, named, description, /)\n--\n\nKeeps what calls with such arguments run; None: "
     "TensorFlow's business."},
    {"take_count", OfOne<TakeCount>, METH_O,
     "take_count(function, /)\n--\n\nThe calls that have been made since it was asked the last time."},
    {"kinds", OfOne<Kinds>, METH_O,
     "kinds(function, /)\n--\n\nKinds of arguments that are known by what they call, those that are TensorFlow's "
     "business, and calls that have been made."},
};

PyMethodDef connect_core = {"connect_core", Connect, METH_O,
                            "connect_core(path, /)\n--\n\nTells where the plugin's core is loaded; false if it lacks "
                            "the functions for tensors on XPUs."};

// For tests: a check that does not notice a lie is none.
PyObject* CheckOf(PyObject*, PyObject* args) {
  const char* name = nullptr;
  int lie = 0;
  if (!PyArg_ParseTuple(args, "si", &name, &lie)) return nullptr;
  for (const Hook& hook : kHooks) {
    if (std::string(hook.name) != name) continue;
    tf_internals::Check check(lie);
    if (!Guarded([&] { return hook.check(check), true; })) return nullptr;
    return Py_BuildValue("(is)", check.observations(), check.why().c_str());
  }
  return PyErr_Format(PyExc_KeyError, "%s", name);
}

PyMethodDef check_hook = {"check_hook", CheckOf, METH_VARARGS,
                          "check_hook(name, lie, /)\n--\n\nHow many things the check of a hook looks at, and what is "
                          "wrong, if it is lied to about the one with that number, from 1."};

// "2_21" of "2.21.0".
std::string MinorOf(std::string version) {
  const size_t first = version.find('.');
  if (first == std::string::npos) return version;
  version.resize(std::min(version.size(), version.find('.', first + 1)));
  return version.replace(first, 1, "_");
}

bool Matches() {
  const std::string running = TF_Version();
  if (MinorOf(running) != kMinor) {
    PyErr_Format(PyExc_ImportError, "built for TensorFlow %s, but %s is running", kBuiltFor, running.c_str());
    return false;
  }
  if (EagerTensorType == nullptr) {
    PyErr_SetString(PyExc_ImportError, "TensorFlow has no type for eager tensors");
    return false;
  }
  for (const Hook& hook : kHooks) {
    if (hook.needs != nullptr) tf_internals::TurnOffWithout(hook.needs, hook.name);
    if (hook.needs == nullptr || tf_internals::IsOn(hook.needs)) tf_internals::WhyOff(hook.name, hook.check);
  }
  LookInside(tf_internals::IsOn(kEagerTensors), tf_internals::IsOn(kHolders));
  UseShapeLayout(tf_internals::IsOn(kShapes));
  return true;
}

// Adds and gives up a reference.
bool Add(PyObject* module, const char* name, PyObject* value) {
  Owned owned(value);
  return owned && PyModule_AddObjectRef(module, name, owned.get()) == 0;
}

// All that tells of the hooks: it is there whatever their states are.
bool AddHooks(PyObject* module) {
  const Owned states(PyDict_New());
  if (!states) return false;
  for (const Hook& hook : kHooks) {
    const Owned state(PyUnicode_FromString(tf_internals::StateOf(hook.name).c_str()));
    if (!state || PyDict_SetItemString(states.get(), hook.name, state.get()) != 0) return false;
  }
  return Add(module, "hooks", Py_NewRef(states.get())) &&
         Add(module, "check_hook", PyCFunction_New(&check_hook, nullptr)) &&
         Add(module, "connect_core", PyCFunction_New(&connect_core, nullptr));
}

// The part that exchanges tensors.
bool AddDlpack(PyObject* module) {
  void* const api = const_cast<DLPackExchangeAPI*>(ExchangeApi());
  return Add(module, "exchange_api", PyCapsule_New(api, "dlpack_exchange_api", nullptr)) &&
         Add(module, "dlpack", PyDescr_NewMethod(EagerTensorType, &kDlpackMethod)) &&
         Add(module, "dlpack_of_variable", PyDescr_NewMethod(EagerTensorType, &kDlpackOfVariableMethod)) &&
         Add(module, "dlpack_device", PyDescr_NewMethod(EagerTensorType, &kDlpackDeviceMethod)) &&
         Add(module, "from_dlpack", PyCFunction_New(&kFromDlpackFunction, nullptr)) &&
         Add(module, "alias", PyCFunction_New(&alias, nullptr));
}

// The part that looks into eager tensors.
bool AddInsides(PyObject* module) {
  for (PyMethodDef& method : known_calls) {
    if (!Add(module, method.ml_name, PyCFunction_New(&method, nullptr))) return false;
  }
  return Add(module, "mirror_on_host", PyCFunction_New(&mirror_on_host, nullptr)) &&
         Add(module, "settle", PyCFunction_New(&settle, nullptr)) &&
         Add(module, "expect_call", PyCFunction_New(&expect_call, nullptr)) &&
         Add(module, "direct_call", PyCFunction_New(&direct_call, nullptr)) &&
         Add(module, "call", PyCFunction_New(&call, nullptr)) &&
         Add(module, "retire", PyCFunction_New(&retire, nullptr));
}

bool AddAll(PyObject* module) {
  return AddHooks(module) && AddDlpack(module) && (!tf_internals::IsOn(kEagerTensors) || AddInsides(module));
}

}  // namespace
}  // namespace xpu::interop

PyMODINIT_FUNC XPU_JOIN(PyInit__interop_, XPU_TENSORFLOW_MINOR)() {
  using namespace xpu::interop;
  if (!Guarded(Matches)) return nullptr;
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, kName, kDoc, -1, nullptr};
  PyObject* const module = PyModule_Create(&definition);
  if (module == nullptr || AddAll(module)) return module;
  Py_DECREF(module);
  return nullptr;
}
