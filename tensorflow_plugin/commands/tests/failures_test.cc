// Lists with commands that may fail on data: what they fail with, what runs before and what does not run behind them.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kRows = 3, kColumns = 2;

class Failures : public Lists {
 protected:
  // 32-bit integers as a buffer's contents.
  float* Indices(std::vector<int32_t> values) {
    std::vector<float> bits(values.size());
    std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
    return Given(std::move(bits));
  }
  void Gather(const float* table, const float* indices, float* out, int64_t n, int64_t rows = kRows) {
    GatherDesc desc;
    desc.element_size = sizeof(float);
    desc.index_type = DType::kInt32;
    desc.inner = kColumns;
    desc.num_indices = n;
    desc.dims = {rows};
    Record(desc, {table, indices}, {out}, &explain_);
  }
  void Scatter(ScatterKind kind, const float* indices, const float* updates, float* table, int64_t n,
               DType type = DType::kFloat, bool skip_negative = false) {
    ScatterDesc desc;
    desc.kind = kind;
    desc.type = type;
    desc.index_type = DType::kInt32;
    desc.inner = kColumns;
    desc.num_indices = n;
    desc.dims = {kRows};
    desc.skip_negative = skip_negative;
    Record(desc, {indices, updates}, {table}, &explain_);
  }
  CommandList Optimised() {
    CommandList list = capture_.list();
    Optimize(TheMachine().device->capabilities(), {}, &list);
    return list;
  }
  static int MayFail(const CommandList& list) {
    int count = 0;
    for (const Command& command : list.commands) count += command.may_fail();
    return count;
  }
  // As recorded and as optimised, by the device and one by one.
  template <typename F>
  void EachRun(F&& check) {
    expects_failure_ = true;
    for (const CommandList& list : {capture_.list(), Optimised()}) {
      for (const Way way : {Way::kPrepared, Way::kOneByOne}) {
        const auto held = Run(list, way);
        SCOPED_TRACE(Text(list));
        check(list, held);
      }
    }
  }
  float* Table() { return Given({1, 2, 3, 4, 5, 6}); }

  const DescribeError explain_ = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
};

TEST_F(Failures, GoodIndicesFailNowhere) {
  float *table = Table(), *indices = Indices({2, 0}), *rows = Computed(4), *y = Computed(4);
  Gather(table, indices, rows, 2);
  Op(Opcode::kNeg, {rows}, y, 4);
  Want(y);
  EXPECT_EQ(MayFail(ExpectSame()), 1);
  EXPECT_EQ(Run(Optimised()).back(), (std::vector<float>{-5, -6, -1, -2}));
  EXPECT_EQ(failed_, -1);
}

TEST_F(Failures, WhatFailsIsToldAndEndsTheList) {
  float *table = Table(), *v = Given({1, 1, 1, 1}), *w = Given({1, 1, 1, 1}), *rows = Computed(4);
  Op(Opcode::kAdd, {v, v}, v, 4);
  Gather(table, Indices({0, 3}), rows, 2);
  Op(Opcode::kAdd, {w, w}, w, 4);
  Op(Opcode::kSub, {w, rows}, w, 4);
  EachRun([&](const CommandList& list, const std::vector<std::vector<float>>& held) {
    EXPECT_EQ(failure_.code(), Code::kInvalidArgument);
    ASSERT_GE(failed_, 0);
    EXPECT_TRUE(std::holds_alternative<GatherDesc>(list.commands[failed_].desc));
    EXPECT_EQ(held[1], std::vector<float>(4, 2));  // v
    EXPECT_EQ(held[2], std::vector<float>(4, 1));  // w
  });
}

TEST_F(Failures, LargeListsEndThereToo) {
  const int64_t n = 1 << 16;
  float *table = Table(), *x = Given(std::vector<float>(n, 1)), *v = Given(std::vector<float>(n, 1));
  float *before = Computed(n), *rows = Computed(4);
  Op(Opcode::kExp, {x}, before, n);
  Gather(table, Indices({-1, 0}), rows, 2);
  Op(Opcode::kAdd, {v, before}, v, n);
  Want(rows);
  EachRun([&](const CommandList&, const std::vector<std::vector<float>>& held) {
    EXPECT_EQ(failure_.code(), Code::kInvalidArgument);
    EXPECT_EQ(held[2], std::vector<float>(n, 1));  // v
  });
}

