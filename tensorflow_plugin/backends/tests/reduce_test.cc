#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

constexpr ReduceKind kKinds[] = {ReduceKind::kSum,    ReduceKind::kMean,  ReduceKind::kProd, ReduceKind::kMax,
                                 ReduceKind::kMin,    ReduceKind::kAll,   ReduceKind::kAny,  ReduceKind::kEuclideanNorm,
                                 ReduceKind::kArgMax, ReduceKind::kArgMin};
ReduceDesc Make(ReduceKind kind, DType type, const Dims& shape, uint32_t axes) {
  ReduceDesc desc;
  desc.kind = kind;
  desc.source.program = IdentityProgram(type);
  desc.source.shape = shape;
  desc.source.in_strides[0] = DenseStrides(shape);
  desc.axes = axes;
  return desc;
}

int64_t OutputSize(const ReduceDesc& desc) {
  int64_t n = 1;
  for (int d = 0; d < desc.source.shape.rank(); ++d) {
    if (((desc.axes >> d) & 1) == 0) n *= desc.source.shape[d];
  }
  return n;
}

std::string Describe(const ReduceDesc& desc) {
  return desc.source.shape.ToString() + " over mask " + std::to_string(desc.axes);
}

// By hand, and within a rounding or two: u of each value.
void ExpectValues(const ReduceDesc& desc, const Array& input, const Array& want) {
  ExpectByHand(desc, {input}, {{ResultType(desc), OutputSize(desc)}}, {{want}, {{Roundoff(want.type())}}},
               Describe(desc) + " by hand");
}

// Values whose products and sums of squares stay in range; integers of which a small part is more than nothing.
Array Source(ReduceKind kind, DType type, int64_t n, uint32_t seed) {
  if (kind == ReduceKind::kEuclideanNorm) return Random(type, n, seed);
  if (kind != ReduceKind::kProd) return IsInteger(type) ? Random(type, n, seed, -100, 100) : Random(type, n, seed);
  if (IsInteger(type)) return Random(type, n, seed, -3, 4);
  if (IsComplex(type)) return Random(type, n, seed, 0.70, 0.714);  // of magnitude 1
  return Random(type, n, seed, 0.98, 1.02);
}

// The bounds, for n elements:
//   sum, mean          SumError(n + 1) of the sum, or mean, of the magnitudes
//   product            SumError(n) of itself, 3 n for complex numbers, whose products err by less than 3 u
//   norm               half of SumError(n + 3), for a sum of squares that are all of one sign, and u for the root
// all others, and integers, are exact. Where the exact value is computed in the same type, twice as much.
void Compare(const ReduceDesc& desc, const std::string& what) {
  const DType type = desc.source.program->inputs()[0];
  const Array input = Source(desc.kind, type, desc.source.shape.num_elements(), 7);
  const Output output = {ResultType(desc), OutputSize(desc)};
  const double n = static_cast<double>(desc.source.shape.num_elements()) / std::max<double>(1, output.size);
  const double twice = Wide(type) == type ? 2 : 1;
  ReduceDesc wide = desc;
  wide.source.program = IdentityProgram(Wide(type));
  const bool rounds = Roundoff(type) != 0;
  if (rounds && (desc.kind == ReduceKind::kSum || desc.kind == ReduceKind::kMean)) {
    ExpectSums(desc, wide, {input}, output, n + 1, what + " " + Describe(desc));
  } else if (rounds && desc.kind == ReduceKind::kProd) {
    const Bound bound = {SumError(IsComplex(type) ? 3 * n : n, type) * twice};
    Expect(desc, {input}, {output}, {Exact(wide, {input}, {output}), {bound}}, what + " " + Describe(desc));
  } else if (rounds && desc.kind == ReduceKind::kEuclideanNorm) {
    const Bound bound = {(SumError(n + 3, type) / 2 + Roundoff(type)) * twice};
    Expect(desc, {input}, {output}, {Exact(wide, {input}, {output}), {bound}}, what + " " + Describe(desc));
  } else {
    ExpectAsTheReference(desc, {input}, {output}, what + " " + Describe(desc));
  }
}

