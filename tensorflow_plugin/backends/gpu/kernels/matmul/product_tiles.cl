// A group of SIDE x SIDE items computes a tile of TILE x TILE elements of a product, EACH x EACH of them per item. It
// brings tiles of a and b into local memory, STEP terms of each sum at a time. While items add up the products of one
// such step, the elements for the next one are on their way from memory to registers.
//
// An item has PIECE rows and columns that are neighbours, which it reads from local memory as a VECTOR. Its pieces are
// SIDE pieces apart, so that neighbours among items read neighbours. Every tile adds the terms of a sum in the same
// order. These stand before this source: SUM, the type of sums; ADD_PRODUCT(x, y, sum); and the operands (product.h).
// A_DENSE and B_DENSE say if elements of a row are neighbours in memory.
#define TILE (SIDE * EACH)
#define ITEMS (SIDE * SIDE)
#define LOADS (TILE * STEP / ITEMS)
// Row or column i of an item, in the tile.
#define PLACE(own, i) ((own)*PIECE + (i) / PIECE * (SIDE * PIECE) + (i) % PIECE)

// Which element an item loads, along the axis whose elements are neighbours in memory: of a, row A_I and term A_L.
#if A_DENSE
#define A_LINES LOADS  // rows that it loads from, and terms
#define A_TERMS 1
#define A_I(load) (item / STEP + (load) * (ITEMS / STEP))
#define A_L(load) (item % STEP)
#else
#define A_LINES 1
#define A_TERMS LOADS
#define A_I(load) (item % TILE)
#define A_L(load) (item / TILE + (load) * (ITEMS / TILE))
#endif
#if B_DENSE
#define B_LINES 1
#define B_TERMS LOADS
#define B_J(load) (item % TILE)
#define B_L(load) (item / TILE + (load) * (ITEMS / TILE))
#else
#define B_LINES LOADS
#define B_TERMS 1
#define B_J(load) (item / STEP + (load) * (ITEMS / STEP))
#define B_L(load) (item % STEP)
#endif

kernel void run(const ulong m, const ulong n, const ulong k, PARAMETERS) {
  SHARED SUM tile_a[STEP][TILE + PIECE] ALIGNED(16);
  SHARED SUM tile_b[STEP][TILE + PIECE] ALIGNED(16);
  const uint x = get_local_id(0), y = get_local_id(1), item = y * SIDE + x;
  // Groups are along one axis, as devices limit the others. Neighbours have the same rows.
  const ulong across = (n + TILE - 1) / TILE, in_all = across * ((m + TILE - 1) / TILE);
  const ulong product = get_group_id(0) / in_all, tile = get_group_id(0) % in_all;
  const ulong first_row = tile / across * TILE, first_column = tile % across * TILE;
  BEGIN(product)
  const ulong begin = K_BEGIN, end = K_END;
  // Rows and columns beyond the last are that again, and not stored.
  A_ROW of_rows[A_LINES];
  B_COLUMN of_columns[B_LINES];
#pragma unroll
  for (uint i = 0; i < A_LINES; ++i) of_rows[i] = A_ROW_AT(min(first_row + A_I(i), m - 1));
#pragma unroll
  for (uint i = 0; i < B_LINES; ++i) of_columns[i] = B_COLUMN_AT(min(first_column + B_J(i), n - 1));
  SUM sums[EACH][EACH], next_a[LOADS], next_b[LOADS];
#pragma unroll
  for (uint i = 0; i < EACH; ++i) {
#pragma unroll
    for (uint j = 0; j < EACH; ++j) sums[i][j] = SPLAT(SUM, 0);
  }
  for (ulong from = begin;; from += STEP) {
    if (from < end) {
      A_TERM of_a[A_TERMS];
      B_TERM of_b[B_TERMS];
#pragma unroll
      for (uint i = 0; i < A_TERMS; ++i) of_a[i] = A_TERM_AT(from + A_L(i));
#pragma unroll
      for (uint i = 0; i < B_TERMS; ++i) of_b[i] = B_TERM_AT(from + B_L(i));
#pragma unroll
      for (uint i = 0; i < LOADS; ++i) {
        next_a[i] = from + A_L(i) < end ? A(of_rows[i % A_LINES], of_a[i % A_TERMS]) : SPLAT(SUM, 0);
        next_b[i] = from + B_L(i) < end ? B(of_b[i % B_TERMS], of_columns[i % B_LINES]) : SPLAT(SUM, 0);
      }
    }
    if (from != begin) {
#pragma unroll
      for (uint l = 0; l < STEP; ++l) {
        SUM of_y[EACH] ALIGNED(16), of_x[EACH] ALIGNED(16);
#pragma unroll
        for (uint i = 0; i < EACH; i += PIECE) {
          *(VECTOR *)&of_y[i] = *(const SHARED_POINTER(VECTOR))&tile_a[l][PLACE(y, i)];
          *(VECTOR *)&of_x[i] = *(const SHARED_POINTER(VECTOR))&tile_b[l][PLACE(x, i)];
        }
#pragma unroll
        for (uint i = 0; i < EACH; ++i) {
#pragma unroll
          for (uint j = 0; j < EACH; ++j) sums[i][j] = ADD_PRODUCT(of_y[i], of_x[j], sums[i][j]);
        }
      }
    }
    if (from >= end) break;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < LOADS; ++i) {
      tile_a[A_L(i)][A_I(i)] = next_a[i];
      tile_b[B_L(i)][B_J(i)] = next_b[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (uint i = 0; i < EACH; ++i) {
#pragma unroll
    for (uint j = 0; j < EACH; ++j) {
      const ulong row = first_row + PLACE(y, i), column = first_column + PLACE(x, j);
      if (row < m && column < n) STORE(row, column, sums[i][j]);
    }
  }
}
