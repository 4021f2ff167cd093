#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr ScatterKind kKinds[] = {ScatterKind::kUpdate, ScatterKind::kAdd, ScatterKind::kSub, ScatterKind::kMul,
                                  ScatterKind::kDiv,    ScatterKind::kMin, ScatterKind::kMax};
Array Indices(DType type, int64_t n, const Dims& dims, uint32_t seed) {
  return Coordinates(type, n, dims.begin(), dims.rank(), seed);
}

ScatterDesc Describe(ScatterKind kind, DType type, DType index_type, int64_t num_indices, int64_t inner,
                     const Dims& dims) {
  ScatterDesc desc;
  desc.kind = kind;
  desc.type = type;
  desc.index_type = index_type;
  desc.num_indices = num_indices;
  desc.inner = inner;
  desc.dims = dims;
  return desc;
}

// Updates that divide are between 1 and 4, so that products stay in range too. Those of a maximum are more, to exceed
// the values that were there.
Array Updates(ScatterKind kind, DType type, int64_t n, uint32_t seed) {
  return Random(type, n, seed, 1, kind == ScatterKind::kMax ? 120 : 4);
}

// The buffer's first contents: most integers are large enough for a small part to be more than nothing.
Array Before(DType type, int64_t n, uint32_t seed) {
  return IsInteger(type) ? Random(type, n, seed, -100, 100) : Random(type, n, seed);
}

// Every element is rounded once for each of its updates, and those in order: there is one right result. But a complex
// quotient may miss the exact one by 8 u of its magnitude, here and on the reference.
void Compare(const ScatterDesc& desc, const std::vector<Array>& in, const std::string& what) {
  const int64_t n = desc.dims.num_elements() * desc.inner;
  const Array before = Before(desc.type, n, 4);
  const std::vector<Output> buffer = {{desc.type, n, &before}};
  Want want = AsTheReference(desc, in, buffer);
  if (desc.kind == ScatterKind::kDiv && IsComplex(desc.type)) {
    want.bounds = {{16 * Roundoff(desc.type) * static_cast<double>(desc.num_indices)}};
  }
  Expect(desc, in, buffer, want, what);
}

TEST(Scatter, KindsByHand) {
  const struct {
    ScatterKind kind;
    std::vector<double> want;
  } cases[] = {
      {ScatterKind::kUpdate, {5, 6, 12, 12, 12, 12}}, {ScatterKind::kAdd, {20, 22, 12, 12, 15, 16}},
      {ScatterKind::kSub, {4, 2, 12, 12, 9, 8}},      {ScatterKind::kMul, {180, 288, 12, 12, 36, 48}},
      {ScatterKind::kDiv, {0.8, 0.5, 12, 12, 4, 3}},  {ScatterKind::kMin, {3, 4, 12, 12, 3, 4}},
      {ScatterKind::kMax, {12, 12, 12, 12, 12, 12}},
  };
  for (const auto& c : cases) {
    const ScatterDesc desc = Describe(c.kind, DType::kDouble, DType::kInt32, 3, 2, {3});
    const Array before = Values(DType::kDouble, {12, 12, 12, 12, 12, 12});
    const bool update = c.kind == ScatterKind::kUpdate;
    const Array updates =
        update ? Values(DType::kDouble, {3, 4, 12, 12, 5, 6}) : Values(DType::kDouble, {3, 4, 3, 4, 5, 6});
    ExpectByHand(desc, {Values(DType::kInt32, {0, 2, 0}), updates}, {{DType::kDouble, 6, &before}},
                 {{Values(DType::kDouble, c.want)}, {{2 * Roundoff(DType::kDouble)}}}, "by hand");
  }
}

TEST(Scatter, ComplexQuotientsByHand) {
  for (DType type : {DType::kComplex64, DType::kComplex128}) {
    const ScatterDesc desc = Describe(ScatterKind::kDiv, type, DType::kInt32, 4, 1, {3});
    const auto array = [&](const std::vector<std::complex<double>>& values) {
      Array made(type, static_cast<int64_t>(values.size()));
      for (size_t i = 0; i < values.size(); ++i) {
        if (type == DType::kComplex64) {
          made.as<std::complex<float>>()[i] = std::complex<float>(values[i]);
        } else {
          made.as<std::complex<double>>()[i] = values[i];
        }
      }
      return made;
    };
    const Array before = array({{3, 4}, {1, 1}, {0, 6}}), updates = array({{0, 1}, {1, 2}, {2, 0}, {0, -3}});
    ExpectByHand(desc, {Values(DType::kInt32, {0, 0, 2, 2}), updates}, {{type, 3, &before}},
                 {{array({{-0.4, -2.2}, {1, 1}, {-1, 0}})}, {{32 * Roundoff(type)}}}, "by hand");
  }
}

