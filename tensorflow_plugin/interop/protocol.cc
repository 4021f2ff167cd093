#include "tensorflow_plugin/interop/protocol.h"

#include <string>
#include <vector>

#include "tensorflow_plugin/interop/arguments.h"
#include "tensorflow_plugin/interop/devices.h"
#include "tensorflow_plugin/interop/eager.h"
#include "tensorflow_plugin/interop/export.h"
#include "tensorflow_plugin/interop/python_error.h"
#include "tensorflow_plugin/interop/types.h"

namespace xpu::interop {
namespace {

using tensorflow::Tensor;

// ---- Capsules. A consumer renames the capsule whose tensor it takes.

template <typename Managed>
struct Capsule;
template <>
struct Capsule<DLManagedTensor> {
  static constexpr char kName[] = "dltensor";
  static constexpr char kUsed[] = "used_dltensor";
};
template <>
struct Capsule<DLManagedTensorVersioned> {
  static constexpr char kName[] = "dltensor_versioned";
  static constexpr char kUsed[] = "used_dltensor_versioned";
};

template <typename Managed>
void DestroyCapsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, Capsule<Managed>::kName)) return;
  const KeepError keep;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Capsule<Managed>::kName));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

template <typename Managed>
PyObject* MakeCapsule(const Tensor& tensor, const tsl::core::RefCounted* owner, DLDevice device, Access access) {
  Managed* managed = nullptr;
  if (access == Access::kShared) WillWrite(tensor.data());
  const Status status = Export(tensor, owner, device, access, &managed);
  if (!status.ok()) {
    Raise(status);
    return nullptr;
  }
  PyObject* const capsule = PyCapsule_New(managed, Capsule<Managed>::kName, DestroyCapsule<Managed>);
  if (capsule == nullptr) managed->deleter(managed);
  return capsule;
}

// ---- Export

struct ExportArguments {
  bool versioned = false;
  bool to_host = false;  // dl_device is the host, and the tensor is elsewhere
  Copy copy = Copy::kIfNeeded;
};

constexpr const char* kDlpackNames[] = {"stream", "max_version", "dl_device", "copy"};

bool ParseExport(PyObject* const values[4], DLDevice device, ExportArguments* out) {
  PyObject *stream = values[0], *max_version = values[1], *dl_device = values[2];
  if (!ParseCopy(values[3], &out->copy)) return false;
  if (max_version != Py_None) {
    long version[2];
    if (!ParsePair(max_version, "max_version", version)) return false;
    out->versioned = version[0] >= 1;
  }
  if (dl_device != Py_None) {
    long wanted[2];
    if (!ParsePair(dl_device, "dl_device", wanted)) return false;
    const bool own = wanted[0] == device.device_type && wanted[1] == device.device_id;
    out->to_host = !own && wanted[0] == kDLCPU && wanted[1] == 0;
    if (!own && !out->to_host) {
      PyErr_Format(PyExc_BufferError, "a tensor on %s cannot be exported to dl_device=(%ld, %ld)",
                   NameOf(device).c_str(), wanted[0], wanted[1]);
      return false;
    }
  }
  // -1 asks not to synchronise; no other number means anything to a device of ours.
  if (stream != Py_None && !(PyLong_Check(stream) && PyLong_AsLong(stream) == -1)) {
    PyErr_Clear();
    PyErr_Format(PyExc_BufferError, "stream must be None or -1 for a tensor on %s, got %R", NameOf(device).c_str(),
                 stream);
    return false;
  }
  return true;
}

// The owner of the exported tensor. It is TensorFlow, whose memory a writing consumer may not share with others, or a
// variable, whose value was asked for by name.
enum class Source { kTensor, kVariable };

PyObject* ExportCapsule(const EagerView& view, const ExportArguments& arguments, Source source) {
  const DLDevice device = arguments.to_host ? kHost : view.place.device;
  const bool scalar = IsSharedScalar(*view.tensor, device);
  const char* obstacle = nullptr;
  if (arguments.to_host) obstacle = "the host cannot address the tensor's memory";
  if (scalar) obstacle = "a scalar is exported as a copy, as TensorFlow shares it";
  if (obstacle != nullptr && arguments.copy == Copy::kNever) {
    PyErr_Format(PyExc_BufferError, "copy=False, but a copy is needed: %s", obstacle);
    return nullptr;
  }
  const bool endangered =
      source == Source::kTensor && arguments.copy == Copy::kIfNeeded && !scalar && !IsExclusive(view);
  Tensor copy;
  const Tensor* exported = view.tensor;
  const tsl::core::RefCounted* owner = view.owner;
  Access access = Access::kShared;
  if (arguments.to_host || arguments.copy == Copy::kAlways || endangered) {
    if (const Status status = CheckType(*view.tensor); !status.ok()) {
      Raise(status);
      return nullptr;
    }
    const bool on_host = device.device_type == kDLCPU;
    if (!(on_host ? CopyToHost(view, &copy) : CopyOnDevice(view.device, *view.tensor, &copy))) return nullptr;
    exported = &copy;
    owner = BufferOf(copy);
    access = Access::kCopied;
  }
  return arguments.versioned ? MakeCapsule<DLManagedTensorVersioned>(*exported, owner, device, access)
                             : MakeCapsule<DLManagedTensor>(*exported, owner, device, access);
}

