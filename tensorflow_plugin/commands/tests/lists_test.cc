// Lists of commands, captured, optimised, prepared and run on a device, against the same commands launched one by one.
#include <atomic>
#include <string>
#include <thread>

#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

TEST_F(Lists, AChainIsOneCommandThatStoresItsEndAlone) {
  float *x = Given({1, -2, 3}), *a = Computed(3), *b = Computed(3), *y = Computed(3);
  Op(Opcode::kAbs, {x}, a, 3);
  Op(Opcode::kSqrt, {a}, b, 3);
  Op(Opcode::kAdd, {b, x}, y, 3);
  Want(y);
  const CommandList list = ExpectSame();
  ASSERT_EQ(list.commands.size(), 1u);
  EXPECT_EQ(list.commands[0].out.size(), 1u);
  EXPECT_EQ(PlanMemory(list).bytes, 0);
}

// As a variable that is decayed first and updated with a gradient's moments later.
TEST_F(Lists, TwoChainsThatMeetAreOneCommand) {
  float *w = Given({1, -2, 3}), *g = Given({4, 5, -6}), *m = Given({7, 8, 9});
  float *a = Computed(3), *sum = Computed(1);
  Op(Opcode::kSquare, {w}, a, 3);
  SumRows(g, sum, 3, 1);
  Launch(SingleOpProgram(Opcode::kAdd, DType::kFloat), {3}, {{m, Dims{1}}, {sum, Dims{0}}}, {m});
  Op(Opcode::kSub, {a, m}, w, 3);
  Want(w);
  Want(m);
  const CommandList list = ExpectSame();
  ASSERT_EQ(list.commands.size(), 2u);  // the sum is the other
  EXPECT_EQ(list.commands[1].out.size(), 2u);
}

TEST_F(Lists, WhatIsWantedInBetweenIsStored) {
  float *x = Given({1, 2, 3}), *a = Computed(3), *y = Computed(3);
  Op(Opcode::kNeg, {x}, a, 3);
  Op(Opcode::kExp, {a}, y, 3);
  Want(a);
  Want(y);
  const CommandList list = ExpectSame();
  ASSERT_EQ(list.commands.size(), 1u);
  EXPECT_EQ(list.commands[0].out.size(), 2u);
}

TEST_F(Lists, WhatNobodyReadsGoes) {
  float *x = Given({1, 2, 3}), *a = Computed(3), *b = Computed(3), *y = Computed(3);
  Op(Opcode::kNeg, {x}, a, 3);
  Op(Opcode::kExp, {a}, b, 3);
  Op(Opcode::kSquare, {x}, y, 3);
  Want(y);
  const CommandList list = ExpectSame();
  ASSERT_EQ(list.commands.size(), 1u);
  EXPECT_EQ(std::get<ElementwiseDesc>(list.commands[0].desc).program->instrs().size(), 1u);
}

TEST_F(Lists, ARepeatedCommandIsOne) {
  float *x = Given({1, 2, 3}), *a = Computed(3), *b = Computed(3), *y = Computed(3);
  Op(Opcode::kExp, {x}, a, 3);
  Op(Opcode::kExp, {x}, b, 3);
  Op(Opcode::kAdd, {a, b}, y, 3);
  Want(y);
  CommandList list = capture_.list();
  EliminateCommonSubexpressions(&list);
  EXPECT_EQ(list.commands.size(), 2u);
  ExpectSame();
}

TEST_F(Lists, WhatLooksRepeatedAfterAWriteIsNot) {
  float *x = Given({1, 2, 3}), *a = Computed(3), *b = Computed(3), *y = Computed(3);
  Op(Opcode::kExp, {x}, a, 3);
  Op(Opcode::kAdd, {x, a}, x, 3);  // in place
  Op(Opcode::kExp, {x}, b, 3);
  Op(Opcode::kSub, {a, b}, y, 3);
  Want(y);
  CommandList list = capture_.list();
  EliminateCommonSubexpressions(&list);
  EXPECT_EQ(list.commands.size(), 4u);
  ExpectSame();
}