TEST_F(Failures, WhatIsWrittenBehindStaysBehind) {
  // The gather reads what becomes one command with a later one; what is between the two is ready before it.
  float *x = Given({1, 2, 3, 4, 5, 6}), *v = Given({1, 1, 1}), *table = Computed(6), *rows = Computed(4);
  float* y = Computed(6);
  Op(Opcode::kNeg, {x}, table, 6);
  Gather(table, Indices({0, 7}), rows, 2);
  Op(Opcode::kAdd, {v, v}, v, 3);
  Op(Opcode::kExp, {table}, y, 6);
  Want(rows);
  Want(y);
  EXPECT_EQ(Optimised().commands.size(), 3u);
  EachRun([&](const CommandList&, const std::vector<std::vector<float>>& held) {
    EXPECT_EQ(held[1], std::vector<float>(3, 1));  // v
  });
}

TEST_F(Failures, WhatIsWrittenBeforeStaysBefore) {
  // The update becomes one command with what stands behind the gather.
  float *table = Table(), *v = Given({1, 1, 1}), *x = Given({1, 2, 3}), *y = Computed(3), *rows = Computed(4);
  Op(Opcode::kAdd, {v, v}, v, 3);
  Gather(table, Indices({0, 7}), rows, 2);
  Op(Opcode::kMul, {v, x}, y, 3);
  Want(rows);
  Want(y);
  EachRun([&](const CommandList&, const std::vector<std::vector<float>>& held) {
    EXPECT_EQ(held[1], std::vector<float>(3, 2));  // v
  });
}

TEST_F(Failures, TheFirstOfSeveralIsTold) {
  float *x = Given({1, 2, 3, 4, 5, 6}), *table = Computed(6), *y = Computed(6), *other = Table();
  Op(Opcode::kNeg, {x}, table, 6);
  Gather(table, Indices({0, 7}), Computed(4), 2);
  Gather(other, Indices({0, 8}), Computed(4), 2);
  Op(Opcode::kExp, {table}, y, 6);
  Want(y);
  EachRun([&](const CommandList& list, const std::vector<std::vector<float>>&) {
    ASSERT_GE(failed_, 0);
    EXPECT_NE(list.commands[failed_].in[0].buffer, capture_.Resolve(other).buffer);
  });
}

TEST_F(Failures, WhatIsCopiedBehindIsNotWrittenBefore) {
  float *table = Table(), *x = Given(Whole(4)), *v = Given({1, 1, 1, 1, 1, 1}), *t = Computed(4);
  float* rows = Computed(4);
  MatMul(x, x, t, 0, 2, 2, 2);
  Gather(table, Indices({0, 7}), rows, 2);
  Copy(t, v, {2, 2}, {2, 1}, {3, 1});
  Want(rows);
  EachRun([&](const CommandList&, const std::vector<std::vector<float>>& held) {
    EXPECT_EQ(held[2], std::vector<float>(6, 1));  // v
  });
}

TEST_F(Failures, WhatMayFailIsNeverUnused) {
  Gather(Table(), Indices({0, 3}), Computed(4), 2);
  const CommandList list = Optimised();
  EXPECT_EQ(list.commands.size(), 1u);
  expects_failure_ = true;
  Run(list);
  EXPECT_EQ(failed_, 0);
}

TEST_F(Failures, TheSameIndicesFailOnce) {
  float *table = Table(), *indices = Indices({2, 1}), *rows = Computed(4), *wider = Given({1, 2, 3, 4, 5, 6, 7, 8});
  Gather(table, indices, rows, 2);
  Gather(wider, indices, Computed(4), 2, kRows + 1);  // other extents
  Scatter(ScatterKind::kAdd, indices, rows, table, 2);
  Gather(table, indices, Computed(2), 1);  // only the first of them
  // Indices of which some may be negative fail no more than those that may not.
  Scatter(ScatterKind::kAdd, indices, rows, table, 2, DType::kFloat, /*skip_negative=*/true);
  float* others = Indices({0, 1});
  Scatter(ScatterKind::kAdd, others, rows, table, 2, DType::kFloat, /*skip_negative=*/true);
  Gather(table, others, Computed(4), 2);
  CommandList list = capture_.list();
  DeduplicateIndexChecks(&list);
  std::vector<bool> may_fail;
  for (const Command& command : list.commands) may_fail.push_back(command.may_fail());
  EXPECT_EQ(may_fail, (std::vector<bool>{true, true, false, true, false, true, true}));
  ExpectSame();
}

