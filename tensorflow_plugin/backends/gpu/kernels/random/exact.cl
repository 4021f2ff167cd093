// The logarithm, the sine and the cosine of a float, as the C library has them on x86-64 (glibc 2.28 and later). They
// are right to the last bit: computed in double, by tables and polynomials whose constants are the library's. All 2^23
// floats that words become give the same result whether or not products and sums are fused.

// log x = log(z / c) + log c + k log 2, for x = 2^k z; of 16 intervals of z, 1 / c and log c.
CONSTANT double kLog[16][2] = {
    {0x1.661ec79f8f3bep+0, -0x1.57bf7808caadep-2}, {0x1.571ed4aaf883dp+0, -0x1.2bef0a7c06ddbp-2},
    {0x1.49539f0f010bp+0, -0x1.01eae7f513a67p-2},  {0x1.3c995b0b80385p+0, -0x1.b31d8a68224e9p-3},
    {0x1.30d190c8864a5p+0, -0x1.6574f0ac07758p-3}, {0x1.25e227b0b8eap+0, -0x1.1aa2bc79c81p-3},
    {0x1.1bb4a4a1a343fp+0, -0x1.a4e76ce8c0e5ep-4}, {0x1.12358f08ae5bap+0, -0x1.1973c5a611cccp-4},
    {0x1.0953f419900a7p+0, -0x1.252f438e10c1ep-5}, {1, 0},
    {0x1.e608cfd9a47acp-1, 0x1.aa5aa5df25984p-5},  {0x1.ca4b31f026aap-1, 0x1.c5e53aa362eb4p-4},
    {0x1.b2036576afce6p-1, 0x1.526e57720db08p-3},  {0x1.9c2d163a1aa2dp-1, 0x1.bc2860d22477p-3},
    {0x1.886e6037841edp-1, 0x1.1058bc8a07ee1p-2},  {0x1.767dcf5534862p-1, 0x1.4043057b6ee09p-2},
};

float exact_log(float x) {
  // The intervals begin at 0x1.66p-1.
  const uint above = as_uint(x) - 0x3f330000u, interval = above >> 19 & 15;
  const double k = (int)above >> 23, z = as_float(as_uint(x) - (above & 0xff800000u));
  const double r = z * kLog[interval][0] - 1, square = r * r;
  const double upper = 0x1.5575b0be00b6ap-2 * r - 0x1.ffffef20a4123p-2;
  return (float)((-0x1.00ea348b88334p-2 * square + upper) * square + (k * M_LN2 + kLog[interval][1] + r));
}

// For an angle in [0, 2 pi): x is the part beyond the next multiple of pi / 2.
void exact_sincos(float angle, float *sine, float *cosine) {
  if (angle < 0x1p-12f) {
    *sine = angle;
    *cosine = 1;
    return;
  }
  // The bound is pi / 4 without its lower bits.
  const int quarter = angle < 0x1.9p-1f ? 0 : (int)(angle * M_2_PI + 0.5);
  const double x = angle - quarter * M_PI_2, square = x * x;
  const double s = square * x, c = square * square;
  const float sine_of_x = (float)(x + s * -0x1.555545995a603p-3 +
                                  s * square * (0x1.1107605230bc4p-7 + square * -0x1.994eb3774cf24p-13));
  const float cosine_of_x = (float)(1 + square * -0x1.ffffffd0c621cp-2 + c * 0x1.55553e1068f19p-5 +
                                    c * square * (-0x1.6c087e89a359dp-10 + square * 0x1.99343027bf8c3p-16));
  const float values[] = {sine_of_x, cosine_of_x, -sine_of_x, -cosine_of_x};
  *sine = values[quarter & 3];
  *cosine = values[(quarter + 1) & 3];
}
