// Quantization and products with weights of 4 bits: what makes sense, and the memory that it touches.
#include <string>

#include "gtest/gtest.h"
#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/tests/check_testing.h"

namespace xpu {
namespace {

using namespace check_testing;

TEST(Check, FindWeights) {
  FindWeightsDesc desc;
  desc.k = 6, desc.n = 4, desc.groups = 3, desc.bytes = 12;
  const Footprint f = FootprintOf(desc);
  ASSERT_EQ(f.num_in, 4);
  Expect(f.in[0], DType::kFloat, 24);
  Expect(f.in[1], DType::kInt8, 12);
  Expect(f.in[2], DType::kFloat, 12);
  Expect(f.in[3], DType::kInt8, 12);
  Expect(f.out[0], DType::kInt64, 2);
  desc.groups = 0;
  EXPECT_NE(Refusal(desc).find("groups is 0"), std::string::npos);
  desc.groups = 1;
  desc.bytes = -1;
  Refusal(desc);
  desc.type = DType::kHalf;
  Refusal(desc, Code::kUnimplemented);
}

TEST(Check, WeightMatMul) {
  WeightMatMulDesc desc;
  desc.m = 2, desc.k = 6, desc.n = 4, desc.groups = 3, desc.bytes = 12;
  Footprint f = FootprintOf(desc);
  ASSERT_EQ(f.num_in, 5);
  Expect(f.in[0], DType::kFloat, 12);
  Expect(f.in[1], DType::kInt8, 12);
  Expect(f.in[4], DType::kInt64, 2);
  Expect(f.out[0], DType::kFloat, 8);
  EXPECT_EQ(Name(desc), "WeightMatMul of float");
  desc.lda = 10;
  EXPECT_EQ(FootprintOf(desc).in[0].end, 16 * 4);
  ProgramBuilder builder;
  const auto sum = builder.Input(DType::kFloat);
  builder.Output(builder.Apply(Opcode::kAdd, sum, builder.Input(DType::kFloat)));
  desc.epilogue.program = builder.Build();
  desc.epilogue.shape = {2, 4};
  desc.epilogue.in_strides[1] = {0, 1};
  f = FootprintOf(desc);
  ASSERT_EQ(f.num_in, 6);
  EXPECT_EQ(f.in[5].elements, 4);
  EXPECT_EQ(Name(desc), "WeightMatMul of float with an epilogue");
  desc.epilogue.shape = {2, 5};
  Refusal(desc);
  desc.epilogue = {};
  desc.lda = -1;
  Refusal(desc);
  desc.lda = 0;
  desc.groups = -1;
  Refusal(desc);
  desc.groups = 1;

  desc.type = DType::kDouble;
  Refusal(desc, Code::kUnimplemented);
}

TEST(Check, QuantizeRows) {
  QuantizeRowsDesc desc;
  desc.rows = 3, desc.cols = 5;
  const Footprint f = FootprintOf(desc);
  ASSERT_EQ(f.num_in, 5);
  Expect(f.in[0], DType::kFloat, 15);
  Expect(f.in[4], DType::kFloat, 1);
  Expect(f.out[0], DType::kInt8, 15);
  Expect(f.out[1], DType::kFloat, 3);
  desc.rows = 0;
  EXPECT_TRUE(FootprintOf(desc).empty());
  desc.cols = 0;
  EXPECT_NE(Refusal(desc).find("columns is 0"), std::string::npos);
  desc.type = DType::kBFloat16;
  Refusal(desc, Code::kUnimplemented);
}

}  // namespace
}  // namespace xpu
