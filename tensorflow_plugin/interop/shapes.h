// Where the dimensions and strides lie that a DLTensor points to, when nobody owns it.
//
// TensorFlow packs a shape into 16 bytes, so there is no array to point at. A shape is a value. Every distinct one gets
// one block, [dims, row-major strides], that stays for ever in memory without write access. So no consumer can change
// the shape of another tensor. Up to a limit; beyond it each thread has a ring of blocks.
#ifndef TENSORFLOW_PLUGIN_INTEROP_SHAPES_H_
#define TENSORFLOW_PLUGIN_INTEROP_SHAPES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"

namespace xpu::interop {

// Writes the dimensions, then the row-major strides in elements: 2 * rank numbers.
void WriteShape(const tensorflow::TensorShape& shape, int64_t* dims_and_strides);

// The same, in memory that stays valid for ever while the limit is not reached (some 100,000 distinct shapes). Beyond
// it, memory stays until this thread has asked for kRingSize more. Thread-safe; 4 ns for a shape that the thread has
// seen.
constexpr int kRingSize = 256;
const int64_t* SharedShape(const tensorflow::TensorShape& shape);

// From now on SharedShape tells shapes apart by TensorShape's bytes, if `use`: its layout must be known
// (tf_internals/shape_layout.h). Otherwise a shape takes some 100 ns.
void UseShapeLayout(bool use);

// The blocks of all shapes. Exposed for tests; SharedShape uses one of its own.
class ShapeStore {
 public:
  explicit ShapeStore(size_t limit_bytes);
  // null when the limit is reached.
  const int64_t* Find(const tensorflow::TensorShape& shape);

 private:
  struct Hash {
    size_t operator()(const std::vector<int64_t>& dims) const;
  };
  const size_t limit_;
  char* const base_;
  std::mutex mutex_;
  size_t used_ = 0;
  std::unordered_map<std::vector<int64_t>, const int64_t*, Hash> blocks_;
};

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_SHAPES_H_
