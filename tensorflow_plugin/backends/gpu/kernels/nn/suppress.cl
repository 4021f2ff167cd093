// One group: candidates are decided on one after the other, and for each that is kept, the items mark those behind it
// that it suppresses. PAIRS: overlaps are given.
//
// As plain/suppress.cc, NaN included: the least and the greatest are C++'s.
#define LEAST(x, y) ((y) < (x) ? (y) : (x))
#define GREATEST(x, y) ((x) < (y) ? (y) : (x))

#if !PAIRS
typedef struct {
  float low_y, low_x, high_y, high_x, area;
} Box;

Box box_at(const GLOBAL float *corners) {
  Box box;
  box.low_y = LEAST(corners[0], corners[2]);
  box.low_x = LEAST(corners[1], corners[3]);
  box.high_y = GREATEST(corners[0], corners[2]);
  box.high_x = GREATEST(corners[1], corners[3]);
  box.area = (box.high_y - box.low_y) * (box.high_x - box.low_x);
  return box;
}

float overlap(const Box a, const Box b) {
  if (a.area <= 0 || b.area <= 0) return 0;
  const float between_y = LEAST(a.high_y, b.high_y) - GREATEST(a.low_y, b.low_y);
  const float between_x = LEAST(a.high_x, b.high_x) - GREATEST(a.low_x, b.low_x);
  const float height = GREATEST(between_y, 0.0f), width = GREATEST(between_x, 0.0f);
  const float common = height * width;
  if (common == 0) return 0;
  return common / (a.area + b.area - common);
}
#endif

kernel void run(const ulong n, const ulong most, const float threshold, MEMORY(in), MEMORY(kept)) {
  const ulong item = get_local_id(0), items = get_local_size(0);
  const GLOBAL float *x = AT(float, in);
  GLOBAL uchar *is_kept = AT(uchar, kept);
  for (ulong j = item; j < n; j += items) is_kept[j] = 1;
  barrier(CLK_GLOBAL_MEM_FENCE);
  ulong count = 0;
  for (ulong i = 0; i < n && count < most; ++i) {
    // No item writes here before all have read it: each only marks what is behind the last one kept.
    if (!is_kept[i]) continue;
    ++count;
#if !PAIRS
    const Box box = box_at(x + 4 * i);
#endif
    for (ulong j = i + 1 + item; j < n; j += items) {
#if PAIRS
      const int suppressed = x[j * n + i] > threshold;
#else
      const int suppressed = is_kept[j] && overlap(box_at(x + 4 * j), box) > threshold;
#endif
      // The last of those that may be kept leaves none behind it.
      if (suppressed || count == most) is_kept[j] = 0;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  if (most == 0) {
    for (ulong j = item; j < n; j += items) is_kept[j] = 0;
  }
}
