// Convolutions by cuDNN, on stand-ins for it and the driver. The tests look at what cuDNN is asked for and when it
// runs, and at what happens without it.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cuda/backend.h"
#include "tensorflow_plugin/backends/cuda/device.h"
#include "tensorflow_plugin/backends/cuda/dnn/cudnn.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_ins.h"
#include "tensorflow_plugin/backends/tests/geometry/convolutions.h"
#include "tensorflow_plugin/primitives/command_list.h"
#include "tensorflow_plugin/primitives/determinism.h"
#include "tensorflow_plugin/primitives/float_precision.h"

namespace xpu::cuda {
namespace {

// Each in a process of its own: a process looks once.
class Lack : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  [[noreturn]] static void Say(const std::vector<std::string>& libraries) {
    for (const std::string& library : libraries) {
      if (Open(library) == nullptr) std::abort();
    }
    std::string why;
    const bool found = FindCudnn(&why) != nullptr;
    std::fprintf(stderr, "%s: %s\n", found ? "found" : "absent", why.c_str());
    std::exit(0);
  }
};

TEST_F(Lack, SaysWhatIsMissing) {
  const auto good = ::testing::ExitedWithCode(0);
  EXPECT_EXIT(Say({"libcublasLt.so.13", "libcudnn.so.9"}), good, "found: \n");
  EXPECT_EXIT(Say({"libcudnn.so.9"}), good, "absent: cuDNN needs cuBLASLt: libcublasLt.so.13 was not found");
  EXPECT_EXIT(Say({"libcublasLt.so.13"}), good,
              "absent: libcudnn.so.9 was not found \\(pip install tensorflow_xpu\\[cuda\\]\\)");
  EXPECT_EXIT(Say({"libcublasLt.so.13", "libcudnn_8.so"}), good,
              "absent: libcudnn.so.9 says that it is version 8907, and 9 is needed");
  EXPECT_EXIT(Say({"libcublasLt.so.13", "libcudnn_lacking.so"}), good, "absent: libcudnn lacks cudnnBackendExecute");
}

using testing::ConvolutionOf;

const ConvolutionDesc& Small() {
  static const auto& small = *new ConvolutionDesc(ConvolutionOf({{8, 3, 2, 1, 0, 1}, {9, 5, 1, 2, 4, 4}}, 2, 6, 4, 2));
  return small;
}

class Convolutions : public OnStandIns {
 protected:
  static void SetUpTestSuite() {
    OnStandIns::SetUpTestSuite();
    ASSERT_NE(Open("libcudnn.so.9"), nullptr);
  }
  void SetUp() override {
    Forget();
    OnStandIns::SetUp();
  }
  void TearDown() override {
    SetTf32Query(nullptr);
    SetDeterminismQuery(nullptr);
    FailCudnn(0, 0);
    OnStandIns::TearDown();
    int handles = 0, descriptors = 0, plans = 0;
    Count(&handles, &descriptors, &plans);
    EXPECT_EQ(handles, 0);
    EXPECT_EQ(descriptors, 0);
    Forget();
  }

  void MakeDevice(const BackendOptions& options) {
    stream_ = nullptr;
    device_ = nullptr;
    const Status status = TheBackend().CreateDevice(0, options, &device_);
    ASSERT_TRUE(status.ok()) << status.message();
    stream_ = device_->CreateStream();
    for (void*& address : memory_) address = nullptr;
  }
  static void Forget() {
    Function<void()>("StandInReset")();
    (void)Function<const char*()>("StandInDnnExecutions")();
  }
  static void FailCudnn(int execute_error, int create_error) {
    Function<void(int, int)>("StandInDnnFail")(execute_error, create_error);
  }
  static void Count(int* handles, int* descriptors, int* plans) {
    Function<void(int*, int*, int*)>("StandInDnnCounts")(handles, descriptors, plans);
  }
  static int Plans() {
    int handles = 0, descriptors = 0, plans = 0;
    Count(&handles, &descriptors, &plans);
    return plans;
  }
  int LaunchesSoFar() {
    stream_->Wait();
    return static_cast<int>(Launches().size());
  }
  // One a line.
  std::string Executions() {
    stream_->Wait();
    return Function<const char*()>("StandInDnnExecutions")();
  }

