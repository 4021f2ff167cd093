#include "tensorflow_plugin/interop/export.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow_plugin/interop/shapes.h"
#include "tensorflow_plugin/interop/types.h"

namespace xpu::interop {
namespace {

using tensorflow::Tensor;
using tsl::core::RefCounted;

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

// A managed tensor and its data, in one allocation: the struct, then 2 * rank numbers of shape and strides. Where the
// elements are not a shared tensor's, they follow, aligned.
template <typename Managed>
struct Block {
  Managed managed;
  const RefCounted* owner;  // null if the elements are in the block, or none

  static void Delete(Managed* managed) {
    auto* block = static_cast<Block*>(managed->manager_ctx);
    if (block->owner != nullptr) block->owner->Unref();
    std::free(block);
  }

  // Everything but data and flags is filled in. `payload`: bytes for elements, to which data then points.
  static Status New(const RefCounted* owner, const tensorflow::TensorShape& shape, DLDataType type, DLDevice device,
                    size_t payload, Managed** out) {
    const int rank = shape.dims();
    const size_t bytes = sizeof(Block) + 2 * rank * sizeof(int64_t);
    void* memory = std::malloc(payload == 0 ? bytes : bytes + kAlignment + payload);
    XPU_REQUIRE(memory != nullptr, errors::ResourceExhausted("out of host memory for a tensor of shape ",
                                                             shape.DebugString(), " and type ", NameOf(type)));
    auto* block = new (memory) Block{{}, owner};
    if (owner != nullptr) owner->Ref();
    auto* dims = reinterpret_cast<int64_t*>(block + 1);
    WriteShape(shape, dims);
    const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* data = payload == 0 ? nullptr : reinterpret_cast<void*>(end);
    block->managed.dl_tensor = {data, device, rank, type, dims, dims + rank, 0};
    block->managed.manager_ctx = block;
    block->managed.deleter = &Delete;
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
      block->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
      block->managed.flags = IsSubByte(type) ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0;
    }
    *out = &block->managed;
    return OkStatus();
  }
};

}  // namespace

Status CheckType(const Tensor& tensor) {
  DLDataType type;
  return TypeOf(tensor, &type);
}

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
Status Export(const Tensor& tensor, const RefCounted* owner, DLDevice device, Access access, Managed** out) {
  constexpr bool versioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
  DLDataType type;
  XPU_RETURN_IF_ERROR(TypeOf(tensor, &type));
  if (IsSubByte(type) && !versioned) return NeedsFlags(type);
  if (access == Access::kShared && IsSharedScalar(tensor, device)) {
    const size_t bytes = ElementBytes(tensor.dtype());
    XPU_RETURN_IF_ERROR(Block<Managed>::New(nullptr, tensor.shape(), type, device, bytes, out));
    std::memcpy((*out)->dl_tensor.data, tensorflow::DMAHelper::base(&tensor), bytes);
    access = Access::kCopied;
  } else {
    XPU_RETURN_IF_ERROR(Block<Managed>::New(owner, tensor.shape(), type, device, 0, out));
    (*out)->dl_tensor.data = DataOf(tensor);
  }
  if constexpr (versioned) {
    if (access == Access::kShared) (*out)->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
    if (access == Access::kCopied) (*out)->flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  }
  return OkStatus();
}

template Status Export(const Tensor&, const RefCounted*, DLDevice, Access, DLManagedTensor**);
template Status Export(const Tensor&, const RefCounted*, DLDevice, Access, DLManagedTensorVersioned**);

const RefCounted* BufferOf(const Tensor& tensor) { return tensorflow::DMAHelper::buffer(&tensor); }

Status ExportFresh(tensorflow::DataType type, const tensorflow::TensorShape& shape, DLManagedTensorVersioned** out) {
  const size_t bytes = shape.num_elements() * ElementBytes(type);
  return Block<DLManagedTensorVersioned>::New(nullptr, shape, ToDl(type), {kDLCPU, 0}, bytes, out);
}

Status AllocateOnHost(tensorflow::DataType type, const tensorflow::TensorShape& shape, Tensor* out) {
  // More than the machine has is refused here: TensorFlow's allocator would wait ten seconds for somebody to free it.
  static const auto machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const double bytes = static_cast<double>(shape.num_elements()) * ElementBytes(type);
  if (bytes <= machine) *out = Tensor(tensorflow::cpu_allocator(), type, shape);
  XPU_REQUIRE(bytes <= machine && out->IsInitialized(),
              errors::ResourceExhausted("out of host memory for a tensor of shape ", shape.DebugString(), " and type ",
                                        NameOf(type)));
  return OkStatus();
}

Status CopyOnHost(const Tensor& tensor, Tensor* copy) {
  XPU_RETURN_IF_ERROR(AllocateOnHost(tensor.dtype(), tensor.shape(), copy));
  const size_t bytes = tensor.NumElements() * ElementBytes(tensor.dtype());
  if (bytes != 0) std::memcpy(tensorflow::DMAHelper::base(copy), tensorflow::DMAHelper::base(&tensor), bytes);
  return OkStatus();
}

}  // namespace xpu::interop
