// Signatures of invocations: strings of bytes that say what a capture depends on.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_SIGNATURE_H_
#define TENSORFLOW_PLUGIN_CLUSTER_SIGNATURE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "tensorflow/core/framework/tensor.h"

namespace xpu::cluster {

// Makes a signature.
struct SignatureMaker {
  std::string signature;

  void Append(const void* bytes, size_t size) { signature.append(static_cast<const char*>(bytes), size); }
};

// Compares the parts of a signature with one that was made, which takes no memory.
class SignatureComparer {
 public:
  explicit SignatureComparer(const std::string& made) : at_(made.data()), left_(made.size()) {}

  void Append(const void* bytes, size_t size) {
    is_same_ = is_same_ && size <= left_ && std::memcmp(at_, bytes, size) == 0;
    if (!is_same_) return;
    at_ += size;
    left_ -= size;
  }
  // After all parts.
  bool is_same() const { return is_same_ && left_ == 0; }

 private:
  const char* at_;
  size_t left_;
  bool is_same_ = true;
};

// `signature` is one of both.
template <typename Number, typename Signature>
void AppendNumber(Number number, Signature* signature) {
  static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>, "has no padding");
  signature->Append(&number, sizeof(number));
}

template <typename Signature>
void AppendShape(const tensorflow::Tensor& value, Signature* signature) {
  AppendNumber(value.dims(), signature);
  for (int i = 0; i < value.dims(); ++i) AppendNumber<int64_t>(value.dim_size(i), signature);
}

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_SIGNATURE_H_