TEST(Reduce, ByHand) {
  const Array x = Values(DType::kFloat, {1, 2, 3, 4, 5, 6});
  const Dims shape = {2, 3};
  ExpectValues(Make(ReduceKind::kSum, DType::kFloat, shape, 1), x, Values(DType::kFloat, {5, 7, 9}));
  ExpectValues(Make(ReduceKind::kSum, DType::kFloat, shape, 2), x, Values(DType::kFloat, {6, 15}));
  ExpectValues(Make(ReduceKind::kSum, DType::kFloat, shape, 3), x, Values(DType::kFloat, {21}));
  ExpectValues(Make(ReduceKind::kSum, DType::kFloat, shape, 0), x, x);
  ExpectValues(Make(ReduceKind::kMean, DType::kFloat, shape, 2), x, Values(DType::kFloat, {2, 5}));
  ExpectValues(Make(ReduceKind::kProd, DType::kFloat, shape, 1), x, Values(DType::kFloat, {4, 10, 18}));
  ExpectValues(Make(ReduceKind::kMax, DType::kFloat, shape, 1), x, Values(DType::kFloat, {4, 5, 6}));
  ExpectValues(Make(ReduceKind::kMin, DType::kFloat, shape, 2), x, Values(DType::kFloat, {1, 4}));
  ExpectValues(Make(ReduceKind::kEuclideanNorm, DType::kFloat, {2}, 1), Values(DType::kFloat, {3, -4}),
               Values(DType::kFloat, {5}));
  ExpectValues(Make(ReduceKind::kArgMax, DType::kFloat, {5}, 1), Values(DType::kFloat, {1, 9, 2, 9, 3}),
               Values(DType::kInt64, {1}));
  ExpectValues(Make(ReduceKind::kArgMin, DType::kFloat, {2, 2}, 1), Values(DType::kFloat, {4, 2, 3, 2}),
               Values(DType::kInt64, {1, 0}));
  ExpectValues(Make(ReduceKind::kAll, DType::kBool, {2, 2}, 2), Values(DType::kBool, {1, 1, 1, 0}),
               Values(DType::kBool, {1, 0}));
  ExpectValues(Make(ReduceKind::kAny, DType::kBool, {2, 2}, 2), Values(DType::kBool, {0, 0, 1, 0}),
               Values(DType::kBool, {0, 1}));
}

TEST(Reduce, IntegersByHand) {
  // Sums wrap in their type; means are taken in 64 bits and cut toward zero.
  ExpectValues(Make(ReduceKind::kSum, DType::kInt8, {3}, 1), Values(DType::kInt8, {100, 100, 1}),
               Values(DType::kInt8, {-55}));
  ExpectValues(Make(ReduceKind::kMean, DType::kInt8, {3}, 1), Values(DType::kInt8, {100, 100, 101}),
               Values(DType::kInt8, {100}));
  ExpectValues(Make(ReduceKind::kMean, DType::kInt32, {2}, 1), Values(DType::kInt32, {-1, -2}),
               Values(DType::kInt32, {-1}));
  ExpectValues(Make(ReduceKind::kMean, DType::kInt32, {2}, 1), Values(DType::kInt32, {2147483647, 2147483645}),
               Values(DType::kInt32, {2147483646}));
  ExpectValues(Make(ReduceKind::kMean, DType::kUint8, {3}, 1), Values(DType::kUint8, {255, 255, 253}),
               Values(DType::kUint8, {254}));
  ExpectValues(Make(ReduceKind::kEuclideanNorm, DType::kInt8, {2}, 1), Values(DType::kInt8, {60, 80}),
               Values(DType::kInt8, {100}));
}

TEST(Reduce, ComplexByHand) {
  Array x(DType::kComplex64, 2);
  x.as<std::complex<float>>()[0] = {3, 4};
  x.as<std::complex<float>>()[1] = {0, 1};
  auto want = [](float re, float im) {
    Array a(DType::kComplex64, 1);
    a.as<std::complex<float>>()[0] = {re, im};
    return a;
  };
  ExpectValues(Make(ReduceKind::kSum, DType::kComplex64, {2}, 1), x, want(3, 5));
  ExpectValues(Make(ReduceKind::kMean, DType::kComplex64, {2}, 1), x, want(1.5, 2.5));
  ExpectValues(Make(ReduceKind::kProd, DType::kComplex64, {2}, 1), x, want(-4, 3));
  ExpectValues(Make(ReduceKind::kEuclideanNorm, DType::kComplex64, {2}, 1), x, want(std::sqrt(26.0f), 0));
}

