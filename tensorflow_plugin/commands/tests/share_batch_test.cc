// Batches in strands: which commands make a stretch, which must not, and where their values lie.
#include "tensorflow_plugin/commands/tests/lists_testing.h"
#include "tensorflow_plugin/commands/work.h"

namespace xpu::commands {
namespace {

constexpr int64_t kRows = 8, kWidth = 128, kSteps = 12;

// Steps of a recurrent layer: a product, and a function of it and the step's inputs, which lie one step after another.
class SharedBatches : public Lists {
 protected:
  float* Recurrent(int64_t rows, int64_t width, int64_t steps) {
    float* const inputs = Given(Whole(steps * rows * width));
    float* const weights = Given(Signs(width * width));
    float* const all = Computed(steps * rows * width);
    float* state = Given(Signs(rows * width));
    for (int64_t t = 0; t < steps; ++t) {
      float *const product = Computed(rows * width), *const next = Computed(rows * width);
      MatMul(state, weights, product, 0, rows, width, width);
      Op(Opcode::kAdd, {product, inputs + t * rows * width}, next, rows * width);
      state = Computed(rows * width);
      Op(Opcode::kSign, {next}, state, rows * width);
      Op(Opcode::kNeg, {state}, all + t * rows * width, rows * width);
    }
    return all;
  }
  static std::vector<float> Signs(int64_t n) {
    std::vector<float> values = Whole(n);
    for (float& v : values) v = v < 0 ? -1.0f : 1.0f;
    return values;
  }

