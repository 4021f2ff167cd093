// Test support: dense host arrays of any element type.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_TESTS_ARRAY_H_
#define TENSORFLOW_PLUGIN_BACKENDS_TESTS_ARRAY_H_

#include <complex>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tensorflow_plugin/primitives/types.h"

namespace xpu::testing {

// The contents of memory that nobody has written: in new arrays, in a command's outputs before it runs, and around
// them. No type has a plausible value there (as a bool it is neither true nor false).
inline constexpr uint8_t kUnwritten = 0xa5;

class Array {
 public:
  Array() = default;
  Array(DType type, int64_t n) : type_(type), n_(n), bytes_(n * SizeOf(type), kUnwritten) {}

  DType type() const { return type_; }
  int64_t size() const { return n_; }
  size_t num_bytes() const { return bytes_.size(); }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  template <typename T>
  T* as() {
    return static_cast<T*>(data());
  }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data());
  }

 private:
  DType type_ = DType::kInvalid;
  int64_t n_ = 0;
  std::vector<uint8_t> bytes_;
};

// Element i as a number; of a bool, what it is stored as. 64-bit integers beyond 2^53 are rounded.
std::complex<double> At(const Array& a, int64_t i);
inline double RealAt(const Array& a, int64_t i) { return At(a, i).real(); }

// Values: floating and complex in [low, high), integers in the same range (unsigned: clamped at 0), bool both.
Array Random(DType type, int64_t n, uint32_t seed, double low = -4, double high = 4);
// Whole numbers from -most to most (unsigned: from 0), of any type but bool that has them; complex ones in both parts.
Array Whole(DType type, int64_t n, uint32_t seed, int64_t most);
// The numbers as elements of `type`, each cast to it.
Array Values(DType type, const std::vector<double>& values);
Array Values(DType type, std::initializer_list<std::complex<double>> values);
// 0, 1, 2 and so on mixed up, so that neighbours differ and a misplaced byte shows.
Array Bytes(int64_t n);
// Row by row coordinates in range for `dims`, n rows of dims.size() integers.
Array Coordinates(DType type, int64_t n, const int64_t* dims, int rank, uint32_t seed);

// The type with more digits in which exact values are computed: double for the shorter floating types, complex128 for
// complex64. Any other type is its own.
DType Wide(DType type);
// The same values, exactly, in the wider type.
Array Widened(const Array& a);
// Their magnitudes, in the wider type.
Array Magnitudes(const Array& a);

}  // namespace xpu::testing

#endif  // TENSORFLOW_PLUGIN_BACKENDS_TESTS_ARRAY_H_
