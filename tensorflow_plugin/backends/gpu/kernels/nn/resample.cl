// An item computes an element of the result. In front of this stand C, the type of sums; LOAD_IMAGE(i), which converts
// to that; and STORE_RESULT(i, x).
kernel void run(const ulong items, const long height, const long width, const long channels, const long out_h,
                const long out_w, const long y_taps, const long x_taps, MEMORY(images), MEMORY(ys), MEMORY(wy),
                MEMORY(xs), MEMORY(wx), MEMORY(out)) {
  const ulong id = get_global_id(0);
  if (id >= items) return;
  const long c = id % channels, j = id / channels % out_w, i = id / channels / out_w % out_h;
  const long b = id / channels / out_w / out_h;
  const long first_y = AT(int, ys)[2 * i], first_x = AT(int, xs)[2 * j];
  const long count_y = min((long)AT(int, ys)[2 * i + 1], y_taps), count_x = min((long)AT(int, xs)[2 * j + 1], x_taps);
  C sum = 0;
  for (long t = 0; t < count_x; ++t) {
    const long x = first_x + t;
    if (x < 0 || x >= width) continue;
    C column = 0;
    for (long s = 0; s < count_y; ++s) {
      const long y = first_y + s;
      if (y < 0 || y >= height) continue;
      column += (C)AT(float, wy)[i * y_taps + s] * LOAD_IMAGE(((b * height + y) * width + x) * channels + c);
    }
    sum += (C)AT(float, wx)[j * x_taps + t] * column;
  }
  STORE_RESULT(id, sum);
}
