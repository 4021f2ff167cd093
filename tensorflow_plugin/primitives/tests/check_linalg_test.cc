// Tests that Check refuses bad transforms, factors and solutions, and which memory those commands touch.
#include "tensorflow_plugin/primitives/tests/check_testing.h"

namespace xpu {
namespace {

using namespace check_testing;  // NOLINT: what it is for

TEST(Check, Fft) {
  FftDesc desc;
  desc.batch = 2, desc.shape = {3, 6};
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kComplex64, 36);
  Expect(f.out[0], DType::kComplex64, 36);
  EXPECT_EQ(f.num_in + f.num_out, 2);
  EXPECT_EQ(Name(desc), "Fft complex of complex64");
  desc.kind = FftKind::kRealForward;
  f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 36);
  Expect(f.out[0], DType::kComplex64, 24);
  desc.inverse = true;
  EXPECT_EQ(Refusal(desc), "Fft: kind and direction are not the same");
  desc.kind = FftKind::kRealInverse;
  f = FootprintOf(desc);
  Expect(f.in[0], DType::kComplex64, 24);
  Expect(f.out[0], DType::kFloat, 36);
  desc.shape = {3, 0};
  EXPECT_TRUE(FootprintOf(desc).empty());
  desc.shape = {};
  EXPECT_EQ(Refusal(desc), "Fft: 0 axes, expected 1 to 3");
  desc.shape = {kHuge, kHuge};
  EXPECT_EQ(Refusal(desc), "Fft: more elements or bytes than 64 bits count");
  desc.type = DType::kFloat;
  Refusal(desc, Code::kUnimplemented);
}

TEST(Check, Factorize) {
  FactorizeDesc desc;
  desc.batch = 2, desc.rows = desc.cols = 3;
  EXPECT_EQ(Name(desc), "Factorize Cholesky of float");
  Expect(FootprintOf(desc).out[0], DType::kFloat, 18);
  desc.kind = FactorizeKind::kLu;
  Footprint f = FootprintOf(desc);
  Expect(f.out[0], DType::kFloat, 18);
  Expect(f.out[1], DType::kInt32, 6);
  Expect(f.out[2], DType::kFloat, 2);
  desc.kind = FactorizeKind::kEigen;
  EXPECT_EQ(FootprintOf(desc).num_out, 2);
  desc.vectors = false;
  EXPECT_EQ(FootprintOf(desc).num_out, 1);
  desc.cols = 5;
  EXPECT_EQ(Refusal(desc), "Factorize eigenvalues of float: a matrix of 3 rows and 5 columns, expected a square one");
  desc.kind = FactorizeKind::kQr;
  f = FootprintOf(desc);
  Expect(f.out[0], DType::kFloat, 18);
  Expect(f.out[1], DType::kFloat, 30);
  desc.kind = FactorizeKind::kSvd;
  desc.type = DType::kComplex64;
  desc.vectors = desc.full = true;
  f = FootprintOf(desc);
  Expect(f.in[0], DType::kComplex64, 30);
  Expect(f.out[0], DType::kFloat, 6);
  Expect(f.out[1], DType::kComplex64, 18);
  Expect(f.out[2], DType::kComplex64, 50);
  desc.rows = -1;
  Refusal(desc);
  desc.rows = desc.cols = kHuge;
  Refusal(desc);
  desc.type = DType::kHalf;
  Refusal(desc, Code::kUnimplemented);
}

TEST(Check, Solve) {
  SolveDesc desc;
  desc.batch = 2, desc.n = 3, desc.columns = 4;
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 18);
  Expect(f.in[1], DType::kFloat, 24);
  Expect(f.out[0], DType::kFloat, 24);
  EXPECT_EQ(Name(desc), "Solve general of float");
  desc.adjoint = true;
  FootprintOf(desc);
  desc.kind = SolveKind::kTridiagonal;
  Refusal(desc, Code::kUnimplemented);
  desc.adjoint = false;
  desc.n = 5;
  Expect(FootprintOf(desc).in[0], DType::kFloat, 30);
  desc.perturb = true;
  FootprintOf(desc);
  desc.pivoting = false;
  Refusal(desc, Code::kUnimplemented);
  desc.pivoting = true;
  desc.kind = SolveKind::kGeneral;
  Refusal(desc, Code::kUnimplemented);
  desc.perturb = false;
  desc.columns = 0;
  EXPECT_TRUE(FootprintOf(desc).empty());
  desc.columns = -2;
  Refusal(desc);
  desc.type = DType::kInt32;
  Refusal(desc, Code::kUnimplemented);
}

}  // namespace
}  // namespace xpu