// TensorFlow's own method, for tensors on devices that only it knows.
PyObject* CallStock(const char* method, PyObject* self, PyObject* const* args, Py_ssize_t given, PyObject* keywords) {
  Owned stock(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)->tp_base), method));
  if (!stock) return nullptr;
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  std::vector<PyObject*> all = {self};
  all.insert(all.end(), args, args + given + named);
  return PyObject_Vectorcall(stock.get(), all.data(), given + 1, keywords);
}

template <Source source>
PyObject* Dlpack(PyObject* self, PyObject* const* args, Py_ssize_t given, PyObject* keywords) {
  PyObject* result = nullptr;
  Guarded([&] {
    PyObject* values[4] = {Py_None, Py_None, Py_None, Py_None};
    if (!ParseArguments("__dlpack__", kDlpackNames, 4, 0, args, given, keywords, values)) return false;
    EagerView view;
    ExportArguments arguments;
    if (!ViewOf(self, &view)) return false;
    if (!view.place.known()) {
      result = CallStock("__dlpack__", self, args, given, keywords);
    } else if (ParseExport(values, view.place.device, &arguments) && Settle(view)) {
      result = ExportCapsule(view, arguments, source);
    }
    return result != nullptr;
  });
  return result;
}

PyObject* DlpackDevice(PyObject* self, PyObject*) {
  PyObject* result = nullptr;
  Guarded([&] {
    EagerView view;
    if (!ViewOf(self, &view)) return false;
    result = view.place.known()
                 ? Py_BuildValue("ii", static_cast<int>(view.place.device.device_type), view.place.device.device_id)
                 : CallStock("__dlpack_device__", self, nullptr, 0, nullptr);
    return result != nullptr;
  });
  return result;
}

// ---- Import

// Takes the tensor out of a capsule; false without an exception if it is not a capsule of this kind.
template <typename Managed>
bool TakeFrom(PyObject* capsule, Foreign* foreign) {
  if (!PyCapsule_IsValid(capsule, Capsule<Managed>::kName)) return false;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Capsule<Managed>::kName));
  if (PyCapsule_SetName(capsule, Capsule<Managed>::kUsed) != 0) return false;
  *foreign = Foreign(managed);
  return true;
}

bool TakeFromCapsule(PyObject* capsule, Foreign* foreign) {
  if (TakeFrom<DLManagedTensorVersioned>(capsule, foreign) || TakeFrom<DLManagedTensor>(capsule, foreign)) return true;
  if (PyErr_Occurred()) return false;
  const char* const name = PyCapsule_GetName(capsule);
  PyErr_Format(PyExc_BufferError,
               "a capsule named '%s' holds no DLPack tensor: expected 'dltensor' or 'dltensor_versioned', which can be "
               "used once",
               name == nullptr ? "" : name);
  return false;
}

// The table of C functions of an object's type; null without an exception if it has none that is understood.
const DLPackExchangeAPI* ExchangeApiOf(PyObject* object) {
  static PyObject* const name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  PyObject* const found = _PyType_Lookup(Py_TYPE(object), name);
  if (found == nullptr || !PyCapsule_IsValid(found, "dlpack_exchange_api")) return nullptr;
  const auto* header = static_cast<const DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(found, "dlpack_exchange_api"));
  while (header != nullptr && header->version.major != DLPACK_MAJOR_VERSION) header = header->prev_api;
  return reinterpret_cast<const DLPackExchangeAPI*>(header);
}

bool IsHostMemory(const Foreign& foreign) {
  return foreign.view() == nullptr || foreign.view()->device.device_type == kDLCPU;
}