TEST(Scatter, KindsTypesAndShapes) {
  const struct {
    int64_t num_indices, inner;
    Dims dims;
  } cases[] = {
      {1, 1, {1}},         {50, 1, {7}}, {40, 3, {100}}, {20, 9, {3, 5}},
      {600, 5, {4, 2, 3}}, {3, 7, {}},   {0, 4, {5}},    {4, 0, {5}},
  };
  for (DType index_type : {DType::kInt32, DType::kInt64}) {
    for (int t = 1; t < kNumDTypes; ++t) {
      const DType type = static_cast<DType>(t);
      for (ScatterKind kind : kKinds) {
        if (!IsDefined(kind, type)) continue;
        for (const auto& c : cases) {
          for (bool scalar : {false, true}) {
            ScatterDesc desc = Describe(kind, type, index_type, c.num_indices, c.inner, c.dims);
            desc.scalar_update = scalar;
            const int64_t updates = scalar ? 1 : c.num_indices * c.inner;
            Compare(desc, {Indices(index_type, c.num_indices, c.dims, 2), Updates(kind, type, updates, 3)},
                    errors::Concat(c.num_indices, " of ", c.inner, " in ", c.dims.ToString()));
          }
        }
      }
    }
  }
}

// Elements that are all replaced may never have been written: bytes that are no bool, which a sanitizer notices when
// they are read as one.
TEST(Scatter, WhatIsReplacedIsNotRead) {
  for (const int64_t inner : {1, 3}) {
    for (const bool scalar : {false, true}) {
      ScatterDesc desc = Describe(ScatterKind::kUpdate, DType::kBool, DType::kInt64, 2, inner, {2});
      desc.scalar_update = scalar;
      Array before(DType::kBool, 2 * inner);
      std::memset(before.as<uint8_t>(), 0xA5, 2 * inner);
      const Array updates = Values(DType::kBool, std::vector<double>(scalar ? 1 : 2 * inner, 1));
      ExpectByHand(desc, {Values(DType::kInt64, {1, 0}), updates}, {{DType::kBool, 2 * inner, &before}},
                   {{Values(DType::kBool, std::vector<double>(2 * inner, 1))}}, "of what is no bool");
    }
  }
}

// Sums of floats depend on their order: bit equality says that threads kept it.
TEST(Scatter, DuplicatesCombineInOrderOnSeveralThreads) {
  const struct {
    int64_t num_indices, inner;
    Dims dims;
  } cases[] = {{100000, 1, {50}}, {3000, 40, {1000}}, {20000, 4, {2, 70}},
               {200, 1000, {3}},  {70000, 2, {1}},    {20, 10007, {5}}};
  for (const auto& c : cases) {
    for (ScatterKind kind : {ScatterKind::kUpdate, ScatterKind::kAdd}) {
      for (DType type : {DType::kFloat, DType::kHalf}) {
        const ScatterDesc desc = Describe(kind, type, DType::kInt64, c.num_indices, c.inner, c.dims);
        Compare(desc, {Indices(DType::kInt64, c.num_indices, c.dims, 2), Random(type, c.num_indices * c.inner, 3)},
                "duplicates");
      }
    }
  }
}

TEST(Scatter, BadIndexIsNamedAndLeftOut) {
  const struct {
    int64_t num_indices, inner;
    Dims dims;
    int64_t position;
    std::vector<int64_t> bad;
    const char* message;
  } cases[] = {
      {5, 3, {10}, 3, {12}, "indices[3] = 12 is not in [0, 10)"},
      {50000, 1, {10}, 4321, {-3}, "indices[4321] = -3 is not in [0, 10)"},
      {100, 1000, {10}, 7, {10}, "indices[7] = 10 is not in [0, 10)"},
      {4, 2, {2, 10}, 1, {2, 5}, "indices[1] = [2, 5] does not index into shape [2,10]"},
  };
  for (const auto& c : cases) {
    const ScatterDesc desc = Describe(ScatterKind::kAdd, DType::kFloat, DType::kInt64, c.num_indices, c.inner, c.dims);
    Array indices = Indices(DType::kInt64, c.num_indices, c.dims, 5);
    for (int d = 0; d < c.dims.rank(); ++d) {
      for (int64_t at : {c.num_indices - 1, c.position}) indices.as<int64_t>()[at * c.dims.rank() + d] = c.bad[d];
    }
    const Array updates = Random(DType::kFloat, c.num_indices * c.inner, 6);
    const int64_t n = c.dims.num_elements() * c.inner;
    const Array before = Random(DType::kFloat, n, 7);
    const Output buffer = {DType::kFloat, n, &before};
    Want want = AsTheReference(desc, {indices, updates}, {buffer});
    want.message = c.message;
    ExpectByHand(desc, {indices, updates}, {buffer}, want, "a bad index");
  }
}

