#include "tensorflow_plugin/interop/known_calls.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/profiler/lib/traceme.h"
#include "tensorflow_plugin/interop/call_arguments.h"
#include "tensorflow_plugin/interop/devices.h"
#include "tensorflow_plugin/interop/direct_calls.h"
#include "tensorflow_plugin/interop/eager.h"
#include "tensorflow_plugin/interop/python_error.h"
#include "tensorflow_plugin/tf_internals/eager_tensors.h"
#include "tensorflow_plugin/tf_internals/thread_state.h"

namespace xpu::interop {
namespace {

namespace tf = tensorflow;
using direct_call::DirectCall;

// Kinds of arguments that a function keeps: more come from a program whose shapes change with each call.
constexpr size_t kMostKinds = 64;
// The largest array whose memory on the device is kept.
constexpr Py_ssize_t kMostKeptBytes = 64 << 10;
// Where a function keeps its table.
constexpr char kTableName[] = "_xpu_known_calls";

// A reference that may be empty, and may be moved.
class Reference {
 public:
  Reference() = default;
  explicit Reference(PyObject* borrowed) : object_(Py_XNewRef(borrowed)) {}
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Reference() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }

 private:
  PyObject* object_ = nullptr;
};

// The objects that a call may depend on besides its arguments.
struct Watched {
  ArgumentTypes types;
  PyObject* variables_of_run_eagerly;  // the module's
  PyObject* graph_stack;               // of this thread's default graphs
  PyObject* variables_of_saving;       // the module's, which has other objects after a reload
  PyObject* cancellation;              // tells of a manager of cancellations
  PyObject* next;                      // what makes the result of a tensor
  PyObject* fail;                      // raises an error in TensorFlow's words, for a graph
  PyObject* tensor_of;                 // makes an eager tensor of an array, on a device
};
Watched watched;

// Names of attributes.
struct Names {
  PyObject* table = PyUnicode_InternFromString(kTableName);
  PyObject* run_eagerly = PyUnicode_InternFromString("RUN_FUNCTIONS_EAGERLY");
  PyObject* stack = PyUnicode_InternFromString("stack");
  PyObject* global_default_graph = PyUnicode_InternFromString("_global_default_graph");
  PyObject* strategies = PyUnicode_InternFromString("_distribution_strategy_stack");
  PyObject* save_context = PyUnicode_InternFromString("_save_context");
  PyObject* in_save_context = PyUnicode_InternFromString("_in_save_context");
  PyObject* function_cache = PyUnicode_InternFromString("_function_cache");
  PyObject* captured_inputs = PyUnicode_InternFromString("_captured_inputs");
  PyObject* bound_context = PyUnicode_InternFromString("_bound_context");
  PyObject* executor_type = PyUnicode_InternFromString("_executor_type");
  PyObject* config = PyUnicode_InternFromString("_config_proto_serialized");
};
const Names& names() {
  static const Names& all = *new Names;
  return all;
}

// The call that arguments of one kind make a function do.
struct KnownCall {
  std::string kind;
  Reference capsule;                   // empty: the call is TensorFlow's business
  const Callable* callable = nullptr;  // the capsule's
  std::vector<int> order;              // by input of the graph: which of the tensors in the arguments it is
  std::vector<tf::Tensor> captures;    // the inputs after these
  // It is called as long as these are what they were.
  Reference concrete, captured_inputs, graph, context, executor_type, config;
  Reference captured_tensors;
  // By input of the graph: the memory on the device that small arrays were copied to, for the next call. Nobody else
  // refers to it between calls.
  mutable std::vector<tf::Tensor> kept;
  Reference result;  // `next`: a tensor; a tuple of names: a dict; otherwise what makes it of an iterator of tensors