TEST_F(Lists, WhatIsReadInAnotherOrderIsNotRepeated) {
  float *x = Given({1, 2, 3, 4}), *a = Computed(4), *b = Computed(4), *y = Computed(4);
  Launch(SingleOpProgram(Opcode::kNeg, DType::kFloat), {2, 2}, {{x, Dims{2, 1}}}, {a});
  Launch(SingleOpProgram(Opcode::kNeg, DType::kFloat), {2, 2}, {{x, Dims{1, 2}}}, {b});
  Op(Opcode::kSub, {a, b}, y, 4);
  Want(y);
  ExpectSame();
}

TEST_F(Lists, WhatIsWrittenOverStandsForNothing) {
  float *x = Given({1, 2, 3}), *a = Computed(3), *b = Computed(3), *y = Computed(3);
  Op(Opcode::kExp, {x}, a, 3);
  Op(Opcode::kNeg, {x}, a, 3);
  Op(Opcode::kExp, {x}, b, 3);
  Op(Opcode::kSub, {a, b}, y, 3);
  Want(y);
  ExpectSame();
}

TEST_F(Lists, ConstantsOfOtherValuesStayApart) {
  const auto times = [](double factor) {
    ProgramBuilder builder;
    const ProgramBuilder::Reg x = builder.Input(DType::kFloat);
    builder.Output(builder.Apply(Opcode::kMul, x, builder.Const(DType::kFloat, factor)));
    return builder.Build();
  };
  float *x = Given(Whole(6)), *a = Computed(6), *b = Computed(6), *y = Computed(6);
  Launch(times(2), {6}, {{x, Dims{1}}}, {a});
  Launch(times(5), {6}, {{x, Dims{1}}}, {b});
  Op(Opcode::kSub, {a, b}, y, 6);
  Want(y);
  EXPECT_EQ(ExpectSame().commands.size(), 1u);
}

TEST_F(Lists, ConstantsOf64BitIntegersStayWhatTheyAre) {
  // Small ones are held as floating-point numbers, large ones as they are.
  const auto apply = [](Opcode op, bool large) {
    ProgramBuilder builder;
    const ProgramBuilder::Reg x = builder.Input(DType::kInt64);
    const ProgramBuilder::Reg c =
        large ? builder.ConstInt(DType::kInt64, (int64_t{1} << 53) + 1) : builder.Const(DType::kInt64, 5);
    builder.Output(builder.Apply(op, x, c));
    return builder.Build();
  };
  const int64_t numbers[] = {3, -4};
  std::vector<float> bits(4);
  std::memcpy(bits.data(), numbers, sizeof(numbers));
  float *x = Given(bits), *a = Computed(4), *y = Computed(4);
  Launch(apply(Opcode::kMul, false), {2}, {{x, Dims{1}}}, {a});
  Launch(apply(Opcode::kAdd, true), {2}, {{a, Dims{1}}}, {y});
  Want(y);
  const CommandList list = ExpectSame();
  EXPECT_EQ(list.commands.size(), 1u);
  const std::vector<float> found = Run(list).back();
  int64_t sums[2];
  std::memcpy(sums, found.data(), sizeof(sums));
  EXPECT_EQ(sums[0], (int64_t{1} << 53) + 16);
  EXPECT_EQ(sums[1], (int64_t{1} << 53) - 19);
}

