// Products of a batch that are added up, and those that must not become one.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kBatch = 5, kM = 6, kN = 7, kK = 4;

class FoldedBatches : public Lists {
 protected:
  // The matrices of `a` are [kK, kM] if they are turned, those of `b` [kN, kK].
  static MatMulDesc Products(bool turn_a, bool turn_b) {
    MatMulDesc desc;
    desc.m = kM;
    desc.n = kN;
    desc.k = kK;
    desc.batch = {kBatch};
    desc.transpose_a = turn_a;
    desc.transpose_b = turn_b;
    desc.a_batch_strides = {kM * kK};
    desc.b_batch_strides = {kK * kN};
    return desc;
  }
  // Side by side, all first rows first.
  static void Interleave(Dims* batch_strides, int64_t* row_stride, int64_t columns) {
    *batch_strides = {columns};
    *row_stride = kBatch * columns;
  }
  void Record(const MatMulDesc& desc) { Lists::Record(desc, {a_, b_}, {c_}); }
  void Sum(float* to, Dims shape = {kBatch, kM, kN}, uint32_t axes = 1, ReduceKind kind = ReduceKind::kSum) {
    ReduceDesc desc;
    desc.kind = kind;
    desc.source.program = IdentityProgram(DType::kFloat);
    desc.source.shape = shape;
    desc.source.in_strides[0] = DenseStrides(shape);
    desc.axes = axes;
    Lists::Record(desc, {c_}, {to});
  }

  // That the pass leaves so many commands.
  void Expect(size_t commands) {
    CommandList list = capture_.list();
    FoldMatMulBatch(TheMachine().device->capabilities(), &list);
    EXPECT_EQ(list.commands.size(), commands) << Text(list);
    ExpectEqual(Run(capture_.list()), Run(list), Text(list));
    ExpectSame();
  }

  float *const a_ = Given(Whole(kBatch * kM * kK)), *const b_ = Given(Whole(kBatch * kK * kN)),
               *const c_ = Computed(kBatch * kM * kN), *const sum_ = Computed(kM * kN);
};

TEST_F(FoldedBatches, TheGradientOfWeights) {
  Record(Products(true, false));
  Sum(sum_);
  Want(sum_);
  Expect(1);
}

// As a device that adds up long sums in parts says.
class WantsMemory final : public Capabilities {
 public:
  using Capabilities::Supports;
  using Capabilities::WorkspaceBytes;
  bool Supports(const MatMulDesc&) const override { return true; }
  int64_t WorkspaceBytes(const MatMulDesc& desc) const override { return desc.k > kK ? 4096 : 0; }
};

TEST_F(FoldedBatches, GetTheMemoryThatTheyNeed) {
  Record(Products(true, false));
  Sum(sum_);
  Want(sum_);
  CommandList list = capture_.list();
  FoldMatMulBatch(WantsMemory(), &list);
  ASSERT_EQ(list.commands.size(), 1u) << Text(list);
  const BufferSlice& workspace = list.commands[0].workspace;
  ASSERT_EQ(workspace.buffer, static_cast<int>(list.buffers.size()) - 1);
  EXPECT_EQ(list.buffers[workspace.buffer].bytes, 4096);
  ExpectEqual(Run(capture_.list()), Run(list), Text(list));
}

TEST_F(FoldedBatches, OfSeveralAxes) {
  MatMulDesc desc = Products(true, false);
  desc.batch = {1, kBatch};
  desc.a_batch_strides = {0, kM * kK};
  desc.b_batch_strides = {0, kK * kN};
  Record(desc);
  Sum(sum_, {1, kBatch, kM * kN}, 3);
  Want(sum_);
  Expect(1);
}

TEST_F(FoldedBatches, MatricesSideBySide) {
  MatMulDesc desc = Products(false, true);
  Interleave(&desc.a_batch_strides, &desc.lda, kK);
  Interleave(&desc.b_batch_strides, &desc.ldb, kK);
  Record(desc);
  Sum(sum_);
  Want(sum_);
  Expect(1);
}

TEST_F(FoldedBatches, NotIfTheyLieOtherwise) {
  for (int matrix : {0, 1}) {
    SCOPED_TRACE(matrix);
    capture_.list().commands.clear();
    Record(Products(matrix == 0, matrix == 0));
    Sum(sum_);
    Want(sum_);
    Expect(2);
  }
}

TEST_F(FoldedBatches, NotIfTheyShareOne) {
  MatMulDesc desc = Products(true, false);
  desc.b_batch_strides = {0};
  Record(desc);
  Sum(sum_);
  Want(sum_);
  Expect(2);
}

TEST_F(FoldedBatches, TheSumOverAllOfThemAlone) {
  float* rows = Computed(kBatch * kN);
  Record(Products(true, false));
  Sum(rows, {kBatch, kM, kN}, 2);
  Want(rows);
  Expect(2);
}

TEST_F(FoldedBatches, NotOfTheirRowsAsWell) {
  float* columns = Computed(kN);
  Record(Products(true, false));
  Sum(columns, {kBatch * kM, kN}, 1);
  Want(columns);
  Expect(2);
}

TEST_F(FoldedBatches, NotOfOtherParts) {
  float* fifths = Computed(kM * kN);
  Record(Products(true, false));
  Sum(fifths, {kM * kN, kBatch}, 2);
  Want(fifths);
  Expect(2);
}

TEST_F(FoldedBatches, NothingButTheSum) {
  Record(Products(true, false));
  Sum(sum_, {kBatch, kM, kN}, 1, ReduceKind::kMax);
  Want(sum_);
  Expect(2);
}

TEST_F(FoldedBatches, NotIfOthersReadThem) {
  float* rows = Computed(kBatch * kN);
  Record(Products(true, false));
  Sum(sum_);
  Sum(rows, {kBatch, kM, kN}, 2);
  Want(sum_);
  Want(rows);
  Expect(3);
}

TEST_F(FoldedBatches, NotIfTheyAreWanted) {
  Record(Products(true, false));
  Sum(sum_);
  Want(sum_);
  Want(c_);
  Expect(2);
}

// Somebody has to read first what is there.
TEST_F(FoldedBatches, NotWhereSomethingIs) {
  float *variable = Given(Whole(kM * kN)), *before = Computed(kM * kN);
  Record(Products(true, false));
  Op(Opcode::kNeg, {variable}, before, kM * kN);
  Sum(variable);
  Want(before);
  Expect(3);
}

}  // namespace
}  // namespace xpu::commands