  int Visit(visitproc visit, void* arg) const {
    for (const Reference* reference :
         {&capsule, &concrete, &captured_inputs, &graph, &context, &captured_tensors, &result}) {
      Py_VISIT(reference->get());
    }
    return 0;
  }
};

// The known calls of a function: a Python object among the function's attributes.
struct Table {
  PyObject_HEAD;
  const PyObject* owner;  // somebody may have copied its attributes
  Py_ssize_t num_graphs;  // that the function had then; with a new one all is looked at again
  int64_t pending, calls;
  std::vector<std::shared_ptr<const KnownCall>>* known;
};

PyObject* New(PyTypeObject* type) {
  Table* const table = PyObject_GC_New(Table, type);
  if (table == nullptr) return nullptr;
  table->owner = nullptr;
  table->num_graphs = 0;
  table->pending = table->calls = 0;
  table->known = new std::vector<std::shared_ptr<const KnownCall>>;
  PyObject_GC_Track(table);
  return reinterpret_cast<PyObject*>(table);
}

// Empties a table before its calls go: they may ask for it.
void Clear(Table* table) {
  std::vector<std::shared_ptr<const KnownCall>> calls;
  calls.swap(*table->known);
}

void Delete(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Table* const table = reinterpret_cast<Table*>(self);
  const KeepError keep;
  Clear(table);
  delete table->known;
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (const auto& call : *reinterpret_cast<Table*>(self)->known) {
    // A call that is under way holds it as well.
    if (call.use_count() > 1) continue;
    if (const int result = call->Visit(visit, arg); result != 0) return result;
  }
  return 0;
}

int ClearObject(PyObject* self) {
  Clear(reinterpret_cast<Table*>(self));
  return 0;
}

// A copy of a function, also in another process, begins with nothing.
PyObject* CopyOf(PyObject*, PyObject*) { Py_RETURN_NONE; }
PyObject* Reduced(PyObject*, PyObject*) {
  return Py_BuildValue("(O())", reinterpret_cast<PyObject*>(Py_TYPE(Py_None)));
}

PyTypeObject* TableType() {
  static PyMethodDef methods[] = {{"__copy__", CopyOf, METH_NOARGS, nullptr},
                                  {"__deepcopy__", CopyOf, METH_O, nullptr},
                                  {"__reduce__", Reduced, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(Delete)},
                                {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(ClearObject)},
                                {Py_tp_methods, methods},
                                {0, nullptr}};
  static PyType_Spec spec = {"tensorflow_xpu.KnownCalls", sizeof(Table), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

// How many graphs the function has traced; 0 for one that is a graph. -1 with an exception set.
Py_ssize_t NumGraphs(PyObject* attributes) {
  PyObject* const cache = PyDict_GetItemWithError(attributes, names().function_cache);
  if (cache == nullptr) return PyErr_Occurred() ? -1 : 0;
  return PyObject_Size(cache);
}

// The function's table, made if need be, and up to date; borrowed from the function. Null with an exception set.
Table* TableOf(PyObject* function) {
  const Owned attributes(PyObject_GenericGetDict(function, nullptr));
  if (!attributes) return nullptr;
  PyObject* found = PyDict_GetItemWithError(attributes.get(), names().table);
  if (found == nullptr && PyErr_Occurred()) return nullptr;
  if (found == nullptr || Py_TYPE(found) != TableType() || reinterpret_cast<Table*>(found)->owner != function) {
    if (TableType() == nullptr) return nullptr;
    const Owned made(New(TableType()));
    if (!made || PyDict_SetItem(attributes.get(), names().table, made.get()) != 0) return nullptr;
    found = made.get();  // which the function has now
    reinterpret_cast<Table*>(found)->owner = function;
  }
  Table* const table = reinterpret_cast<Table*>(found);
  const Py_ssize_t graphs = NumGraphs(attributes.get());
  if (graphs < 0) return nullptr;
  if (graphs != table->num_graphs) {
    Clear(table);
    table->num_graphs = graphs;
  }
  return table;
}

// 1 if an attribute is false, otherwise 0, or -1 with an exception set.
int IsFalse(PyObject* object, PyObject* name) {
  const Owned value(PyObject_GetAttr(object, name));
  return value ? PyObject_Not(value.get()) : -1;
}

// 1 if this thread has no default graph, and no strategy in scope; as above.
int HasNoStrategy() {
  const int is_empty = IsFalse(watched.graph_stack, names().stack);
  if (is_empty != 1) return is_empty;
  const Owned graph(PyObject_GetAttr(watched.graph_stack, names().global_default_graph));
  if (!graph) return -1;
  return graph.get() == Py_None ? 1 : IsFalse(graph.get(), names().strategies);
}

// 1 if nothing makes TensorFlow do more than call a graph, or call another one; as above.
int IsPlain(const tf::EagerContextThreadLocalData& here) {
  if (!here.is_eager || here.function_call_options == nullptr || tf::profiler::TraceMe::Active()) return 0;
  if (here.op_callbacks != nullptr && PyObject_IsTrue(here.op_callbacks.get()) != 0) return 0;
  if (const int no_tape = tf_internals::HasNoTape(); no_tape != 1) return no_tape;
  PyObject* const eagerly = PyDict_GetItemWithError(watched.variables_of_run_eagerly, names().run_eagerly);
  if (eagerly != Py_False) return PyErr_Occurred() ? -1 : 0;
  const Owned cancellation(PyObject_CallNoArgs(watched.cancellation));
  if (!cancellation) return -1;
  if (cancellation.get() != Py_None) return 0;
  const Owned saving(Py_XNewRef(PyDict_GetItemWithError(watched.variables_of_saving, names().save_context)));
  if (!saving) return PyErr_Occurred() ? -1 : 0;
  const int not_saving = IsFalse(saving.get(), names().in_save_context);
  return not_saving == 1 ? HasNoStrategy() : not_saving;
}

bool IsSame(PyObject* object, PyObject* name, const Reference& before) {
  const Owned now(PyObject_GetAttr(object, name));
  if (!now) PyErr_Clear();
  return now.get() == before.get();
}

// Each thread has its own, which may be equal.
bool IsEqual(PyObject* object, PyObject* name, const Reference& before) {
  const Owned now(PyObject_GetAttr(object, name));
  if (!now) PyErr_Clear();
  if (now.get() == before.get()) return true;
  if (!now || before.get() == nullptr) return false;
  if (PyBytes_CheckExact(now.get()) && PyBytes_CheckExact(before.get())) {
    const Py_ssize_t size = PyBytes_GET_SIZE(now.get());
    return size == PyBytes_GET_SIZE(before.get()) &&
           std::equal(PyBytes_AS_STRING(now.get()), PyBytes_AS_STRING(now.get()) + size,
                      PyBytes_AS_STRING(before.get()));
  }
  const int equal = PyObject_RichCompareBool(now.get(), before.get(), Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

bool IsCurrent(const KnownCall& call, PyObject* context) {
  return !call.callable->is_retired && call.context.get() == context &&
         IsSame(call.concrete.get(), names().captured_inputs, call.captured_inputs) &&
         IsSame(call.graph.get(), names().bound_context, call.context);
}

// Makes a tensor of an array where the graph takes it, as TensorFlow does: of a copy, since the array is its owner's to
// write. False if that is not possible, or with an exception set. `kept`: of an earlier call, or empty.
bool MakeTensor(const DirectCall::Placement& place, PyObject* device_name, tf::Tensor* kept,
                CallArguments::Leaf* leaf) {
  const bool on_host = place.in_host_memory || place.device == nullptr;
  tf::Tensor tensor;
  bool is_free = on_host;
  // Enqueued work may still use the memory, whether it was kept or another tensor had it.
  const auto is_settled = [&] {
    const TensorLocation location = PlaceOf(place.device, tf::DMAHelper::base(&tensor));
    return location.must_wait() && IsSettled(location.stream);
  };
  if (on_host) {
    tensor = tf::Tensor(leaf->type, leaf->shape());
    is_free = tensor.IsInitialized();
  } else if (kept->RefCountIsOne()) {
    tensor = *kept;
    is_free = is_settled();
  }
  if (!is_free && !on_host && IsXpu(*place.device) &&
      AllocateOnDevice(place.device, leaf->type, leaf->shape(), &tensor)) {
    is_free = is_settled();
    if (is_free && leaf->buffer.len > 0 && leaf->buffer.len <= kMostKeptBytes) *kept = tensor;
  }
  if (is_free && static_cast<Py_ssize_t>(tensor.TotalBytes()) == leaf->buffer.len) {
    if (leaf->buffer.len > 0) std::memcpy(tf::DMAHelper::base(&tensor), leaf->buffer.buf, leaf->buffer.len);
    leaf->tensor = std::move(tensor);
    leaf->device = on_host ? nullptr : place.device;
    return true;
  }
  const Owned made(PyObject_CallFunctionObjArgs(watched.tensor_of, leaf->object,
                                                device_name == nullptr ? Py_None : device_name, nullptr));
  tf::TensorHandle* const handle = made ? ReadyHandleOf(made.get()) : nullptr;
  const tf::Tensor* seen = nullptr;
  if (handle == nullptr || !handle->Tensor(&seen).ok()) return false;
  leaf->tensor = *seen;
  leaf->device = handle->device();
  return true;
}

// The tensors in the arguments, as the graph takes them; false if one of them lies elsewhere, or with an exception set.
bool Inputs(const KnownCall& call, PyObject* device_name, CallArguments* arguments, std::vector<tf::Tensor>* inputs) {
  const std::vector<DirectCall::Placement>& places = call.callable->call->arguments();
  inputs->reserve(call.order.size() + call.captures.size());
  for (size_t i = 0; i < call.order.size(); ++i) {
    CallArguments::Leaf& leaf = arguments->leaves()[call.order[i]];
    const DirectCall::Placement place = i < places.size() ? places[i] : DirectCall::Placement();
    if (leaf.is_array && !MakeTensor(place, device_name, &call.kept[i], &leaf)) return false;
    if (!LiesAt(place, leaf.type, leaf.device, leaf.resource_device)) return false;
    inputs->push_back(leaf.tensor);
  }
  inputs->insert(inputs->end(), call.captures.begin(), call.captures.end());
  return true;
}

// After a call: memory that others have taken for good, as a variable does, is theirs alone.
void LetGo(const KnownCall& call, CallArguments* arguments) {
  for (size_t i = 0; i < call.order.size(); ++i) {
    tf::Tensor& kept = call.kept[i];
    if (!kept.IsInitialized()) continue;
    arguments->leaves()[call.order[i]].tensor = tf::Tensor();
    if (!kept.RefCountIsOne()) kept = tf::Tensor();
  }
}

// Takes the outputs.
PyObject* ResultOf(const KnownCall& call, std::vector<PyObject*>* outputs) {
  PyObject* const how = call.result.get();
  if (how == watched.next && outputs->size() == 1) return (*outputs)[0];
  const bool is_dict = PyTuple_CheckExact(how);
  const Owned all(is_dict ? PyDict_New() : PyTuple_New(outputs->size()));
  bool made = static_cast<bool>(all);
  for (size_t i = 0; i < outputs->size(); ++i) {
    if (made && !is_dict) {
      PyTuple_SET_ITEM(all.get(), i, (*outputs)[i]);
      continue;
    }
    made = made && PyDict_SetItem(all.get(), PyTuple_GET_ITEM(how, i), (*outputs)[i]) == 0;
    Py_DECREF((*outputs)[i]);
  }
  if (!made) return nullptr;
  if (is_dict) return Py_NewRef(all.get());
  const Owned iterator(PyObject_GetIter(all.get()));
  return iterator ? PyObject_CallOneArg(how, iterator.get()) : nullptr;
}

// Words the error that is set as TensorFlow does for the graph.
void Fail(const KnownCall& call) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Owned held_type(type), held_value(value), held_traceback(traceback);
  const Owned nothing(PyObject_CallFunctionObjArgs(watched.fail, call.graph.get(), value, nullptr));
}

// The device on which ops run by default is part of a function's kinds of arguments.
void AppendDevice(PyObject* device_name, std::string* kind) {
  if (device_name == nullptr || device_name == Py_None) return;
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(device_name, &size);
  if (text == nullptr) PyErr_Clear();
  kind->push_back('@');
  kind->append(text == nullptr ? "?" : text, text == nullptr ? 1 : size);
}

const std::shared_ptr<const KnownCall>* Find(const Table& table, absl::string_view kind) {
  for (const auto& call : *table.known) {
    if (call->kind == kind) return &call;
  }
  return nullptr;
}

void Forget(Table* table, const KnownCall* call) {
  std::shared_ptr<const KnownCall> gone;  // what goes with it may ask for the table
  const auto found = std::find_if(table->known->begin(), table->known->end(),
                                  [call](const auto& known) { return known.get() == call; });
  if (found == table->known->end()) return;
  gone = *found;
  table->known->erase(found);
}

}  // namespace

PyObject* Watch(PyObject* objects) {
  if (!PyDict_Check(objects)) return PyErr_Format(PyExc_TypeError, "watch takes a dict, not %R", objects);
  PyObject *array = nullptr, *iterator = nullptr;
  Watched found;
  const std::pair<const char*, PyObject**> all[] = {{"array", &array},
                                                    {"iterator", &iterator},
                                                    {"look_at_iterator", &found.types.look_at_iterator},
                                                    {"run_eagerly", &found.variables_of_run_eagerly},
                                                    {"graph_stack", &found.graph_stack},
                                                    {"saving", &found.variables_of_saving},
                                                    {"cancellation", &found.cancellation},
                                                    {"next", &found.next},
                                                    {"fail", &found.fail},
                                                    {"tensor_of", &found.tensor_of}};
  for (const auto& [name, place] : all) {
    PyObject* const object = PyDict_GetItemString(objects, name);
    if (object == nullptr) return PyErr_Format(PyExc_KeyError, "%s", name);
    *place = object;
  }
  if (!PyType_Check(array) || !PyType_Check(iterator) || !PyDict_Check(found.variables_of_run_eagerly) ||
      !PyDict_Check(found.variables_of_saving)) {
    return PyErr_Format(PyExc_TypeError, "watch takes other objects");
  }
  found.types.array = reinterpret_cast<PyTypeObject*>(array);
  found.types.iterator = reinterpret_cast<PyTypeObject*>(iterator);
  for (const auto& [name, place] : all) Py_INCREF(*place);  // for good
  watched = found;
  Py_RETURN_NONE;
}

PyObject* CallKnown(PyObject* function, PyObject* args, PyObject* named, PyObject* learn, PyObject* leave) {
  const Owned context(GetPyEagerContext());
  if (!context) {
    PyErr_Clear();  // there is none yet
    return Py_NewRef(leave);
  }
  const tf::EagerContextThreadLocalData* const here = tf_internals::StateOfThread(context.get());
  if (here == nullptr) {
    PyErr_Clear();
    return Py_NewRef(leave);
  }
  const int is_plain = IsPlain(*here);
  if (is_plain != 1) return is_plain < 0 ? nullptr : Py_NewRef(leave);
  CallArguments arguments;
  if (!arguments.Take(watched.types, args, named)) return PyErr_Occurred() ? nullptr : Py_NewRef(leave);
  Table* const table = TableOf(function);
  if (table == nullptr) return nullptr;
  PyObject* const device_name = here->device_name.get();
  const std::shared_ptr<const KnownCall>* found = nullptr;
  if (device_name == nullptr || device_name == Py_None) {
    found = Find(*table, arguments.kind());
  } else {
    std::string kind(arguments.kind());
    AppendDevice(device_name, &kind);
    found = Find(*table, kind);
  }
  if (found == nullptr) return Py_NewRef(table->known->size() < kMostKinds ? learn : leave);
  const std::shared_ptr<const KnownCall> call = *found;  // also while the lock is somebody else's
  if (call->callable == nullptr) return Py_NewRef(leave);
  if (!IsCurrent(*call, context.get())) {
    Forget(table, call.get());
    return Py_NewRef(learn);
  }
  PyObject* const options = here->function_call_options.get();
  if (!call->callable->MayRun() || !IsEqual(options, names().config, call->config) ||
      !IsEqual(options, names().executor_type, call->executor_type)) {
    return Py_NewRef(leave);
  }
  std::vector<tf::Tensor> inputs;
  if (!Inputs(*call, device_name, &arguments, &inputs)) return PyErr_Occurred() ? nullptr : Py_NewRef(leave);
  ++table->pending;
  ++table->calls;
  std::vector<PyObject*> outputs;
  if (!call->callable->Run(std::move(inputs), &outputs)) {
    Fail(*call);
    return nullptr;
  }
  LetGo(*call, &arguments);
  return ResultOf(*call, &outputs);
}

PyObject* TensorsIn(PyObject* args, PyObject* named) {
  CallArguments arguments;
  if (!arguments.Take(watched.types, args, named)) {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
  }
  const Owned list(PyList_New(0));
  for (const CallArguments::Leaf& leaf : arguments.leaves()) {
    if (!list || PyList_Append(list.get(), leaf.object) != 0) return nullptr;
  }
  return Py_XNewRef(list.get());
}

namespace {

// Fills in what a dict says of a call; false with an exception set, or if it cannot be made so.
bool Describe(PyObject* description, size_t num_leaves, KnownCall* call) {
  const auto entry = [description](const char* name) { return PyDict_GetItemString(description, name); };
  PyObject* const capsule = entry("call");
  PyObject* const order = entry("order");
  PyObject* const tensors = entry("captured_tensors");
  if (capsule == nullptr || order == nullptr || tensors == nullptr || !PyList_Check(order) || !PyList_Check(tensors)) {
    PyErr_SetString(PyExc_TypeError, "a call is described otherwise");
    return false;
  }
  const Callable* const callable = CallableOf(capsule);
  if (callable == nullptr) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order); ++i) {
    const long number = PyLong_AsLong(PyList_GET_ITEM(order, i));
    if (number < 0 || static_cast<size_t>(number) >= num_leaves) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "there is no such argument");
      return false;
    }
    call->order.push_back(static_cast<int>(number));
  }
  call->kept.resize(call->order.size());
  const auto& places = callable->call->arguments();
  if (call->order.size() + PyList_GET_SIZE(tensors) < places.size()) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i) {
    tf::TensorHandle* const handle = ReadyHandleOf(PyList_GET_ITEM(tensors, i));
    const tf::Tensor* tensor = nullptr;
    if (handle == nullptr || !handle->Tensor(&tensor).ok()) return false;
    const size_t place = call->order.size() + i;
    if (place < places.size() && !LiesAt(places[place], handle->dtype, handle->device(), handle->resource_device())) {
      return false;
    }
    call->captures.push_back(*tensor);
  }
  call->callable = callable;
  call->capsule = Reference(capsule);
  call->captured_tensors = Reference(tensors);
  const std::pair<const char*, Reference*> references[] = {
      {"concrete", &call->concrete}, {"captured", &call->captured_inputs},    {"graph", &call->graph},
      {"context", &call->context},   {"executor_type", &call->executor_type}, {"config", &call->config},
      {"result", &call->result}};
  for (const auto& [name, reference] : references) {
    PyObject* const object = entry(name);
    if (object == nullptr) {
      PyErr_Format(PyExc_KeyError, "%s", name);
      return false;
    }
    *reference = Reference(object);
  }
  return true;
}

}  // namespace

