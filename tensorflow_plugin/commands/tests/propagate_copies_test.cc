// Copies of parts, of repeated elements and of axes in another order, which other commands read or write in place.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

TEST_F(Lists, PartsOfARowAreReadWhereTheyAre) {
  float *x = Given(Whole(12)), *q = Computed(4), *k = Computed(4), *y = Computed(1), *z = Computed(4);
  Copy(x, q, {1, 4}, {12, 1}, {4, 1}, 0);
  Copy(x, k, {1, 4}, {12, 1}, {4, 1}, 8);
  MatMul(q, k, y, 1, 1, 4, 1, true);
  Op(Opcode::kSquare, {k}, z, 4);
  Want(y);
  Want(z);
  EXPECT_EQ(Count<CopyStridedDesc>(ExpectSame()), 0);
}

TEST_F(Lists, HeadsOfAttentionAreReadAndWrittenWhereTheyAre) {
  const int64_t batch = 2, steps = 3, heads = 4, depth = 5, all = batch * steps * heads * depth;
  float *q = Given(Whole(all)), *k = Given(Whole(all)), *scores = Computed(batch * heads * steps * steps);
  float *q_heads = Computed(all), *k_heads = Computed(all), *v_heads = Computed(all), *out = Computed(all),
        *joined = Computed(all);
  const Dims shape{batch, heads, steps, depth}, dense = DenseStrides(shape);
  const Dims apart{steps * heads * depth, depth, heads * depth, 1};
  Copy(q, q_heads, shape, apart, dense);
  Copy(k, k_heads, shape, apart, dense);
  Copy(k, v_heads, shape, apart, dense);
  MatMul(q_heads, k_heads, scores, batch * heads, steps, depth, steps, true);
  MatMul(scores, v_heads, out, batch * heads, steps, steps, depth);
  Copy(out, joined, {batch, steps, heads, depth}, {heads * steps * depth, depth, steps * depth, 1},
       DenseStrides({batch, steps, heads, depth}));
  Want(joined);
  EXPECT_EQ(ExpectSame().commands.size(), 2u);
}

TEST_F(Lists, ATransposedMatrixIsReadTransposed) {
  float *a = Given(Whole(6)), *b = Given(Whole(8)), *turned = Computed(6), *y = Computed(12);
  Copy(a, turned, {3, 2}, {1, 3}, {2, 1});
  MatMul(turned, b, y, 1, 3, 2, 4);
  Want(y);
  EXPECT_EQ(ExpectSame().commands.size(), 1u);
}

TEST_F(Lists, AColumnIsCopied) {  // reading it in place would cost more than the copy
  float *x = Given(Whole(12)), *column = Computed(4), *y = Computed(4);
  Copy(x, column, {4}, {3}, {1}, 1);
  Op(Opcode::kExp, {column}, y, 4);
  Want(y);
  EXPECT_EQ(ExpectSame().commands.size(), 2u);
}

TEST_F(Lists, RowsAndRepeatedRowsAreReadWhereTheyAre) {
  float *x = Given(Whole(12)), *part = Computed(6), *rows = Computed(6), *y = Computed(6);
  Copy(x, part, {3, 2}, {4, 1}, {2, 1}, 1);
  Copy(x, rows, {3, 2}, {0, 1}, {2, 1}, 10);
  Op(Opcode::kMul, {part, rows}, y, 6);
  Want(y);
  EXPECT_EQ(ExpectSame().commands.size(), 1u);
}

TEST_F(Lists, APartOfACopyIsReadWhereItIs) {
  float *x = Given(Whole(12)), *part = Computed(6), *y = Computed(2);
  Copy(x, part, {6}, {1}, {1}, 3);
  Op(Opcode::kExp, {part + 4}, y, 2);
  Want(y);
  EXPECT_EQ(ExpectSame().commands.size(), 1u);
}

TEST_F(Lists, WhatIsReadAcrossRowsIsReadAcrossThem) {
  float *x = Given(Whole(18)), *rows = Computed(12), *y = Computed(8);
  Copy(x, rows, {3, 4}, {6, 1}, {4, 1});
  Op(Opcode::kExp, {rows + 2}, y, 8);  // half a row, a row, half a row
  Want(y);
  ExpectSame();
}

TEST_F(Lists, ACopyMayTurnWhereItWrites) {
  float *x = Given(Whole(6)), *turned = Computed(6), *y = Computed(6);
  Copy(x, turned, {2, 3}, {3, 1}, {1, 2});
  Op(Opcode::kExp, {turned}, y, 6);
  Want(y);
  ExpectSame();
}

TEST_F(Lists, RowsThatAreReversedStayReversed) {
  float *x = Given(Whole(6)), *reversed = Computed(6), *y = Computed(6);
  Copy(x, reversed, {3, 2}, {-2, 1}, {2, 1}, 4);
  Op(Opcode::kExp, {reversed}, y, 6);
  Want(y);
  ExpectSame();
}

TEST_F(Lists, ACopyThatIsWrittenOverIsRead) {
  float *x = Given(Whole(4)), *z = Given({7, 8, 9, 10}), *copy = Computed(4), *y = Computed(4);
  Copy(x, copy, {4}, {1}, {1});
  Op(Opcode::kNeg, {z}, copy, 4);
  Op(Opcode::kExp, {copy}, y, 4);
  Want(y);
  ExpectSame();
}

