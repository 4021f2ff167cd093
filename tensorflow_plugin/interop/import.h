// Foreign tensors as TensorFlow tensors in host memory.
#ifndef TENSORFLOW_PLUGIN_INTEROP_IMPORT_H_
#define TENSORFLOW_PLUGIN_INTEROP_IMPORT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "dlpack/dlpack.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow_plugin/interop/end_of_process.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::interop {

// A managed tensor of another library, owned: its deleter is called once, here or by the next owner.
class Foreign {
 public:
  Foreign() = default;
  explicit Foreign(DLManagedTensor* m) : managed_(m), view_(&m->dl_tensor), delete_(&Delete<DLManagedTensor>) {}
  // If it is of another major version, nothing but the deleter may be touched: view() is null then.
  explicit Foreign(DLManagedTensorVersioned* m)
      : managed_(m),
        view_(m->version.major == DLPACK_MAJOR_VERSION ? &m->dl_tensor : nullptr),
        version_(m->version),
        flags_(view_ == nullptr ? 0 : m->flags),
        delete_(&Delete<DLManagedTensorVersioned>) {}
  Foreign(Foreign&& o) noexcept { *this = std::move(o); }
  Foreign& operator=(Foreign&& o) noexcept {
    if (this != &o) {
      Release();
      managed_ = std::exchange(o.managed_, nullptr);
      view_ = o.view_;
      version_ = o.version_;
      flags_ = o.flags_;
      delete_ = o.delete_;
    }
    return *this;
  }
  ~Foreign() { Release(); }

  const DLTensor* view() const { return view_; }
  DLPackVersion version() const { return version_; }
  uint64_t flags() const { return flags_; }

  // Calls the deleter, which may be Python.
  void Release() {
    if (void* managed = std::exchange(managed_, nullptr)) UntilTheEnd([&] { delete_(managed); });
  }
  // Leaves the tensor to its previous owner.
  void GiveBack() { managed_ = nullptr; }

 private:
  template <typename Managed>
  static void Delete(void* managed) {
    auto* m = static_cast<Managed*>(managed);
    if (m->deleter != nullptr) m->deleter(m);
  }

  void* managed_ = nullptr;
  const DLTensor* view_ = nullptr;
  DLPackVersion version_ = {0, 0};
  uint64_t flags_ = 0;
  void (*delete_)(void*) = nullptr;
};

// The fields of a DLTensor, checked: type, dimensions, extents that fit in memory. Nothing that it points to but shape
// and strides has been read.
struct TensorLayout {
  tensorflow::DataType type;
  tensorflow::TensorShape shape;
  char* first;     // the element at index 0, 0, ...; null if there are none
  int64_t bytes;   // of the elements as TensorFlow stores them
  bool row_major;  // the elements lie behind each other
  bool packed;     // several elements in a byte
  bool shareable() const { return row_major && !packed && reinterpret_cast<uintptr_t>(first) % kAlignment == 0; }
  // Why not, for messages.
  const char* obstacle() const;

  // TensorFlow's kernels use instructions that fault on less.
  static constexpr int kAlignment = 64;
};
Status Examine(const Foreign& tensor, TensorLayout* layout);

// A tensor over the foreign memory. The foreign tensor is released when TensorFlow has no use for it any more, on
// whatever thread; `before_release` is called first. TensorFlow never writes to the memory.
tensorflow::Tensor Share(Foreign tensor, const TensorLayout& layout, std::function<void()> before_release = nullptr);

// A tensor of its own with the elements.
Status CopyFrom(const Foreign& tensor, const TensorLayout& layout, tensorflow::Tensor* out);

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_IMPORT_H_
