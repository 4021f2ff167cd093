// The coordinates of elements that are not zero. Some items have a stretch of the elements each. They count, one item
// makes positions of the counts, and each writes from its position on. None writes if the count is not the expected
// one. In front of this stand WORD, the unsigned type that elements are made of, WORDS, how many of them, and
// WITHOUT_SIGN(word), 0 for zeros alone.
#define STEP_COUNT 0
#define STEP_POSITIONS 1
#define STEP_WRITE 2

kernel void run(const int step, const ulong n, const ulong stretch, const ulong stretches, const ulong expected,
                const int rank, CONSTANT long *dims, MEMORY(x), MEMORY(counts), MEMORY(out), MEMORY(report)) {
  const ulong id = get_global_id(0);
  GLOBAL ulong *positions = AT(ulong, counts);  // and the count of all
  if (step == STEP_POSITIONS) {
    if (id != 0) return;
    ulong before = 0;
    for (ulong i = 0; i < stretches; ++i) {
      const ulong count = positions[i];
      positions[i] = before;
      before += count;
    }
    positions[stretches] = before;
    return;
  }
  if (id >= stretches) return;
  const ulong total = step == STEP_WRITE ? positions[stretches] : 0;
  if (step == STEP_WRITE && total != expected) {
    if (id == 0) FAIL(total);
    return;
  }
  ulong position = step == STEP_WRITE ? positions[id] : 0;
  for (ulong i = id * stretch; i < min(n, (id + 1) * stretch); ++i) {
    int any = 0;
    for (int w = 0; w < WORDS; ++w) any |= WITHOUT_SIGN(AT(WORD, x)[i * WORDS + w]) != 0;
    if (!any) continue;
    if (step == STEP_WRITE) {
      ulong rest = i;
      for (int d = rank - 1; d >= 0; --d) {
        AT(long, out)[position * rank + d] = (long)(rest % (ulong)dims[d]);
        rest /= (ulong)dims[d];
      }
    }
    ++position;
  }
  if (step == STEP_COUNT) positions[id] = position;
}
