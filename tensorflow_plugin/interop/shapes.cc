#include "tensorflow_plugin/interop/shapes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tensorflow_plugin/tf_internals/shape_layout.h"

namespace xpu::interop {
namespace {

using tensorflow::TensorShape;
using tf_internals::Pack;
using tf_internals::PackedShape;

constexpr size_t kLimitBytes = size_t{4} << 20;
constexpr int kCacheSize = 256;

bool layout_is_used = false;

struct CacheEntry {
  PackedShape key;
  const int64_t* block;
};
// Plain data: nothing to construct or destroy when threads come and go.
thread_local CacheEntry cache[kCacheSize];

const int64_t* RingBlock(const TensorShape& shape) {
  struct Ring {
    std::vector<int64_t> blocks[kRingSize];
    unsigned next = 0;
  };
  thread_local std::unique_ptr<Ring> ring;
  if (ring == nullptr) ring = std::make_unique<Ring>();
  std::vector<int64_t>& block = ring->blocks[ring->next++ % kRingSize];
  block.resize(2 * shape.dims());
  WriteShape(shape, block.data());
  return block.data();
}

// Never destroyed: consumers may look at blocks until the process is gone.
ShapeStore& TheStore() {
  static ShapeStore& store = *new ShapeStore(kLimitBytes);
  return store;
}

}  // namespace

void WriteShape(const TensorShape& shape, int64_t* dims_and_strides) {
  const int rank = shape.dims();
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const int64_t dim = shape.dim_size(i);
    dims_and_strides[i] = dim;
    dims_and_strides[rank + i] = stride;
    // An empty tensor's strides are those of the tensor with 1 in place of 0, as in numpy and PyTorch. They may
    // overflow there, and nobody uses them.
    stride = static_cast<int64_t>(static_cast<uint64_t>(stride) * (dim == 0 ? 1 : dim));
  }
}

void UseShapeLayout(bool use) { layout_is_used = use; }

const int64_t* SharedShape(const TensorShape& shape) {
  PackedShape key;
  if (!layout_is_used || !Pack(shape, &key)) {
    const int64_t* block = TheStore().Find(shape);
    return block != nullptr ? block : RingBlock(shape);
  }
  const uint64_t hash = (key.low * 0x9e3779b97f4a7c15ull) ^ (key.high * 0xc2b2ae3d27d4eb4full);
  CacheEntry& entry = cache[hash >> 56];
  if (entry.block != nullptr && entry.key.low == key.low && entry.key.high == key.high) return entry.block;
  const int64_t* block = TheStore().Find(shape);
  if (block == nullptr) return RingBlock(shape);
  entry = {key, block};
  return block;
}

size_t ShapeStore::Hash::operator()(const std::vector<int64_t>& dims) const {
  uint64_t hash = dims.size();
  for (const int64_t dim : dims) {
    hash = (hash ^ static_cast<uint64_t>(dim)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

ShapeStore::ShapeStore(size_t limit_bytes)
    : limit_(limit_bytes), base_([limit_bytes] {
        void* base = mmap(nullptr, limit_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return base == MAP_FAILED ? nullptr : static_cast<char*>(base);
      }()) {}

const int64_t* ShapeStore::Find(const TensorShape& shape) {
  std::vector<int64_t> key(shape.dims());
  for (int i = 0; i < shape.dims(); ++i) key[i] = shape.dim_size(i);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(key);
  if (found != blocks_.end()) return found->second;
  const size_t bytes = std::max<size_t>(1, 2 * key.size()) * sizeof(int64_t);
  if (base_ == nullptr || bytes > limit_ - used_) return nullptr;
  const size_t page = sysconf(_SC_PAGESIZE);
  const size_t begin = used_ / page * page;
  const size_t end = (used_ + bytes + page - 1) / page * page;
  if (mprotect(base_ + begin, end - begin, PROT_READ | PROT_WRITE) != 0) return nullptr;
  auto* block = reinterpret_cast<int64_t*>(base_ + used_);
  WriteShape(shape, block);
  mprotect(base_ + begin, end - begin, PROT_READ);
  used_ += bytes;
  blocks_.emplace(std::move(key), block);
  return block;
}

}  // namespace xpu::interop
