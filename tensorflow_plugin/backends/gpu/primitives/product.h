// Products of matrices, whatever their elements are made of: in tiles in local memory, or on processors, whose local
// memory is memory, from registers.
//
// A primitive says in OpenCL C what the operands are, by macros:
//   PARAMETERS                a kernel's parameters after m, n and k
//   BEGIN(batch)              statements that define what the others need
//   K_BEGIN, K_END            of the terms, those that are summed here
//   STORE(row, column, sum)   a statement, with FINISH(i, x), which does with element i of c what is to be done with it
// for tiles, whose items have the same rows and columns throughout, and so look only once for what these need:
//   A_ROW, A_TERM, B_TERM, B_COLUMN   types
//   A_ROW_AT(row), A_TERM_AT(l), B_TERM_AT(l), B_COLUMN_AT(column)   of these types, what an element needs to know
//   A(a_row, a_term), B(b_term, b_column)   elements, as SUM, the type of sums; the arguments are variables
// and for processors, who walk along k in segments, in each of which elements are at steps:
//   LENGTH, SEGMENT_BEGIN, SEGMENT_END
//   ROWS_BEGIN, ROW(i)        statements before all segments: about all rows from first_row on, and row first_row + i,
//                             which is the last one again beyond m; i is a number
//   SEGMENT, SEGMENT_ROW(i), SEGMENT_READY   set at_a[i] and at_b, where segment s begins; and where it is so, that it
//                             has elements from l_begin to l_end alone, and that not all are there (all_there = 0)
//   IS_THERE(i, l)            whether there is an element l of row i, or it counts as 0
//   A_STEP, B_STEP            from one element to the next;  B_COLUMN_STEP  from one column of b to the next
//   B_ROWS_ARE_DENSE          whether elements of a row are neighbours in memory
// with parameters MEMORY(a), MEMORY(b) and MEMORY(c), and EPILOGUE_PARAMETERS behind all others. T, SUM, LOAD_A(i),
// LOAD_B(i), and FINISH(i, x) are defined.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_PRODUCT_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_PRODUCT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/call.h"
#include "tensorflow_plugin/backends/gpu/codegen/element_walk.h"
#include "tensorflow_plugin/backends/gpu/hardware.h"
#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::gpu {

// Rows of a product that an item of a processor computes; 1 on other devices, whose items are in groups.
int64_t ItemRows(const Hardware& hardware);

// The bytes of a sum of products.
size_t SumSize(DType type);

inline DType ResultTypeOf(const MatMulDesc& desc) { return TypeOfC(desc); }
inline DType ResultTypeOf(const ConvolutionDesc& desc) { return desc.type; }

// The treatment of a finished element: it is stored, or a program makes something of it.
class KernelEpilogue {
 public:
  // Made from a MatMulDesc or ConvolutionDesc, which lives as long.
  template <typename Desc>
  explicit KernelEpilogue(const Desc& desc) : type_(ResultTypeOf(desc)) {
    if (!HasEpilogue(desc)) return;
    program_ = desc.epilogue.program;
    walk_.emplace(desc.epilogue, /*first=*/1);
  }
  // Nothing but a store of that type.
  explicit KernelEpilogue(DType type) : type_(type) {}

  // The part of a kernel's key that describes it.
  std::string Key() const { return walk_ ? " " + walk_->Key() : ""; }
  // FINISH(i, x) and EPILOGUE_PARAMETERS. In front stand ProductElements.
  std::string Text() const;
  // Sets these parameters, if there are any.
  void SetArguments(Call& call, const Args& args) const;

 private:
  const DType type_;
  const Program* program_ = nullptr;
  std::optional<ElementWalk> walk_;
};

// T, SUM, LOAD_A(i), LOAD_B(i) and STORE_C(i, x), of operands of one type or of several.
std::string ProductElements(DType type);
std::string ProductElements(DType a, DType b, DType c);

// `batches` products of [m, k] and [k, n].
struct Products {
  DType type;                                                // of c
  DType a_type = DType::kInvalid, b_type = DType::kInvalid;  // kInvalid: `type`
  int64_t m, n, k, batches;
  // A number below 16 that tells, beside the extents, which tiles are quick.
  int kind;
  // True if elements of a row of a, and of b, are neighbours in memory: for tiles.
  bool a_dense, b_dense;
  // Names the kernel, and says what its operands are.
  std::string key;
  std::function<std::string()> operands;
  // Sets the parameters after m, n and k.
  std::function<void(Call& call)> set_arguments;
};

// The tiles that groups of items may compute: of each, bits are the same.
struct Tile {
  int side;   // items along both of a group's sides; 1 on processors
  int width;  // elements along both of the tile's sides that an item computes; on processors, of its vectors
};
// The tiles that fit the device. The first is used where nothing is known of their speeds for products of these
// extents. The power of two that is not larger counts.
std::vector<Tile> TilesFor(const Hardware& hardware, DType type, int64_t m, int64_t n, int64_t batches);

// Adds up [parts, items] in the workspace, as SUM, to the result.
Status AddParts(Machine& machine, Queue& queue, DType type, int64_t items, int64_t parts, const Args& args,
                const KernelEpilogue& epilogue);

Status RunProducts(Machine& machine, Queue& queue, const Products& products, const Args& args,
                   const KernelEpilogue& epilogue);

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_PRODUCT_H_