TEST_F(Lists, ACopyOfWhatIsWrittenOverStays) {
  float *x = Given(Whole(12)), *part = Computed(4), *y = Computed(4);
  Copy(x, part, {4}, {1}, {1}, 4);
  Op(Opcode::kSquare, {x}, x, 12);
  Op(Opcode::kExp, {part}, y, 4);
  Want(y);
  EXPECT_EQ(Count<CopyStridedDesc>(ExpectSame()), 1);
}

// Both parts of a cache are written, and read transposed: one before the other is written.
TEST_F(Lists, ACopyOfAPartIsReadWhereItIsThoughAnotherPartIsWritten) {
  for (const bool overlaps : {false, true}) {
    SCOPED_TRACE(overlaps);
    float *cache = Given(Whole(24)), *turned = Computed(12), *x = Given(Whole(4)), *y = Computed(4);
    Copy(cache, turned, {4, 3}, {1, 4}, {3, 1}, 12);
    Copy(Given(Whole(4)), cache, {4}, {1}, {1}, 0, overlaps ? 12 : 8);
    MatMul(turned, x, y, 1, 4, 3, 1);
    Want(y);
    EXPECT_EQ(Count<CopyStridedDesc>(ExpectSame()), overlaps ? 3 : 1);  // of both lists
  }
}

TEST_F(Lists, ACopyThatSomebodyWantsStays) {
  float *x = Given(Whole(12)), *part = Computed(4), *y = Computed(4);
  Copy(x, part, {4}, {1}, {1}, 4);
  Op(Opcode::kExp, {part}, y, 4);
  Want(part);
  Want(y);
  EXPECT_EQ(Count<CopyStridedDesc>(ExpectSame()), 1);
}

TEST_F(Lists, PartsThatAreJoinedAreWrittenInPlace) {
  float *x = Given(Whole(4)), *a = Computed(4), *b = Computed(4), *y = Computed(8), *joined = Computed(8);
  Op(Opcode::kExp, {x}, a, 4);
  MatMul(x, x, b, 1, 2, 2, 2);
  Copy(a, joined, {4}, {1}, {1}, 0, 0);
  Copy(b, joined, {4}, {1}, {1}, 0, 4);
  Op(Opcode::kNeg, {joined}, y, 8);
  Want(joined);
  Want(y);
  EXPECT_EQ(Count<CopyStridedDesc>(ExpectSame()), 0);
}

TEST_F(Lists, WhatOthersReadAsWellLiesInItsPlaceAndIsReadThere) {
  float *x = Given(Whole(4)), *a = Computed(4), *b = Computed(4), *y = Computed(4), *joined = Computed(8);
  Op(Opcode::kExp, {x}, a, 4);
  Op(Opcode::kNeg, {a}, b, 4);
  Copy(a, joined, {4}, {1}, {1}, 0, 0);
  Copy(b, joined, {4}, {1}, {1}, 0, 4);
  Op(Opcode::kSquare, {b}, y, 4);
  Want(joined);
  Want(y);
  EXPECT_EQ(ExpectSame().commands.size(), 1u);  // parts are values of programs like others
}

TEST_F(Lists, ProductsAreWrittenSideBySide) {
  float *x = Given(Whole(4)), *joined = Computed(12);
  float *a = Computed(4), *b = Computed(4), *c = Computed(4), *y = Computed(4);
  const Dims dense{2, 1}, rows{6, 1};
  MatMul(x, x, a, 1, 2, 2, 2);
  Copy(a, joined, {2, 2}, dense, rows);
  MatMul(x, x, b, 1, 2, 2, 2, true);
  Copy(b, joined, {2, 2}, dense, rows, 0, 2);
  MatMul(x, x, c, 1, 2, 2, 2, false, true);
  Copy(c, joined + 4, {2, 2}, dense, rows);
  Op(Opcode::kNeg, {a}, y, 4);
  Want(joined);
  Want(y);
  const CommandList list = ExpectSame();
  EXPECT_EQ(Count<MatMulDesc>(list), 3);
  EXPECT_EQ(Count<CopyStridedDesc>(list), 1);  // of what somebody else reads
}

TEST_F(Lists, APlaceThatIsWrittenOverIsNotReadAfterwards) {
  float *x = Given(Whole(4)), *a = Computed(4), *y = Computed(4), *joined = Computed(8);
  Op(Opcode::kExp, {x}, a, 4);
  Copy(a, joined, {4}, {1}, {1}, 0, 0);
  Copy(x, joined, {4}, {1}, {1}, 0, 4);
  Copy(x, joined, {4}, {1}, {1}, 0, 2);
  Op(Opcode::kNeg, {a}, y, 4);
  Want(joined);
  Want(y);
  ExpectSame();
}

TEST_F(Lists, PartsAreNotWrittenBeforeTheOldOnesAreRead) {
  float *x = Given(Whole(4)), *all = Given(Whole(8)), *a = Computed(4), *old = Computed(8);
  MatMul(x, x, a, 1, 2, 2, 2);
  Op(Opcode::kNeg, {all}, old, 8);
  Copy(a, all, {4}, {1}, {1}, 0, 4);
  Want(old);
  EXPECT_EQ(Count<CopyStridedDesc>(ExpectSame()), 1);
}

TEST_F(Lists, OverlappingPartsAreWrittenInTheirOrder) {
  float *x = Given(Whole(4)), *a = Computed(4), *b = Computed(4), *joined = Given(Whole(8));
  MatMul(x, x, a, 1, 2, 2, 2);
  Op(Opcode::kExp, {x}, b, 4);
  Copy(b, joined, {4}, {1}, {1}, 0, 2);
  Copy(a, joined, {4}, {1}, {1}, 0, 0);
  ExpectSame();
}

}  // namespace
}  // namespace xpu::commands