  // Operands and result in memory of their own. A result has room for any of them.
  Status Run(const ConvolutionDesc& desc) {
    for (void*& address : memory_) {
      if (address == nullptr) address = device_->Allocate(1 << 20);
    }
    Args args{};
    for (int i = 0; i < 4; ++i) args.in[i] = memory_[i];
    args.out[0] = memory_[4];
    args.workspace = memory_[5];
    return device_->Launch(*stream_, desc, args);
  }
  std::string Address(int index) const {
    char text[40];
    std::snprintf(text, sizeof(text), "%p", memory_[index]);
    return text;
  }

  void* memory_[6] = {};
};

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(Convolutions, HaveTheGeometryOfTheDescriptor) {
  ASSERT_TRUE(Run(Small()).ok());
  const std::string last = Executions();
  EXPECT_EQ(
      last.find("engine 12 forward x [2,6,8,9][432,1,54,6] w [4,3,3,5][45,1,15,3] y [2,4,4,9][144,1,36,4] strides "
                "[2,1] dilations [1,2] pads [0,4][1,4] number 0 sums 0 alignments [16,16,16] " +
                Address(0) + " "),
      0u)
      << last;
  EXPECT_TRUE(Contains(last, " " + Address(4) + " ")) << last;
  EXPECT_TRUE(Contains(last, " behind 1\n")) << last;  // the filter has been turned
  EXPECT_EQ(LaunchesSoFar(), 1);

  ConvolutionDesc first = Small();
  first.order = ChannelOrder::kFirst;
  first.type = DType::kBFloat16;
  ASSERT_TRUE(Run(first).ok());
  const std::string text = Executions();
  EXPECT_EQ(
      text.find("engine 10 forward x [2,6,8,9][432,72,9,1] w [4,3,3,5][45,15,5,1] y [2,4,4,9][144,36,9,1] strides "
                "[2,1] dilations [1,2] pads [0,4][1,4] number 9 sums 0 "),
      0u)
      << text;
}

TEST_F(Convolutions, OfLinesAreOfImagesOnePixelHigh) {
  ASSERT_TRUE(Run(ConvolutionOf({{10, 3, 2, 3, 1, 2}}, 2, 3, 4)).ok());
  const std::string text = Executions();
  EXPECT_TRUE(Contains(text,
                       "x [2,3,1,10][30,1,30,3] w [4,3,1,3][9,1,9,3] y [2,4,1,4][16,1,16,4] strides [1,2] "
                       "dilations [1,3] pads [0,1][0,2] "))
      << text;
}

TEST_F(Convolutions, OfVolumes) {
  ConvolutionDesc desc = ConvolutionOf({{4, 2}, {5, 2}, {6, 3}}, 1, 2, 3);
  desc.type = DType::kDouble;
  ASSERT_TRUE(Run(desc).ok());
  const std::string text = Executions();
  EXPECT_TRUE(Contains(text,
                       "x [1,2,4,5,6][240,1,60,12,2] w [3,2,2,2,3][24,1,12,6,2] y [1,3,3,4,4][144,1,48,12,3] "
                       "strides [1,1,1] dilations [1,1,1] pads [0,0,0][0,0,0] number 1 sums 1 "))
      << text;
}

TEST_F(Convolutions, GradientsHaveTheirOperandsInPlace) {
  ConvolutionDesc desc = Small();
  desc.direction = Direction::kDataGradient;
  ASSERT_TRUE(Run(desc).ok());
  std::string text = Executions();
  EXPECT_EQ(text.find("engine 12 to images x [2,6,8,9]"), 0u) << text;
  EXPECT_TRUE(Contains(text, "[16,16,16] " + Address(4) + " ")) << text;  // images are the result
  EXPECT_TRUE(Contains(text, " " + Address(1) + " ")) << text;
  EXPECT_FALSE(Contains(text, " " + Address(0) + " ")) << text;  // the filter as TensorFlow has it
  EXPECT_TRUE(Contains(text, " behind 1\n")) << text;

  desc.direction = Direction::kFilterGradient;
  SetTf32Query([] { return true; });
  ASSERT_TRUE(Run(desc).ok());
  SetTf32Query(nullptr);
  text = Executions();
  EXPECT_EQ(text.find("engine 10 to filter x [2,6,8,9]"), 0u) << text;
  EXPECT_TRUE(Contains(text, "[16,16,16] " + Address(0) + " ")) << text;
  EXPECT_TRUE(Contains(text, " " + Address(1) + " ")) << text;
  EXPECT_FALSE(Contains(text, " " + Address(4) + " ")) << text;
  EXPECT_TRUE(Contains(text, " behind 1\n")) << text;  // the filter is turned afterwards
  EXPECT_EQ(LaunchesSoFar(), 2);
}

// Their engines without tensor cores are slow, or wrong.
TEST_F(Convolutions, KernelsComputeGradientsOfFloatWithoutTf32) {
  ConvolutionDesc asymmetric = Small(), to_filter = ConvolutionOf({{20, 3}, {20, 3}}, 1, 8, 16), to_images = to_filter;
  asymmetric.direction = to_filter.direction = Direction::kFilterGradient;
  to_images.direction = Direction::kDataGradient;
  to_images.stride[0] = to_images.stride[1] = 2;
  to_images.output[0] = to_images.output[1] = 9;
  for (const ConvolutionDesc& desc : {asymmetric, to_filter, to_images}) {
    ASSERT_TRUE(Run(desc).ok());
    EXPECT_EQ(Executions(), "");
    SetTf32Query([] { return true; });
    ASSERT_TRUE(Run(desc).ok());
    SetTf32Query(nullptr);
    EXPECT_NE(Executions(), "");
  }
}

// Relu((c + bias) + added) in bfloat16, or with a product in place of the first sum.
ConvolutionDesc WithEpilogue(ConvolutionDesc desc, Opcode first) {
  desc.type = DType::kBFloat16;
  ProgramBuilder builder;
  const auto c = builder.Input(desc.type), bias = builder.Input(desc.type), added = builder.Input(desc.type);
  const auto sum = builder.Apply(Opcode::kAdd, builder.Apply(first, c, bias), added);
  builder.Output(builder.Apply(Opcode::kMaximum, sum, builder.Const(desc.type, 0)));
  desc.epilogue.program = builder.Build();
  desc.epilogue.shape = {desc.batch * desc.output[0] * desc.output[1], desc.out_channels};
  for (int i : {0, 2}) desc.epilogue.in_strides[i] = {desc.out_channels, 1};
  desc.epilogue.in_strides[1] = {0, 1};
  return desc;
}

// Each turns its filter in the same scratch memory: no other filter may come between that and the convolution.
TEST_F(Convolutions, ThreadsTakeTurnsWithScratchMemory) {
  constexpr int kTimes = 1000;
  std::atomic<int> begun{0};
  ASSERT_TRUE(Run(Small()).ok());
  stream_->Wait();
  Forget();
  const auto run = [&] {
    ++begun;
    while (begun < 2) std::this_thread::yield();
    for (int i = 0; i < kTimes; ++i) EXPECT_TRUE(Run(Small()).ok());
  };
  std::thread other(run);
  run();
  other.join();
  std::istringstream lines(Executions());
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string behind = " behind " + std::to_string(++count);
    ASSERT_EQ(line.substr(line.rfind(" behind ")), behind);
  }
  EXPECT_EQ(count, 2 * kTimes);
}

