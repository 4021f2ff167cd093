#include "tensorflow_plugin/interop/call_arguments.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow_plugin/interop/eager.h"
#include "tensorflow_plugin/interop/python_error.h"

namespace xpu::interop {
namespace {

namespace tf = tensorflow;

// Structures in structures beyond this are TensorFlow's business.
constexpr int kMostDepth = 64;

// The part of a kind that stands for a value begins with one of them.
enum Tag : char { kTensor, kTuple, kList, kDict, kIterator, kNone, kTrue, kFalse, kInteger, kText };

// The type of an array's elements by the buffer protocol; DT_INVALID if they are not TensorFlow's, or swapped.
tf::DataType TypeOf(const char* format, Py_ssize_t item_size) {
  if (format == nullptr) return tf::DT_INVALID;
  const auto sized = [item_size](tf::DataType of1, tf::DataType of2, tf::DataType of4, tf::DataType of8) {
    switch (item_size) {
      case 1:
        return of1;
      case 2:
        return of2;
      case 4:
        return of4;
      case 8:
        return of8;
      default:
        return tf::DT_INVALID;
    }
  };
  if (format[0] == 'Z' && format[1] != '\0' && format[2] == '\0') {
    if (format[1] == 'f') return tf::DT_COMPLEX64;
    return format[1] == 'd' ? tf::DT_COMPLEX128 : tf::DT_INVALID;
  }
  if (format[0] == '\0' || format[1] != '\0') return tf::DT_INVALID;
  switch (format[0]) {
    case 'e':
    case 'f':
    case 'd':
      return sized(tf::DT_INVALID, tf::DT_HALF, tf::DT_FLOAT, tf::DT_DOUBLE);
    case '?':
      return item_size == 1 ? tf::DT_BOOL : tf::DT_INVALID;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return sized(tf::DT_INT8, tf::DT_INT16, tf::DT_INT32, tf::DT_INT64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return sized(tf::DT_UINT8, tf::DT_UINT16, tf::DT_UINT32, tf::DT_UINT64);
    default:
      return tf::DT_INVALID;
  }
}

}  // namespace

CallArguments::~CallArguments() {
  for (Leaf& leaf : leaves_) {
    if (leaf.is_array) PyBuffer_Release(&leaf.buffer);
    Py_DECREF(leaf.object);
  }
}

tf::TensorShape CallArguments::Leaf::shape() const {
  if (!is_array) return tensor.shape();
  tf::TensorShape shape;
  for (int i = 0; i < buffer.ndim; ++i) shape.AddDim(buffer.shape[i]);
  return shape;
}

bool CallArguments::Take(const ArgumentTypes& types, PyObject* args, PyObject* named) {
  types_ = &types;
  Append(PyTuple_GET_SIZE(args));
  if (!TakeAll(&PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args))) return false;
  return named == nullptr || PyDict_GET_SIZE(named) == 0 || TakeDict(named);
}

void CallArguments::Append(const void* bytes, size_t size) {
  const char* const first = static_cast<const char*>(bytes);
  kind_.insert(kind_.end(), first, first + size);
}

void CallArguments::AppendType(tf::DataType type, int rank) {
  kind_.push_back(kTensor);
  kind_.push_back(static_cast<char>(type));
  Append(rank);
}

bool CallArguments::TakeAll(PyObject* const* values, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!TakeValue(values[i])) return false;
  }
  return true;
}

bool CallArguments::TakeValue(PyObject* value) {
  const PyTypeObject* const type = Py_TYPE(value);
  if (type == types_->array) return TakeArray(value);
  if (type == &PyTuple_Type || type == &PyList_Type) {
    // Nobody else's code runs meanwhile, which might change a list, but that of iterators: each is held then.
    const Py_ssize_t count = Py_SIZE(value);
    kind_.push_back(type == &PyTuple_Type ? kTuple : kList);
    Append(count);
    if (++depth_ > kMostDepth) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (i >= Py_SIZE(value)) return false;
      if (!TakeValue(type == &PyTuple_Type ? PyTuple_GET_ITEM(value, i) : PyList_GET_ITEM(value, i))) return false;
    }
    --depth_;
    return true;
  }
  if (type == &PyDict_Type) return TakeDict(value);
  if (type == types_->iterator) return TakeIterator(value);
  if (value == Py_None) {
    kind_.push_back(kNone);
    return true;
  }
  if (type == &PyBool_Type) {
    kind_.push_back(value == Py_True ? kTrue : kFalse);
    return true;
  }
  if (type == &PyLong_Type) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    kind_.push_back(kInteger);
    Append(number);
    return overflow == 0;
  }
  if (type == &PyUnicode_Type) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    kind_.push_back(kText);
    Append(size);
    Append(text, size);
    return true;
  }
  return TakeEagerTensor(value);
}

