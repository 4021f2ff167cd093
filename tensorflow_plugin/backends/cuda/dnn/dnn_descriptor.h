// An object of cuDNN's graph interface: it gets its attributes one by one, is made final, and is then fixed.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_DNN_DESCRIPTOR_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_DNN_DESCRIPTOR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/cuda/dnn/cudnn.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::cuda {

// OK of success. Else Internal: "`what` failed with CUDNN_STATUS_BAD_PARAM (the library's own text)".
Status ToDnnStatus(DnnResult error, const std::string& what);

// For a process that has found cuDNN.
class DnnDescriptor {
 public:
  DnnDescriptor() = default;
  ~DnnDescriptor();
  DnnDescriptor(DnnDescriptor&& other) noexcept { *this = std::move(other); }
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  Status Create(DnnKind kind);
  template <typename T>
  Status Set(int attribute, DnnType type, const std::vector<T>& values) {
    return SetAll(attribute, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <typename T>
  Status Set(int attribute, DnnType type, const T& value) {
    return SetAll(attribute, type, 1, &value);
  }
  Status Set(int attribute, const DnnDescriptor& value) { return Set(attribute, kDnnTypeDescriptor, value.handle_); }
  Status Finalize();
  // Writes up to `most` values; `count`, which may be null, is how many there are.
  Status Get(int attribute, DnnType type, int64_t most, void* values, int64_t* count = nullptr) const;

  DnnDescriptorHandle handle() const { return handle_; }

 private:
  Status SetAll(int attribute, DnnType type, int64_t count, const void* values);

  DnnKind kind_ = kDnnConvolution;
  DnnDescriptorHandle handle_ = nullptr;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_DNN_DESCRIPTOR_H_