TEST_F(Convolutions, AnEpilogueOfSumsIsCudnns) {
  ASSERT_TRUE(Run(WithEpilogue(Small(), Opcode::kAdd)).ok());
  const std::string text = Executions();
  EXPECT_EQ(text.find("engine 21 forward x "), 0u) << text;
  EXPECT_TRUE(Contains(text, " add [2,4,4,9][144,1,36,4] add [1,4,1,1][4,1,4,4] relu " + Address(0) + " ")) << text;
  // The result, the bias and what is added, by their numbers.
  EXPECT_TRUE(Contains(text, " " + Address(4) + " " + Address(2) + " " + Address(3) + " ")) << text;
  EXPECT_EQ(LaunchesSoFar(), 1);  // the filter is turned
}

TEST_F(Convolutions, AnotherEpilogueRunsOverTheResult) {
  ASSERT_TRUE(Run(WithEpilogue(Small(), Opcode::kMul)).ok());
  std::string text = Executions();
  EXPECT_EQ(text.find("engine 10 forward x "), 0u) << text;
  EXPECT_FALSE(Contains(text, " add ")) << text;
  EXPECT_TRUE(Contains(text, " behind 1\n"));
  EXPECT_EQ(LaunchesSoFar(), 2);
  // So does one whose engine would have to be compiled, or loses NaN.
  for (int64_t pixels : {11, 7}) {
    Forget();
    ASSERT_TRUE(Run(WithEpilogue(ConvolutionOf({{20, pixels}, {20, 3}}, 1, 8, 16), Opcode::kAdd)).ok());
    text = Executions();
    EXPECT_EQ(text.find("engine 10 forward x "), 0u) << text;
    EXPECT_FALSE(Contains(text, " add ")) << text;
    EXPECT_EQ(LaunchesSoFar(), 2);
  }
}