PyObject* Learn(PyObject* function, PyObject* args, PyObject* named, PyObject* description) {
  Table* const table = TableOf(function);
  if (table == nullptr) return nullptr;
  CallArguments arguments;
  if (!arguments.Take(watched.types, args, named)) {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
  }
  const Owned context(GetPyEagerContext());
  if (!context) return nullptr;
  const tf::EagerContextThreadLocalData* const here = tf_internals::StateOfThread(context.get());
  if (here == nullptr) return nullptr;
  auto call = std::make_shared<KnownCall>();
  call->kind = std::string(arguments.kind());
  AppendDevice(here->device_name.get(), &call->kind);
  if (description != Py_None && !Describe(description, arguments.leaves().size(), call.get())) {
    if (PyErr_Occurred()) return nullptr;
    call->callable = nullptr;
  }
  // Another thread may have been quicker.
  if (Find(*table, call->kind) == nullptr && table->known->size() < kMostKinds) {
    table->known->push_back(std::move(call));
  }
  Py_RETURN_NONE;
}

PyObject* TakeCount(PyObject* function) {
  Table* const table = TableOf(function);
  return table == nullptr ? nullptr : PyLong_FromLongLong(std::exchange(table->pending, 0));
}

PyObject* Kinds(PyObject* function) {
  Table* const table = TableOf(function);
  if (table == nullptr) return nullptr;
  const auto is_found = [](const auto& call) { return call->callable != nullptr; };
  const long long found = std::count_if(table->known->begin(), table->known->end(), is_found);
  return Py_BuildValue("(LLL)", found, static_cast<long long>(table->known->size()) - found,
                       static_cast<long long>(table->calls));
}

}  // namespace xpu::interop
