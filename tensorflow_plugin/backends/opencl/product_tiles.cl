// A group of SIDE x SIDE items computes a tile of TILE x TILE elements of a product, EACH x EACH of them per item, from
// tiles of a and b that it brings into local memory. Items are SIDE apart in the tile, so that neighbours read and write
// neighbours. STEP terms of each sum are brought there at a time. In front of this stand SUM, what products are
// added in, ADD_PRODUCT(x, y, sum), and the operands (product.h).
#define TILE (SIDE * EACH)

kernel void run(const ulong m, const ulong n, const ulong k, PARAMETERS) {
  local SUM tile_a[STEP][TILE + 1];
  local SUM tile_b[STEP][TILE];
  const uint x = get_local_id(0), y = get_local_id(1), item = y * SIDE + x;
  const ulong first_row = (ulong)get_group_id(1) * TILE, first_column = (ulong)get_group_id(0) * TILE;
  BEGIN(get_group_id(2))
  SUM sums[EACH][EACH];
  for (uint i = 0; i < EACH; ++i) {
    for (uint j = 0; j < EACH; ++j) sums[i][j] = 0;
  }
  for (ulong from = K_BEGIN; from < K_END; from += STEP) {
    for (uint at = item; at < TILE * STEP; at += SIDE * SIDE) {
      // Along the axis whose elements are neighbours in memory.
      const uint a_i = A_ROWS_ARE_DENSE ? at / STEP : at % TILE, a_l = A_ROWS_ARE_DENSE ? at % STEP : at / TILE;
      const uint b_l = B_ROWS_ARE_DENSE ? at / TILE : at % STEP, b_j = B_ROWS_ARE_DENSE ? at % TILE : at / STEP;
      const ulong row = first_row + a_i, column = first_column + b_j;
      const ulong a_k = from + a_l, b_k = from + b_l;
      tile_a[a_l][a_i] = row < m && a_k < K_END ? A(row, a_k) : (SUM)0;
      tile_b[b_l][b_j] = column < n && b_k < K_END ? B(b_k, column) : (SUM)0;
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
      if (row < m && column < n) STORE(row, column, sums[i][j]);
    }
  }
}