bool CallArguments::TakeDict(PyObject* dict) {
  absl::InlinedVector<std::pair<PyObject*, PyObject*>, 8> items;
  PyObject *name = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  kind_.push_back(kDict);
  Append(PyDict_GET_SIZE(dict));
  if (++depth_ > kMostDepth) return false;
  // The order of the names is part of the kind: results may be in it.
  while (PyDict_Next(dict, &position, &name, &value)) {
    if (!PyUnicode_CheckExact(name) || PyUnicode_READY(name) != 0 || !TakeValue(name)) return false;
    items.emplace_back(name, value);
  }
  std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
    return PyUnicode_Compare(a.first, b.first) < 0;  // of two strings that are ready it cannot fail
  });
  for (const auto& item : items) Py_INCREF(item.second);
  bool taken = true;
  for (const auto& item : items) {
    taken = taken && TakeValue(item.second);
    Py_DECREF(item.second);
  }
  --depth_;
  return taken;
}

bool CallArguments::TakeEagerTensor(PyObject* object) {
  tf::TensorHandle* const handle = ReadyHandleOf(object);
  const tf::Tensor* tensor = nullptr;
  if (handle == nullptr || !handle->Tensor(&tensor).ok()) return false;
  if (tensor->dtype() == tf::DT_RESOURCE || tensor->dtype() == tf::DT_VARIANT) return false;
  AppendType(tensor->dtype(), tensor->dims());
  for (int i = 0; i < tensor->dims(); ++i) Append<int64_t>(tensor->dim_size(i));
  leaves_.push_back({Py_NewRef(object), tensor->dtype(), *tensor, handle->device()});
  return true;
}

bool CallArguments::TakeArray(PyObject* array) {
  Leaf leaf = {};
  if (PyObject_GetBuffer(array, &leaf.buffer, PyBUF_ND | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
    PyErr_Clear();
    return false;
  }
  leaf.type = TypeOf(leaf.buffer.format, leaf.buffer.itemsize);
  if (leaf.type == tf::DT_INVALID || leaf.buffer.ndim > tf::TensorShape::MaxDimensions()) {
    PyBuffer_Release(&leaf.buffer);
    return false;
  }
  leaf.object = Py_NewRef(array);
  leaf.is_array = true;
  AppendType(leaf.type, leaf.buffer.ndim);
  for (int i = 0; i < leaf.buffer.ndim; ++i) Append<int64_t>(leaf.buffer.shape[i]);
  leaves_.push_back(std::move(leaf));
  return true;
}

bool CallArguments::TakeIterator(PyObject* iterator) {
  const Owned held(Py_NewRef(iterator));
  const Owned seen(PyObject_CallOneArg(types_->look_at_iterator, iterator));
  if (!seen) return false;
  if (!PyTuple_CheckExact(seen.get()) || PyTuple_GET_SIZE(seen.get()) != 2) return false;
  PyObject* const resource = PyTuple_GET_ITEM(seen.get(), 1);
  const long number = PyLong_AsLong(PyTuple_GET_ITEM(seen.get(), 0));
  if (number == -1 && PyErr_Occurred()) return false;
  tf::TensorHandle* const handle = ReadyHandleOf(resource);
  const tf::Tensor* tensor = nullptr;
  if (handle == nullptr || !handle->Tensor(&tensor).ok()) return false;
  kind_.push_back(kIterator);
  Append(number);
  leaves_.push_back({Py_NewRef(resource), tensor->dtype(), *tensor, handle->device(), handle->resource_device()});
  return true;
}

}  // namespace xpu::interop
