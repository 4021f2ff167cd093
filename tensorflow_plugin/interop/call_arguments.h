// The arguments of a call of a Python function: the tensors in them, and a text that tells kinds of arguments apart.
#ifndef TENSORFLOW_PLUGIN_INTEROP_CALL_ARGUMENTS_H_
#define TENSORFLOW_PLUGIN_INTEROP_CALL_ARGUMENTS_H_

#include <Python.h>

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/tensor.h"

namespace xpu::interop {

// Types of arguments beside Python's own. The objects are the caller's, who keeps them alive.
struct ArgumentTypes {
  PyTypeObject* array = nullptr;     // NumPy's
  PyTypeObject* iterator = nullptr;  // a data set's
  // Gives a pair for an iterator: a number for the type of its elements, and the tensor that it is to a function.
  PyObject* look_at_iterator = nullptr;
};

// Needs the interpreter's lock, also to be destroyed.
class CallArguments {
 public:
  // A tensor, or an array that may become one.
  struct Leaf {
    PyObject* object;  // owned: the eager tensor, or the array
    tensorflow::DataType type;
    tensorflow::Tensor tensor;                   // not of an array
    const tensorflow::Device* device = nullptr;  // null: the host's
    const tensorflow::Device* resource_device = nullptr;
    bool is_array = false;
    Py_buffer buffer = {};  // of an array, all in a row
    tensorflow::TensorShape shape() const;
  };

  CallArguments() = default;
  ~CallArguments();
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  // Looks at a tuple of arguments and a dict of named ones (or null). False if there is something in them that is
  // TensorFlow's business, or, with an exception set, if somebody's code failed.
  bool Take(const ArgumentTypes& types, PyObject* args, PyObject* named);

  // Equal for arguments of one kind: of the same structure, with tensors of the same types and shapes, and equal
  // values. An array is of the kind of a tensor.
  absl::string_view kind() const { return {kind_.data(), kind_.size()}; }
  // In the order of arguments; those of dicts, and named ones, by their names.
  absl::InlinedVector<Leaf, 4>& leaves() { return leaves_; }

 private:
  bool TakeValue(PyObject* value);
  bool TakeAll(PyObject* const* values, Py_ssize_t count);
  bool TakeDict(PyObject* dict);
  bool TakeEagerTensor(PyObject* object);
  bool TakeArray(PyObject* array);
  bool TakeIterator(PyObject* iterator);
  void Append(const void* bytes, size_t size);
  template <typename T>
  void Append(T value) {
    Append(&value, sizeof(value));
  }
  // So many extents follow.
  void AppendType(tensorflow::DataType type, int rank);

  const ArgumentTypes* types_ = nullptr;
  int depth_ = 0;
  absl::InlinedVector<char, 192> kind_;
  absl::InlinedVector<Leaf, 4> leaves_;
};

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_CALL_ARGUMENTS_H_
