// Tests the base of the tests of primitives: the comparison, and that nothing a command writes goes unseen.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest-spi.h"
#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// True if `got` in `type` is right where the exact value is `want`.
bool Accepts(DType type, double got, double want, const Bound& bound = {}) {
  const Array g = Values(type, {got}), w = Values(Wide(type), {want});
  ::testing::TestPartResultArray failures;
  bool accepted;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    accepted = ExpectWithin(g, w, bound, "");
  }
  EXPECT_EQ(failures.size(), accepted ? 0 : 1);
  return accepted;
}

TEST(ExpectWithin, AllowsOneRounding) {
  // Next to 1 there is 1 + 2^-10 in half and 1 + 2^-7 in bfloat16.
  EXPECT_TRUE(Accepts(DType::kHalf, 1, 1 + 0x0.fp-11));
  EXPECT_FALSE(Accepts(DType::kHalf, 1, 1 + 0x1.1p-11));
  EXPECT_TRUE(Accepts(DType::kHalf, 1, 1 + 0x1.1p-11, {0, 0x1p-14}));
  EXPECT_TRUE(Accepts(DType::kHalf, 1, 1 + 0x1.1p-11, {0x1p-14}));
  EXPECT_TRUE(Accepts(DType::kBFloat16, 1, 1 + 0x0.fp-8));
  EXPECT_FALSE(Accepts(DType::kBFloat16, 1, 1 + 0x1.1p-8));
  EXPECT_TRUE(Accepts(DType::kFloat, 1, 1 + 0x0.fp-24));
  EXPECT_FALSE(Accepts(DType::kFloat, 1, 1 + 0x1.1p-24));
  EXPECT_FALSE(Accepts(DType::kDouble, 1, 1 + 0x1p-52));
  EXPECT_TRUE(Accepts(DType::kDouble, 1, 1 + 0x1p-52, {0x1p-52}));
}

// Earlier tolerances let these through: a bound that grows with the number of terms, but also with the value.
TEST(ExpectWithin, RefusesZerosAndSmallErrors) {
  for (DType type : {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble}) {
    const Bound bound = {SumError(4096, type)};
    for (double want : {3.0, -0.007}) {
      EXPECT_TRUE(Accepts(type, want, want, bound));
      EXPECT_FALSE(Accepts(type, 0, want, bound));
      EXPECT_FALSE(Accepts(type, want * 1.05, want, bound));
    }
  }
}

TEST(ExpectWithin, InfinitiesAndNan) {
  EXPECT_TRUE(Accepts(DType::kFloat, kNan, kNan));
  EXPECT_FALSE(Accepts(DType::kFloat, 1, kNan, {0, 9}));
  EXPECT_FALSE(Accepts(DType::kFloat, kNan, 1, {0, 9}));
  EXPECT_TRUE(Accepts(DType::kFloat, -kInf, -kInf));
  EXPECT_FALSE(Accepts(DType::kFloat, kInf, -kInf, {1, 9}));
  // The largest half is 65504; from 65520 on the exact value rounds to infinity.
  EXPECT_TRUE(Accepts(DType::kHalf, kInf, 65521));
  EXPECT_FALSE(Accepts(DType::kHalf, 65504, 65521));
  EXPECT_TRUE(Accepts(DType::kHalf, 65504, 65521, {0, 2}));
  EXPECT_FALSE(Accepts(DType::kHalf, kInf, 65000));
}

TEST(ExpectWithin, ComplexErrorsAreRelativeToTheMagnitude) {
  const Array want = Values(DType::kComplex128, {std::complex<double>(4, 0)});
  const Array near = Values(DType::kComplex64, {std::complex<double>(4, 0x1p-23)});
  EXPECT_TRUE(ExpectWithin(near, want, {0x1p-24}, ""));
  EXPECT_NONFATAL_FAILURE(ExpectWithin(near, want, {0x1p-26}, ""), "1 of 1 elements are wrong");
}

TEST(ExpectWithin, IntegersAndBoolsAreExact) {
  Array a(DType::kInt64, 1), b(DType::kInt64, 1);
  *a.as<int64_t>() = (int64_t{1} << 60) + 1;
  *b.as<int64_t>() = int64_t{1} << 60;  // the same double
  EXPECT_NONFATAL_FAILURE(ExpectWithin(a, b, {1, 1e30}, ""), "elements are wrong");
  // Neither true nor false.
  EXPECT_NONFATAL_FAILURE(ExpectWithin(Array(DType::kBool, 1), Values(DType::kBool, {1}), {}, ""), "165");
}