// Calls x.__dlpack__, first with all that DLPack 1 knows, then as libraries from before want it.
PyObject* CallDlpack(PyObject* x, PyObject* method, bool to_host) {
  static PyObject* const no_arguments = PyTuple_New(0);
  Owned keywords(Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  if (!keywords) return nullptr;
  if (to_host) {
    Owned host(Py_BuildValue("(ii)", kDLCPU, 0));
    if (!host || PyDict_SetItemString(keywords.get(), "dl_device", host.get()) != 0) return nullptr;
  }
  PyObject* const capsule = PyObject_Call(method, no_arguments, keywords.get());
  if (capsule != nullptr || to_host || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
  PyErr_Clear();
  return PyObject_CallNoArgs(method);
}

// Asks x for its tensor. Memory that is not the host's it is asked to copy, unless it may be an XPU's.
bool TakeFromObject(PyObject* x, bool to_host, Foreign* foreign) {
  Owned method(PyObject_GetAttrString(x, "__dlpack__"));
  if (!method) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
      PyErr_Format(PyExc_TypeError,
                   "from_dlpack() needs an object with __dlpack__ or __dlpack_c_exchange_api__, or a DLPack capsule, "
                   "got %s",
                   Py_TYPE(x)->tp_name);
    }
    return false;
  }
  Owned capsule(CallDlpack(x, method.get(), to_host));
  if (!capsule) return false;
  if (!PyCapsule_CheckExact(capsule.get())) {
    PyErr_Format(PyExc_TypeError, "%s.__dlpack__ returned %R, expected a capsule", Py_TYPE(x)->tp_name, capsule.get());
    return false;
  }
  return TakeFromCapsule(capsule.get(), foreign);
}

bool Take(PyObject* x, Foreign* foreign) {
  if (PyCapsule_CheckExact(x)) return TakeFromCapsule(x, foreign);
  const DLPackExchangeAPI* const api = ExchangeApiOf(x);
  if (api == nullptr) return TakeFromObject(x, /*to_host=*/false, foreign);
  DLManagedTensorVersioned* managed = nullptr;
  if (api->managed_tensor_from_py_object_no_sync(x, &managed) != 0) return false;
  *foreign = Foreign(managed);
  return true;
}

// The name of a device: a string, or what has one (tf.DeviceSpec, tf.config.LogicalDevice). A new reference.
PyObject* DeviceName(PyObject* device) {
  if (PyUnicode_Check(device)) return Py_NewRef(device);
  Owned name(PyObject_HasAttrString(device, "to_string") ? PyObject_CallMethod(device, "to_string", nullptr)
             : PyObject_HasAttrString(device, "name")    ? PyObject_GetAttrString(device, "name")
                                                         : nullptr);
  if (name && PyUnicode_Check(name.get())) return Py_NewRef(name.get());
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "device must be None or a name such as '/xpu:0', got %R", device);
  return nullptr;
}

constexpr const char* kFromDlpackNames[] = {"x", "device", "copy"};

PyObject* FromDlpack(PyObject*, PyObject* const* args, Py_ssize_t given, PyObject* keywords) {
  PyObject* result = nullptr;
  Guarded([&] {
    PyObject* values[3] = {nullptr, Py_None, Py_None};
    if (!ParseArguments("from_dlpack", kFromDlpackNames, 3, 3, args, given, keywords, values)) return false;
    if (values[0] == nullptr) {
      PyErr_SetString(PyExc_TypeError, "from_dlpack() missing 1 required positional argument: 'x'");
      return false;
    }
    Copy copy;
    if (!ParseCopy(values[2], &copy)) return false;
    Owned name(values[1] == Py_None ? nullptr : DeviceName(values[1]));
    if (!name && values[1] != Py_None) return false;
    const char* const device = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
    if (name && device == nullptr) return false;
    Foreign foreign;
    if (!Take(values[0], &foreign)) return false;
    if (!IsHostMemory(foreign) && foreign.view()->device.device_type != kDLExtDev && device != nullptr &&
        copy != Copy::kNever && PyObject_HasAttrString(values[0], "__dlpack__")) {
      foreign.Release();
      if (!TakeFromObject(values[0], /*to_host=*/true, &foreign)) return false;
    }
    result = ToEager(&foreign, copy, device);
    if (result != nullptr) return true;
    const KeepError keep;
    foreign.Release();
    return false;
  });
  return result;
}

}  // namespace

namespace {

template <Source source>
PyMethodDef Method(const char* name, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(Dlpack<source>)), METH_FASTCALL | METH_KEYWORDS,
          doc};
}

}  // namespace

PyMethodDef kDlpackMethod =
    Method<Source::kTensor>("__dlpack__",
                            "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
                            "A capsule with this tensor, as the Python array API of 2024.12 describes it.");

PyMethodDef kDlpackOfVariableMethod =
    Method<Source::kVariable>("dlpack_of_variable", "The same for the value of a variable, whose memory it shares.");

PyMethodDef kDlpackDeviceMethod = {"__dlpack_device__", DlpackDevice, METH_NOARGS,
                                   "__dlpack_device__($self, /)\n--\n\n"
                                   "DLPack's (device type, device id) of this tensor."};

PyMethodDef kFromDlpackFunction = {
    "from_dlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(FromDlpack)), METH_FASTCALL | METH_KEYWORDS,
    "from_dlpack(x, device=None, copy=None)\n--\n\nA tf.Tensor of another library's tensor."};

}  // namespace xpu::interop