TEST(Scatter, NegativeIndicesAreSkippedOnRequestOnly) {
  ScatterDesc desc = Describe(ScatterKind::kAdd, DType::kInt32, DType::kInt32, 3, 1, {2});
  desc.skip_negative = true;
  const Array updates = Values(DType::kInt32, {1, 10, 100}), before = Values(DType::kInt32, {1000, 2000});
  const Output buffer = {DType::kInt32, 2, &before};
  ExpectByHand(desc, {Values(DType::kInt32, {1, -1, 0}), updates}, {buffer}, {{Values(DType::kInt32, {1100, 2001})}},
               "skipped");
  // Too large is still wrong.
  ExpectByHand(desc, {Values(DType::kInt32, {1, -1, 2}), updates}, {buffer},
               {{Values(DType::kInt32, {1000, 2001})}, {}, Code::kInvalidArgument, "indices[2] = 2 is not in [0, 2)"},
               "too large");
  desc.skip_negative = false;
  ExpectByHand(desc, {Values(DType::kInt32, {1, -1, 0}), updates}, {buffer},
               {{Values(DType::kInt32, {1100, 2001})}, {}, Code::kInvalidArgument, "indices[1] = -1 is not in [0, 2)"},
               "negative");
}

// So many for so few rows that threads count each for itself; an odd number, and fewer than are worth several threads.
TEST(Scatter, OneNumberForEachOfManyIndices) {
  for (DType type : {DType::kInt8, DType::kUint16, DType::kInt32, DType::kInt64}) {
    for (DType index_type : {DType::kInt32, DType::kInt64}) {
      for (int64_t n : {9, 4001, 200001}) {
        for (int64_t rows : {1, 7, 1000}) {
          ScatterDesc desc = Describe(ScatterKind::kAdd, type, index_type, n, 1, {rows});
          desc.scalar_update = desc.skip_negative = true;
          Array indices = Random(index_type, n, 8, -1, static_cast<double>(rows));
          const Array update = Values(type, {3});
          Compare(desc, {indices, update}, "counted");
          // One that is no row's, beside those that are passed over.
          const Array before = Before(type, rows, 4);
          const Output buffer = {type, rows, &before};
          VisitType(index_type, [&](auto tag) {
            using I = typename decltype(tag)::type;
            if constexpr (sizeof(I) >= 4 && IsInteger(DTypeOf<I>::value)) {
              indices.as<I>()[n - 2] = static_cast<I>(rows);
            }
          });
          Want want = AsTheReference(desc, {indices, update}, {buffer});
          want.message = "indices[" + std::to_string(n - 2) + "] = " + std::to_string(rows) + " is not in [0, " +
                         std::to_string(rows) + ")";
          ExpectByHand(desc, {indices, update}, {buffer}, want, "a bad index");
        }
      }
    }
  }
}

TEST(Scatter, IntegerDivision) {
  const ScatterDesc desc = Describe(ScatterKind::kDiv, DType::kInt32, DType::kInt32, 2, 2, {2});
  const double lowest = std::numeric_limits<int32_t>::min();
  const Array indices = Values(DType::kInt32, {0, 1}), before = Values(DType::kInt32, {7, -7, lowest, 9});
  const Output buffer = {DType::kInt32, 4, &before};
  ExpectByHand(desc, {indices, Values(DType::kInt32, {2, 2, -1, 3})}, {buffer},
               {{Values(DType::kInt32, {3, -3, lowest, 3})}}, "integer division");
  const Outcome by_zero =
      Reference().Run(desc, {indices, Values(DType::kInt32, {1, 1, 3, 0})}, {buffer}, Waiting::kAwaited);
  ExpectByHand(desc, {indices, Values(DType::kInt32, {1, 1, 3, 0})}, {buffer},
               {by_zero.out, {}, Code::kInvalidArgument, "integer division by zero: updates[1] has a 0 at position 1"},
               "by zero");
}

TEST(Scatter, AnIndexOutOfRangeIsNamedRatherThanADivisionByZero) {
  const ScatterDesc desc = Describe(ScatterKind::kDiv, DType::kInt32, DType::kInt32, 3, 1, {2});
  const Array before = Values(DType::kInt32, {8, 8});
  const std::vector<Array> in = {Values(DType::kInt32, {0, 5, 1}), Values(DType::kInt32, {0, 2, 0})};
  Want want = AsTheReference(desc, in, {{DType::kInt32, 2, &before}});
  want.message = "indices[1] = 5 is not in [0, 2)";
  ExpectByHand(desc, in, {{DType::kInt32, 2, &before}}, want, "two failures");
}

TEST(Scatter, IntegersWrapAround) {
  const ScatterDesc desc = Describe(ScatterKind::kMul, DType::kInt16, DType::kInt32, 2, 1, {1});
  const Array before = Values(DType::kInt16, {3});
  ExpectByHand(desc, {Values(DType::kInt32, {0, 0}), Values(DType::kInt16, {300, 300})}, {{DType::kInt16, 1, &before}},
               {{Values(DType::kInt16, {static_cast<int16_t>(270000 & 0xffff)})}}, "wrap");
}

}  // namespace
}  // namespace xpu::testing
