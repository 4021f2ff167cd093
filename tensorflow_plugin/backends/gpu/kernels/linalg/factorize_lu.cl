// l and u in one. `regular`: a singular matrix fails the command.
kernel void run(const ulong n, const int regular, MEMORY(a), MEMORY(lu), MEMORY(permutation), MEMORY(sign), MEMORY(report)) {
  SHARED REAL lanes[LANES];
  SHARED uint places[LANES];
  const ulong matrix = get_group_id(0);
  const Matrix from = AT(T, a) + matrix * n * n, to = AT(T, lu) + matrix * n * n;
  FOR_LANES(i, 0, n * n) to[i] = from[i];
  int is_even;
  const int is_regular = factorize_lu(to, n, AT(int, permutation) + matrix * n, &is_even, lanes, places);
  if (LANE == 0) {
    AT(T, sign)[matrix] = FROM_REAL((REAL)is_even);
    if (regular && !is_regular) FAIL(min(matrix, (ulong)UINT_MAX - 1));
  }
}