TEST_F(Convolutions, EnginesRoundAsTheProgramWants) {
  const int before = Plans();
  ASSERT_TRUE(Run(Small()).ok());
  SetDeterminismQuery([] { return true; });
  ASSERT_TRUE(Run(Small()).ok());
  SetTf32Query([] { return true; });
  ASSERT_TRUE(Run(Small()).ok());
  ConvolutionDesc half = Small();
  half.type = DType::kHalf;
  SetTf32Query(nullptr);
  ASSERT_TRUE(Run(half).ok());
  const std::string text = Executions();
  std::vector<std::string> engines;
  for (size_t at = text.find("engine "); at != std::string::npos; at = text.find("engine ", at + 1)) {
    engines.push_back(text.substr(at + 7, 2));
  }
  EXPECT_EQ(engines, (std::vector<std::string>{"12", "13", "10", "10"}));
  EXPECT_EQ(Plans(), before + 4);
  ASSERT_TRUE(Run(half).ok());
  EXPECT_EQ(Plans(), before + 4);
}

TEST_F(Convolutions, WhereMemoryIsScarceAnEngineNeedsLittle) {
  BackendOptions options;
  options.memory_limit = int64_t{100} << 20;
  MakeDevice(options);
  SetDeterminismQuery([] { return true; });
  ASSERT_TRUE(Run(Small()).ok());
  const std::string text = Executions();
  EXPECT_EQ(text.find("engine 16 "), 0u) << text;
}

TEST_F(Convolutions, AddressesOfFewBytesAreSaid) {
  ASSERT_TRUE(Run(Small()).ok());
  (void)Executions();
  memory_[0] = static_cast<char*>(memory_[0]) + 4;
  memory_[4] = static_cast<char*>(memory_[4]) + 8;
  ASSERT_TRUE(Run(Small()).ok());
  const std::string text = Executions();
  EXPECT_TRUE(Contains(text, " alignments [4,16,8] ")) << text;
}

TEST_F(Convolutions, KernelsComputeWhatCudnnDoesNot) {
  ASSERT_TRUE(Run(ConvolutionOf({{20, 13}, {20, 3}}, 1, 8, 16)).ok());
  EXPECT_EQ(Executions(), "");
  EXPECT_GE(LaunchesSoFar(), 1);
  FailCudnn(0, 1001);
  MakeDevice(BackendOptions());
  Forget();
  ASSERT_TRUE(Run(Small()).ok());
  EXPECT_EQ(Executions(), "");
  EXPECT_GE(LaunchesSoFar(), 1);
}

