#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/host/isa.h"
#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

constexpr ReduceKind kKinds[] = {ReduceKind::kSum,    ReduceKind::kMean,  ReduceKind::kProd, ReduceKind::kMax,
                                 ReduceKind::kMin,    ReduceKind::kAll,   ReduceKind::kAny,  ReduceKind::kEuclideanNorm,
                                 ReduceKind::kArgMax, ReduceKind::kArgMin};
constexpr const char* kKindNames[] = {"Sum", "Mean", "Prod",          "Max",    "Min",
                                      "All", "Any",  "EuclideanNorm", "ArgMax", "ArgMin"};

bool IsArg(ReduceKind kind) { return kind == ReduceKind::kArgMax || kind == ReduceKind::kArgMin; }

bool IsDefinedOn(ReduceKind kind, DType type) {
  switch (kind) {
    case ReduceKind::kAll:
    case ReduceKind::kAny:
      return type == DType::kBool;
    case ReduceKind::kMax:
    case ReduceKind::kMin:
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin:
      return !IsComplex(type);
    default:
      return type != DType::kBool;
  }
}

ReduceDesc Make(ReduceKind kind, DType type, const Dims& shape, uint32_t axes) {
  ReduceDesc desc;
  desc.kind = kind;
  desc.source.program = IdentityProgram(type);
  desc.source.shape = shape;
  desc.source.in_strides[0] = DenseStrides(shape);
  desc.axes = axes;
  return desc;
}

DType OutputType(const ReduceDesc& desc) {
  return IsArg(desc.kind) ? desc.index_type : desc.source.program->output_type(0);
}

int64_t OutputSize(const ReduceDesc& desc) {
  int64_t n = 1;
  for (int d = 0; d < desc.source.shape.rank(); ++d) {
    if (((desc.axes >> d) & 1) == 0) n *= desc.source.shape[d];
  }
  return n;
}

std::string Describe(const ReduceDesc& desc) {
  return std::string(kKindNames[static_cast<int>(desc.kind)]) + " of " + desc.source.shape.ToString() + " over mask " +
         std::to_string(desc.axes);
}

// Expects what the reference and the host write for literal input to be `want`, under every instruction set.
void ExpectValues(const ReduceDesc& desc, const Array& input, const Array& want) {
  for (host::Isa isa : {host::Isa::kBaseline, host::Isa::kAvx2, host::Isa::kAvx512}) {
    if (!host::HasIsa(isa)) continue;
    host::ScopedIsa scoped(isa);
    const auto got = CompareBackends(desc, {input}, {{OutputType(desc), OutputSize(desc)}}, 1, Describe(desc));
    ExpectClose(got[0], want, ToleranceFor(want.type()), Describe(desc) + " by hand");
  }
}

// Values whose products and sums of squares stay in range.
Array Source(ReduceKind kind, DType type, int64_t n, uint32_t seed) {
  if (kind != ReduceKind::kProd) return Random(type, n, seed);
  if (IsInteger(type)) return Random(type, n, seed, -3, 4);
  if (IsComplex(type)) return Random(type, n, seed, 0.70, 0.714);  // of magnitude 1
  return Random(type, n, seed, 0.98, 1.02);
}

void Compare(const ReduceDesc& desc, const std::string& what, double scale = 8) {
  const DType type = desc.source.program->inputs()[0];
  const int64_t n = desc.source.shape.num_elements();
  CompareBackends(desc, {Source(desc.kind, type, n, 7)}, {{OutputType(desc), OutputSize(desc)}}, scale,
                  what + " " + Describe(desc));
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
    ExpectValues(desc, Array(type, 0), Values(OutputType(desc), {want, want}));
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
  const Dims shapes[] = {{17}, {5, 9}, {3, 4, 5}, {3, 1030}, {70, 33}};
  for (int t = 1; t < kNumDTypes; ++t) {
    const DType type = static_cast<DType>(t);
    for (ReduceKind kind : kKinds) {
      if (!IsDefinedOn(kind, type)) continue;
      for (const Dims& shape : shapes) {
        for (uint32_t axes = IsArg(kind) ? 1 : 0; axes < (1u << shape.rank()); ++axes) {
          if (IsArg(kind) && (axes & (axes - 1)) != 0) continue;
          // Real and imaginary parts cancel: their errors are relative to the magnitude of all terms.
          Compare(Make(kind, type, shape, axes), Name(type), type >= DType::kDouble ? 1024 : 8);
        }
      }
    }
  }
}