TEST(ExpectWithin, NamesTheFirstWrongElement) {
  EXPECT_NONFATAL_FAILURE(
      ExpectWithin(Values(DType::kFloat, {1, 2, 9, 9}), Values(DType::kFloat, {1, 2, 3, 4}), {}, "case"),
      "case (float): element 2 is (9,0), expected (3,0), give or take 0 and a rounding; 2 of 4 elements are wrong");
  EXPECT_NONFATAL_FAILURE(ExpectWithin(Array(DType::kFloat, 1), Array(DType::kFloat, 2), {}, ""), "expected 2");
  EXPECT_NONFATAL_FAILURE(ExpectWithin(Array(DType::kFloat, 1), Array(DType::kInt32, 1), {}, ""), "expected int32");
}

TEST(SumError, GrowsWithTheTermsAndThenWithTheirRoot) {
  EXPECT_EQ(SumError(3, DType::kFloat), 3 * 0x1p-24);
  EXPECT_EQ(SumError(10000, DType::kBFloat16), 800 * 0x1p-24);
  EXPECT_EQ(SumError(10000, DType::kDouble), 800 * 0x1p-53);
  EXPECT_EQ(SumError(10000, DType::kInt32), 0);
}

// A device that is told of smaller outputs than its command writes.
TEST(TestDevice, SeesWhatIsWrittenBesideAnOutput) {
  CopyStridedDesc desc;
  desc.element_size = 4;
  desc.shape = {10};
  desc.src_strides = desc.dst_strides = {1};
  const Array in = Random(DType::kFloat, 10, 1), unused = Random(DType::kFloat, 10, 2);
  for (const Variant& variant : Variants()) {
    const UseVariant use(variant);
    auto trespass = [&](int64_t size) {
      return variant.device->Run(desc, {in, unused}, {{DType::kFloat, size}}, variant.waiting).trespass;
    };
    EXPECT_EQ(trespass(10), "");
    EXPECT_NE(trespass(9).find("byte 804 was changed"), std::string::npos) << trespass(9);  // 3 * 256 + 9 * 4
    desc.dst_offset = -1;
    EXPECT_NE(trespass(10).find("byte 764 was changed"), std::string::npos) << trespass(10);
    desc.dst_offset = -64;
    EXPECT_NE(trespass(10).find("byte 512 was changed"), std::string::npos) << trespass(10);  // the other input
    desc.dst_offset = 0;
  }
}

TEST(TestDevice, WhatIsNotWrittenIsAsItWas) {
  CopyStridedDesc desc;
  desc.element_size = 2;
  desc.shape = {3};
  desc.src_strides = {1};
  desc.dst_strides = {2};
  const Array in = Values(DType::kInt16, {1, 2, 3}), before = Values(DType::kInt16, {9, 9, 9, 9, 9});
  Array unwritten(DType::kInt16, 5);
  for (int i = 0; i < 3; ++i) unwritten.as<int16_t>()[2 * i] = in.as<int16_t>()[i];
  ExpectByHand(desc, {in}, {{DType::kInt16, 5, &before}}, {{Values(DType::kInt16, {1, 9, 2, 9, 3})}}, "initial");
  ExpectByHand(desc, {in}, {{DType::kInt16, 5}}, {{unwritten}}, "unwritten");
  EXPECT_EQ(RealAt(unwritten, 1), static_cast<int16_t>(0xa5a5));
}

TEST(Judge, StatusAndTrespassCount) {
  const Array x = Values(DType::kFloat, {1});
  Outcome outcome{OkStatus(), true, {x}, ""};
  EXPECT_TRUE(Judge(outcome, {{x}}, ""));
  EXPECT_NONFATAL_FAILURE(Judge(outcome, {{x}, {}, Code::kInvalidArgument, "a reason"}, ""), "a reason");
  EXPECT_NONFATAL_FAILURE(Judge(outcome, {{x, x}}, ""), "1 outputs, expected 2");
  outcome.status = errors::InvalidArgument("another");
  EXPECT_NONFATAL_FAILURE(Judge(outcome, {{x}}, ""), "another");
  EXPECT_NONFATAL_FAILURE(Judge(outcome, {{x}, {}, Code::kInvalidArgument, "a reason"}, ""), "\"another\"");
  EXPECT_TRUE(Judge(outcome, {{x}, {}, Code::kInvalidArgument, "other"}, ""));
  outcome = {OkStatus(), true, {x}, "byte 7"};
  EXPECT_NONFATAL_FAILURE(Judge(outcome, {{x}}, ""), "byte 7");
}

}  // namespace
}  // namespace xpu::testing
