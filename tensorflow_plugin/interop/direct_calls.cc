#include "tensorflow_plugin/interop/direct_calls.h"

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow_plugin/direct_call/direct_call.h"
#include "tensorflow_plugin/interop/devices.h"
#include "tensorflow_plugin/interop/eager.h"
#include "tensorflow_plugin/interop/python_error.h"

namespace xpu::interop {
namespace {

namespace tf = tensorflow;
using direct_call::DirectCall;

constexpr char kCapsule[] = "tensorflow_xpu.direct_call";

bool IsHost(const tf::Device* device) { return device == nullptr || device->device_type() == tf::DEVICE_CPU; }

// Gives the tensors of a list of eager tensors as they lie. False if one of them is something else, does not lie where
// it must, or is not there yet.
bool TensorsOf(PyObject* list, const std::vector<DirectCall::Placement>& places, std::vector<tf::Tensor>* tensors) {
  const Py_ssize_t n = PyList_GET_SIZE(list);
  if (n < static_cast<Py_ssize_t>(places.size())) return false;
  tensors->reserve(n);
  for (Py_ssize_t i = 0; i < n; ++i) {
    tf::TensorHandle* const handle = ReadyHandleOf(PyList_GET_ITEM(list, i));
    if (handle == nullptr) return false;
    const tf::Tensor* tensor = nullptr;
    if (i < static_cast<Py_ssize_t>(places.size()) &&
        !LiesAt(places[i], handle->dtype, handle->device(), handle->resource_device())) {
      return false;
    }
    if (!handle->Tensor(&tensor).ok()) return false;
    tensors->push_back(*tensor);
  }
  return true;
}

// True if the results of a call that TensorFlow has made lie where ours will.
bool LearnResults(PyObject* outputs, Callable* callable) {
  const std::vector<DirectCall::Placement>& places = callable->call->results();
  const Py_ssize_t n = outputs == Py_None ? 0 : PyList_GET_SIZE(outputs);
  if (n != static_cast<Py_ssize_t>(places.size())) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const tf::TensorHandle* const handle = ReadyHandleOf(PyList_GET_ITEM(outputs, i));
    if (handle == nullptr || handle->dtype != places[i].type) return false;
    // An object, such as an optional, lies nowhere, whatever TensorFlow says.
    if (places[i].type != tf::DT_VARIANT &&
        (places[i].in_host_memory ? !IsHost(handle->device()) : handle->device() != places[i].device)) {
      return false;
    }
    callable->results.push_back({handle->device(), handle->op_device(), handle->resource_device()});
  }
  return true;
}

// The text between two marks, the first such; empty if there is none.
std::string Between(const std::string& text, const std::string& first, const std::string& last) {
  const size_t begin = text.find(first);
  const size_t end = begin == std::string::npos ? begin : text.find(last, begin + first.size());
  return end == std::string::npos ? "" : text.substr(begin + first.size(), end - begin - first.size());
}

// Where the op was written; null if nobody knows.
const tf::AbstractStackTrace* TraceOf(const tf::FunctionLibraryDefinition& library, const std::string& function,
                                      const std::string& node) {
  const auto* const traces = library.GetStackTraces(function);
  if (traces == nullptr) return nullptr;
  const auto found = traces->find(node);
  return found == traces->end() ? nullptr : found->second.get();
}

// The error as TensorFlow words it for a function: with where the op that it names was written.
absl::Status Worded(const absl::Status& error, const Callable& callable) {
  std::string message(error.message());
  const std::string node = Between(message, "{{node ", "}}");
  const std::string inner = Between(message, "{{function_node ", "}}{{node ");  // of a loop, say
  const tf::FunctionLibraryDefinition& library = *callable.context->FuncLibDef();
  const tf::AbstractStackTrace* trace = TraceOf(library, callable.function, node);
  if (trace == nullptr && !inner.empty()) trace = TraceOf(library, inner, node);
  if (trace != nullptr) {
    tf::AbstractStackTrace::TracePrintingOptions options;
    options.show_line_contents = true;
    options.drop_internal_frames = true;
    std::string text = "Graph execution error:\n\nDetected at node " + node + " defined at (most recent call last):\n";
    std::istringstream frames(trace->ToString(options));
    for (std::string frame; std::getline(frames, frame);) text += "  " + frame + "\n\n";
    if (!inner.empty()) {
      const std::string mark = "{{function_node " + inner + "}}";
      message.erase(message.find(mark), mark.size());
    }
    message = text + message;
  }
  return absl::Status(error.code(), message + " [Op:" + callable.function + "]");
}

void Delete(PyObject* capsule) {
  std::unique_ptr<Callable> callable(static_cast<Callable*>(PyCapsule_GetPointer(capsule, kCapsule)));
  const KeepError keep;
  const WithoutLock unlocked;  // kernels may own threads that end with them
  callable.reset();
}

}  // namespace

