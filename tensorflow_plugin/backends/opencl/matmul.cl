// A group of SIDE x SIDE items computes a tile of TILE x TILE elements of c, EACH x EACH of them per item, from tiles of
// a and b that it brings into local memory. T is the type of a register, and SUM the one that products are added in.
// Items are SIDE apart in the tile, so that neighbours read and write neighbours.
#define TILE (SIDE * EACH)
#define STEP 16

kernel void run(const ulong m, const ulong n, const ulong k, const long a_row, const long a_column, const long b_row,
                const long b_column, const long c_row, MEMORY(a), MEMORY(b), MEMORY(c), const int rank, constant long *table) {
  local SUM tile_a[STEP][TILE + 1];
  local SUM tile_b[STEP][TILE];
  const uint x = get_local_id(0), y = get_local_id(1), item = y * SIDE + x;
  const ulong first_row = (ulong)get_group_id(1) * TILE, first_column = (ulong)get_group_id(0) * TILE;
  // Where the matrices of this product lie: o0, o1 and o2 elements into a, b and c.
  long o0 = 0, o1 = 0, o2 = 0;
  ulong rest = get_group_id(2);
  for (int d = rank - 1; d >= 0; --d) {
    const long position = rest % (ulong)table[d];
    rest /= (ulong)table[d];
    o0 += position * table[rank + d];
    o1 += position * table[2 * rank + d];
    o2 += position * table[3 * rank + d];
  }
  SUM sums[EACH][EACH];
  for (uint i = 0; i < EACH; ++i) {
    for (uint j = 0; j < EACH; ++j) sums[i][j] = 0;
  }
  for (ulong from = 0; from < k; from += STEP) {
    for (uint at = item; at < TILE * STEP; at += SIDE * SIDE) {
      // Along the axis whose elements are neighbours in memory.
      const uint a_i = a_column == 1 ? at / STEP : at % TILE, a_l = a_column == 1 ? at % STEP : at / TILE;
      const uint b_l = b_column == 1 ? at / TILE : at % STEP, b_j = b_column == 1 ? at % TILE : at / STEP;
      const ulong row = first_row + a_i, column = first_column + b_j;
      const ulong a_k = from + a_l, b_k = from + b_l;
      tile_a[a_l][a_i] = row < m && a_k < k ? (SUM)LOAD_A(o0 + (long)row * a_row + (long)a_k * a_column) : 0;
      tile_b[b_l][b_j] = column < n && b_k < k ? (SUM)LOAD_B(o1 + (long)b_k * b_row + (long)column * b_column) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint l = 0; l < STEP; ++l) {
      SUM of_b[EACH];
      for (uint j = 0; j < EACH; ++j) of_b[j] = tile_b[l][x + j * SIDE];
      for (uint i = 0; i < EACH; ++i) {
        const SUM of_a = tile_a[l][y + i * SIDE];
        for (uint j = 0; j < EACH; ++j) sums[i][j] = ADD_PRODUCT(of_a, of_b[j], sums[i][j]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint i = 0; i < EACH; ++i) {
    for (uint j = 0; j < EACH; ++j) {
      const ulong row = first_row + y + i * SIDE, column = first_column + x + j * SIDE;
      if (row < m && column < n) {
        const T value = (T)sums[i][j];
        STORE_C(o2 + (long)row * c_row + (long)column, value);
      }
    }
  }
}
