// Tests the recorded events, and how much commands compute.
#include "tensorflow_plugin/trace/trace_events.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tensorflow_plugin/trace/labels.h"

namespace xpu::trace {
namespace {

template <typename Desc>
Label LabelFor(const Desc& desc) {
  Footprint footprint;
  const Status status = Check(desc, &footprint);
  EXPECT_TRUE(status.ok()) << status.message();
  return LabelOf(desc, footprint);
}

// A failure says of which op it is, whether a profiler listens or not.
TEST(Recording, FailuresAreOfAnOp) {
  const Status failure = errors::Internal("no memory");
  EXPECT_EQ(OfOp(failure, ScopedOp::Current(), "XPU:7").message(), "no memory");
  EXPECT_TRUE(OfOp(OkStatus(), ScopedOp::Current(), "XPU:7").ok());
  const ScopedOp outer("dense/MatMul", "MatMul");
  {
    const ScopedOp inner("Tanh", "Tanh");
    EXPECT_EQ(OfOp(failure, ScopedOp::Current(), "XPU:7").message(), "no memory (Tanh on XPU:7)");
  }
  const ScopedOp::Text text = ScopedOp::Current();
  EXPECT_EQ(OfOp(failure, text, "XPU:7").message(), "no memory (MatMul dense/MatMul on XPU:7)");
  const std::string long_name(300, 'x');
  const ScopedOp longer(long_name, "MatMul");
  EXPECT_EQ(ScopedOp::Current().view().substr(0, 8), "MatMul x");
  EXPECT_EQ(ScopedOp::Current().view().size(), 111u);
}

TEST(Recording, KeepsWhatHappensBetweenStartAndStop) {
  Label label;
  label.what = Intern("before");
  ScopedLines lines("XPU:7", "compute");
  Line line;
  Record(line, label, 1, 2);
  ASSERT_TRUE(Start());
  EXPECT_FALSE(Start());
  label.what = Intern("during");
  {
    const Span span(line, label);
  }
  Record(line, label, 5, 6);
  const Trace recorded = Stop();
  label.what = Intern("after");
  Record(line, label, 7, 8);
  ASSERT_EQ(recorded.events.size(), 2u);
  EXPECT_EQ(recorded.events[0].begin_ns, 5u);  // by begin
  EXPECT_GE(recorded.events[1].begin_ns, recorded.begin_ns);
  EXPECT_LE(recorded.events[1].end_ns, recorded.end_ns);
  for (const Event& event : recorded.events) {
    EXPECT_EQ(TextOf(event.label.what), "during");
    EXPECT_EQ(recorded.lines[event.line - 1].device, "XPU:7");
    EXPECT_EQ(recorded.lines[event.line - 1].what, "compute");
  }
  EXPECT_EQ(recorded.dropped, 0);
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Stop().events.empty());
  EXPECT_TRUE(Stop().events.empty());
}

TEST(Recording, HasTheEventsOfAllThreadsEvenOfThoseThatAreGone) {
  constexpr int kThreads = 4, kEach = 1000;
  ASSERT_TRUE(Start());
  std::vector<std::thread> threads;
  Line line;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &line] {
      const std::string name = "node" + std::to_string(t);
      const ScopedOp op(name, "MatMul");
      for (int i = 0; i < kEach; ++i) {
        const Label label = LabelOf(Kind::kCopy, "copy", 8);
        const Span span(line, label);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Trace recorded = Stop();
  std::vector<int> of(kThreads, 0);
  for (const Event& event : recorded.events) {
    EXPECT_EQ(TextOf(event.label.op_type), "MatMul");
    EXPECT_EQ(event.label.bytes, 16);
    ++of[TextOf(event.label.op).back() - '0'];
  }
  EXPECT_EQ(of, std::vector<int>(kThreads, kEach));
}

TEST(Recording, SaysWhatHadNoRoom) {
  ASSERT_TRUE(Start());
  Line line;
  for (int64_t i = 0; i < kMaxEvents + 3; ++i) Record(line, Label(), 1, 2);
  const Trace recorded = Stop();
  EXPECT_EQ(static_cast<int64_t>(recorded.events.size()), kMaxEvents);
  EXPECT_EQ(recorded.dropped, 3);
}

TEST(Recording, AsksDevicesThatHaveEventsOfTheirOwn) {
  struct Own final : EventSource {
    void Begin() override { ++begun; }
    void End() override {
      Label label;
      label.what = Intern("own");
      Record(line, label, 10, 20);
    }
    Line line;
    int begun = 0;
  };
  static Own own;
  AddSource(&own);
  ASSERT_TRUE(Start());
  EXPECT_EQ(own.begun, 1);
  const Trace recorded = Stop();
  ASSERT_EQ(recorded.events.size(), 1u);
  EXPECT_EQ(TextOf(recorded.events[0].label.what), "own");
  EXPECT_EQ(recorded.events[0].end_ns, 20u);
}

TEST(ScopedOp, IsTheInnermostOfItsThread) {
  const auto current = [] { return TextOf(LabelOf(Kind::kFill, "fill", 1).op); };
  EXPECT_EQ(current(), "");
  const ScopedOp outer("outer", "A");
  {
    const ScopedOp inner("inner", "B");
    EXPECT_EQ(current(), "inner");
    std::thread([&] { EXPECT_EQ(current(), ""); }).join();
  }
  EXPECT_EQ(current(), "outer");
}

TEST(ScopedListLabels, BelongToListsOfTheirLength) {
  EXPECT_EQ(ScopedListLabels::Current(2), nullptr);
  const ScopedListLabels labels(std::make_shared<const std::vector<Label>>(2));
  EXPECT_NE(ScopedListLabels::Current(2), nullptr);
  EXPECT_EQ(ScopedListLabels::Current(3), nullptr);
}

TEST(Flops, OfProducts) {
  MatMulDesc d;
  d.m = 3, d.k = 5, d.n = 7;
  Label label = LabelFor(d);
  EXPECT_EQ(label.flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(label.bytes, 4 * (3 * 5 + 5 * 7 + 3 * 7));
  EXPECT_EQ(TextOf(label.what), "MatMul of float");
  d.batch = {11};
  d.a_batch_strides = {15}, d.b_batch_strides = {0};
  d.type = DType::kComplex64;
  label = LabelFor(d);
  EXPECT_EQ(label.flops, 8 * 11 * 3 * 5 * 7);
  EXPECT_EQ(label.bytes, 8 * (11 * 3 * 5 + 5 * 7 + 11 * 3 * 7));  // b once
}

TEST(Flops, OfProgramsCountWhatIsComputedAndNoConversions) {
  ElementwiseDesc d;
  ProgramBuilder b;
  const auto x = b.Input(DType::kHalf);
  const auto wide = b.Cast(x, DType::kFloat);
  b.Output(b.Apply(Opcode::kMul, wide, b.Apply(Opcode::kExp, wide)));
  d.program = b.Build();
  ASSERT_NE(d.program, nullptr) << b.error();
  d.shape = {10, 20};
  d.in_strides[0] = {20, 1};
  const Label label = LabelFor(d);
  EXPECT_EQ(label.flops, 2 * 200);
  EXPECT_EQ(label.bytes, 200 * (2 + 4));
  ReduceDesc sum;
  sum.source = d;
  sum.axes = 2;
  EXPECT_EQ(LabelFor(sum).flops, 3 * 200);
}

TEST(Flops, OfConvolutionsAreTheSameInEveryDirection) {
  ConvolutionDesc d;
  d.batch = 2, d.in_channels = 6, d.out_channels = 4, d.groups = 2;
  d.input[0] = d.input[1] = 8, d.filter[0] = d.filter[1] = 3, d.output[0] = d.output[1] = 6;
  for (Direction direction : {Direction::kForward, Direction::kDataGradient, Direction::kFilterGradient}) {
    d.direction = direction;
    EXPECT_EQ(LabelFor(d).flops, 2 * (2 * 6 * 6 * 4) * (3 * 3) * (6 / 2));
  }
}

TEST(Flops, OfWhatOnlyMovesAreNone) {
  CopyStridedDesc d;
  d.element_size = 4;
  d.shape = {5, 6};
  d.src_strides = {1, 5}, d.dst_strides = {6, 1};
  const Label label = LabelFor(d);
  EXPECT_EQ(label.flops, 0);
  EXPECT_EQ(label.bytes, 2 * 4 * 30);
}

}  // namespace
}  // namespace xpu::trace
