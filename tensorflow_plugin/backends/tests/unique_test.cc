#include <cmath>
#include <complex>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr DType kTypes[] = {DType::kBool,     DType::kInt8,   DType::kInt16,  DType::kInt32,     DType::kInt64,
                            DType::kUint8,    DType::kUint16, DType::kUint32, DType::kUint64,    DType::kHalf,
                            DType::kBFloat16, DType::kFloat,  DType::kDouble, DType::kComplex64, DType::kComplex128};
constexpr DType kIndexTypes[] = {DType::kInt16, DType::kInt32, DType::kInt64};

UniqueDesc Make(DType type, DType index_type, int64_t n, int64_t inner) {
  UniqueDesc d;
  d.type = type;
  d.index_type = index_type;
  d.n = n, d.inner = inner;
  return d;
}

std::vector<Output> Outputs(const UniqueDesc& d) {
  return {{d.index_type, d.n}, {DType::kInt64, d.n}, {DType::kInt64, 1}};
}

Want Wants(DType index_type, const std::vector<double>& numbers, const std::vector<double>& firsts, double count) {
  return {{Values(index_type, numbers), Values(DType::kInt64, firsts), Values(DType::kInt64, {count})}};
}

TEST(Unique, ByHand) {
  for (DType index_type : kIndexTypes) {
    for (DType type : kTypes) {
      const UniqueDesc bits = Make(type, index_type, 4, 1);
      ExpectByHand(bits, {Values(type, {1, 1, 0, 1})}, Outputs(bits),
                   Wants(index_type, {0, 0, 1, 0}, {0, 2, -1, -1}, 2), "bits");
      const UniqueDesc pairs = Make(type, index_type, 4, 2);
      ExpectByHand(pairs, {Values(type, {1, 0, 0, 1, 1, 0, 1, 1})}, Outputs(pairs),
                   Wants(index_type, {0, 1, 0, 2}, {0, 1, 3, -1}, 3), "pairs");
      const UniqueDesc nothing = Make(type, index_type, 0, 2);
      ExpectByHand(nothing, {Array(type, 0)}, Outputs(nothing), Wants(index_type, {}, {}, 0), "nothing");
      const UniqueDesc empty = Make(type, index_type, 3, 0);
      ExpectByHand(empty, {Array(type, 0)}, Outputs(empty), Wants(index_type, {0, 0, 0}, {0, -1, -1}, 1), "empty rows");
    }
  }
}

TEST(Unique, ZerosAreEqualAndNanIsLikeNoOther) {
  for (DType type : {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble}) {
    const UniqueDesc d = Make(type, DType::kInt32, 6, 1);
    ExpectByHand(d, {Values(type, {0.0, NAN, -0.0, NAN, INFINITY, 0.0})}, Outputs(d),
                 Wants(DType::kInt32, {0, 1, 0, 2, 3, 0}, {0, 1, 3, 4, -1, -1}, 4), "zeros and NaN");
  }
}

TEST(Unique, ImaginaryPartsCount) {
  for (DType type : {DType::kComplex64, DType::kComplex128}) {
    const UniqueDesc d = Make(type, DType::kInt32, 4, 1);
    const Array x = Values(type, {std::complex<double>(1, 2), {1, 3}, {2, 1}, {1, 2}});
    ExpectByHand(d, {x}, Outputs(d), Wants(DType::kInt32, {0, 1, 2, 0}, {0, 1, 2, -1}, 3), "complex");
  }
}

TEST(Unique, TypesAndShapes) {
  const struct {
    int64_t n, inner;
    double range;
  } shapes[] = {{1, 1, 3}, {3000, 1, 100}, {3000, 1, 1e6}, {2000, 3, 3}, {50, 400, 2}, {500, 2, 0.5}};
  for (DType type : kTypes) {
    for (const auto& s : shapes) {
      const UniqueDesc d = Make(type, DType::kInt32, s.n, s.inner);
      const double range = type == DType::kInt8 || type == DType::kUint8 ? std::min(s.range, 100.0)
                           : SizeOf(type) == 2 && !IsFloating(type)      ? std::min(s.range, 30000.0)
                                                                         : s.range;
      ExpectAsTheReference(d, {Random(type, s.n * s.inner, 8, -range, range)}, Outputs(d),
                           errors::Concat(s.n, "x", s.inner, " up to ", s.range));
    }
  }
}

}  // namespace
}  // namespace xpu::testing
