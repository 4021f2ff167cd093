// One form of descriptors that mean the same.
#include "tensorflow_plugin/primitives/canonical.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

MatMulDesc Desc(int64_t m, int64_t k, int64_t n) {
  MatMulDesc d;
  d.m = m;
  d.k = k;
  d.n = n;
  return d;
}

MatMulDesc Canonical(MatMulDesc desc) {
  Canonicalize(&desc);
  return desc;
}

TEST(Canonical, SaysStridesInNumbers) {
  MatMulDesc d = Desc(2, 3, 5);
  MatMulLayout layout(d);
  EXPECT_EQ(layout.lda, 3);
  EXPECT_EQ(layout.ldb, 5);
  EXPECT_EQ(layout.ldc, 5);
  d.transpose_a = d.transpose_b = true;
  EXPECT_EQ(MatMulLayout(d).lda, 2);
  EXPECT_EQ(MatMulLayout(d).ldb, 3);
  d.lda = 7;
  d.ldb = 8;
  d.ldc = 9;
  layout = MatMulLayout(d);
  EXPECT_EQ(layout.lda, 7);
  EXPECT_EQ(layout.ldb, 8);
  EXPECT_EQ(layout.ldc, 9);
}

TEST(Canonical, MergesBatchesThatAreOneWalk) {
  MatMulDesc d = Desc(2, 3, 5);
  d.batch = {4, 6};
  d.a_batch_strides = {36, 6};
  d.b_batch_strides = {90, 15};
  MatMulLayout layout(d);
  EXPECT_EQ(layout.batch, (Dims{24}));
  EXPECT_EQ(layout.a_strides, (Dims{6}));
  EXPECT_EQ(layout.b_strides, (Dims{15}));
  EXPECT_EQ(layout.c_strides, (Dims{10}));
  d.b_batch_strides = {0, 15};  // not one walk of b
  layout = MatMulLayout(d);
  EXPECT_EQ(layout.batch, (Dims{4, 6}));
  EXPECT_EQ(layout.c_strides, (Dims{60, 10}));
}

TEST(Canonical, MakesRowsOfABatch) {
  MatMulDesc d = Desc(2, 3, 5);
  d.batch = {4};
  d.a_batch_strides = {6};
  d.b_batch_strides = {0};
  MatMulDesc made = Canonical(d);
  EXPECT_EQ(made.m, 8);
  EXPECT_EQ(made.batch, Dims());
  EXPECT_EQ(made.a_batch_strides, Dims());
  const auto stays = [](const MatMulDesc& desc) {
    const MatMulDesc other = Canonical(desc);
    return other.m == desc.m && other.batch == desc.batch;
  };
  MatMulDesc other = d;
  other.transpose_a = true;
  EXPECT_TRUE(stays(other));
  other = d;
  other.b_batch_strides = {15};
  EXPECT_TRUE(stays(other));
  other = d;
  other.a_batch_strides = {7};  // with gaps
  EXPECT_TRUE(stays(other));
  other = d;
  other.c_batch_strides = {11};
  EXPECT_TRUE(stays(other));
}

TEST(Canonical, DropsABatchOfOne) {
  MatMulDesc d = Desc(2, 3, 5);
  d.transpose_a = true;
  d.batch = {1, 1};
  d.a_batch_strides = d.b_batch_strides = {0, 0};
  const MatMulDesc made = Canonical(d);
  EXPECT_EQ(made.m, 2);
  EXPECT_TRUE(made.batch.empty());
  EXPECT_TRUE(made.c_batch_strides.empty());
  EXPECT_EQ(made.lda, 2);
}

}  // namespace
}  // namespace xpu