TEST(Reduce, NanAndInfinityByHand) {
  for (DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    // Long enough for the vector loops, with the NaN among the first, the middle and the last.
    for (int at : {0, 57, 199}) {
      Array x = Random(type, 200, 3);
      Array nan = Values(type, {kNan});
      std::memcpy(x.as<char>() + at * SizeOf(type), nan.data(), SizeOf(type));
      for (ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kSum, ReduceKind::kMean}) {
        ExpectValues(Make(kind, type, {200}, 1), x, nan);
      }
    }
    const Array low = Values(type, {-kInf, -kInf, -kInf});
    ExpectValues(Make(ReduceKind::kMax, type, {3}, 1), low, Values(type, {-kInf}));
    ExpectValues(Make(ReduceKind::kArgMax, type, {3}, 1), low, Values(DType::kInt64, {0}));
    // NaN is never the extremum.
    ExpectValues(Make(ReduceKind::kArgMax, type, {4}, 1), Values(type, {1, kNan, 2, 2}), Values(DType::kInt64, {2}));
    ExpectValues(Make(ReduceKind::kArgMin, type, {3}, 1), Values(type, {kNan, 1, 2}), Values(DType::kInt64, {1}));
    ExpectValues(Make(ReduceKind::kArgMin, type, {2}, 1), Values(type, {kNan, kNan}), Values(DType::kInt64, {0}));
    ExpectValues(Make(ReduceKind::kArgMax, type, {2, 2}, 1), Values(type, {kNan, 1, 2, kNan}),
                 Values(DType::kInt64, {1, 0}));
  }
}

TEST(Reduce, EmptyGivesTheIdentity) {
  auto check = [](ReduceKind kind, DType type, double want) {
    const ReduceDesc desc = Make(kind, type, {2, 0}, 2);
    ExpectValues(desc, Array(type, 0), Values(ResultType(desc), {want, want}));
  };
  for (DType type : {DType::kFloat, DType::kHalf, DType::kBFloat16, DType::kDouble}) {
    check(ReduceKind::kSum, type, 0);
    check(ReduceKind::kMean, type, kNan);
    check(ReduceKind::kProd, type, 1);
    check(ReduceKind::kMax, type, -kInf);
    check(ReduceKind::kMin, type, kInf);
    check(ReduceKind::kEuclideanNorm, type, 0);
    check(ReduceKind::kArgMax, type, 0);
  }
  check(ReduceKind::kMax, DType::kInt32, -2147483648.0);
  check(ReduceKind::kMin, DType::kInt32, 2147483647.0);
  check(ReduceKind::kMax, DType::kUint8, 0);
  check(ReduceKind::kMin, DType::kUint8, 255);
  check(ReduceKind::kMean, DType::kInt32, 0);
  check(ReduceKind::kAll, DType::kBool, 1);
  check(ReduceKind::kAny, DType::kBool, 0);
  // No output at all.
  Compare(Make(ReduceKind::kSum, DType::kFloat, {0, 3}, 2), "no output");
}

TEST(Reduce, EveryKindAndType) {
  // Among them rows of vectors, several at a time, and rows that are folded in pieces.
  const Dims shapes[] = {{17}, {5, 9}, {3, 4, 5}, {3, 1030}, {70, 33}, {9, 80}, {2, 22 * 1024 + 77}};
  for (int t = 1; t < kNumDTypes; ++t) {
    const DType type = static_cast<DType>(t);
    for (ReduceKind kind : kKinds) {
      if (!IsDefined(Make(kind, type, {1}, 1))) continue;
      for (const Dims& shape : shapes) {
        for (uint32_t axes = IsArgKind(kind) ? 1 : 0; axes < (1u << shape.rank()); ++axes) {
          if (IsArgKind(kind) && (axes & (axes - 1)) != 0) continue;
          Compare(Make(kind, type, shape, axes), Name(type));
        }
      }
    }
  }
}

