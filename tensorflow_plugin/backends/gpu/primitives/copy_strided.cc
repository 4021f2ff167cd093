// One view to another, an item per element or block of elements: only their size matters.
#include <string>
#include <utility>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"

namespace xpu::gpu {
namespace {

// The axis along which elements are neighbours, the longest of several; -1: none.
int DenseAxis(const Dims& shape, const Dims& strides) {
  int found = -1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (strides[d] == 1 && (found < 0 || shape[d] > shape[found])) found = d;
  }
  return found;
}

// The elements that an item copies: so many along the last axis but one, and along the last one.
struct CopyBlock {
  int64_t rows = 1, columns = 1;
};

// Puts the axes last along which elements are neighbours in the source and in the destination, so that an item copies a
// block of both. Items of a processor copy axes that are dense in both in pieces; others have neighbours each.
CopyBlock Arrange(const Hardware& hardware, Dims* shape, Dims* src, Dims* dst) {
  const int64_t side = hardware.is_processor ? 8 : 4;
  const int of_dst = DenseAxis(*shape, *dst), of_src = DenseAxis(*shape, *src);
  const auto put_last = [&](int axis) {
    for (Dims* dims : {shape, src, dst}) {
      for (int d = axis; d + 1 < dims->rank(); ++d) std::swap((*dims)[d], (*dims)[d + 1]);
    }
  };
  if (of_dst < 0 || shape->rank() < 2 || of_src < 0 || of_src == of_dst) {
    if (of_dst >= 0) put_last(of_dst);
    return {1, hardware.is_processor ? 4 * side : 1};
  }
  put_last(of_src);
  put_last(of_dst - (of_dst > of_src ? 1 : 0));
  return {side, side};
}

// The walk is over blocks. Rows and columns, which blocks are of, are given in elements, with their strides.
std::string Source(size_t element_size, int rank, const CopyBlock& block, const char* index_type) {
  const CopyUnit unit = UnitOf(element_size);
  return errors::Concat(
      "#define ROWS ", block.rows, "\n#define COLUMNS ", block.columns, "\n#define UNITS ", element_size / unit.size,
      "\n#define COPY(rows, columns) \\\n  for (uint r = 0; r < (rows); ++r) \\\n",
      "    for (uint c = 0; c < (columns); ++c) \\\n      for (uint k = 0; k < UNITS; ++k) \\\n",
      "        to_here[(r * to_row + c * to_column) * UNITS + k] = from_here[(r * from_row + c * from_column) * UNITS "
      "+ k];\n",
      "kernel void run(const ulong n, MEMORY(in), MEMORY(out), const long from, const long to, const ulong rows, ",
      "const ulong columns, const long from_row, const long from_column, const long to_row, const long to_column, ",
      "CONSTANT long *table) {\n  const ", index_type, " i = get_global_id(0);\n  if (i >= n) return;\n",
      WalkText(rank, 2, "i", index_type), "  const ulong across = (columns + COLUMNS - 1) / COLUMNS;\n",
      "  const ulong down = (rows + ROWS - 1) / ROWS;\n",
      "  const ulong rows_left = rows - i / across % down * ROWS, columns_left = columns - i % across * COLUMNS;\n",
      "  GLOBAL ", unit.type, " *to_here = AT(", unit.type, ", out) + (to + o1) * UNITS;\n  const GLOBAL ", unit.type,
      " *from_here = AT(", unit.type, ", in) + (from + o0) * UNITS;\n",
      "  if (rows_left >= ROWS && columns_left >= COLUMNS) {\n    COPY(ROWS, COLUMNS)\n  } else {\n",
      "    COPY(min(rows_left, (ulong)ROWS), min(columns_left, (ulong)COLUMNS))\n  }\n}\n");
}

}  // namespace

bool Supports(const Abilities&, const CopyStridedDesc&) { return true; }

Status Enqueue(Machine& machine, Queue& queue, const CopyStridedDesc& desc, const Args& args, const Footprint&) {
  Dims shape = desc.shape, src = desc.src_strides, dst = desc.dst_strides;
  Dims* const strides[] = {&src, &dst};
  MergeDims(&shape, strides, 2);
  const int64_t n = shape.num_elements();
  if (n == 1 || (shape.rank() == 1 && src[0] == 1 && dst[0] == 1)) {
    const int64_t size = static_cast<int64_t>(desc.element_size);
    return queue.CopyDeviceToDevice(static_cast<char*>(args.out[0]) + desc.dst_offset * size,
                                    static_cast<const char*>(args.in[0]) + desc.src_offset * size,
                                    desc.element_size * static_cast<size_t>(n));
  }
  const CopyBlock block = Arrange(machine.hardware(), &shape, &src, &dst);
  const int last = shape.rank() - 1;
  const int64_t columns = shape[last], rows = last > 0 ? shape[last - 1] : 1;
  const int64_t row_strides[] = {last > 0 ? src[last - 1] : 0, last > 0 ? dst[last - 1] : 0};
  const int64_t column_strides[] = {src[last], dst[last]};
  const auto in_blocks = [&](int axis, int64_t side) {
    shape[axis] = (shape[axis] + side - 1) / side;
    src[axis] *= side;
    dst[axis] *= side;
  };
  in_blocks(last, block.columns);
  if (last > 0) in_blocks(last - 1, block.rows);
  const int64_t items = shape.num_elements();
  const char* const index_type = IndexType(items);
  const std::string key = errors::Concat("copy ", desc.element_size, " ", shape.rank(), " ", block.rows, " ",
                                         block.columns, " ", index_type);
  Call call(machine, queue, key, [&] { return Source(desc.element_size, shape.rank(), block, index_type); });
  call.Value(static_cast<uint64_t>(items)).Memory(args.in[0]).Memory(args.out[0]);
  for (int64_t value : {desc.src_offset, desc.dst_offset, rows, columns, row_strides[0], column_strides[0],
                        row_strides[1], column_strides[1]}) {
    call.Value(static_cast<int64_t>(value));
  }
  return call.Table(WalkTable(shape, {&src, &dst})).Run(items);
}

}  // namespace xpu::gpu