TEST_F(Convolutions, SayWhyThereIsNoPlan) {
  std::unique_ptr<Machine> machine;
  ASSERT_TRUE(Machine::Create(UsedHardware()[0], int64_t{1} << 29, "XPU:0", &machine).ok());
  std::unique_ptr<Queue> queue;
  ASSERT_TRUE(Queue::Create(*machine, 0, &queue).ok());
  bool enqueued = true;
  std::string how;
  const Args args{};
  ASSERT_TRUE(machine->convolutions()
                  .Enqueue(*machine, *queue, ConvolutionOf({{20, 13}, {20, 3}}, 1, 8, 16), args, &enqueued, &how)
                  .ok());
  EXPECT_FALSE(enqueued);
  EXPECT_EQ(how, "cuDNN proposes 0 engines; 0 round in other ways, 0 need more than 268435456 bytes of scratch memory");
  ConvolutionDesc wrong = Small();
  wrong.output[0] = 7;
  ASSERT_TRUE(machine->convolutions().Enqueue(*machine, *queue, wrong, args, &enqueued, &how).ok());
  EXPECT_FALSE(enqueued);
  EXPECT_EQ(how, "making a cuDNN descriptor of kind 10 final failed with CUDNN_STATUS_BAD_PARAM (y's dimension 0)");
}

TEST_F(Convolutions, AFailureNamesTheConvolution) {
  FailCudnn(5000, 0);
  const Status status = Run(Small());
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message(),
            "a convolution of 2 images with 6 channels to 4, float: cudnnBackendExecute failed with "
            "CUDNN_STATUS_EXECUTION_FAILED (a launch failed); engine 12 of cuDNN with 1000 bytes of scratch memory, "
            "number 3 of those proposed");
  FailCudnn(0, 0);
  EXPECT_TRUE(Run(Small()).ok());
}

TEST_F(Convolutions, AreCapturedWithPlansThatAreThere) {
  auto list = std::make_shared<CommandList>();
  list->buffers.resize(4);
  for (Buffer& buffer : list->buffers) buffer.kind = Buffer::Kind::kInput;
  Command command;
  const ConvolutionDesc desc = Small();
  command.desc = desc;
  ASSERT_TRUE(Check(desc, &command.footprint).ok());
  command.in.resize(2);
  command.out.resize(1);
  command.in[0].buffer = 0;
  command.in[1].buffer = 1;
  command.out[0].buffer = 2;
  command.workspace.buffer = 3;
  list->commands.assign(3, command);
  const std::unique_ptr<Executable> executable = device_->Prepare(list, {});
  const auto& graphs = static_cast<const GraphExecutable&>(*executable);
  std::vector<char*> addresses;
  for (int i = 0; i < 4; ++i) addresses.push_back(static_cast<char*>(device_->Allocate(1 << 20)));
  const int before = Plans();
  int failed = -1;
  for (int run = 0; run < 4; ++run) {
    ASSERT_TRUE(executable->Run(*stream_, addresses.data(), nullptr, &failed).ok());
    EXPECT_EQ(graphs.NumGraphs(), run == 0 ? 0 : 1);
    EXPECT_EQ(Plans(), before + 1);
    const std::string text = Executions();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(Contains(text, " behind " + std::to_string(3 * run + i + 1) + "\n")) << text;
    }
  }
  EXPECT_EQ(LaunchesSoFar(), 12);
  // A wish for determinism is heeded by a graph of its own.
  SetDeterminismQuery([] { return true; });
  ASSERT_TRUE(executable->Run(*stream_, addresses.data(), nullptr, &failed).ok());
  const std::string text = Executions();
  EXPECT_EQ(text.find("engine 13 "), 0u) << text;
}

}  // namespace
}  // namespace xpu::cuda
