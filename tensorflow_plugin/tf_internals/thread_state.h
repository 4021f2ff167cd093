// A thread's state for eager ops. TensorFlow keeps one per thread, for each of Python's contexts.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_THREAD_STATE_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_THREAD_STATE_H_

#include <Python.h>

#include "tensorflow/python/eager/pywrap_tfe.h"
#include "tensorflow_plugin/tf_internals/check.h"

namespace xpu::tf_internals {

// This thread's, for a context: owned by TensorFlow, for this thread alone. Null with an exception set.
const tensorflow::EagerContextThreadLocalData* StateOfThread(PyObject* context);

// 1 if no gradient tape and no accumulator of this thread sees its ops, 0 if one does, -1 with an exception set.
int HasNoTape();

// Needs the interpreter's lock. If it fails, nothing else here may be used.
void CheckThreadState(Check& check);

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_THREAD_STATE_H_
