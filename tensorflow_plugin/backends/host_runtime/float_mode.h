// The floating-point mode of commands, whatever thread they run on: to the nearest, ties to even. Results below the
// least normal number of their type are zeros; arguments below it are kept.
//
// The threads of TensorFlow and of Python have modes of their own, and a thread begins with its maker's. Results that
// are zeros cost nothing; computed subnormal numbers would slow down whatever reads them (moments of optimizers decay
// towards them and stay there). Arguments come from elsewhere, and their logarithms, roots and quotients are normal.
// Only products of matrices take such arguments for zeros, too. A sum of products loses nothing by it, and some
// processors take a hundred times as long for one that has such an argument.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_FLOAT_MODE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_FLOAT_MODE_H_

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace xpu::host_runtime {

// Processors other than x86-64 keep the mode that they have: they have no such one.
class FloatMode {
 public:
#if defined(__x86_64__)
  static FloatMode OfCommands() { return FloatMode(_MM_MASK_MASK | _MM_ROUND_NEAREST | _MM_FLUSH_ZERO_ON); }
  static FloatMode OfProducts() { return FloatMode(OfCommands().bits_ | kZeroArguments); }
  // For what would lose digits to intermediate zeros.
  static FloatMode WithSubnormalResults() { return FloatMode(_MM_MASK_MASK | _MM_ROUND_NEAREST); }
  static FloatMode OfThisThread() { return FloatMode(_mm_getcsr()); }
#else
  static FloatMode OfCommands() { return FloatMode(); }
  static FloatMode OfProducts() { return FloatMode(); }
  static FloatMode WithSubnormalResults() { return FloatMode(); }
  static FloatMode OfThisThread() { return FloatMode(); }
#endif

 private:
  friend class ScopedFloatMode;
#if defined(__x86_64__)
  static constexpr unsigned kZeroArguments = 0x40;
  explicit FloatMode(unsigned bits) : bits_(bits) {}
  // Not counted is what has happened: no part of a mode.
  bool operator!=(const FloatMode& other) const { return ((bits_ ^ other.bits_) & ~_MM_EXCEPT_MASK) != 0; }
  void Set() const { _mm_setcsr(bits_); }

  unsigned bits_;
#else
  bool operator!=(const FloatMode&) const { return false; }
  void Set() const {}
#endif
};

// For its lifetime, the calling thread computes in this mode.
class ScopedFloatMode {
 public:
  explicit ScopedFloatMode(const FloatMode& mode) : saved_(FloatMode::OfThisThread()), changes_(mode != saved_) {
    if (changes_) mode.Set();
  }
  ~ScopedFloatMode() {
    if (changes_) saved_.Set();
  }
  ScopedFloatMode(const ScopedFloatMode&) = delete;
  ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;

 private:
  const FloatMode saved_;
  const bool changes_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_FLOAT_MODE_H_
