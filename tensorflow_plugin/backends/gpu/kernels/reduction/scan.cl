// Running totals of lines: line l is element l % inner of array l / inner. An item works on a part of a line, of
// `length` elements in the order of the scan. In front of this stand T, a register; LOAD_X(i), STORE_Y(i, x); START; and
// TOTAL(a, b).
#define STEP_TOTALS 0
#define STEP_BEFORE 1
#define STEP_WRITE 2

kernel void run(const int step, const ulong lines, const ulong n, const ulong inner, const ulong parts,
                const ulong length, const int exclusive, const int reverse, MEMORY(x), MEMORY(totals), MEMORY(y)) {
  const ulong id = get_global_id(0), line = id % lines, part = id / lines;
  // The total of part p of a line, and when that step is done, of all parts in front of it.
  GLOBAL T *total_of = AT(T, totals) + line;
  if (step == STEP_BEFORE) {
    if (id >= lines) return;
    T total = START;
    for (ulong p = 0; p < parts; ++p) {
      const T of_part = total_of[p * lines];
      total_of[p * lines] = total;
      total = TOTAL(total, of_part);
    }
    return;
  }
  if (part >= parts) return;
  const ulong begin = line / inner * n * inner + line % inner;
  T total = step == STEP_WRITE && parts > 1 ? total_of[part * lines] : START;
  for (ulong i = part * length; i < min(n, (part + 1) * length); ++i) {
    const ulong at = begin + (reverse ? n - 1 - i : i) * inner;
    const T element = LOAD_X(at), before = total;
    total = TOTAL(total, element);
    if (step == STEP_WRITE) {
      const T value = exclusive ? before : total;
      STORE_Y(at, value);
    }
  }
  if (step == STEP_TOTALS) total_of[part * lines] = total;
}
