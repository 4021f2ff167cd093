#include "tensorflow_plugin/interop/export.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/tensor_reference.h"
#include "tensorflow_plugin/interop/shapes.h"
#include "tensorflow_plugin/interop/types.h"

namespace xpu::interop {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorReference;

constexpr size_t kMaxScalarBytes = 16;
constexpr size_t kAlignment = 64;

void* DataOf(const Tensor& tensor) {
  // DLPack wants null where there is nothing. The buffer of an empty tensor may be anything.
  return tensor.NumElements() == 0 ? nullptr : const_cast<void*>(tensorflow::DMAHelper::base(&tensor));
}

Status TypeOf(const Tensor& tensor, DLDataType* type) {
  *type = ToDl(tensor.dtype());
  XPU_REQUIRE(type->bits != 0, errors::Unimplemented("DLPack has no type for tensors of ", NameOf(tensor.dtype())));
  return OkStatus();
}

// Why a type of less than 8 bits needs the versioned struct.
Status NeedsFlags(DLDataType type) {
  return errors::Unimplemented("a tensor of ", NameOf(type),
                               " has one element per byte in TensorFlow, which only a versioned DLPack capsule can say "
                               "(max_version=(1, 0) or later)");
}

// A managed tensor and everything that it points to, but the elements of the shared tensor, in one allocation.
template <typename Managed>
struct Block {
  Managed managed;
  TensorReference owner;
  // Then 2 * rank numbers of shape and strides, and for scalars the aligned element.
  int64_t* shape() { return reinterpret_cast<int64_t*>(this + 1); }

  static void Delete(Managed* managed) {
    auto* block = static_cast<Block*>(managed->manager_ctx);
    block->owner.Unref();
    std::free(block);
  }
};

}  // namespace

Status View(const Tensor& tensor, DLDevice device, DLTensor* out) {
  DLDataType type;
  XPU_RETURN_IF_ERROR(TypeOf(tensor, &type));
  if (IsSubByte(type)) return NeedsFlags(type);
  const int rank = tensor.dims();
  const int64_t* shape = SharedShape(tensor.shape());
  out->data = DataOf(tensor);
  out->device = device;
  out->ndim = rank;
  out->dtype = type;
  out->shape = const_cast<int64_t*>(shape);
  out->strides = const_cast<int64_t*>(shape + rank);
  out->byte_offset = 0;
  if (IsSharedScalar(tensor, device)) {
    struct alignas(kMaxScalarBytes) Scalar {
      unsigned char bytes[kMaxScalarBytes];
    };
    thread_local std::unique_ptr<Scalar[]> ring;
    thread_local unsigned next = 0;
    if (ring == nullptr) ring = std::make_unique<Scalar[]>(kScalarRing);
    unsigned char* copy = ring[next++ % kScalarRing].bytes;
    std::memcpy(copy, out->data, ElementBytes(tensor.dtype()));
    out->data = copy;
  }
  return OkStatus();
}

template <typename Managed>
Status Export(const Tensor& tensor, DLDevice device, Access access, Managed** out) {
  constexpr bool versioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
  DLDataType type;
  XPU_RETURN_IF_ERROR(TypeOf(tensor, &type));
  if (IsSubByte(type) && !versioned) return NeedsFlags(type);
  const int rank = tensor.dims();
  const bool copy_scalar = access == Access::kShared && IsSharedScalar(tensor, device);
  const size_t bytes = sizeof(Block<Managed>) + 2 * rank * sizeof(int64_t);
  void* memory = std::malloc(bytes + (copy_scalar ? kAlignment + kMaxScalarBytes : 0));
  XPU_REQUIRE(memory != nullptr, errors::ResourceExhausted("out of host memory for a DLPack tensor"));
  auto* block = new (memory) Block<Managed>{{}, TensorReference(copy_scalar ? Tensor() : tensor)};
  int64_t* shape = block->shape();
  WriteShape(tensor.shape(), shape);
  block->managed.dl_tensor = {DataOf(tensor), device, rank, type, shape, shape + rank, 0};
  if (copy_scalar) {
    const auto end = reinterpret_cast<uintptr_t>(memory) + bytes;
    auto* copy = reinterpret_cast<void*>((end + kAlignment - 1) / kAlignment * kAlignment);
    std::memcpy(copy, block->managed.dl_tensor.data, ElementBytes(tensor.dtype()));
    block->managed.dl_tensor.data = copy;
    access = Access::kCopied;
  }
  block->managed.manager_ctx = block;
  block->managed.deleter = &Block<Managed>::Delete;
  if constexpr (versioned) {
    block->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    block->managed.flags = access == Access::kShared   ? DLPACK_FLAG_BITMASK_READ_ONLY
                           : access == Access::kCopied ? DLPACK_FLAG_BITMASK_IS_COPIED
                                                       : 0;
    if (IsSubByte(type)) block->managed.flags |= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  }
  *out = &block->managed;
  return OkStatus();
}

template Status Export(const Tensor&, DLDevice, Access, DLManagedTensor**);
template Status Export(const Tensor&, DLDevice, Access, DLManagedTensorVersioned**);

Status AllocateOnHost(tensorflow::DataType type, const tensorflow::TensorShape& shape, Tensor* out) {
  *out = Tensor(tensorflow::cpu_allocator(), type, shape);
  XPU_REQUIRE(out->IsInitialized(), errors::ResourceExhausted("out of host memory for a tensor of shape ",
                                                              shape.DebugString(), " and type ", NameOf(type)));
  return OkStatus();
}

Status CopyOnHost(const Tensor& tensor, Tensor* copy) {
  XPU_RETURN_IF_ERROR(AllocateOnHost(tensor.dtype(), tensor.shape(), copy));
  const size_t bytes = tensor.NumElements() * ElementBytes(tensor.dtype());
  if (bytes != 0) std::memcpy(tensorflow::DMAHelper::base(copy), tensorflow::DMAHelper::base(&tensor), bytes);
  return OkStatus();
}

}  // namespace xpu::interop
