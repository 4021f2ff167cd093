// Images at points, as plain/sample.cc: each operation is rounded by itself. An item computes an element of the result,
// which for a gradient of points is a point. For a gradient of images it computes the part of the gradient that goes to
// each of four pixels, and their numbers (-1: none).
//
// These stand before this source: NEAREST; LOAD_PIXEL(i), LOAD_GRADIENT(i) and STORE_RESULT(i, x); FILL(x), the fill
// value as one of its type. OUTSIDE is 0 for the edge, 1 for the fill value, 2 for the same by pixels. DIRECTION is 0
// for forward, 1 for the gradient of images, 2 for that of points. RESULT is the register of a result; RESULT_OF(x) and
// RESULT_OF_PIXEL(x) are a float and a pixel as one.
#define STEP_CHECK 1
#define LEAST(x, y) ((y) < (x) ? (y) : (x))
#define GREATEST(x, y) ((x) < (y) ? (y) : (x))

typedef struct {
  long lower, upper;  // the pixels around a point; -1: outside
  float before, after;
  int filled;
} Axis;

Axis axis_of(float at, long extent) {
  const float last = (float)(extent - 1), whole = floor(at);
  Axis axis = {-1, -1, 0, 0, 0};
#if OUTSIDE == 1
  // (A NaN compares with nothing.)
  if (!(at >= 0 && at <= last)) {
    axis.filled = 1;
    return axis;
  }
#endif
  axis.after = at - whole;
#if OUTSIDE == 2
  const float next = whole + 1;
  axis.before = next - at;
  if (whole >= 0 && whole <= last) axis.lower = (long)whole;
  if (next >= 0 && next <= last) axis.upper = (long)next;
#else
  const float above = ceil(at);
  const float lower = GREATEST(0.0f, whole), upper = GREATEST(0.0f, above);
  axis.before = 1 - axis.after;
  axis.lower = (long)LEAST(lower, last);
  axis.upper = (long)LEAST(upper, last);
#endif
  return axis;
}

float blend(float a, float b, const Axis axis) {
#if OUTSIDE == 2
  return axis.before * a + axis.after * b;
#else
  return a + (b - a) * axis.after;
#endif
}

kernel void run(const int step, const ulong items, const long num_images, const long height, const long width,
                const long channels, const long batch, const long out_h, const long out_w, const long y_b,
                const long y_i, const long y_j, const long x_b, const long x_i, const long x_j, const int numbered,
                const float fill, MEMORY(images), MEMORY(gradient), MEMORY(ys), MEMORY(xs), MEMORY(numbers),
                MEMORY(out), MEMORY(second_out), MEMORY(pixels), MEMORY(report)) {
  const ulong id = get_global_id(0);
  if (id >= items) return;
  if (step == STEP_CHECK) {
    const int image = AT(int, numbers)[id];
    if (image < 0 || image >= num_images) FAIL(id);
    return;
  }
#if DIRECTION == 2
  const long point = id;
#else
  const long point = id / channels, c = id % channels;
#endif
  const long j = point % out_w, i = point / out_w % out_h, b = point / out_w / out_h;
  const long number = numbered ? (long)AT(int, numbers)[b] : b;
  const int is_there = number >= 0 && number < num_images;
  const Axis y = axis_of(AT(float, ys)[b * y_b + i * y_i + j * y_j], height);
  const Axis x = axis_of(AT(float, xs)[b * x_b + i * x_i + j * x_j], width);
  const int filled = !is_there || y.filled || x.filled;
#define PIXEL(row, column) ((row) < 0 || (column) < 0 ? -1 : (number * height + (row)) * width + (column))
#define VALUE(pixel, c) ((pixel) < 0 ? (float)FILL(fill) : (float)LOAD_PIXEL((pixel) * channels + (c)))
  const long top_left = PIXEL(y.lower, x.lower), top_right = PIXEL(y.lower, x.upper);
  const long bottom_left = PIXEL(y.upper, x.lower), bottom_right = PIXEL(y.upper, x.upper);
#if DIRECTION == 0
  if (filled) {
    STORE_RESULT(id, FILL(fill));
    return;
  }
#if NEAREST
  const RESULT result = top_left < 0 ? FILL(fill) : RESULT_OF_PIXEL(LOAD_PIXEL(top_left * channels + c));
#else
  const float top = blend(VALUE(top_left, c), VALUE(top_right, c), x);
  const float bottom = blend(VALUE(bottom_left, c), VALUE(bottom_right, c), x);
  const float blended = blend(top, bottom, y);
  const RESULT result = RESULT_OF(blended);
#endif
  STORE_RESULT(id, result);
#elif DIRECTION == 1
  const float of_point = (float)LOAD_GRADIENT(id);
  const long to[4] = {top_left, top_right, bottom_left, bottom_right};
#if NEAREST
  const float wy[4] = {1, 0, 0, 0}, wx[4] = {1, 0, 0, 0};
#else
  const float wy[4] = {y.before, y.before, y.after, y.after}, wx[4] = {x.before, x.after, x.before, x.after};
#endif
  for (int corner = 0; corner < 4; ++corner) {
    const ulong update = point * 4 + corner;
    const float term = of_point * wy[corner] * wx[corner];
    const RESULT of_pixel = RESULT_OF(term);
    STORE_RESULT(update * channels + c, of_pixel);
    if (c == 0) AT(long, pixels)[update] = filled || (NEAREST && corner > 0) ? -1 : to[corner];
  }
#else
  float dy = 0, dx = 0;
  for (long c = 0; c < channels && !filled; ++c) {
    const float f00 = VALUE(top_left, c), f01 = VALUE(top_right, c);
    const float f10 = VALUE(bottom_left, c), f11 = VALUE(bottom_right, c);
    const float of_point = (float)LOAD_GRADIENT(point * channels + c);
    dy += of_point * (x.before * (f10 - f00) + x.after * (f11 - f01));
    dx += of_point * (y.before * (f01 - f00) + y.after * (f11 - f10));
  }
  AT(float, out)[point] = dy;
  AT(float, second_out)[point] = dx;
#endif
}
