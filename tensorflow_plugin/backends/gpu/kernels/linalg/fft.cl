// Discrete Fourier transforms along one axis of complex arrays, by Stockham's method. There is a pass for each factor
// of the axis' length, in which an item computes an element. In front of this stand REAL, COMPLEX, a vector of two, and
// ANGLE, the type that roots of unity are computed in.
#define STEP_LOAD_REAL 0
#define STEP_LOAD_HALF 1
#define STEP_LOAD 2
#define STEP_ROOTS 3
#define STEP_PASS 4
#define STEP_MIRROR 5
#define STEP_STORE_REAL 6
#define STEP_STORE_HALF 7
#define STEP_STORE 8

// `axis` elements that are `stride` apart make a transform. The factors whose product is `done` have had their passes,
// and this one is for `factor`. The last axis of the arrays has `last` elements, or `last` / 2 + 1 on the side where
// those are all that is kept.
kernel void run(const int step, const ulong items, const ulong axis, const ulong stride, const ulong done,
                const ulong factor, const ulong last, const int inverse, const REAL scale, MEMORY(from), MEMORY(to),
                MEMORY(roots)) {
  const ulong id = get_global_id(0);
  if (id >= items) return;
  const ulong kept = last / 2 + 1;
  const ulong along = id % last, in_halves = id / last * kept + along;  // of an element of the whole
  if (step == STEP_LOAD_REAL) {
    AT(COMPLEX, to)[id] = MAKE2(COMPLEX, AT(REAL, from)[id], 0);
  } else if (step == STEP_LOAD_HALF) {
    AT(COMPLEX, to)[id] = along < kept ? AT(COMPLEX, from)[in_halves] : SPLAT(COMPLEX, 0);
  } else if (step == STEP_LOAD) {
    AT(COMPLEX, to)[id] = AT(COMPLEX, from)[id];
  } else if (step == STEP_ROOTS) {
    const ANGLE angle = (inverse ? 2 : -2) * (ANGLE)id / (ANGLE)axis;
    AT(COMPLEX, to)[id] = MAKE2(COMPLEX, (REAL)cospi(angle), (REAL)sinpi(angle));
  } else if (step == STEP_PASS) {
    const ulong k = id / stride % axis, begin = id - k * stride;
    const ulong size = done * factor, turn = k % size;
    const ulong first = k / size * done + k % done, apart = axis / factor;
    const ulong turns = turn * (axis / size);  // less than all the way round
    ulong root = 0;
    COMPLEX sum = SPLAT(COMPLEX, 0);
    for (ulong t = 0; t < factor; ++t) {
      const COMPLEX x = AT(COMPLEX, from)[begin + (first + t * apart) * stride];
      const COMPLEX w = AT(COMPLEX, roots)[root];
      root += turns;
      root -= root < axis ? 0 : axis;
      sum += MAKE2(COMPLEX, x.x * w.x - x.y * w.y, x.x * w.y + x.y * w.x);
    }
    AT(COMPLEX, to)[id] = sum;
  } else if (step == STEP_MIRROR) {
    // The other half of the transform of a real row; where it is its own mirror image it is real.
    GLOBAL COMPLEX *x = AT(COMPLEX, to);
    if (along >= kept) {
      const COMPLEX image = x[id - along + last - along];
      x[id] = MAKE2(COMPLEX, image.x, -image.y);
    } else if (along == 0 || 2 * along == last) {
      x[id].y = 0;
    }
  } else if (step == STEP_STORE_REAL) {
    AT(REAL, to)[id] = AT(COMPLEX, from)[id].x * scale;
  } else if (step == STEP_STORE_HALF) {
    if (along < kept) AT(COMPLEX, to)[in_halves] = AT(COMPLEX, from)[id] * scale;
  } else {
    AT(COMPLEX, to)[id] = AT(COMPLEX, from)[id] * scale;
  }
}
