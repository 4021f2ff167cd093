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

// A factor that stands for the division of a position below 2^31 by an extent. The position is multiplied by the low 32
// bits, then shifted right by the upper ones. 0 for extents that no such position is divided by.
int64_t ReciprocalOf(int64_t extent);

// Extents, the strides of each operand, then the extents' reciprocals: what a kernel gets as `table`.
inline std::vector<int64_t> WalkTable(const Dims& shape, const std::vector<const Dims*>& strides) {
  std::vector<int64_t> table;
  table.reserve(static_cast<size_t>(shape.rank()) * (2 + strides.size()));
  table.insert(table.end(), shape.begin(), shape.end());
  for (const Dims* of_operand : strides) table.insert(table.end(), of_operand->begin(), of_operand->end());
  for (int64_t extent : shape) table.push_back(ReciprocalOf(extent));
  return table;
}

// Statements that define o0, o1, ... : where each operand's element of `position` lies, in elements. `index_type` is
// that of the position, and `first` the entry of `table` at which the walk's numbers begin.
std::string WalkText(int rank, int operands, const std::string& position, const std::string& index_type, int first = 0);

// A function NAME(i, numbers, places): the places of position `i` in each operand. NAME_TABLE(numbers) defines the
// numbers, from entry `first` of the parameter `table` on. An item that walks several positions reads them once.
std::string WalkFunction(const std::string& name, int rank, int operands, const std::string& index_type, int first = 0);

// Divides a position, of type INDEX, by what the parameter `const ulong by` is: DivisorOf(extent, index_type).
inline uint64_t DivisorOf(int64_t extent, const std::string& index_type) {
  return static_cast<uint64_t>(index_type == "uint" ? ReciprocalOf(extent) : extent);
}
inline std::string DivideText(const std::string& index_type) {
  return "#define DIVIDE(position, by) " +
         std::string(index_type == "uint" ? "(uint)((ulong)(position) * (uint)(by) >> (int)((by) >> 32))\n"
                                          : "((position) / (by))\n");
}

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
