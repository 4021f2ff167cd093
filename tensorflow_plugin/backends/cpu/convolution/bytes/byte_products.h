// Products of blocks of rows of bytes and a packed matrix of signed bytes, by AVX-512 VNNI or AMX.
//
// The matrix lies in groups of kByteGroup columns. A group has its quads one after the other (simd/quads.h): four terms
// of each column. That is also how AMX wants a tile of 16 quads.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_PRODUCTS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_PRODUCTS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_sums.h"

namespace xpu::cpu {

// Columns of a group, rows of a tile, and the tiles and columns that a block has at most.
inline constexpr int64_t kByteGroup = 16, kTileRows = 16, kBlockTiles = 2, kBlockColumns = 64;

// True if the processor has either. The instruction set is ActiveIsa.
bool HasByteProducts();
// The terms of a run are a multiple of so many.
int64_t ByteTerms();
// About how many multiplications a thread does in a nanosecond.
double BytesMultipliedPerNs();

// Rows of bytes times some columns. A row consists of runs, which begin at these offsets from its address. Each has
// `terms` bytes. The rows of a tile begin `pitch` bytes after each other.
struct ByteBlock {
  const uint8_t* tiles[kBlockTiles];
  int64_t rows;  // of all tiles; the last one may have fewer than kTileRows, and all of them may be read
  int64_t pitch;
  int64_t runs, terms;
  const int64_t* offsets;
  const int8_t* packed;  // some groups
  int64_t groups;
  int32_t* sums;  // of all tiles, in rows of kBlockColumns
  // Null: sums are stored. Otherwise each tile has all rows, and each group all columns.
  const ByteEpilogue* epilogue;
};

// Multiplies blocks on the thread that made it. For AMX it holds the thread's tile configuration, so that thread must
// not call oneDNN meanwhile.
class ByteProducts {
 public:
  ByteProducts();
  ~ByteProducts();
  ByteProducts(const ByteProducts&) = delete;
  ByteProducts& operator=(const ByteProducts&) = delete;

  // True if blocks may have an epilogue.
  static bool MayFinish();

  void Multiply(const ByteBlock& block) const { multiply_(block); }

 private:
  void (*multiply_)(const ByteBlock&);
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_PRODUCTS_H_
