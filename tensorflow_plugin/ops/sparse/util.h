// The common part of the ops on sparse tensors. Their coordinates are int64 [entries, rank] in device memory.
#ifndef TENSORFLOW_PLUGIN_OPS_SPARSE_UTIL_H_
#define TENSORFLOW_PLUGIN_OPS_SPARSE_UTIL_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"

namespace xpu {

// TensorFlow's check of a sparse tensor whose shape is the vector `shape`.
Status CheckSparse(const Tensor& indices, const Tensor& values, const Tensor& shape);
// That extents are not negative, and their product is less than 2^63.
Status CheckExtents(const std::vector<int64_t>& extents);

// Fails with what `explain` says unless each of the coordinates [n, extents] of `indices` is within the extents.
Status CheckCoordinates(Context& ctx, const Tensor& indices, const Dims& extents, const DescribeError& explain);

// The result of `program` for each coordinate of [rows, rank] and the number in `row` [rank] of its column. May be in
// place.
Status WithRow(Context& ctx, const Program* program, const void* indices, int64_t rows, int64_t rank, const void* row,
               void* out);

// A column of an int64 matrix.
Status Column(Context& ctx, const void* matrix, int64_t rows, int64_t columns, int64_t column, void* out);

// 0, 1, ..., n - 1 as int64.
Status CountUp(Context& ctx, int64_t n, Temporary* out);

// By how much a coordinate's step moves its key, for a shape on the host.
std::vector<int64_t> KeyStrides(const std::vector<int64_t>& shape);
// The same for an int64 vector on the device.
Status KeyStrides(Context& ctx, const Tensor& shape, Temporary* out);
// One number for each row: the sum of its coordinates times `strides` [rank].
Status Keys(Context& ctx, const void* indices, int64_t rows, int64_t rank, const void* strides, Temporary* out);

// The int64 keys in ascending order, and where they were. Equal ones keep their order.
Status SortKeys(Context& ctx, const void* keys, int64_t n, Temporary* sorted, Temporary* positions);

// out[i, :] = from[positions[i], :] of [rows, length] elements of `size` bytes. The positions are known to be good.
Status TakeRows(Context& ctx, size_t size, const void* from, int64_t rows, int64_t length, const void* positions,
                int64_t n, void* out);
// out[positions[i], :] = from[i, :], into [rows, length].
Status PutRows(Context& ctx, DType type, const void* from, const void* positions, int64_t n, int64_t rows,
               int64_t length, void* out);

// The needs of these ops.
namespace needs {
Need Coordinates();  // WithRow and Column
Need Keys();
Need SortedKeys();
Need Scan(ScanKind kind);  // of int64
}  // namespace needs

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_SPARSE_UTIL_H_