// Rows and columns about the length of a tile and its blocks, and few outputs of many elements.
TEST(Reduce, Sizes) {
  for (host::Isa isa : {host::Isa::kBaseline, host::Isa::kAvx2, host::Isa::kAvx512}) {
    if (!host::HasIsa(isa)) continue;
    SCOPED_TRACE(host::Name(isa));
    host::ScopedIsa scoped(isa);
    for (DType type : {DType::kFloat, DType::kHalf, DType::kInt32}) {
      for (int64_t n : {1, 2, 15, 63, 64, 65, 511, 512, 513, 1023, 1024, 1025, 2049, 17 * 1024 + 3}) {
        for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kArgMin}) {
          Compare(Make(kind, type, {3, n}, 1), Name(type), 64);
          Compare(Make(kind, type, {3, n}, 2), Name(type), 64);
          Compare(Make(kind, type, {n, 3}, 1), Name(type), 64);
          Compare(Make(kind, type, {2, n, 5}, 2), Name(type), 64);
        }
      }
      Compare(Make(ReduceKind::kSum, type, {200, 700}, 3), Name(type), 256);
      Compare(Make(ReduceKind::kSum, type, {700, 200}, 1), Name(type), 64);
      Compare(Make(ReduceKind::kMean, type, {40, 30, 7, 20}, 0b0111), Name(type), 64);
      Compare(Make(ReduceKind::kMean, type, {40, 3, 70, 20}, 0b1101), Name(type), 64);
    }
  }
}

TEST(Reduce, IndexTypes) {
  for (DType index_type : {DType::kInt16, DType::kUint16, DType::kInt32, DType::kInt64}) {
    ReduceDesc desc = Make(ReduceKind::kArgMax, DType::kFloat, {3, 700, 2}, 2);
    desc.index_type = index_type;
    Compare(desc, Name(index_type));
  }
}

// sum((x - mean)^2) with a broadcast mean: what moments and losses are made of.
TEST(Reduce, Prologue) {
  for (DType type : {DType::kFloat, DType::kHalf, DType::kDouble}) {
    ProgramBuilder b;
    const auto x = b.Input(type);
    b.Output(b.Apply(EOp::kSquare, b.Apply(EOp::kSub, x, b.Input(type))));
    for (const Dims& shape : {Dims{300, 40}, Dims{3, 2000}, Dims{2000, 3}}) {
      for (uint32_t axes : {1u, 2u, 3u}) {
        ReduceDesc desc = Make(ReduceKind::kMean, type, shape, axes);
        desc.source.program = b.Build();
        desc.source.in_strides[1] = {0, 1};
        CompareBackends(desc, {Random(type, shape.num_elements(), 1), Random(type, shape[1], 2)},
                        {{type, OutputSize(desc)}}, 32, Describe(desc));
      }
    }
  }
}

TEST(Reduce, StridedSource) {
  // A transposed source, and one that repeats its rows.
  ReduceDesc desc = Make(ReduceKind::kSum, DType::kFloat, {50, 60}, 1);
  desc.source.in_strides[0] = {1, 50};
  Compare(desc, "transposed", 32);
  desc.axes = 2;
  Compare(desc, "transposed", 32);
  desc.source.in_strides[0] = {0, 1};
  Compare(desc, "repeated", 32);
}

// A million equal terms, which a naive float sum gets wrong in the third digit.
TEST(Reduce, LongSumsAreAccurate) {
  for (const Dims& shape : {Dims{1 << 20, 1}, Dims{1 << 20, 2}, Dims{1, 1 << 20}}) {
    const uint32_t axes = shape[0] == 1 ? 2 : 1;
    const ReduceDesc desc = Make(ReduceKind::kSum, DType::kFloat, shape, axes);
    Array x(DType::kFloat, shape.num_elements());
    double exact = 0;
    for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = 0.1f;
    for (int64_t i = 0; i < 1 << 20; ++i) exact += 0.1f;
    Array got(DType::kFloat, OutputSize(desc));
    Args args{};
    args.in[0] = x.data();
    args.out[0] = got.data();
    ASSERT_TRUE(host::Kernels().Run(desc, args, runtime::ThreadTeam(2)).ok());
    EXPECT_NEAR(RealAt(got, 0), exact, exact * 5e-7) << Describe(desc);
  }
}

TEST(Reduce, ThreadsDoNotChangeTheResult) {
  for (uint32_t axes : {1u, 2u, 3u}) {
    const ReduceDesc desc = Make(ReduceKind::kSum, DType::kFloat, {700, 900}, axes);
    const Array x = Random(DType::kFloat, 700 * 900, 5);
    auto run = [&](int threads) {
      Array out(DType::kFloat, OutputSize(desc));
      Args args{};
      args.in[0] = x.data();
      args.out[0] = out.data();
      EXPECT_TRUE(host::Kernels().Run(desc, args, runtime::ThreadTeam(threads)).ok());
      return out;
    };
    const Array one = run(1);
    for (int threads : {2, 3, 7}) {
      EXPECT_EQ(std::memcmp(one.data(), run(threads).data(), one.size() * sizeof(float)), 0) << Describe(desc);
    }
  }
}

TEST(Reduce, FailuresOfTheSourceAreReported) {
  ReduceDesc desc = Make(ReduceKind::kSum, DType::kInt32, {3}, 1);
  desc.source.program = SingleOpProgram(EOp::kTruncateDiv, DType::kInt32);
  desc.source.in_strides[1] = {1};
  const auto out = CompareBackends(desc, {Values(DType::kInt32, {4, 5, 6}), Values(DType::kInt32, {2, 0, 3})},
                                   {{DType::kInt32, 1}}, 1, "division by zero in the source");
  EXPECT_EQ(RealAt(out[0], 0), 4);
}

}  // namespace
}  // namespace xpu::testing
