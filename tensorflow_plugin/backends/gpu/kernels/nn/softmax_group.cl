// As softmax.cl, with the same in front, for devices that are no processors: a group of ITEMS items has a row. They read
// neighbours, and what each of them found they put together in local memory. A row of at most ITEMS * HELD elements is
// read once and held in registers; HELD is 0 for longer ones.
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define TOGETHER(value, COMBINE)                                                         \
  BARRIER; /* all have read what was there */                                            \
  shared[item] = value;                                                                  \
  BARRIER;                                                                               \
  for (uint half_of = ITEMS / 2; half_of > 0; half_of /= 2) {                            \
    if (item < half_of) shared[item] = COMBINE(shared[item], shared[item + half_of]);    \
    BARRIER;                                                                             \
  }                                                                                      \
  value = shared[0];
#define LARGER(x, y) ((x) > (y) ? (x) : (y))
#define SUM_OF(x, y) ((x) + (y))
#if HELD > 0
#define EACH_COLUMN(c) _Pragma("unroll") for (uint k = 0; k < HELD; ++k) for (ulong c = item + k * ITEMS; c < n; c = n)
#define FOUND(c) held[k]
#else
#define EACH_COLUMN(c) for (ulong c = item; c < n; c += ITEMS)
#define FOUND(c) LOGIT(c)
#endif
#define LOGIT(c) LOAD_LOGIT(logits_at_row + (long)(c)*logits_column)
#define LABEL(c) LOAD_LABEL((long)row * labels_row + (long)(c)*labels_column)

kernel void run(const ulong n, const long logits_row, const long logits_column, const long labels_row,
                const long labels_column, MEMORY(logits), MEMORY(labels), MEMORY(first_out), MEMORY(backprop)) {
  SHARED REAL shared[ITEMS];
  const uint item = get_local_id(0);
  const ulong row = get_group_id(0);
  const long logits_at_row = (long)row * logits_row;
#if HELD > 0
  // All of them are on their way at a time; those beyond the last are that one.
  REAL held[HELD];
#pragma unroll
  for (uint k = 0; k < HELD; ++k) held[k] = LOGIT(min((ulong)(item + k * ITEMS), n - 1));
#endif
  REAL max = -INFINITY;
  EACH_COLUMN(c) {
    const REAL logit = FOUND(c);
    max = LARGER(logit, max);
  }
  TOGETHER(max, LARGER)
  REAL exponentials = 0, of_labels = 0, distances = 0;
  EACH_COLUMN(c) {
    const REAL shifted = FOUND(c) - max;
    exponentials += exp(shifted);
#if KIND == 2
    const REAL label = LABEL(c);
    of_labels += label;
    distances -= label * shifted;
#endif
  }
  TOGETHER(exponentials, SUM_OF)
  const REAL log_sum = log(exponentials);
#if KIND == 2
  TOGETHER(of_labels, SUM_OF)
  TOGETHER(distances, SUM_OF)
  if (item == 0) STORE_FIRST(row, of_labels * log_sum + distances);
#elif KIND == 3
  const long label = AT(LABEL_INDEX, labels)[row];
  const int valid = label >= 0 && label < (long)n;
  if (item == 0) {
    const REAL loss = valid ? log_sum - (LOGIT(label) - max) : (REAL)NAN;
    STORE_FIRST(row, loss);
  }
#endif
  EACH_COLUMN(c) {
    const REAL shifted = FOUND(c) - max;
#if KIND == 0
    STORE_FIRST(row * n + c, exp(shifted) / exponentials);
#elif KIND == 1
    STORE_FIRST(row * n + c, shifted - log_sum);
#elif KIND == 2
    STORE_BACKPROP(row * n + c, exp(shifted) / exponentials - LABEL(c));
#else
    const REAL gradient = exp(shifted) / exponentials - (label == (long)c ? 1 : 0);
    STORE_BACKPROP(row * n + c, valid ? gradient : (REAL)NAN);
#endif
  }
}
