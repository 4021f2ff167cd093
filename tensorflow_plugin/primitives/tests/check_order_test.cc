// Tests that Check refuses bad scans, sorts, searches and numberings, and which memory those commands touch.
#include "tensorflow_plugin/primitives/tests/check_testing.h"

namespace xpu {
namespace {

using namespace check_testing;  // NOLINT: what it is for

TEST(Check, Scan) {
  ScanDesc desc;
  desc.outer = 2, desc.n = 3, desc.inner = 5;
  const Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 30);
  Expect(f.out[0], DType::kFloat, 30);
  EXPECT_EQ(f.num_in + f.num_out, 2);
  EXPECT_EQ(Name(desc), "Scan sum of float");
  desc.n = 0;
  EXPECT_TRUE(FootprintOf(desc).empty());
  desc.n = -3;
  EXPECT_EQ(Refusal(desc), "Scan: an extent is -3, expected 0 or more");
  desc.n = desc.inner = kHuge;
  EXPECT_EQ(Refusal(desc), "Scan: more elements or bytes than 64 bits count");
  desc.type = DType::kComplex64;
  EXPECT_TRUE(IsDefined(desc));
  desc.kind = ScanKind::kLogSumExp;
  EXPECT_EQ(Refusal(desc, Code::kUnimplemented), "Scan log-sum-exp of complex64 is not defined");
  desc.kind = ScanKind::kProd;
  desc.type = DType::kBool;
  EXPECT_EQ(Refusal(desc, Code::kUnimplemented), "Scan product of bool is not defined");
  desc.type = DType::kInvalid;
  Refusal(desc);
}

TEST(Check, Sort) {
  SortDesc desc;
  desc.rows = 2, desc.n = 7, desc.k = 3;
  desc.index_type = DType::kInt64;
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 14);
  Expect(f.out[0], DType::kFloat, 6);
  Expect(f.out[1], DType::kInt64, 6);
  desc.k = 0;
  EXPECT_TRUE(FootprintOf(desc).empty());
  desc.k = 8;
  EXPECT_EQ(Refusal(desc), "Sort: the first 8 elements of rows of 7");
  desc.k = -1;
  Refusal(desc);
  desc.k = 7;
  desc.index_type = DType::kUint32;
  EXPECT_EQ(Refusal(desc), "Sort: positions cannot be uint32");
  desc.index_type = DType::kInt16;
  desc.type = DType::kComplex64;
  EXPECT_EQ(Refusal(desc, Code::kUnimplemented), "Sort of complex64 with positions of int16 is not defined");
}

TEST(Check, Search) {
  SearchDesc desc;
  desc.rows = 2, desc.n = 7, desc.m = 3;
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 14);
  Expect(f.in[1], DType::kFloat, 6);
  Expect(f.out[0], DType::kInt32, 6);
  desc.n = 0;
  EXPECT_FALSE(FootprintOf(desc).empty());
  desc.n = -1;
  Refusal(desc);
  desc.n = 1;
  desc.index_type = DType::kFloat;
  EXPECT_EQ(Refusal(desc), "Search: positions cannot be float");
  desc.index_type = DType::kInt64;
  desc.type = DType::kBool;
  EXPECT_EQ(Refusal(desc, Code::kUnimplemented), "Search of bool for positions of int64 is not defined");
}

TEST(Check, Unique) {
  UniqueDesc desc;
  desc.n = 7, desc.inner = 3;
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 21);
  Expect(f.out[0], DType::kInt32, 7);
  Expect(f.out[1], DType::kInt64, 7);
  Expect(f.out[2], DType::kInt64, 1);
  desc.n = 0;
  EXPECT_FALSE(FootprintOf(desc).empty());  // there is a count to give
  desc.n = -1;
  Refusal(desc);
  desc.n = 1;
  desc.index_type = DType::kUint8;
  EXPECT_EQ(Refusal(desc), "Unique: positions cannot be uint8");
  desc.index_type = DType::kInt64;
  desc.type = DType::kBool;
  EXPECT_EQ(Name(desc), "Unique of bool with numbers of int64");
  EXPECT_TRUE(IsDefined(desc));
}

}  // namespace
}  // namespace xpu