// Rows and columns about the length of a tile and its blocks, and few outputs of many elements.
TEST(Reduce, Sizes) {
  for (DType type : {DType::kFloat, DType::kHalf, DType::kInt32}) {
    for (int64_t n : {1, 2, 15, 63, 64, 65, 511, 512, 513, 1023, 1024, 1025, 2049, 17 * 1024 + 3}) {
      for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kArgMin}) {
        Compare(Make(kind, type, {3, n}, 1), Name(type));
        Compare(Make(kind, type, {3, n}, 2), Name(type));
        Compare(Make(kind, type, {n, 3}, 1), Name(type));
        Compare(Make(kind, type, {2, n, 5}, 2), Name(type));
      }
    }
    Compare(Make(ReduceKind::kSum, type, {200, 700}, 3), Name(type));
    Compare(Make(ReduceKind::kSum, type, {700, 200}, 1), Name(type));
    Compare(Make(ReduceKind::kMean, type, {40, 30, 7, 20}, 0b0111), Name(type));
    Compare(Make(ReduceKind::kMean, type, {40, 3, 70, 20}, 0b1101), Name(type));
  }
}

// More axes than a shape holds without memory of its own, none of which merge.
TEST(Reduce, ManyAxes) {
  Dims shape(18, 2);
  shape[3] = 1;
  for (uint32_t axes : {0x15555u, 0x2aaaau, 0x3ffffu, 0u, 0x20001u}) {
    for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax}) {
      Compare(Make(kind, DType::kFloat, shape, axes), "many axes");
    }
  }
  Compare(Make(ReduceKind::kArgMax, DType::kInt32, shape, 1u << 9), "many axes");
}

TEST(Reduce, IndexTypes) {
  for (DType index_type : {DType::kInt16, DType::kUint16, DType::kInt32, DType::kInt64}) {
    ReduceDesc desc = Make(ReduceKind::kArgMax, DType::kFloat, {3, 700, 2}, 2);
    desc.index_type = index_type;
    Compare(desc, Name(index_type));
  }
}

// sum((x - mean)^2) with a broadcast mean: what moments and losses are made of. The terms are of one sign, and each
// takes three roundings to make: SumError(n + 4) of the result.
TEST(Reduce, Prologue) {
  auto squared_distance = [](DType type) {
    ProgramBuilder b;
    const auto x = b.Input(type);
    b.Output(b.Apply(Opcode::kSquare, b.Apply(Opcode::kSub, x, b.Input(type))));
    return b.Build();
  };
  for (DType type : {DType::kFloat, DType::kHalf, DType::kDouble}) {
    for (const Dims& shape : {Dims{300, 40}, Dims{3, 2000}, Dims{2000, 3}}) {
      for (uint32_t axes : {1u, 2u, 3u}) {
        ReduceDesc desc = Make(ReduceKind::kMean, type, shape, axes);
        desc.source.program = squared_distance(type);
        desc.source.in_strides[1] = {0, 1};
        ReduceDesc wide = desc;
        wide.source.program = squared_distance(Wide(type));
        const std::vector<Array> in = {Random(type, shape.num_elements(), 1), Random(type, shape[1], 2)};
        const Output out = {type, OutputSize(desc)};
        const double n = static_cast<double>(shape.num_elements()) / static_cast<double>(out.size);
        const Bound bound = {SumError(n + 4, type) * (type == DType::kDouble ? 2 : 1)};
        Expect(desc, in, {out}, {Exact(wide, in, {out}), {bound}}, Describe(desc));
      }
    }
  }
}

// Sums of whole numbers, each made of so many operands that a tile of each would not fit the nearest cache.
TEST(Reduce, ProloguesOfManyOperands) {
  constexpr int kOperands = 12;
  for (DType type : {DType::kFloat, DType::kDouble}) {
    ProgramBuilder b;
    auto sum = b.Input(type);
    for (int i = 1; i < kOperands; ++i) sum = b.Apply(i % 2 == 0 ? Opcode::kAdd : Opcode::kSub, sum, b.Input(type));
    b.Output(sum);
    for (uint32_t axes : {1u, 2u, 3u}) {
      ReduceDesc desc = Make(ReduceKind::kSum, type, {5, 1900}, axes);
      desc.source.program = b.Build();
      std::vector<Array> in;
      for (int i = 0; i < kOperands; ++i) {
        desc.source.in_strides[i] = DenseStrides(desc.source.shape);
        in.push_back(Whole(type, 5 * 1900, 40 + i, 9));
      }
      ExpectAsTheReference(desc, in, {{type, OutputSize(desc)}}, Describe(desc));
      if (axes == 3) continue;
      desc.kind = ReduceKind::kArgMax;
      ExpectAsTheReference(desc, in, {{ResultType(desc), OutputSize(desc)}}, Describe(desc) + " argmax");
    }
  }
}

