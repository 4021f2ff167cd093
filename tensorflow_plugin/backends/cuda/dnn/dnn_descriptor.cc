#include "tensorflow_plugin/backends/cuda/dnn/dnn_descriptor.h"

namespace xpu::cuda {

Status ToDnnStatus(DnnResult error, const std::string& what) {
  if (error == 0) return OkStatus();
  const Cudnn& dnn = *FindCudnn(nullptr);
  char text[1024] = {};
  dnn.GetLastErrorString(text, sizeof(text));
  const char* const name = dnn.GetErrorString(error);
  std::string message = errors::Concat(what, " failed with ", name != nullptr ? name : "an unknown cudnnStatus_t");
  if (text[0] != '\0') message += errors::Concat(" (", static_cast<const char*>(text), ")");
  return errors::Internal(message);
}

DnnDescriptor::~DnnDescriptor() {
  if (handle_ != nullptr) (void)FindCudnn(nullptr)->DescriptorDestroy(handle_);
}

Status DnnDescriptor::Create(DnnKind kind) {
  kind_ = kind;
  return ToDnnStatus(FindCudnn(nullptr)->DescriptorCreate(kind, &handle_),
                     errors::Concat("a cuDNN descriptor of kind ", static_cast<int>(kind)));
}

Status DnnDescriptor::SetAll(int attribute, DnnType type, int64_t count, const void* values) {
  const DnnResult error = FindCudnn(nullptr)->DescriptorSet(handle_, attribute, type, count, values);
  if (error == 0) return OkStatus();
  return ToDnnStatus(
      error, errors::Concat("attribute ", attribute, " of a cuDNN descriptor of kind ", static_cast<int>(kind_)));
}

Status DnnDescriptor::Finalize() {
  const DnnResult error = FindCudnn(nullptr)->DescriptorFinalize(handle_);
  if (error == 0) return OkStatus();
  return ToDnnStatus(error, errors::Concat("making a cuDNN descriptor of kind ", static_cast<int>(kind_), " final"));
}

Status DnnDescriptor::Get(int attribute, DnnType type, int64_t most, void* values, int64_t* count) const {
  int64_t unused = 0;
  const DnnResult error =
      FindCudnn(nullptr)->DescriptorGet(handle_, attribute, type, most, count != nullptr ? count : &unused, values);
  if (error == 0) return OkStatus();
  return ToDnnStatus(error, errors::Concat("reading attribute ", attribute, " of a cuDNN descriptor of kind ",
                                           static_cast<int>(kind_)));
}

}  // namespace xpu::cuda