TEST_F(Lists, ValuesOf16BitsAreRoundedInBetween) {
  const auto with = [](Opcode op, double constant) {
    ProgramBuilder builder;
    const ProgramBuilder::Reg x = builder.Input(DType::kHalf);
    builder.Output(builder.Apply(op, x, builder.Const(DType::kHalf, constant)));
    return builder.Build();
  };
  // 2049 and 2051 have no half, and 1 is what would be left of the first.
  const uint16_t halves[] = {0x6800, 0x6801};  // 2048, 2050
  float x_bits;
  std::memcpy(&x_bits, halves, sizeof(x_bits));
  float *x = Given({x_bits}), *sum = Computed(1), *negative = Computed(1), *y = Computed(1);
  Launch(with(Opcode::kAdd, 1), {2}, {{x, Dims{1}}}, {sum});
  Launch(SingleOpProgram(Opcode::kNeg, DType::kHalf), {2}, {{sum, Dims{1}}}, {negative});
  Launch(with(Opcode::kAdd, 2048), {2}, {{negative, Dims{1}}}, {y});
  Want(y);
  const CommandList list = ExpectSame();
  ASSERT_EQ(list.commands.size(), 1u);
  const std::vector<float> found = Run(list).back();
  uint16_t results[2];
  std::memcpy(results, found.data(), sizeof(results));
  EXPECT_EQ(results[0], 0);
  EXPECT_EQ(results[1], 0xc400);  // -4
  // Once, since what is negated was rounded.
  const Program& program = *std::get<ElementwiseDesc>(list.commands[0].desc).program;
  const auto is_cast = [](const Instr& instr) { return instr.op == Opcode::kCast; };
  EXPECT_EQ(std::count_if(program.instrs().begin(), program.instrs().end(), is_cast), 1) << program.ToString();
}

TEST_F(Lists, WhatAProgramLeavesUnroundedIsRoundedForTheNext) {
  // 2048 + 1 in four ways, of which none is rounded yet when the program ends.
  const auto formula = [](int way) {
    ProgramBuilder b;
    const ProgramBuilder::Reg x = b.Input(DType::kHalf), sum = b.Apply(Opcode::kAdd, x, b.Const(DType::kHalf, 1));
    if (way == 0) b.Output(b.Apply(Opcode::kMaximum, x, sum));
    if (way == 1) b.Output(b.Apply(Opcode::kMinimum, sum, b.Const(DType::kHalf, 3000)));
    if (way == 2) b.Output(b.Apply(Opcode::kAbs, sum));
    if (way == 3) b.Output(b.Apply(Opcode::kSelect, b.Apply(Opcode::kIsNan, x), x, sum));
    return b.Build();
  };
  const uint16_t halves[] = {0x6800, 0x6800};
  float x_bits;
  std::memcpy(&x_bits, halves, sizeof(x_bits));
  for (int way = 0; way < 4; ++way) {
    float *x = Given({x_bits}), *sum = Computed(1), *y = Computed(1);
    Launch(formula(way), {2}, {{x, Dims{1}}}, {sum});
    Launch(SingleOpProgram(Opcode::kSub, DType::kHalf), {2}, {{sum, Dims{1}}, {x, Dims{1}}}, {y});
    Want(y);
    EXPECT_EQ(Run(ExpectSame()).back()[0], 0) << way;
  }
}

TEST_F(Lists, AnUpdateInPlaceWaitsForThoseWhoReadTheOldValueInAnotherOrder) {
  // `rows` reads x transposed: with the update in one program it would see new elements, if there are more than are
  // computed at a time.
  const int64_t n = 150;
  float *x = Given(Whole(n * n)), *rows = Computed(n * n), *y = Computed(n * n);
  Launch(SingleOpProgram(Opcode::kNeg, DType::kFloat), {n, n}, {{x, Dims{1, n}}}, {rows});
  Op(Opcode::kSquare, {x}, x, n * n);
  Op(Opcode::kAdd, {rows, x}, y, n * n);
  Want(y);
  ExpectSame();
}

TEST_F(Lists, SingleElementsAreOneCommand) {
  float *x = Given({2}), *y = Given({3}), *rows = Given({1, 2, 3}), *a = Computed(1), *b = Computed(1),
        *c = Computed(3);
  Op(Opcode::kNeg, {x}, a, 1);
  Op(Opcode::kSquare, {rows}, c, 3);
  Op(Opcode::kAbs, {y}, b, 1);
  Want(a);
  Want(b);
  Want(c);
  EXPECT_EQ(ExpectSame().commands.size(), 2u);
}

TEST_F(Lists, BroadcastInputsStay) {
  float *x = Given({1, 2, 3, 4, 5, 6}), *row = Given({10, 20, 30}), *a = Computed(6), *y = Computed(6);
  Launch(SingleOpProgram(Opcode::kAdd, DType::kFloat), {2, 3}, {{x, Dims{3, 1}}, {row, Dims{0, 1}}}, {a});
  Op(Opcode::kTanh, {a}, y, 6);  // the same elements as one row
  Want(y);
  EXPECT_EQ(ExpectSame().commands.size(), 1u);
}

