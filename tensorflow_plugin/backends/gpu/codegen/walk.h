// Strided arrays in kernels: the host merges axes where it can, and writes extents and strides into a table. The kernel
// takes a row-major position apart.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_WALK_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_WALK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/dims.h"

namespace xpu::gpu {

// The integer type of positions below n, for kernels: 32 bits where they do. Also what kernels' keys say.
inline const char* IndexType(int64_t n) { return n < (int64_t{1} << 31) ? "uint" : "ulong"; }

// Extents, then the strides of each operand: what a kernel gets as `table`.
inline std::vector<int64_t> WalkTable(const Dims& shape, const std::vector<const Dims*>& strides) {
  std::vector<int64_t> table(shape.begin(), shape.end());
  for (const Dims* of_operand : strides) table.insert(table.end(), of_operand->begin(), of_operand->end());
  return table;
}

// Statements that define o0, o1, ... : where each operand's element of `position` lies, in elements. `index_type` is
// that of the position, and `first` the entry of `table` at which the walk's numbers begin.
std::string WalkText(int rank, int operands, const std::string& position, const std::string& index_type, int first = 0);

// The widest type that elements of a size are made of and aligned to.
struct CopyUnit {
  const char* type;
  size_t size;
};
inline CopyUnit UnitOf(size_t element_size) {
  for (const CopyUnit& unit : {CopyUnit{"ulong", 8}, CopyUnit{"uint", 4}, CopyUnit{"ushort", 2}}) {
    if (element_size % unit.size == 0) return unit;
  }
  return {"uchar", 1};
}

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_WALK_H_