bool LiesAt(const DirectCall::Placement& place, tf::DataType type, const tf::Device* device,
            const tf::Device* resource_device) {
  if (place.type == tf::DT_INVALID) return true;
  if (type != place.type) return false;
  if (type == tf::DT_RESOURCE) return resource_device == place.device;
  return place.in_host_memory ? IsHost(device) : device == place.device;
}

Callable* CallableOf(PyObject* capsule) { return static_cast<Callable*>(PyCapsule_GetPointer(capsule, kCapsule)); }

bool Retire(PyObject* capsule) {
  Callable* const callable = CallableOf(capsule);
  if (callable != nullptr) callable->is_retired = true;
  return callable != nullptr;
}

bool Callable::Run(std::vector<tf::Tensor> arguments, std::vector<PyObject*>* outputs) const {
  std::vector<tf::Tensor> made;
  absl::Status status;
  {
    const WithoutLock unlocked;
    status = call->Run(arguments, context->runner(), &made);
    arguments.clear();
    if (!status.ok()) status = Worded(status, *this);
  }
  if (!status.ok()) return Raise(status) == 0;
  outputs->reserve(made.size());
  for (size_t i = 0; i < made.size(); ++i) {
    const EagerResult& place = results[i];
    PyObject* const tensor =
        EagerTensorOf(std::move(made[i]), place.device, place.op_device, place.resource_device, context);
    if (tensor == nullptr) {
      for (PyObject* output : *outputs) Py_DECREF(output);
      outputs->clear();
      return false;
    }
    outputs->push_back(tensor);
  }
  return true;
}

bool ExpectCall(PyObject* name) {
  const char* const text = PyBytes_AsString(name);
  if (text != nullptr) ExpectGraph(text);
  return text != nullptr;
}

PyObject* DirectCallOf(PyObject* name, PyObject* inputs, PyObject* outputs) {
  tf::EagerContext* const context = EagerContextOfPython();
  const char* const text = PyBytes_AsString(name);
  if (context == nullptr || text == nullptr) return nullptr;
  auto callable = std::make_unique<Callable>();
  callable->function = text;
  callable->context = context;
  callable->call = TakeCall(*context->pflr());
  std::vector<tf::Tensor> tensors;
  if (callable->call == nullptr || !PyList_Check(inputs) || (outputs != Py_None && !PyList_Check(outputs)) ||
      !TensorsOf(inputs, callable->call->arguments(), &tensors) || !LearnResults(outputs, callable.get())) {
    Py_RETURN_NONE;
  }
  PyObject* const capsule = PyCapsule_New(callable.get(), kCapsule, Delete);
  if (capsule != nullptr) callable.release();
  return capsule;
}

PyObject* Call(PyObject* capsule, PyObject* inputs) {
  const Callable* const callable = CallableOf(capsule);
  if (callable == nullptr) return nullptr;
  std::vector<tf::Tensor> arguments;
  if (!PyList_Check(inputs) || !callable->MayRun() || !TensorsOf(inputs, callable->call->arguments(), &arguments)) {
    Py_RETURN_NONE;
  }
  std::vector<PyObject*> outputs;
  if (!callable->Run(std::move(arguments), &outputs)) return nullptr;
  PyObject* const list = PyList_New(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (list != nullptr) {
      PyList_SET_ITEM(list, i, outputs[i]);
    } else {
      Py_DECREF(outputs[i]);
    }
  }
  return list;
}

}  // namespace xpu::interop