// A command over many elements waits for the command that reads it, rather than join another because both are scaled
// alike.
TEST_F(Lists, AShortRowThatTwoReadDoesNotMakeThemOne) {
  const Dims shape = {128, 64}, dense = {64, 1}, column = {1, 0};
  float *x = Given(Whole(8192)), *z = Given(Whole(8192)), *scale = Given(Whole(128));
  float *a = Computed(8192), *b = Computed(8192), *y = Computed(8192), *sum = Computed(1), *w = Computed(8192);
  const Program* const mul = SingleOpProgram(Opcode::kMul, DType::kFloat);
  Launch(mul, shape, {{x, dense}, {scale, column}}, {a});
  Launch(mul, shape, {{z, dense}, {scale, column}}, {b});
  Op(Opcode::kNeg, {a}, y, 8192);
  SumRows(y, sum, 8192, 1);
  Launch(mul, {8192}, {{b, Dims{1}}, {sum, Dims{0}}}, {w});
  Want(y);
  Want(w);
  const CommandList list = ExpectSame();
  ASSERT_EQ(list.commands.size(), 3u);
  EXPECT_EQ(list.commands[0].out.size(), 1u);
}

TEST_F(Lists, ManyElementsThatTwoReadAreReadOnce) {
  float *x = Given(Whole(8192)), *a = Computed(8192), *b = Computed(8192);
  Op(Opcode::kNeg, {x}, a, 8192);
  Op(Opcode::kSquare, {x}, b, 8192);
  Want(a);
  Want(b);
  EXPECT_EQ(ExpectSame().commands.size(), 1u);
}

TEST_F(Lists, NothingIsFusedAroundWhatLiesBetween) {
  float *x = Given({1, 2, 3, 4}), *a = Computed(4), *sum = Computed(1), *y = Computed(4);
  Op(Opcode::kSquare, {x}, a, 4);
  SumRows(a, sum, 4, 1);
  Launch(SingleOpProgram(Opcode::kDiv, DType::kFloat), {4}, {{a, Dims{1}}, {sum, Dims{0}}}, {y});
  Want(y);
  EXPECT_EQ(ExpectSame().commands.size(), 3u);
}

// A sum that was made before the first command of a group may depend on a command that joined another group later.
TEST_F(Lists, AWayAroundLeadsThroughGroupsThatGrewLater) {
  float *x = Given(Whole(8)), *z = Given(Whole(8)), *p = Computed(8), *of_p = Computed(1);
  float *r = Computed(8), *of_r = Computed(1), *s = Computed(8), *u = Computed(8);
  Op(Opcode::kSquare, {x}, p, 8);
  SumRows(p, of_p, 8, 1);
  Op(Opcode::kSquare, {z}, r, 8);
  SumRows(r, of_r, 8, 1);
  Launch(SingleOpProgram(Opcode::kMul, DType::kFloat), {8}, {{x, Dims{1}}, {of_r, Dims{0}}}, {s});  // joins the first
  Launch(SingleOpProgram(Opcode::kMul, DType::kFloat), {8}, {{r, Dims{1}}, {of_p, Dims{0}}}, {u});  // not the third
  Want(s);
  Want(u);
  EXPECT_EQ(ExpectSame().commands.size(), 5u);
}

TEST_F(Lists, MemoryOfWhatIsNoLongerReadIsUsedAgain) {
  const int64_t n = 1000;
  float* x = Given(std::vector<float>(n, 1));
  for (int i = 0; i < 10; ++i) {
    float* y = Computed(n);
    Op(Opcode::kSquare, {x}, y, n);
    x = y;
  }
  Want(x);
  EXPECT_LE(PlanMemory(capture_.list()).bytes, 2 * 4096);
}

