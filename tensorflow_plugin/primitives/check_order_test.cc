// What the checks of scans, sorts, searches and numberings refuse, and what those commands touch.
#include "gtest/gtest.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

template <typename Desc>
Footprint FootprintOf(const Desc& desc) {
  Footprint footprint;
  const Status status = Check(desc, &footprint);
  EXPECT_TRUE(status.ok()) << status.message();
  return footprint;
}

template <typename Desc>
std::string Refusal(const Desc& desc, Code code = Code::kInvalidArgument) {
  Footprint footprint;
  const Status status = Check(desc, &footprint);
  EXPECT_EQ(status.code(), code) << status.message();
  return status.message();
}

void Expect(const Operand& o, DType type, int64_t elements) {
  EXPECT_EQ(o.type, type);
  EXPECT_EQ(o.elements, elements);
  EXPECT_EQ(o.end, elements * static_cast<int64_t>(SizeOf(type)));
  EXPECT_TRUE(o.dense());
}

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
