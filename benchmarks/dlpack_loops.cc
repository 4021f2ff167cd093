// Times the functions of a DLPack exchange API from C. Each call runs `batches` batches of `count` calls with the
// interpreter's lock held, and writes the nanoseconds of one call of each batch to `ns`. It returns 0 or -1.
#include <Python.h>
#include <dlpack/dlpack.h>

#include <chrono>
#include <vector>

namespace {

template <typename F>
int Time(int batches, int count, double* ns, F&& batch) {
  for (int b = 0; b < batches; ++b) {
    double elapsed = 0;
    if (batch(count, &elapsed) != 0) return -1;
    ns[b] = elapsed / count;
  }
  return 0;
}

struct Clock {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double ns() const {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  }
};

void Ignore(void*, const char*, const char*) {}

}  // namespace

extern "C" {

int time_dltensor_from(const DLPackExchangeAPI* api, PyObject* tensor, int batches, int count, double* ns) {
  return Time(batches, count, ns, [&](int n, double* elapsed) {
    DLTensor view;
    const Clock clock;
    for (int i = 0; i < n; ++i) {
      if (api->dltensor_from_py_object_no_sync(tensor, &view) != 0) return -1;
    }
    *elapsed = clock.ns();
    return 0;
  });
}

int time_managed_from(const DLPackExchangeAPI* api, PyObject* tensor, int batches, int count, double* ns) {
  return Time(batches, count, ns, [&](int n, double* elapsed) {
    const Clock clock;
    for (int i = 0; i < n; ++i) {
      DLManagedTensorVersioned* managed;
      if (api->managed_tensor_from_py_object_no_sync(tensor, &managed) != 0) return -1;
      managed->deleter(managed);
    }
    *elapsed = clock.ns();
    return 0;
  });
}

// `source` makes the tensors that are imported, which is not timed.
int time_managed_to(const DLPackExchangeAPI* api, const DLPackExchangeAPI* source, PyObject* tensor, int batches,
                    int count, double* ns) {
  return Time(batches, count, ns, [&](int n, double* elapsed) {
    std::vector<DLManagedTensorVersioned*> managed(n);
    std::vector<void*> objects(n);
    for (auto& m : managed) {
      if (source->managed_tensor_from_py_object_no_sync(tensor, &m) != 0) return -1;
    }
    const Clock clock;
    for (int i = 0; i < n; ++i) {
      if (api->managed_tensor_to_py_object_no_sync(managed[i], &objects[i]) != 0) return -1;
    }
    *elapsed = clock.ns();
    for (void* object : objects) Py_DECREF(static_cast<PyObject*>(object));
    return 0;
  });
}

int time_allocator(const DLPackExchangeAPI* api, PyObject* tensor, int batches, int count, double* ns) {
  DLTensor prototype;
  if (api->dltensor_from_py_object_no_sync(tensor, &prototype) != 0) return -1;
  return Time(batches, count, ns, [&](int n, double* elapsed) {
    const Clock clock;
    for (int i = 0; i < n; ++i) {
      DLManagedTensorVersioned* managed;
      if (api->managed_tensor_allocator(&prototype, &managed, nullptr, Ignore) != 0) return -1;
      managed->deleter(managed);
    }
    *elapsed = clock.ns();
    return 0;
  });
}

int time_current_work_stream(const DLPackExchangeAPI* api, PyObject*, int batches, int count, double* ns) {
  return Time(batches, count, ns, [&](int n, double* elapsed) {
    void* stream;
    const Clock clock;
    for (int i = 0; i < n; ++i) {
      if (api->current_work_stream(kDLCPU, 0, &stream) != 0) return -1;
    }
    *elapsed = clock.ns();
    return 0;
  });
}

}  // extern "C"
