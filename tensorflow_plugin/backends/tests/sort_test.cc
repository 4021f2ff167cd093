#include <cmath>
#include <random>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr DType kTypes[] = {DType::kInt8,  DType::kInt16,    DType::kInt32,  DType::kInt64,
                            DType::kUint8, DType::kUint16,   DType::kUint32, DType::kUint64,
                            DType::kHalf,  DType::kBFloat16, DType::kFloat,  DType::kDouble};
constexpr DType kIndexTypes[] = {DType::kInt16, DType::kInt32, DType::kInt64};

SortDesc Make(DType type, DType index_type, int64_t rows, int64_t n, int64_t k, bool descending) {
  SortDesc d;
  d.type = type;
  d.index_type = index_type;
  d.rows = rows, d.n = n, d.k = k;
  d.descending = descending;
  return d;
}

std::vector<Output> Outputs(const SortDesc& d) { return {{d.type, d.rows * d.k}, {d.index_type, d.rows * d.k}}; }

// Bits of all kinds: every sign, exponent and integer, few equal.
Array AnyBits(DType type, int64_t n) {
  Array a(type, n);
  std::mt19937_64 rng(11);
  for (size_t i = 0; i < a.num_bytes(); ++i) a.as<uint8_t>()[i] = static_cast<uint8_t>(rng());
  return a;
}

TEST(Sort, ByHand) {
  for (DType type : kTypes) {
    for (DType index_type : kIndexTypes) {
      const Array x = Values(type, {3, 1, 2, 1, 7, 0, 7, 9});
      ExpectByHand(Make(type, index_type, 2, 4, 4, false), {x}, {{type, 8}, {index_type, 8}},
                   {{Values(type, {1, 1, 2, 3, 0, 7, 7, 9}), Values(index_type, {1, 3, 2, 0, 1, 0, 2, 3})}},
                   "ascending");
      ExpectByHand(Make(type, index_type, 2, 4, 3, true), {x}, {{type, 6}, {index_type, 6}},
                   {{Values(type, {3, 2, 1, 9, 7, 7}), Values(index_type, {0, 2, 1, 3, 0, 2})}}, "descending");
    }
  }
}

TEST(Sort, NanComesLastAndZerosAreEqual) {
  const double inf = INFINITY;
  for (DType type : {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble}) {
    const Array x = Values(type, {NAN, 0.0, -inf, -0.0, inf, NAN, -1});
    ExpectByHand(Make(type, DType::kInt32, 1, 7, 7, false), {x}, {{type, 7}, {DType::kInt32, 7}},
                 {{Values(type, {-inf, -1, 0, 0, inf, NAN, NAN}), Values(DType::kInt32, {2, 6, 1, 3, 4, 0, 5})}}, "up");
    ExpectByHand(Make(type, DType::kInt32, 1, 7, 7, true), {x}, {{type, 7}, {DType::kInt32, 7}},
                 {{Values(type, {inf, 0, 0, -1, -inf, NAN, NAN}), Values(DType::kInt32, {4, 1, 3, 6, 2, 0, 5})}},
                 "down");
  }
}

TEST(Sort, TypesShapesAndOrders) {
  const struct {
    int64_t rows, n, k;
  } shapes[] = {{1, 1, 1},          {3, 10, 10},       {2, 150, 7},    {5, 1000, 1}, {3, 1000, 100},
                {3, 1000, 200},     {40, 300, 300},    {2, 5, 0},      {0, 5, 5},    {1, 70001, 5},
                {1, 150001, 30000}, {1, 70000, 70000}, {3, 30000, 40}, {2000, 3, 2}};
  for (DType type : kTypes) {
    for (const auto& s : shapes) {
      for (bool descending : {false, true}) {
        const SortDesc d = Make(type, DType::kInt32, s.rows, s.n, s.k, descending);
        const std::string what = errors::Concat(s.rows, "x", s.n, " first ", s.k, descending ? " descending" : "");
        ExpectAsTheReference(d, {AnyBits(type, s.rows * s.n)}, Outputs(d), what + " any");
        // Many equal ones.
        ExpectAsTheReference(d, {Random(type, s.rows * s.n, 5, -4, 4)}, Outputs(d), what + " few values");
      }
    }
  }
}

TEST(Sort, WhatIsSortedAlreadyEitherWay) {
  for (int64_t n : {100, 5000, 100000}) {
    Array up(DType::kFloat, n), down(DType::kFloat, n), same(DType::kFloat, n);
    for (int64_t i = 0; i < n; ++i) {
      up.as<float>()[i] = static_cast<float>(i - n / 2);
      down.as<float>()[i] = static_cast<float>(n / 2 - i);
      same.as<float>()[i] = 2;
    }
    for (int64_t k : {n, n / 10}) {
      for (bool descending : {false, true}) {
        const SortDesc d = Make(DType::kFloat, DType::kInt64, 1, n, k, descending);
        for (const Array* x : {&up, &down, &same}) {
          ExpectAsTheReference(d, {*x}, Outputs(d), errors::Concat(n, " first ", k, descending ? " descending" : ""));
        }
      }
    }
  }
}

}  // namespace
}  // namespace xpu::testing
