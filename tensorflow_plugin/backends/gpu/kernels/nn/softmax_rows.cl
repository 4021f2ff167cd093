// As softmax.cl, for rows that are dense and short: an item has a row, which it walks in vectors of WIDTH elements. The
// same names stand before this source, and NUMBERS, the vector; elements are REAL where they are stored, too.
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define LOAD_NUMBERS(name, i) PASTE(vload, WIDTH)(i, AT(REAL, name) + from)
#define STORE_NUMBERS(name, i, v) PASTE(vstore, WIDTH)(v, i, AT(REAL, name) + from)
#define BLOCK 64

REAL total_of(const NUMBERS v) {
#if WIDTH == 8
  const PASTE(REAL, 4) four = v.lo + v.hi;
#else
  const PASTE(REAL, 4) four = v;
#endif
  return (four.x + four.z) + (four.y + four.w);
}

#if KIND < 2
#define result first_out
#else
#define result backprop
#endif

kernel void run(const ulong rows, const ulong n, MEMORY(logits), MEMORY(labels), MEMORY(first_out), MEMORY(backprop)) {
  const ulong row = get_global_id(0);
  if (row >= rows) return;
  const ulong from = row * n, vectors = n / WIDTH, rest = vectors * WIDTH;
  NUMBERS largest = SPLAT(NUMBERS, -INFINITY);
  for (ulong i = 0; i < vectors; ++i) {
    const NUMBERS v = LOAD_NUMBERS(logits, i);
    largest = SELECT(v > largest, v, largest);
  }
  REAL max_of_lanes[WIDTH], max = -INFINITY;
  PASTE(vstore, WIDTH)(largest, 0, max_of_lanes);
  for (int i = 0; i < WIDTH; ++i) max = max_of_lanes[i] > max ? max_of_lanes[i] : max;
  for (ulong c = rest; c < n; ++c) {
    const REAL logit = LOAD_LOGIT(from + c);
    max = logit > max ? logit : max;
  }
  // In blocks first, as sums of few numbers lose less.
  REAL exponentials = 0, of_labels = 0, distances = 0;
  for (ulong begin = 0; begin < vectors; begin += BLOCK) {
    NUMBERS sum = SPLAT(NUMBERS, 0), labels_sum = SPLAT(NUMBERS, 0), distances_sum = SPLAT(NUMBERS, 0);
    for (ulong i = begin; i < min(vectors, begin + BLOCK); ++i) {
      const NUMBERS shifted = LOAD_NUMBERS(logits, i) - max, exponential = exp(shifted);
      sum += exponential;
#if KIND == 2
      const NUMBERS label = LOAD_NUMBERS(labels, i);
      labels_sum += label;
      distances_sum -= label * shifted;
#endif
#if KIND != 1
      STORE_NUMBERS(result, i, exponential);
#endif
    }
    exponentials += total_of(sum);
    of_labels += total_of(labels_sum);
    distances += total_of(distances_sum);
  }
  for (ulong c = rest; c < n; ++c) {
    const REAL shifted = LOAD_LOGIT(from + c) - max;
    exponentials += exp(shifted);
#if KIND == 2
    const REAL label = LOAD_LABEL(from + c);
    of_labels += label;
    distances -= label * shifted;
#endif
  }
  const REAL log_sum = log(exponentials);
#if KIND == 2
  STORE_FIRST(row, of_labels * log_sum + distances);
#elif KIND == 3
  const long label = AT(LABEL_INDEX, labels)[row];
  const int valid = label >= 0 && label < (long)n;
  const REAL loss = valid ? log_sum - (LOAD_LOGIT(from + (ulong)label) - max) : (REAL)NAN;
  STORE_FIRST(row, loss);
#endif
  for (ulong i = 0; i < vectors; ++i) {
#if KIND == 1
    STORE_NUMBERS(result, i, LOAD_NUMBERS(logits, i) - max - log_sum);
#else
    const NUMBERS share = LOAD_NUMBERS(result, i) / exponentials;
#if KIND == 2
    STORE_NUMBERS(result, i, share - LOAD_NUMBERS(labels, i));
#elif KIND == 3
    STORE_NUMBERS(result, i, valid ? share : SPLAT(NUMBERS, (REAL)NAN));
#else
    STORE_NUMBERS(result, i, share);
#endif
#endif
  }
  for (ulong c = rest; c < n; ++c) {
    const REAL shifted = LOAD_LOGIT(from + c) - max;
#if KIND == 0
    STORE_FIRST(from + c, exp(shifted) / exponentials);
#elif KIND == 1
    STORE_FIRST(from + c, shifted - log_sum);
#elif KIND == 2
    STORE_BACKPROP(from + c, exp(shifted) / exponentials - LOAD_LABEL(from + c));
#else
    STORE_BACKPROP(from + c, valid ? exp(shifted) / exponentials : (REAL)NAN);
#endif
  }
#if KIND == 3
  if (valid) {
    const REAL at_label = AT(REAL, backprop)[from + (ulong)label];
    AT(REAL, backprop)[from + (ulong)label] = at_label - 1;
  }
#endif
}
