// Complex numbers in vectors of two: C is the vector, R the type of its parts, F(name) the function's name. As
// plain/scalar_ops.h, and where that leaves it to the C++ library, by formulas that do not cancel or overflow (W. Kahan,
// "Branch cuts for complex elementary functions").
R F(abs)(C z) { return hypot(z.x, z.y); }
R F(squared_abs)(C z) { return z.x * z.x + z.y * z.y; }

C F(mul)(C a, C b) { return MAKE2(C, a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// a b + c
C F(fma)(C a, C b, C c) {
  return MAKE2(C, fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}

// Smith's: by the ratio of the parts that is at most 1.
C F(div)(C a, C b) {
  if (fabs(b.x) >= fabs(b.y)) {
    const R ratio = b.y / b.x, scale = b.x + b.y * ratio;
    return MAKE2(C, (a.x + a.y * ratio) / scale, (a.y - a.x * ratio) / scale);
  }
  const R ratio = b.x / b.y, scale = b.x * ratio + b.y;
  return MAKE2(C, (a.x * ratio + a.y) / scale, (a.y * ratio - a.x) / scale);
}

C F(sign)(C z) {
  const R length = F(abs)(z);
  return length == 0 ? MAKE2(C, 0, 0) : MAKE2(C, z.x / length, z.y / length);
}

C F(sqrt)(C z) {
  if (z.x == 0 && z.y == 0) return MAKE2(C, 0, z.y);
  const R half_sum = sqrt((F(abs)(z) + fabs(z.x)) / 2);
  if (z.x >= 0) return MAKE2(C, half_sum, z.y / (2 * half_sum));
  return MAKE2(C, fabs(z.y) / (2 * half_sum), copysign(half_sum, z.y));
}

C F(exp)(C z) {
  // A part of a large number may be finite that is a small share of an infinite length.
  const R root = fabs(z.x) > 80 ? exp(z.x / 2) : (R)1, length = fabs(z.x) > 80 ? root : exp(z.x);
  return MAKE2(C, length * cos(z.y) * root, z.y == 0 ? z.y : length * sin(z.y) * root);
}

// (expm1(x) cos y - 2 sin^2(y/2)) + i exp(x) sin y
C F(expm1)(C z) {
  const R s = sin(z.y / 2);
  return MAKE2(C, expm1(z.x) * cos(z.y) - 2 * s * s, exp(z.x) * sin(z.y));
}

// |1 + z|^2 - 1 = x (2 + x) + y^2
C F(log1p)(C z) {
  const R x = z.x, y = z.y, arg = atan2(y, 1 + x);
  if (fabs(x) > (R)0.5 || fabs(y) > (R)0.5) return MAKE2(C, log(hypot(1 + x, y)), arg);
  return MAKE2(C, log1p(x * (2 + x) + y * y) / 2, arg);
}

C F(log)(C z) {
  const R arg = atan2(z.y, z.x), length = F(abs)(z);
  if (!(length > (R)0.5 && length < 2)) return MAKE2(C, log(length), arg);
  const R larger = fmax(fabs(z.x), fabs(z.y)), smaller = fmin(fabs(z.x), fabs(z.y));
  return MAKE2(C, log1p((larger - 1) * (larger + 1) + smaller * smaller) / 2, arg);
}

C F(sin)(C z) { return MAKE2(C, sin(z.x) * cosh(z.y), cos(z.x) * sinh(z.y)); }
C F(cos)(C z) { return MAKE2(C, cos(z.x) * cosh(z.y), -sin(z.x) * sinh(z.y)); }
C F(sinh)(C z) { return MAKE2(C, sinh(z.x) * cos(z.y), cosh(z.x) * sin(z.y)); }
C F(cosh)(C z) { return MAKE2(C, cosh(z.x) * cos(z.y), sinh(z.x) * sin(z.y)); }

C F(tanh)(C z) {
  if (fabs(z.x) > 22) return MAKE2(C, copysign((R)1, z.x), 4 * sin(z.y) * cos(z.y) * exp(-2 * fabs(z.x)));
  const R t = tan(z.y), beta = 1 + t * t, s = sinh(z.x), rho = sqrt(1 + s * s), scale = 1 + beta * s * s;
  return MAKE2(C, beta * rho * s / scale, t / scale);
}
// -i tanh(iz)
C F(tan)(C z) {
  const C w = F(tanh)(MAKE2(C, -z.y, z.x));
  return MAKE2(C, w.y, -w.x);
}

C F(conj)(C z) { return MAKE2(C, z.x, -z.y); }

C F(asin)(C z) {
  const C less = F(sqrt)(MAKE2(C, 1 - z.x, -z.y)), more = F(sqrt)(MAKE2(C, 1 + z.x, z.y));
  return MAKE2(C, atan2(z.x, F(mul)(less, more).x), asinh(F(mul)(F(conj)(less), more).y));
}
C F(acos)(C z) {
  const C less = F(sqrt)(MAKE2(C, 1 - z.x, -z.y)), more = F(sqrt)(MAKE2(C, 1 + z.x, z.y));
  return MAKE2(C, 2 * atan2(less.x, more.x), asinh(F(mul)(F(conj)(more), less).y));
}
C F(acosh)(C z) {
  const C less = F(sqrt)(MAKE2(C, z.x - 1, z.y)), more = F(sqrt)(MAKE2(C, z.x + 1, z.y));
  return MAKE2(C, asinh(F(mul)(F(conj)(less), more).x), 2 * atan2(less.y, more.x));
}
C F(atanh)(C z) {
  const R x = z.x, y = z.y;
  const R a = fabs(x), length = log1p(4 * a / ((1 - a) * (1 - a) + y * y)) / 4;
  return MAKE2(C, copysign(length, x), atan2(2 * y, (1 - a) * (1 + a) - y * y) / 2);
}
// -i asin(iz)
C F(asinh)(C z) {
  const C w = F(asin)(MAKE2(C, -z.y, z.x));
  return MAKE2(C, w.y, -w.x);
}
// -i atanh(iz), without a call: NVRTC 13 leaves the real part of that out for compute capability 8.0 and 9.0.
C F(atan)(C z) {
  const R x = z.x, y = z.y;
  const R a = fabs(y), length = log1p(4 * a / ((1 - a) * (1 - a) + x * x)) / 4;
  return MAKE2(C, atan2(2 * x, (1 - a) * (1 + a) - x * x) / 2, copysign(length, y));
}

C F(sigmoid)(C z) {
  const C e = F(exp)(-z);
  return F(div)(MAKE2(C, 1, 0), MAKE2(C, 1 + e.x, e.y));
}

C F(pow)(C a, C b) { return a.x == 0 && a.y == 0 ? MAKE2(C, 0, 0) : F(exp)(F(mul)(b, F(log)(a))); }