// Threads that share the rows of both have the same halves.
TEST_F(Lists, ASmallerBufferLiesInTheMiddleOfALargerOne) {
  const int64_t n = 4096, half = n / 2;
  float *x = Given(std::vector<float>(n, 1)), *large = Computed(n), *sums = Computed(1), *small = Computed(half);
  float* y = Computed(half);
  Op(Opcode::kSquare, {x}, large, n);
  SumRows(large, sums, n, 1);
  Launch(SingleOpProgram(Opcode::kNeg, DType::kFloat), {half}, {{sums, Dims{0}}}, {small});
  Op(Opcode::kSquare, {small}, y, half);
  Want(y);
  const MemoryPlan plan = PlanMemory(capture_.list());
  const auto place = [&](const float* buffer) { return plan.offsets[capture_.Resolve(buffer).buffer]; };
  EXPECT_EQ(place(small) - place(large), half / 2 * static_cast<int64_t>(sizeof(float)));
  // Both live with the sum, which lies outside of them.
  EXPECT_GE(place(sums), n * static_cast<int64_t>(sizeof(float)));
}

TEST_F(Lists, AWorkspaceHasMemoryOfItsOwn) {
  const int64_t n = 250;
  float *x = Given(std::vector<float>(n, 1)), *a = Computed(n), *workspace = Computed(n), *y = Computed(n);
  Op(Opcode::kNeg, {x}, a, n);
  Op(Opcode::kExp, {a}, y, n);
  Want(y);
  CommandList list = capture_.list();
  list.commands[1].workspace = capture_.Resolve(workspace);
  const MemoryPlan plan = PlanMemory(list);
  const int64_t of_a = plan.offsets[capture_.Resolve(a).buffer];
  const int64_t of_workspace = plan.offsets[capture_.Resolve(workspace).buffer];
  ASSERT_NE(of_workspace, MemoryPlan::kElsewhere);
  EXPECT_NE(of_workspace, of_a);
  EXPECT_EQ(plan.bytes, 2048);
}

TEST_F(Lists, ACopyToTheHostIsAnObstacle) {
  float host = 0, *x = Given({1});
  EXPECT_FALSE(capture_.stream().CopyDeviceToHost(&host, x, sizeof(host)).ok());
  EXPECT_EQ(capture_.why_uncapturable(), "a copy to the host");
}

TEST_F(Lists, BytesFromTheHostAreTakenAtOnce) {
  float value = 3, *x = Computed(1), *y = Computed(1);
  ASSERT_TRUE(capture_.stream().CopyHostToDevice(x, &value, sizeof(value)).ok());
  value = 5;
  Op(Opcode::kSquare, {x}, y, 1);
  Want(y);
  EXPECT_EQ(Run(capture_.list())[0][0], 9);
}

TEST_F(Lists, WhatIsQueuedNeedsNoExecutable) {
  const float value = 3;
  float *x = Computed(1), *y = Computed(1);
  ASSERT_TRUE(capture_.stream().CopyHostToDevice(x, &value, sizeof(value)).ok());
  Op(Opcode::kSquare, {x}, y, 1);
  Machine& m = TheMachine();
  char* const memory = static_cast<char*>(m.device->Allocate(1024));
  char* const addresses[] = {memory, memory + 512};
  MemoryPlan plan;
  plan.offsets.assign(2, MemoryPlan::kElsewhere);
  for (const Way way : {Way::kPrepared, Way::kOneByOne}) {
    std::atomic<bool> go{false};
    m.stream->HostCallback([&go] {
      while (!go) std::this_thread::yield();
      return OkStatus();
    });
    ASSERT_TRUE(m.stream->Memset(memory, 0, 1024).ok());
    auto list = std::make_shared<const CommandList>(capture_.list());
    int failed = -1;
    ASSERT_TRUE(Prepare(way, std::move(list), plan)->Run(*m.stream, addresses, nullptr, &failed).ok());
    go = true;
    float got = 0;
    ASSERT_TRUE(m.stream->CopyDeviceToHost(&got, addresses[1], sizeof(got)).ok());
    m.stream->Wait();
    EXPECT_EQ(got, 9);
  }
  m.device->Deallocate(memory);
}

