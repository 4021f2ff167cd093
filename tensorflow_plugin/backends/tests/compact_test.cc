#include <complex>
#include <limits>
#include <random>
#include <string>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr DType kTypes[] = {DType::kBool,     DType::kInt8,   DType::kInt16,  DType::kInt32,     DType::kInt64,
                            DType::kUint8,    DType::kUint16, DType::kUint32, DType::kUint64,    DType::kHalf,
                            DType::kBFloat16, DType::kFloat,  DType::kDouble, DType::kComplex64, DType::kComplex128};

CompactDesc Describe(DType type, Dims shape, int64_t count) {
  CompactDesc desc;
  desc.type = type;
  desc.shape = shape;
  desc.count = count;
  return desc;
}

// Zeros but for about `percent` of the elements, which `count` counts.
Array Sparse(DType type, int64_t n, int percent, int64_t* count) {
  Array a(type, n);
  std::mt19937 rng(7);
  *count = 0;
  VisitType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < n; ++i) {
      const bool set = static_cast<int>(rng() % 100) < percent;
      *count += set;
      a.as<T>()[i] = T(set ? 1.0f : 0.0f);
    }
  });
  return a;
}

TEST(Compact, GivesRowMajorCoordinatesInOrder) {
  const Array x = Values(DType::kFloat, {0, 2, 0, -1, 0, 3});
  ExpectByHand(Describe(DType::kFloat, {2, 3}, 3), {x}, {{DType::kInt64, 6}},
               {{Values(DType::kInt64, {0, 1, 1, 0, 1, 2})}}, "2 by 3");
}

TEST(Compact, NanIsNotZeroAndNegativeZeroIs) {
  for (DType type : {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble}) {
    const Array x = Values(type, {0, std::numeric_limits<double>::quiet_NaN(), -0.0, 1e-7});
    ExpectByHand(Describe(type, {4}, 2), {x}, {{DType::kInt64, 2}}, {{Values(DType::kInt64, {1, 3})}}, "NaN");
  }
}

TEST(Compact, AComplexNumberWithOneZeroPartIsNotZero) {
  Array x(DType::kComplex64, 3);
  x.as<std::complex<float>>()[0] = {0, 1};
  x.as<std::complex<float>>()[1] = {0, 0};
  x.as<std::complex<float>>()[2] = {1, 0};
  ExpectByHand(Describe(DType::kComplex64, {3}, 2), {x}, {{DType::kInt64, 2}}, {{Values(DType::kInt64, {0, 2})}},
               "complex");
}

TEST(Compact, TypesShapesAndDensities) {
  const Dims shapes[] = {{}, {1}, {70000}, {33, 1000}, {3, 1, 1101}, {2000, 2}, {40, 30, 5, 7}, {0, 4}};
  for (DType type : kTypes) {
    for (const Dims& shape : shapes) {
      for (int percent : {0, 3, 50, 100}) {
        int64_t count;
        const Array x = Sparse(type, shape.num_elements(), percent, &count);
        ExpectAsTheReference(Describe(type, shape, count), {x}, {{DType::kInt64, count * shape.rank()}},
                             errors::Concat(shape.ToString(), " ", percent, "%"));
      }
    }
  }
}

TEST(Compact, AnotherCountFailsAndWritesNothing) {
  const Array x = Values(DType::kInt32, {1, 0, 1});
  for (int64_t count : {0, 1, 3}) {
    ExpectByHand(Describe(DType::kInt32, {3}, count), {x}, {{DType::kInt64, count}},
                 {{Array(DType::kInt64, count)}, {}, Code::kInvalidArgument, "2 elements"}, "another count");
  }
}

}  // namespace
}  // namespace xpu::testing
