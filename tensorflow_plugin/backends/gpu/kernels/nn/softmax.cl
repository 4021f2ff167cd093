// These stand before this source: REAL, the type of the computation; LOAD_LOGIT(i), LOAD_LABEL(i), STORE_FIRST(i, x)
// and STORE_BACKPROP(i, x). LABEL_INDEX is the integer type of a sparse label. KIND is 0 for softmax, 1 for the
// logarithm, 2 for cross-entropy, 3 for sparse.
//
// An item works on a part of a row: the elements of [first part, first part + span) that are `step` apart. The steps
// are its maximum, its sums and its results. They are one run where a row is one part. Otherwise each has a run, which
// finds the results of the others in `partials`, [rows, parts] of them.
#define STEP_MAX 1
#define STEP_SUMS 2
#define STEP_RESULTS 4
#define BLOCK 64

typedef struct {
  REAL max;
  REAL exponentials;  // the sum of exp(logit - max)
  REAL labels;        // the sum of labels, and of labels times -(logit - max)
  REAL distances;
} Partial;

kernel void run(const ulong rows, const ulong n, const ulong parts, const ulong first, const ulong step,
                const ulong span, const int steps, const long logits_row, const long logits_column,
                const long labels_row, const long labels_column, MEMORY(logits), MEMORY(labels), MEMORY(partials),
                MEMORY(first_out), MEMORY(backprop)) {
  const ulong id = get_global_id(0);
  if (id >= rows * parts) return;
  const ulong row = id / parts, part = id % parts;
  const ulong begin = part * first, end = min(n, begin + span);
  const long logits_at_row = (long)row * logits_row;
  GLOBAL Partial *found = AT(Partial, partials) + row * parts;
  Partial all;
  all.max = -INFINITY;
  all.exponentials = all.labels = all.distances = 0;
  if (steps & STEP_MAX) {
    for (ulong c = begin; c < end; c += step) {
      const REAL logit = LOAD_LOGIT(logits_at_row + (long)c * logits_column);
      all.max = logit > all.max ? logit : all.max;
    }
    if (parts > 1) {
      found[part].max = all.max;
      return;
    }
  } else {
    for (ulong p = 0; p < parts; ++p) all.max = found[p].max > all.max ? found[p].max : all.max;
  }
  if (steps & STEP_SUMS) {
    // In blocks first, as sums of few numbers lose less.
    for (ulong from = begin; from < end; from += BLOCK * step) {
      const ulong to = min(end, from + BLOCK * step);
      REAL exponentials = 0, of_labels = 0, distances = 0;
      for (ulong c = from; c < to; c += step) {
        const REAL shifted = LOAD_LOGIT(logits_at_row + (long)c * logits_column) - all.max;
        exponentials += exp(shifted);
#if KIND == 2
        const REAL label = LOAD_LABEL((long)row * labels_row + (long)c * labels_column);
        of_labels += label;
        distances -= label * shifted;
#endif
      }
      all.exponentials += exponentials;
      all.labels += of_labels;
      all.distances += distances;
    }
    if (parts > 1) {
      found[part].exponentials = all.exponentials;
      found[part].labels = all.labels;
      found[part].distances = all.distances;
      return;
    }
  } else {
    for (ulong p = 0; p < parts; ++p) {
      all.exponentials += found[p].exponentials;
      all.labels += found[p].labels;
      all.distances += found[p].distances;
    }
  }
  const REAL log_sum = log(all.exponentials);
#if KIND == 2
  if (part == 0) STORE_FIRST(row, all.labels * log_sum + all.distances);
#elif KIND == 3
  const long label = AT(LABEL_INDEX, labels)[row];
  const int valid = label >= 0 && label < (long)n;
  if (part == 0) {
    const REAL loss = valid ? log_sum - (LOAD_LOGIT(logits_at_row + label * logits_column) - all.max) : (REAL)NAN;
    STORE_FIRST(row, loss);
  }
#endif
  for (ulong c = begin; c < end; c += step) {
    const REAL shifted = LOAD_LOGIT(logits_at_row + (long)c * logits_column) - all.max;
#if KIND == 0
    STORE_FIRST(row * n + c, exp(shifted) / all.exponentials);
#elif KIND == 1
    STORE_FIRST(row * n + c, shifted - log_sum);
#elif KIND == 2
    const REAL of_class = LOAD_LABEL((long)row * labels_row + (long)c * labels_column);
    STORE_BACKPROP(row * n + c, exp(shifted) / all.exponentials - of_class);
#else
    const REAL gradient = exp(shifted) / all.exponentials - (label == (long)c ? 1 : 0);
    STORE_BACKPROP(row * n + c, valid ? gradient : (REAL)NAN);
#endif
  }
}
