// Lists as long as those of loops: the passes compute the same, and their work grows with the list, not with its
// square.
#include <random>

#include "tensorflow_plugin/commands/tests/lists_testing.h"
#include "tensorflow_plugin/commands/work.h"

namespace xpu::commands {
namespace {

class LongLists : public Lists {
 public:
  static bool IsOpencl() {
    const char* const backend = std::getenv("XPU_TEST_BACKEND");
    return backend != nullptr && std::string(backend) == "XPU_OPENCL";
  }

  // state = |-state + row i of what is given|, and all states stacked on each other, as a loop gives them.
  void RecordLoop(int64_t iterations, int64_t columns) {
    const float* const rows = Given(Whole(iterations * columns));
    const float* state = Given(Whole(columns));
    std::vector<const float*> states;
    for (int64_t i = 0; i < iterations; ++i) {
      float *const row = Computed(columns), *const negative = Computed(columns), *const sum = Computed(columns),
                   *const next = Computed(columns);
      Copy(rows, row, {columns}, {1}, {1}, i * columns);
      Op(Opcode::kNeg, {state}, negative, columns);
      Op(Opcode::kAdd, {negative, row}, sum, columns);
      Op(Opcode::kAbs, {sum}, next, columns);
      states.push_back(state = next);
    }
    float* const stack = Computed(iterations * columns);
    for (int64_t i = 0; i < iterations; ++i) {
      Copy(states[i], stack, {columns}, {1}, {1}, 0, i * columns);
    }
    Want(stack);
  }

  // Goes back through it, as a gradient does: what the last iteration gave is read first.
  void RecordBack(int64_t iterations, int64_t columns) {
    std::vector<const float*> values{Given(Whole(columns))};
    for (int64_t i = 0; i < iterations; ++i) {
      float* const next = Computed(columns);
      Op(Opcode::kNeg, {values.back()}, next, columns);
      values.push_back(next);
    }
    const float* gradient = values.back();
    for (int64_t i = iterations; i-- > 0;) {
      float* const next = Computed(columns);
      Op(Opcode::kMaximum, {gradient, values[i]}, next, columns);
      gradient = next;
    }
    Want(gradient);
  }

  // Steps that all passes and the plan of memory take.
  int64_t StepsOfAll() {
    const int64_t before = Steps();
    CommandList list = capture_.list();
    Optimize(TheMachine().device->capabilities(), {}, &list);
    (void)PlanMemory(list);
    EXPECT_LT(list.commands.size(), capture_.list().commands.size() / 2);
    return Steps() - before;
  }
};

TEST_F(LongLists, AChainIsFusedInFewStepsForEachCommand) {
  constexpr int64_t kCommands = 4000;
  const float* value = Given(Whole(3));
  for (int64_t i = 0; i < kCommands; ++i) {
    float* const next = Computed(3);
    Op(Opcode::kNeg, {value}, next, 3);
    value = next;
  }
  Want(value);
  CommandList list = capture_.list();
  const int64_t before = Steps();
  FuseElementwise(TheMachine().device->capabilities(), &list);
  EXPECT_LT(Steps() - before, 8 * kCommands);
  EXPECT_LT(list.commands.size(), kCommands / 100);
}

// Another one within a test.
struct Another final : LongLists {
  void TestBody() override {}
};

TEST_F(LongLists, GiveTheSame) {
  RecordLoop(IsOpencl() ? 100 : 1000, 3);
  ExpectSame();
}

TEST_F(LongLists, GiveTheSameBackwards) {
  RecordBack(IsOpencl() ? 100 : 2000, 3);
  ExpectSame();
}

void ExpectSteady(void (LongLists::*record)(int64_t iterations, int64_t columns), int64_t iterations) {
  std::vector<int64_t> steps;
  for (const int64_t times : {1, 2}) {
    Another lists;
    (lists.*record)(times * iterations, 3);
    steps.push_back(lists.StepsOfAll());
  }
  EXPECT_GT(steps[0], 1000);
  EXPECT_LT(steps[1], 3 * steps[0]) << steps[0];
}

TEST(Work, GrowsWithTheIterations) { ExpectSteady(&LongLists::RecordLoop, 1500); }
TEST(Work, GrowsWithTheIterationsBackwards) { ExpectSteady(&LongLists::RecordBack, 4000); }

TEST(Plans, OfManyBuffersLetNoneShareMemoryWithAnother) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  constexpr int kBuffers = 6000;
  CommandList list;
  std::vector<std::pair<int, int>> lives;
  list.commands.resize(kBuffers);
  for (int b = 0; b < kBuffers; ++b) {
    list.buffers.push_back({Buffer::Kind::kComputed, 256 * (1 + pick(pick(20) == 0 ? 4000 : 20)), nullptr});
    lives.emplace_back(b, std::min(kBuffers - 1, b + (pick(10) == 0 ? pick(kBuffers) : pick(40))));
    list.commands[lives[b].first].out.push_back({b, 0});
    list.commands[lives[b].second].in.push_back({b, 0});
  }
  const MemoryPlan plan = PlanMemory(list);
  int64_t highest = 0, largest = 0;
  for (int c = 0; c < kBuffers; ++c) {
    std::vector<std::pair<int64_t, int64_t>> alive;
    int64_t bytes = 0;
    for (int b = 0; b < kBuffers; ++b) {
      if (c < lives[b].first || lives[b].second < c) continue;
      alive.emplace_back(plan.offsets[b], plan.offsets[b] + list.buffers[b].bytes);
      bytes += list.buffers[b].bytes;
    }
    std::sort(alive.begin(), alive.end());
    for (size_t i = 1; i < alive.size(); ++i) ASSERT_LE(alive[i - 1].second, alive[i].first) << "at command " << c;
    ASSERT_LE(alive.empty() ? 0 : alive.back().second, plan.bytes);
    highest = std::max(highest, alive.empty() ? 0 : alive.back().second);
    largest = std::max(largest, bytes);
  }
  EXPECT_EQ(plan.bytes, highest);
  EXPECT_LT(plan.bytes, largest * 3 / 2);
}

}  // namespace
}  // namespace xpu::commands