TEST_F(Lists, AFailureIsTheStreamsAndWhatFollowsRuns) {
  float *x = Given({1, 2}), *y = Computed(2);
  auto *a = reinterpret_cast<int32_t*>(Given({0, 0})), *b = reinterpret_cast<int32_t*>(Computed(2));
  Op(Opcode::kNeg, {x}, x, 2);
  ElementwiseDesc divide;
  divide.program = SingleOpProgram(Opcode::kTruncateDiv, DType::kInt32);
  divide.shape = {2};
  divide.in_strides[0] = divide.in_strides[1] = {1};
  Args args;
  args.in[0] = args.in[1] = a;
  args.out[0] = b;
  ASSERT_TRUE(capture_.device().Launch(capture_.stream(), divide, args).ok());
  Op(Opcode::kSquare, {x}, y, 2);
  Machine& m = TheMachine();
  char* const memory = static_cast<char*>(m.device->Allocate(1024));
  char* const addresses[] = {memory, memory + 256, memory + 512, memory + 768};
  MemoryPlan plan;
  plan.offsets.assign(4, MemoryPlan::kElsewhere);
  for (const Way way : {Way::kPrepared, Way::kOneByOne}) {
    const float values[] = {3, 4};
    float got[2] = {0, 0};
    ASSERT_TRUE(m.stream->Memset(memory, 0, 1024).ok());
    ASSERT_TRUE(m.stream->CopyHostToDevice(addresses[0], values, sizeof(values)).ok());
    int failed = -1;
    const auto executable = Prepare(way, std::make_shared<const CommandList>(capture_.list()), plan);
    ASSERT_TRUE(executable->Run(*m.stream, addresses, nullptr, &failed).ok());
    ASSERT_TRUE(m.stream->CopyDeviceToHost(got, addresses[1], sizeof(got)).ok());
    m.stream->Wait();
    EXPECT_NE(m.stream->TakeStatus().message().find("zero"), std::string::npos);
    EXPECT_EQ(got[0], 9);
    EXPECT_EQ(got[1], 16);
  }
  m.device->Deallocate(memory);
}

TEST_F(Lists, SeveralThreadsRunOneExecutable) {
  constexpr int kThreads = 4, kRuns = 200, kChain = 6;
  constexpr int64_t kElements = 20000;
  // Chains of their own, side by side, and their sum.
  float *x = Given(std::vector<float>(kElements, 0)), *sum = x;
  for (int i = 0; i < kChain; ++i) {
    float *y = Computed(kElements), *next = Computed(kElements);
    Op(Opcode::kSquare, {x}, y, kElements);
    Op(Opcode::kAdd, {y, sum}, next, kElements);
    sum = next;
  }
  Want(sum);
  const auto list = std::make_shared<const CommandList>(capture_.list());
  const MemoryPlan plan = PlanMemory(*list);
  const auto executable = Prepare(Way::kPrepared, list, plan);
  const auto work = [&](int number) {
    Device& device = *TheMachine().device;
    const auto stream = device.CreateStream();
    char* const memory = static_cast<char*>(device.Allocate(plan.bytes + 2 * kElements * sizeof(float)));
    char* const result = memory + plan.bytes + kElements * sizeof(float);
    std::vector<char*> addresses;
    for (size_t b = 0; b < list->buffers.size(); ++b) {
      addresses.push_back(plan.offsets[b] != MemoryPlan::kElsewhere       ? memory + plan.offsets[b]
                          : list->buffers[b].kind == Buffer::Kind::kInput ? memory + plan.bytes
                                                                          : result);
    }
    for (int run = 0; run < kRuns; ++run) {
      const float value = static_cast<float>((number * kRuns + run) % 100);
      const std::vector<float> values(kElements, value);
      std::vector<float> got(kElements);
      int failed = -1;
      EXPECT_TRUE(stream->CopyHostToDevice(addresses[0], values.data(), kElements * sizeof(float)).ok());
      EXPECT_TRUE(executable->Run(*stream, addresses.data(), nullptr, &failed).ok());
      EXPECT_TRUE(stream->CopyDeviceToHost(got.data(), result, kElements * sizeof(float)).ok());
      stream->Wait();
      EXPECT_EQ(got, std::vector<float>(kElements, value + kChain * value * value));
    }
    device.Deallocate(memory);
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace xpu::commands
