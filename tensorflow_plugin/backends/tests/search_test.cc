#include <algorithm>
#include <cmath>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr DType kTypes[] = {DType::kInt8,  DType::kInt16,    DType::kInt32,  DType::kInt64,
                            DType::kUint8, DType::kUint16,   DType::kUint32, DType::kUint64,
                            DType::kHalf,  DType::kBFloat16, DType::kFloat,  DType::kDouble};
constexpr DType kIndexTypes[] = {DType::kInt16, DType::kInt32, DType::kInt64};

SearchDesc Make(DType type, DType index_type, int64_t rows, int64_t n, int64_t m, bool upper) {
  SearchDesc d;
  d.type = type;
  d.index_type = index_type;
  d.rows = rows, d.n = n, d.m = m;
  d.upper = upper;
  return d;
}

TEST(Search, ByHand) {
  for (DType type : kTypes) {
    for (DType index_type : kIndexTypes) {
      const Array sorted = Values(type, {1, 3, 3, 5, 0, 0, 0, 9}), values = Values(type, {3, 0, 9, 0, 4, 10});
      ExpectByHand(Make(type, index_type, 2, 4, 3, false), {sorted, values}, {{index_type, 6}},
                   {{Values(index_type, {1, 0, 4, 0, 3, 4})}}, "lower");
      ExpectByHand(Make(type, index_type, 2, 4, 3, true), {sorted, values}, {{index_type, 6}},
                   {{Values(index_type, {3, 0, 4, 3, 3, 4})}}, "upper");
      ExpectByHand(Make(type, index_type, 2, 0, 1, true), {Array(type, 0), Values(type, {1, 2})}, {{index_type, 2}},
                   {{Values(index_type, {0, 0})}}, "in nothing");
    }
  }
}

TEST(Search, NanIsNeitherLessNorGreater) {
  for (DType type : {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble}) {
    const Array sorted = Values(type, {-INFINITY, -0.0, INFINITY}), values = Values(type, {NAN, 0, -INFINITY});
    ExpectByHand(Make(type, DType::kInt32, 1, 3, 3, false), {sorted, values}, {{DType::kInt32, 3}},
                 {{Values(DType::kInt32, {0, 1, 0})}}, "lower");
    ExpectByHand(Make(type, DType::kInt32, 1, 3, 3, true), {sorted, values}, {{DType::kInt32, 3}},
                 {{Values(DType::kInt32, {3, 2, 1})}}, "upper");
  }
}

TEST(Search, TypesAndShapes) {
  const struct {
    int64_t rows, n, m;
  } shapes[] = {{1, 1, 1}, {3, 2, 5}, {2, 7, 3}, {5, 64, 100}, {1, 1000, 20000}, {700, 33, 40}, {0, 3, 3}, {2, 3, 0}};
  for (DType type : kTypes) {
    for (const auto& s : shapes) {
      Array sorted = Random(type, s.rows * s.n, 3, -50, 50);
      std::vector<double> numbers;
      for (int64_t i = 0; i < sorted.size(); ++i) numbers.push_back(RealAt(sorted, i));
      for (int64_t r = 0; r < s.rows; ++r) std::sort(numbers.begin() + r * s.n, numbers.begin() + (r + 1) * s.n);
      sorted = Values(type, numbers);
      for (bool upper : {false, true}) {
        const SearchDesc d = Make(type, DType::kInt32, s.rows, s.n, s.m, upper);
        ExpectAsTheReference(d, {sorted, Random(type, s.rows * s.m, 4, -60, 60)}, {{DType::kInt32, s.rows * s.m}},
                             errors::Concat(s.m, " in ", s.rows, "x", s.n, upper ? " upper" : ""));
      }
    }
  }
}

}  // namespace
}  // namespace xpu::testing
