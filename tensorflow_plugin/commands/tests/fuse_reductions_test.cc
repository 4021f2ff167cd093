// Elementwise values that reductions compute for themselves, and those that they must not.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kRows = 6, kColumns = 10, kElements = kRows * kColumns;

class FusedReductions : public Lists {
 protected:
  float* New(Opcode op, std::vector<const float*> in) {
    float* out = Computed(kElements);
    Op(op, std::move(in), out, kElements);
    return out;
  }
  float* Sum(const float* from) {
    float* sums = Computed(kColumns);
    SumRows(from, sums, kRows, kColumns);
    Want(sums);
    return sums;
  }

  // That elementwise programs and reductions become so many commands, with so many inputs of reductions.
  void Expect(int elementwise, std::vector<size_t> inputs) {
    CommandList list = capture_.list();
    FuseElementwise(TheMachine().device->capabilities(), &list);
    FuseReductions(TheMachine().device->capabilities(), &list);
    EXPECT_EQ(Count<ElementwiseDesc>(list), elementwise) << Text(list);
    std::vector<size_t> found;
    for (const Command& command : list.commands) {
      if (std::holds_alternative<ReduceDesc>(command.desc)) found.push_back(command.in.size());
    }
    EXPECT_EQ(found, inputs) << Text(list);
    ExpectEqual(Run(capture_.list()), Run(list), Text(list));
    ExpectSame();
  }

  float *const x_ = Given(Whole(kElements)), *const y_ = Given(Whole(kElements + 3));
};

TEST_F(FusedReductions, AProgramThatOnlyTheyRead) {
  Sum(New(Opcode::kMul, {New(Opcode::kSub, {x_, y_}), x_}));
  Expect(0, {2});
}

TEST_F(FusedReductions, OverOtherAxesWithRowsThatAreRepeated) {
  float *row = Given(Whole(kColumns)), *column = Given(Whole(kRows)), *a = Computed(kElements),
        *b = Computed(kElements);
  Launch(SingleOpProgram(Opcode::kSub, DType::kFloat), {2, 3, kColumns},
         {{x_, {3 * kColumns, kColumns, 1}}, {row, {0, 0, 1}}}, {a});
  Launch(SingleOpProgram(Opcode::kMaximum, DType::kFloat), {2, 3, kColumns},
         {{a, {3 * kColumns, kColumns, 1}}, {column, {3, 1, 0}}}, {b});
  Sum(b);
  float* largest = Computed(kRows);
  ReduceMax(New(Opcode::kNeg, {y_}), largest, kRows, kColumns, 1);
  Want(largest);
  Expect(0, {3, 1});
}

TEST_F(FusedReductions, WhatIsStoredAnywayIsReadThere) {
  float* difference = New(Opcode::kSub, {x_, y_});
  Want(difference);
  Sum(New(Opcode::kSquare, {difference}));
  Expect(1, {1});
}

TEST_F(FusedReductions, TwoOfOneProgram) {
  float* difference = New(Opcode::kSub, {x_, y_});
  Sum(New(Opcode::kSquare, {difference}));
  float* product = New(Opcode::kMul, {x_, y_});
  Sum(product);
  Want(New(Opcode::kNeg, {x_}));
  Expect(1, {2, 2});
}

// The first reads what the second could compute.
TEST_F(FusedReductions, NotWhatAnotherOfThemReads) {
  float *y = New(Opcode::kNeg, {y_}), *difference = New(Opcode::kSub, {x_, y});
  Sum(New(Opcode::kSquare, {difference}));
  Sum(difference);
  Want(New(Opcode::kAbs, {x_}));
  Expect(1, {1, 1});
}

TEST_F(FusedReductions, NotIfOthersReadIt) {
  float* product = New(Opcode::kMul, {x_, y_});
  Sum(product);
  float* largest = Computed(kRows);
  ReduceMax(product, largest, kRows, kColumns, 1);
  Want(largest);
  Expect(1, {1, 1});
}

TEST_F(FusedReductions, NotIfItIsWanted) {
  float* product = New(Opcode::kMul, {x_, y_});
  Sum(product);
  Want(product);
  Expect(1, {1});
}

TEST_F(FusedReductions, NothingDearTwice) {
  float* t = New(Opcode::kTanh, {New(Opcode::kSub, {x_, y_})});
  Sum(New(Opcode::kSign, {t}));
  Want(New(Opcode::kFloor, {x_}));
  Expect(1, {1});
}

TEST_F(FusedReductions, NorMuchMemory) {
  float* three = New(Opcode::kMul, {New(Opcode::kMul, {x_, y_}), Given(Whole(kElements))});
  Sum(three);
  Want(New(Opcode::kFloor, {x_}));
  Expect(1, {1});
}

TEST_F(FusedReductions, NotAcrossAnUpdate) {
  float* product = New(Opcode::kMul, {x_, y_});
  float* square = Computed(kElements);
  Copy(y_ + 3, x_, {kElements}, {1}, {1});
  Sum(product);
  Want(square);
  Op(Opcode::kSquare, {x_}, square, kElements);
  Expect(2, {1});
}

TEST_F(FusedReductions, NorOfWhatItsProgramUpdates) {
  float* product = New(Opcode::kMul, {x_, y_});
  Op(Opcode::kSub, {x_, y_}, x_, kElements);
  Sum(product);
  Expect(1, {1});
}

TEST_F(FusedReductions, NotInAnotherOrder) {
  ReduceDesc desc;
  desc.source.program = IdentityProgram(DType::kFloat);
  desc.source.shape = {kColumns, kRows};
  desc.source.in_strides[0] = {1, kColumns};
  desc.axes = 1;
  float* sums = Computed(kRows);
  Record(desc, {New(Opcode::kMul, {x_, y_})}, {sums});
  Want(sums);
  Expect(1, {1});
}

TEST_F(FusedReductions, NotOfAPart) {
  for (const int64_t from : {int64_t{0}, kColumns}) {
    float* sums = Computed(kColumns);
    SumRows(New(Opcode::kMul, {x_, y_}) + from, sums, kRows - 1, kColumns);
    Want(sums);
    Want(New(Opcode::kNeg, {y_}));
  }
  Expect(1, {1, 1});
}

}  // namespace
}  // namespace xpu::commands