TEST(Reduce, StridedSource) {
  // A transposed source, and one that repeats its rows.
  ReduceDesc desc = Make(ReduceKind::kSum, DType::kFloat, {50, 60}, 1);
  desc.source.in_strides[0] = {1, 50};
  Compare(desc, "transposed");
  desc.axes = 2;
  Compare(desc, "transposed");
  desc.source.in_strides[0] = {0, 1};
  Compare(desc, "repeated");
}

// Rows, columns and all of it, in parts that several threads add up: one part that is off, or one term, is wrong.
TEST(Reduce, LongSumsOfWholeNumbersAreExact) {
  for (DType type : {DType::kFloat, DType::kBFloat16, DType::kComplex64}) {
    for (const Dims& shape : {Dims{1 << 19}, Dims{3, 100003}, Dims{100003, 3}, Dims{2, 30011, 5}, Dims{9000, 70}}) {
      for (uint32_t axes : {1u, 2u, 3u}) {
        ReduceDesc desc = Make(ReduceKind::kSum, type, shape, axes & ((1u << shape.rank()) - 1));
        ReduceDesc wide = desc;
        wide.source.program = IdentityProgram(Wide(type));
        ExpectExactSums(desc, wide, {Whole(type, shape.num_elements(), axes, 9)}, {type, OutputSize(desc)},
                        std::string(Name(type)) + " " + Describe(desc));
      }
    }
  }
}

// A million equal terms. One float that is added to in order makes 3.7% too much. That is beyond SumError, which holds
// for independent roundings, as those of partial sums are.
TEST(Reduce, LongSumsAreAccurate) {
  constexpr int64_t kTerms = 1 << 20;
  for (const Dims& shape : {Dims{kTerms, 1}, Dims{kTerms, 2}, Dims{1, kTerms}}) {
    const uint32_t axes = shape[0] == 1 ? 2 : 1;
    const ReduceDesc desc = Make(ReduceKind::kSum, DType::kFloat, shape, axes);
    const Array x = Values(DType::kFloat, std::vector<double>(shape.num_elements(), 0.1f));
    const std::vector<double> exact(OutputSize(desc), 0.1f * static_cast<double>(kTerms));
    ExpectByHand(desc, {x}, {{DType::kFloat, OutputSize(desc)}},
                 {{Values(DType::kDouble, exact)}, {{SumError(kTerms, DType::kFloat)}}}, Describe(desc));
  }
}

// Where a backend's devices differ in the number of threads, it does not matter which device computes.
TEST(Reduce, ThreadsDoNotChangeTheResult) {
  std::vector<std::unique_ptr<TestDevice>> devices;
  for (int threads : {1, 2, 3, 7}) {
    devices.push_back(std::make_unique<TestDevice>(BackendUnderTest(), OptionsUnderTest(threads)));
  }
  for (uint32_t axes : {1u, 2u, 3u}) {
    const ReduceDesc desc = Make(ReduceKind::kSum, DType::kFloat, {700, 900}, axes);
    const Array x = Random(DType::kFloat, 700 * 900, 5);
    const Output output = {DType::kFloat, OutputSize(desc)};
    const Want want{devices[0]->Run(desc, {x}, {output}).out};
    for (const auto& device : devices) ExpectOn(*device, Waiting::kQueued, desc, {x}, {output}, want, Describe(desc));
  }
}

TEST(Reduce, FailuresOfTheSourceAreReported) {
  ReduceDesc desc = Make(ReduceKind::kSum, DType::kInt32, {3}, 1);
  desc.source.program = SingleOpProgram(Opcode::kTruncateDiv, DType::kInt32);
  desc.source.in_strides[1] = {1};
  const Want want{{Values(DType::kInt32, {4})}, {}, Code::kInvalidArgument, "division by zero"};
  ExpectByHand(desc, {Values(DType::kInt32, {4, 5, 6}), Values(DType::kInt32, {2, 0, 3})}, {{DType::kInt32, 1}}, want,
               "a quotient without a value");
}

}  // namespace
}  // namespace xpu::testing