  // The list as the pass makes it for so many strands. It must compute the same.
  CommandList Shared(int strands) {
    CommandList list = capture_.list(), hoisted;
    ShareBatch(SmallCache(0, strands), &list, &hoisted);
    ExpectEqual(Run(capture_.list()), Run(list), Text(list));
    return list;
  }
  static std::vector<int> StrandsOf(const CommandList& list) {
    std::vector<int> strands;
    for (const Command& command : list.commands) strands.push_back(command.strand);
    return strands;
  }
  void ExpectWhole(int strands) {
    const CommandList list = Shared(strands);
    EXPECT_EQ(list.commands.size(), capture_.list().commands.size()) << Text(list);
    EXPECT_EQ(StrandsOf(list), std::vector<int>(list.commands.size(), Command::kNoStrand)) << Text(list);
  }
};

TEST_F(SharedBatches, StepsOfARecurrentLayer) {
  Want(Recurrent(kRows, kWidth, kSteps));
  for (int strands : {2, 4}) {
    std::vector<int> want;
    for (int s = 0; s < strands; ++s) want.insert(want.end(), kSteps * 4, s);
    EXPECT_EQ(StrandsOf(Shared(strands)), want);
  }
  ExpectSameInStrands(2);
  ExpectSameInStrands(4);
}

TEST_F(SharedBatches, EachStrandHasPlacesOfItsOwn) {
  Want(Recurrent(kRows, kWidth, kSteps));
  const CommandList list = Shared(2);
  const MemoryPlan plan = PlanMemory(list);
  std::map<int, int> strand_of;  // by the place of a buffer that one strand writes
  for (const Command& command : list.commands) {
    const int64_t offset = plan.offsets[command.out[0].buffer];
    if (offset == MemoryPlan::kElsewhere) continue;
    const auto [at, is_new] = strand_of.emplace(offset, command.strand);
    EXPECT_EQ(at->second, command.strand) << "at " << offset;
  }
  EXPECT_LE(strand_of.size(), 10u) << "steps that are over leave their places to later ones";
}

// More buffers than are compared with each other.
TEST_F(SharedBatches, ManyBuffers) {
  Want(Recurrent(2, 4, 800));
  ExpectSameInStrands(2);
}

TEST_F(SharedBatches, ABatchThatIsNoMultiple) {
  Want(Recurrent(7, kWidth, kSteps));
  ExpectWhole(2);
}

TEST_F(SharedBatches, NotWithOneThread) {
  Want(Recurrent(kRows, kWidth, kSteps));
  ExpectWhole(1);
}

TEST_F(SharedBatches, NotTooLittleWork) {
  Want(Recurrent(kRows, 8, 3));
  ExpectWhole(2);
}

TEST_F(SharedBatches, NotCommandsThatAreWorthSharing) {
  Want(Recurrent(256, kWidth, 3));
  ExpectWhole(2);
}

// Each strand would read all of such a matrix from memory.
TEST_F(SharedBatches, NotLargeMatricesForFewRows) {
  Want(Recurrent(2, 512, 40));
  const CommandList list = Shared(2);
  for (const Command& command : list.commands) {
    EXPECT_TRUE(!std::holds_alternative<MatMulDesc>(command.desc) || command.strand == Command::kNoStrand);
  }
}

TEST_F(SharedBatches, NotWhatGoesAcrossTheBatch) {
  float* const all = Recurrent(kRows, kWidth, kSteps);
  float* const sums = Computed(kWidth);
  SumRows(all, sums, kSteps * kRows, kWidth);
  float* const less = Computed(kSteps * kRows * kWidth);
  Launch(SingleOpProgram(Opcode::kSub, DType::kFloat), {kSteps * kRows, kWidth}, {{all, {kWidth, 1}}, {sums, {0, 1}}},
         {less});
  Want(less);
  const std::vector<int> strands = StrandsOf(Shared(2));
  EXPECT_EQ(strands[strands.size() - 2], Command::kNoStrand);
  ExpectSameInStrands(2);
}

// Parts as far apart as those that are written, but one row before or after them.
TEST_F(SharedBatches, NotWhatReadsARowOfAnotherPart) {
  const Dims dense = {kWidth, 1};
  for (int64_t read : {0, 1}) {
    const int64_t written = 1 - read;
    float* const x = Given(std::vector<float>((kRows + 1) * kWidth, static_cast<float>(1 + read)));
    float *const y = Computed((kRows + 1) * kWidth), *const z = Computed(kRows * kWidth);
    Copy(x, y, {1, kWidth}, dense, dense, read * kRows * kWidth, read * kRows * kWidth);
    Copy(x, y, {kRows, kWidth}, dense, dense, written * kWidth, written * kWidth);
    Copy(y, z, {kRows, kWidth}, dense, dense, read * kWidth, 0);
    Want(z);
  }
  ExpectSameInStrands(2);
}

TEST_F(SharedBatches, OperandsWithoutElements) {
  const float* const x = Given(Whole(kRows));
  float *const zeros = Computed(kRows * kWidth), *const none = Computed(0), *const some = Computed(kRows);
  MatMul(x, x, zeros, 0, kRows, 0, kWidth);
  Op(Opcode::kNeg, {x}, none, 0);
  Op(Opcode::kNeg, {x}, some, 0);
  Op(Opcode::kNeg, {x}, some, kRows);
  Want(zeros);
  Want(some);
  ExpectSameInStrands(2);
}

// Commands that all have a batch, none of which fits with the next one: each reads the last row first.
TEST_F(SharedBatches, ALongListTakesFewStepsForEachCommand) {
  constexpr int64_t kCommands = 300;
  const float* y = Given(Whole(kRows * kWidth));
  for (int64_t i = 0; i < kCommands; ++i) {
    float* const next = Computed(kRows * kWidth);
    Copy(y, next, {kRows, kWidth}, {-kWidth, 1}, {kWidth, 1}, (kRows - 1) * kWidth);
    y = next;
  }
  Want(y);
  CommandList list = capture_.list(), hoisted;
  const int64_t before = Steps();
  ShareBatch(SmallCache(0, 2), &list, &hoisted);
  EXPECT_LT(Steps() - before, 20 * kCommands);
  ExpectWhole(2);
}

// A strand may be done with what it reads before another one begins.
TEST_F(SharedBatches, WhatIsReadByAllIsNotWrittenOver) {
  float* const x = Given(Whole(kRows * kWidth));
  float *const largest = Computed(kWidth), *const less = Computed(kRows * kWidth);
  ReduceMax(x, largest, kRows, kWidth, 0);
  Launch(SingleOpProgram(Opcode::kSub, DType::kFloat), {kRows, kWidth}, {{x, {kWidth, 1}}, {largest, {0, 1}}}, {less});
  float* y = less;
  for (int i = 0; i < 6; ++i) {
    float* const next = Computed(kRows * kWidth);
    Op(Opcode::kNeg, {y}, next, kRows * kWidth);
    y = next;
  }
  Want(y);
  ExpectSameInStrands(2);
}

}  // namespace
}  // namespace xpu::commands
