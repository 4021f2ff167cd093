// The common part of Gather and Scatter: how kernels find the row that an index names, and how one out of range is
// reported.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_INDICES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_INDICES_H_

#include <cstdint>
#include <string>

#include "tensorflow_plugin/backends/gpu/call.h"
#include "tensorflow_plugin/primitives/dims.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::gpu {

// A report has 32 bits, and the last number means nothing. So an extent, or a product of extents that may be open
// (kAny), must lie below.
bool FitsReport(int64_t a, int64_t b = 1);

// long row_of(j, MEMORY(indices), depth, table, any_negative): the row in an array of shape [dims..., row] that index j
// names, or -1. `table` begins with dims, and the int at any_negative becomes whether a coordinate is below 0.
std::string RowOfText(DType index_type);

// The failure of index `number`, which is read from the device. `position` is what to call it.
Status IndexFailure(Machine& machine, DType index_type, const Dims& dims, const void* indices, uint32_t number,
                    const std::string& position);

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_INDICES_H_
