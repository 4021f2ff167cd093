#if defined(__x86_64__)
#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_products.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_sums_in_registers.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/cpu/simd/target.h"

namespace xpu::cpu {
namespace {

constexpr int64_t kQuadBytes = 4 * kByteGroup;  // of all columns of a group

// ---- AVX-512 VNNI ----

XPU_BEGIN_TARGET(XPU_AVX512_VNNI)

// The sums of kRows rows and kGroups groups, from row `row` of a tile on.
template <int kRows, int kGroups, bool kFinishes>
void MultiplyRows(const ByteBlock& block, int64_t tile, int64_t row, int64_t group) {
  const int64_t group_bytes = block.runs * block.terms * kByteGroup;
  const int8_t* packed = block.packed + group * group_bytes;
  const int64_t of_block = tile * kTileRows + row, column = group * kByteGroup;
  const ByteEpilogue epilogue = kFinishes ? block.epilogue->At(of_block, column) : ByteEpilogue{};
  __m512i sum[kRows][kGroups];
  BeginSums<kRows, kGroups, kFinishes>(epilogue, sum);
  for (int64_t run = 0; run < block.runs; ++run) {
    const uint8_t* const x = block.tiles[tile] + row * block.pitch + block.offsets[run];
    for (int64_t term = 0; term < block.terms; term += 4, packed += kQuadBytes) {
      __m512i w[kGroups];
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) w[g] = _mm512_loadu_si512(packed + g * group_bytes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        int32_t quad;
        std::memcpy(&quad, x + i * block.pitch + term, sizeof(quad));
        const __m512i quads = _mm512_set1_epi32(quad);
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g) sum[i][g] = _mm512_dpbusd_epi32(sum[i][g], quads, w[g]);
      }
    }
  }
  EndSums<kRows, kGroups, kFinishes>(epilogue, sum, block.sums + of_block * kBlockColumns + column, kBlockColumns);
}

// kRows rows at a time, and then kFew.
template <int kRows, int kGroups, bool kFinishes>
void MultiplyGroups(const ByteBlock& block, int64_t group) {
  constexpr int kFew = 4;
  for (int64_t tile = 0; tile * kTileRows < block.rows; ++tile) {
    const int64_t rows = std::min(kTileRows, block.rows - tile * kTileRows);
    int64_t row = 0;
    for (; row + kFew < rows; row += kRows) MultiplyRows<kRows, kGroups, kFinishes>(block, tile, row, group);
    for (; row < rows; row += kFew) MultiplyRows<kFew, kGroups, kFinishes>(block, tile, row, group);
  }
}

// Sums fill registers.
template <bool kFinishes>
void MultiplyByQuads(const ByteBlock& block) {
  int64_t group = 0;
  for (; group + 4 <= block.groups; group += 4) MultiplyGroups<6, 4, kFinishes>(block, group);
  for (; group + 2 <= block.groups; group += 2) MultiplyGroups<8, 2, kFinishes>(block, group);
  if (group < block.groups) MultiplyGroups<16, 1, kFinishes>(block, group);
}

void MultiplyAndFinishByQuads(const ByteBlock& block) {
  block.epilogue == nullptr ? MultiplyByQuads<false>(block) : MultiplyByQuads<true>(block);
}

XPU_END_TARGET

// ---- AMX: tiles 0 to 3 are sums, 4 and 5 rows of x, 6 and 7 groups of the matrix. ----

XPU_BEGIN_TARGET(XPU_AMX)

constexpr int64_t kTileTerms = 64;

void ConfigureTiles() {
  struct alignas(64) Configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  Configuration configuration = {};
  configuration.palette = 1;
  for (int i = 0; i < 8; ++i) {
    configuration.row_bytes[i] = kTileTerms;
    configuration.rows[i] = kTileRows;
  }
  _tile_loadconfig(&configuration);
}

void ReleaseTiles() { _tile_release(); }

// kTall tiles of rows times kWide groups.
template <int kTall, int kWide>
void MultiplyTiles(const ByteBlock& block, int64_t group) {
  const int64_t group_bytes = block.runs * block.terms * kByteGroup;
  const int8_t* packed = block.packed + group * group_bytes;
  _tile_zero(0);
  if (kWide > 1) _tile_zero(1);
  if (kTall > 1) _tile_zero(2);
  if (kTall > 1 && kWide > 1) _tile_zero(3);
  for (int64_t run = 0; run < block.runs; ++run) {
    const uint8_t* const x = block.tiles[0] + block.offsets[run];
    const uint8_t* const below = kTall > 1 ? block.tiles[1] + block.offsets[run] : nullptr;
    for (int64_t term = 0; term < block.terms; term += kTileTerms, packed += kTileTerms * kByteGroup) {
      _tile_loadd(4, x + term, block.pitch);
      _tile_loadd(6, packed, kQuadBytes);
      _tile_dpbusd(0, 4, 6);
      if (kTall > 1) {
        _tile_loadd(5, below + term, block.pitch);
        _tile_dpbusd(2, 5, 6);
      }
      if (kWide > 1) {
        _tile_loadd(7, packed + group_bytes, kQuadBytes);
        _tile_dpbusd(1, 4, 7);
        if (kTall > 1) _tile_dpbusd(3, 5, 7);
      }
    }
  }
  constexpr int64_t kRowBytes = kBlockColumns * sizeof(int32_t);
  int32_t* const to = block.sums + group * kByteGroup;
  int32_t* const to_below = to + kTileRows * kBlockColumns;
  _tile_stored(0, to, kRowBytes);
  if (kWide > 1) _tile_stored(1, to + kByteGroup, kRowBytes);
  if (kTall > 1) _tile_stored(2, to_below, kRowBytes);
  if (kTall > 1 && kWide > 1) _tile_stored(3, to_below + kByteGroup, kRowBytes);
}

template <int kTall>
void MultiplyGroupsOfTiles(const ByteBlock& block) {
  int64_t group = 0;
  for (; group + 2 <= block.groups; group += 2) MultiplyTiles<kTall, 2>(block, group);
  if (group < block.groups) MultiplyTiles<kTall, 1>(block, group);
}

__attribute__((noinline)) void MultiplyByTiles(const ByteBlock& block) {
  // The compiler does not know that loads of tiles read memory.
  asm volatile("" ::: "memory");
  block.rows > kTileRows ? MultiplyGroupsOfTiles<2>(block) : MultiplyGroupsOfTiles<1>(block);
}

XPU_END_TARGET

}  // namespace

bool HasByteProducts() { return ActiveIsa() >= Isa::kAvx512Vnni; }
int64_t ByteTerms() { return ActiveIsa() == Isa::kAmx ? kTileTerms : 4; }
double BytesMultipliedPerNs() { return ActiveIsa() == Isa::kAmx ? 1000 : 250; }

bool ByteProducts::MayFinish() { return ActiveIsa() != Isa::kAmx; }

ByteProducts::ByteProducts() : multiply_(ActiveIsa() == Isa::kAmx ? &MultiplyByTiles : &MultiplyAndFinishByQuads) {
  if (multiply_ == &MultiplyByTiles) ConfigureTiles();
}
ByteProducts::~ByteProducts() {
  if (multiply_ == &MultiplyByTiles) ReleaseTiles();
}

}  // namespace xpu::cpu
#endif
