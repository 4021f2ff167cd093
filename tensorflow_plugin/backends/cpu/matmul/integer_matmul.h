// Matrix products of 8-bit integers with 32-bit results, exact but for wrapping: by VNNI where the processor has it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_INTEGER_MATMUL_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_INTEGER_MATMUL_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/matmul/engine.h"
#include "tensorflow_plugin/backends/cpu/matmul/gemm.h"

namespace xpu::cpu {

// A matrix of int8 or uint8, one of whose strides is 1.
struct ByteMatrix {
  const uint8_t* data;
  int64_t row_stride, col_stride;  // in elements
  bool is_signed;
};

// With at most so many rows of `a`, b is read as it lies if its rows are without gaps.
constexpr int MostRowsOfBytesAsTheyLie(int vector_bytes) { return vector_bytes == 64 ? 4 : 2; }

// c = a * b for [m,k] by [k,n]; m, n and k are positive, and c's columns are without gaps. `engine` is one of the three
// for bytes.
void MultiplyBytes(MatMulEngine engine, int64_t m, int64_t n, int64_t k, ByteMatrix a, ByteMatrix b,
                   StridedMatrix<int32_t> c, const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_INTEGER_MATMUL_H_