TEST_F(Failures, IndicesThatAreThereAreCheckedFirst) {
  float *table = Table(), *indices = Indices({2, 3}), *x = Given({1, 2, 3, 4}), *v = Given({1, 1, 1, 1});
  float *updates = Computed(4), *made = Computed(2);
  Op(Opcode::kNeg, {x}, updates, 4);
  Op(Opcode::kAdd, {v, updates}, v, 4);
  capture_.set_origin(7, false);
  Scatter(ScatterKind::kAdd, indices, updates, table, 2);
  EachRun([&](const CommandList& list, const std::vector<std::vector<float>>& held) {
    const bool optimised = list.commands.size() == 3 && !list.commands[2].may_fail();
    EXPECT_TRUE(optimised || list.commands[2].may_fail());
    EXPECT_EQ(failed_, optimised ? 0 : 2);
    EXPECT_EQ(list.commands[failed_].origin, 7);
    EXPECT_EQ(IndicesOf(list.commands[failed_]).type, DType::kInt32);
    EXPECT_EQ(held[3], optimised ? std::vector<float>(4, 1) : (std::vector<float>{0, -1, -2, -3}));  // v
  });
  EXPECT_FALSE(Optimised().commands.back().may_fail());
  // Not so where the program has updated something, or indices are made.
  capture_.set_origin(8, true);
  Scatter(ScatterKind::kAdd, Indices({0, 1}), updates, table, 2);
  capture_.set_origin(9, false);
  Op(Opcode::kAdd, {indices, indices}, made, 2);
  Scatter(ScatterKind::kAdd, made, updates, table, 2);
  Op(Opcode::kAdd, {made, made}, indices, 2);
  Gather(table, indices, Computed(4), 2);
  int stay = 0;
  for (const Command& command : Optimised().commands) {
    const auto* gather = std::get_if<GatherDesc>(&command.desc);
    stay += command.may_fail() && (gather == nullptr || gather->inner > 0);
  }
  EXPECT_EQ(stay, 3);
}

TEST_F(Failures, GoodIndicesThatAreCheckedFirstChangeNothing) {
  float *table = Table(), *points = Indices({0, 1, 2, 0}), *x = Given({1, 2}), *y = Computed(2), *out = Computed(2);
  Op(Opcode::kNeg, {x}, y, 2);
  capture_.set_origin(3, false);
  GatherDesc desc;  // elements of a matrix
  desc.element_size = sizeof(float);
  desc.index_type = DType::kInt32;
  desc.num_indices = 2;
  desc.dims = {kRows, kColumns};
  Record(desc, {table, points}, {out}, &explain_);
  Want(out);
  Want(y);
  const CommandList list = ExpectSame();
  ASSERT_EQ(list.commands.size(), 3u);
  EXPECT_TRUE(list.commands[0].may_fail());
  EXPECT_EQ(MayFail(list), 1);
  EXPECT_EQ(Run(list).back(), (std::vector<float>{2, 5}));
}

TEST_F(Failures, OtherFailuresStay) {
  float *table = Table(), *indices = Indices({2, 1}), *updates = Given({1, 1, 1, 1});
  Scatter(ScatterKind::kAdd, indices, updates, table, 2, DType::kFloat, true);  // lets negative ones pass
  Scatter(ScatterKind::kAdd, indices, updates, table, 2);
  Scatter(ScatterKind::kDiv, indices, updates, table, 2, DType::kInt32);  // by zero
  Op(Opcode::kAdd, {indices, indices}, indices, 2);
  Scatter(ScatterKind::kAdd, indices, updates, table, 2);
  CommandList list = capture_.list();
  DeduplicateIndexChecks(&list);
  EXPECT_EQ(MayFail(list), 4);
}

TEST_F(Failures, AFailureThatNobodyExplainsIsNotRecorded) {
  float *table = Table(), *indices = Indices({0, 1}), *out = Computed(4);
  GatherDesc desc;
  desc.element_size = sizeof(float);
  desc.index_type = DType::kInt32;
  desc.inner = kColumns;
  desc.num_indices = 2;
  desc.dims = {kRows};
  Args args;
  Status status;
  args.status = &status;
  args.in[0] = table;
  args.in[1] = indices;
  args.out[0] = out;
  EXPECT_FALSE(capture_.device().Launch(capture_.stream(), desc, args).ok());
  EXPECT_NE(capture_.why_uncapturable(), "");
}

// Nobody has to wait for what is known before anything runs.
TEST_F(Failures, ConstantIndicesAreCheckedOnce) {
  const auto gather_at = [&](std::vector<int32_t> indices) {
    float* const constant = Computed(static_cast<int64_t>(indices.size()));
    EXPECT_TRUE(capture_.stream().CopyHostToDevice(constant, indices.data(), indices.size() * sizeof(int32_t)).ok());
    float* const out = Computed(static_cast<int64_t>(indices.size()) * kColumns);
    Gather(Table(), constant, out, static_cast<int64_t>(indices.size()));
    Want(out);
  };
  gather_at({2, 0});
  EXPECT_EQ(MayFail(Optimised()), 0);
  gather_at({1, -1});
  EXPECT_EQ(MayFail(Optimised()), 1);
  gather_at({3});
  EXPECT_EQ(MayFail(Optimised()), 2);
}

}  // namespace
}  // namespace xpu::commands
