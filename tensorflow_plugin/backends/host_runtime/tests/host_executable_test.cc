// Tests lists of commands on host memory as one entry of a stream. They show which commands run at the same time, on
// how many threads, and the effect of failures. The kernels are the test's own.
#include "tensorflow_plugin/backends/host_runtime/host_executable.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/host_runtime/host_device.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::host_runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Random waits for another one to run at the same time, but not for ever. It writes `key` to its n floats and costs n
// ns. Gather fails, and Softmax throws.
class TestKernels final : public KernelSet {
 public:
  int64_t EstimateNs(const RandomDesc& desc) const override { return desc.n; }
  int64_t EstimateNs(const GatherDesc&) const override { return 100; }
  int64_t EstimateNs(const SoftmaxDesc&) const override { return 100; }
  Status Run(const RandomDesc& desc, const Args& args, const ThreadTeam& team) const override {
    if (running.fetch_add(1) > 0) met = true;
    for (const auto end = steady_clock::now() + milliseconds(patience_ms); !met && steady_clock::now() < end;) {
      std::this_thread::yield();
    }
    std::fill_n(static_cast<float*>(args.out[0]), desc.n, static_cast<float>(desc.key));
    {
      std::lock_guard<std::mutex> lock(mutex);
      team_sizes.push_back(team.size());
      threads.insert(std::this_thread::get_id());
    }
    running.fetch_sub(1);
    return OkStatus();
  }
  Status Run(const GatherDesc&, const Args&, const ThreadTeam&) const override {
    return errors::InvalidArgument("index 7 is out of range");
  }
  Status Run(const SoftmaxDesc&, const Args&, const ThreadTeam&) const override { throw std::bad_alloc(); }

  void Forget() const {
    patience_ms = 20;
    met = false;
    team_sizes.clear();
    threads.clear();
  }

  mutable int patience_ms = 20;
  mutable std::atomic<int> running{0};
  mutable std::mutex mutex;
  mutable std::atomic<bool> met{false};  // two ran at the same time
  mutable std::vector<int> team_sizes;
  mutable std::set<std::thread::id> threads;
};
const TestKernels kKernels;

class HostExecutables : public ::testing::Test {
 protected:
  HostExecutables() {
    kKernels.Forget();
    UseDevice(0);
  }

  // Whose streams queue what a thread could do at once in so many ns.
  void UseDevice(int64_t inline_below_ns) {
    HostDeviceOptions options;
    options.queue.team = ThreadTeam(2);
    options.queue.inline_below_ns = inline_below_ns;
    DeviceInfo info;
    info.memory_bytes = int64_t{16} << 20;
    stream_ = nullptr;
    EXPECT_TRUE(HostDevice::Create(kKernels, info, options, &device_).ok());
    stream_ = device_->CreateStream();
  }

  int NewBuffer(int64_t floats) {
    list_.buffers.push_back({Buffer::Kind::kComputed, floats * 4, nullptr});
    list_.live_out.push_back(static_cast<int>(list_.buffers.size()) - 1);
    return list_.live_out.back();
  }
  // Writes n floats of a buffer, from an element on.
  void AddFill(int64_t n, int buffer, int64_t from = 0, int value = 1) {
    RandomDesc desc;
    desc.n = n;
    desc.key = static_cast<uint64_t>(value);
    Add(desc).out = {{buffer, from * 4}};
  }
  template <typename Desc>
  Command& Add(const Desc& desc) {
    Command& command = list_.commands.emplace_back();
    command.desc = desc;
    EXPECT_TRUE(Check(desc, &command.footprint).ok());
    return command;
  }

  // Runs the list; what the buffers hold afterwards.
  std::vector<std::vector<float>> Run(MemoryPlan plan = {}, Code expected = Code::kOk) {
    plan.offsets.resize(list_.buffers.size(), MemoryPlan::kElsewhere);
    char* const block = static_cast<char*>(device_->Allocate(plan.bytes + 1));
    std::vector<char*> addresses;
    for (size_t i = 0; i < list_.buffers.size(); ++i) {
      if (list_.buffers[i].kind == Buffer::Kind::kFixed) {
        addresses.push_back(const_cast<char*>(static_cast<const char*>(list_.buffers[i].address)));
      } else if (plan.offsets[i] != MemoryPlan::kElsewhere) {
        addresses.push_back(block + plan.offsets[i]);
      } else {
        addresses.push_back(static_cast<char*>(device_->Allocate(list_.buffers[i].bytes)));
      }
    }
    const auto executable = device_->Prepare(std::make_shared<const CommandList>(list_), plan);
    failed_ = -1;
    EXPECT_EQ(executable->Run(*stream_, addresses.data(), nullptr, &failed_).code(), expected);
    stream_->Wait();
    std::vector<std::vector<float>> found;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const float* values = reinterpret_cast<const float*>(addresses[i]);
      found.emplace_back(values, values + list_.buffers[i].bytes / 4);
    }
    return found;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  CommandList list_;
  int failed_ = -1;    // which command, in the last run
  bool here_ = false;  // whether this thread alone ran the last list
};

constexpr int64_t kSmall = 7000;  // as many ns: not worth several threads

TEST_F(HostExecutables, AResultIsReadWhileTheRestRuns) {
  kKernels.patience_ms = 300;  // for each command, as they run one after the other
  constexpr int64_t kLarge = 100000;
  const int early = NewBuffer(kLarge), late = NewBuffer(kLarge), updated = NewBuffer(kLarge);
  AddFill(kLarge, early, 0, 3);
  AddFill(kLarge, updated, 0, 4);
  AddFill(kLarge, late, 0, 5);
  AddFill(kLarge / 2, updated, kLarge / 2, 6);
  std::vector<char*> addresses;
  for (const Buffer& buffer : list_.buffers) addresses.push_back(static_cast<char*>(device_->Allocate(buffer.bytes)));
  MemoryPlan plan;
  plan.offsets.assign(list_.buffers.size(), MemoryPlan::kElsewhere);
  const auto executable = device_->Prepare(std::make_shared<const CommandList>(list_), plan);
  for (int run = 0; run < 2; ++run) {  // the second queues behind the first, and writes the same once more
    ASSERT_TRUE(executable->Run(*stream_, addresses.data(), nullptr, &failed_).ok());
  }
  float value = 0;
  ASSERT_TRUE(stream_->Read(&value, addresses[early], sizeof value).ok());
  EXPECT_EQ(value, 3);
  EXPECT_FALSE(stream_->Idle());
  // Its first half is final before its second half is.
  ASSERT_TRUE(stream_->Read(&value, addresses[updated], sizeof value).ok());
  EXPECT_EQ(value, 4);
  EXPECT_FALSE(stream_->Idle());
  ASSERT_TRUE(stream_->Read(&value, addresses[updated] + (kLarge - 1) * 4, sizeof value).ok());
  EXPECT_EQ(value, 6);
  EXPECT_EQ(kKernels.team_sizes.size(), 8u);
}

TEST_F(HostExecutables, SmallIndependentNeighboursRunSideBySide) {
  kKernels.patience_ms = 10000;
  AddFill(kSmall, NewBuffer(kSmall));
  AddFill(kSmall, NewBuffer(kSmall));
  Run();
  EXPECT_TRUE(kKernels.met);
  EXPECT_EQ(kKernels.team_sizes, (std::vector<int>{1, 1}));
}

TEST_F(HostExecutables, PartsOfABufferAreIndependent) {
  kKernels.patience_ms = 10000;
  const int buffer = NewBuffer(2 * kSmall);
  AddFill(kSmall, buffer, 0, 1);
  AddFill(kSmall, buffer, kSmall, 2);
  const std::vector<float> found = Run()[0];
  EXPECT_TRUE(kKernels.met);
  EXPECT_EQ(found[kSmall - 1], 1);
  EXPECT_EQ(found[kSmall], 2);
}

TEST_F(HostExecutables, StrandsRunSideBySideAndEachInItsOrder) {
  kKernels.patience_ms = 10000;
  const int buffers[] = {NewBuffer(kSmall), NewBuffer(kSmall)};
  for (int strand : {0, 1}) {
    for (int value : {1, 2, 3}) {
      AddFill(kSmall, buffers[strand], 0, value + 10 * strand);
      list_.commands.back().strand = strand;
    }
  }
  const auto found = Run();
  EXPECT_TRUE(kKernels.met);
  EXPECT_EQ(kKernels.team_sizes, std::vector<int>(6, 1));
  EXPECT_EQ(found[0][0], 3);
  EXPECT_EQ(found[1][0], 13);
}

TEST_F(HostExecutables, ALowerStrandComesAfterAllBefore) {
  const int buffer = NewBuffer(kSmall);
  for (int strand : {1, 0}) {
    AddFill(kSmall, buffer, 0, strand);
    list_.commands.back().strand = strand;
  }
  EXPECT_EQ(Run()[0][0], 0);
  EXPECT_FALSE(kKernels.met);
}

TEST_F(HostExecutables, TinyStrandsRunOnOneThread) {
  for (int strand : {0, 1}) {
    AddFill(100, NewBuffer(100));
    list_.commands.back().strand = strand;
  }
  Run();
  EXPECT_FALSE(kKernels.met);
}

TEST_F(HostExecutables, WhatTouchesTheSameRunsInItsOrder) {
  const int buffer = NewBuffer(2 * kSmall);
  AddFill(kSmall, buffer, 0, 1);
  AddFill(kSmall, buffer, kSmall - 1, 2);
  EXPECT_EQ(Run()[0][kSmall - 1], 2);
  EXPECT_FALSE(kKernels.met);
}

TEST_F(HostExecutables, BuffersThatShareMemoryAreTheSame) {
  AddFill(kSmall, NewBuffer(kSmall), 0, 1);
  AddFill(kSmall, NewBuffer(kSmall), 0, 2);
  MemoryPlan plan;
  plan.bytes = 5 * kSmall;
  plan.offsets = {0, kSmall / 4 * 4};
  EXPECT_EQ(Run(plan)[0].back(), 2);
  EXPECT_FALSE(kKernels.met);
}

TEST_F(HostExecutables, WhatTheHostHasIsLookedAtWithoutWaiting) {
  // The stream is busy until the test has seen the failure.
  std::atomic<bool> seen{false};
  stream_->HostCallback([&seen] {
    while (!seen) std::this_thread::yield();
    return OkStatus();
  });
  int32_t index = 7;
  list_.buffers = {{Buffer::Kind::kOnHost, 4, nullptr}, {Buffer::Kind::kComputed, 4, nullptr}};
  Command& copy = list_.commands.emplace_back();
  copy.desc = CopyFromHost{4};
  copy.in = {{0, 0}};
  copy.out = {{1, 0}};
  GatherDesc check;
  check.element_size = 1;
  check.inner = 0;
  check.index_type = DType::kInt32;
  check.num_indices = 1;
  check.dims = {3};
  Command& command = Add(check);
  command.in = {{}, {1, 0}};
  command.out = {{}};
  command.explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
  MemoryPlan plan;
  plan.bytes = 256;
  plan.offsets = {MemoryPlan::kElsewhere, 0};
  char* const block = static_cast<char*>(device_->Allocate(plan.bytes));
  char* addresses[] = {reinterpret_cast<char*>(&index), block};
  const auto executable = device_->Prepare(std::make_shared<const CommandList>(list_), plan);
  EXPECT_EQ(executable->Run(*stream_, addresses, nullptr, &failed_).code(), Code::kInvalidArgument);
  EXPECT_EQ(failed_, 1);
  seen = true;
  stream_->Wait();
}

TEST_F(HostExecutables, AWorkspaceIsWritten) {
  const int workspace = NewBuffer(kSmall);
  AddFill(kSmall, NewBuffer(kSmall));
  list_.commands.back().workspace = {workspace, 0};
  AddFill(kSmall, NewBuffer(kSmall));
  list_.commands.back().workspace = {workspace, 0};
  Run();
  EXPECT_FALSE(kKernels.met);
}

// A list has many buffers that passes have done away with. Their addresses, here in memory without access, are not
// looked at in every run.
TEST_F(HostExecutables, BuffersThatNoCommandTouchesCostNothing) {
  constexpr int kTouched = 3;
  for (int i = 0; i < kTouched; ++i) AddFill(kSmall, NewBuffer(kSmall), 0, i);
  std::reverse(list_.commands.begin(), list_.commands.end());
  const size_t page = static_cast<size_t>(getpagesize()), untouched = page;
  list_.buffers.resize(kTouched + untouched);
  MemoryPlan plan;
  plan.offsets.assign(list_.buffers.size(), MemoryPlan::kElsewhere);
  void* const memory = mmap(nullptr, page + untouched * sizeof(char*), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory, page, PROT_READ | PROT_WRITE), 0);
  char** const addresses = reinterpret_cast<char**>(static_cast<char*>(memory) + page) - kTouched;
  for (int i = 0; i < kTouched; ++i) addresses[i] = static_cast<char*>(device_->Allocate(kSmall * 4));
  const auto executable = device_->Prepare(std::make_shared<const CommandList>(list_), plan);
  ASSERT_TRUE(executable->Run(*stream_, addresses, nullptr, &failed_).ok());
  stream_->Wait();
  for (int i = 0; i < kTouched; ++i) EXPECT_EQ(reinterpret_cast<float*>(addresses[i])[kSmall - 1], i);
  munmap(memory, page + untouched * sizeof(char*));
}

TEST_F(HostExecutables, FixedBuffersMayBePartsOfEachOther) {
  char* const memory = static_cast<char*>(device_->Allocate(2 * kSmall * 4));
  for (int i = 0; i < 2; ++i) {
    AddFill(kSmall, NewBuffer(0));
    list_.buffers.back() = {Buffer::Kind::kFixed, 0, memory + i * 4096};
  }
  Run();
  EXPECT_FALSE(kKernels.met);
}

TEST_F(HostExecutables, LargeCommandsHaveTheTeam) {
  AddFill(100 * kSmall, NewBuffer(100 * kSmall));
  AddFill(100 * kSmall, NewBuffer(100 * kSmall));
  Run();
  EXPECT_FALSE(kKernels.met);
  EXPECT_EQ(kKernels.team_sizes, (std::vector<int>{2, 2}));
}

TEST_F(HostExecutables, TinyCommandsAreNotWorthASecondThread) {
  AddFill(1000, NewBuffer(1000));
  AddFill(1000, NewBuffer(1000));
  Run();
  EXPECT_FALSE(kKernels.met);
}

// Handing them to another thread would take longer, which is not so for one that takes as long as all of them.
TEST_F(HostExecutables, AFewSmallCommandsRunOnTheThreadThatEnqueuesThem) {
  UseDevice(20000);
  for (int i = 0; i < 10; ++i) AddFill(kSmall / 10, NewBuffer(kSmall));
  Run();
  EXPECT_EQ(kKernels.threads, std::set<std::thread::id>{std::this_thread::get_id()});
  EXPECT_EQ(kKernels.team_sizes, std::vector<int>(10, 1));
}

// The slower choice, once it has been slower several times, is made no more for a while.
TEST_F(HostExecutables, WhoRunsMoreOfThemIsFoundByTrying) {
  UseDevice(20000);
  kKernels.patience_ms = 0;
  const int buffer = NewBuffer(kSmall);
  for (int i = 0; i < 5; ++i) AddFill(kSmall, buffer);
  MemoryPlan plan;
  plan.offsets.resize(1, MemoryPlan::kElsewhere);
  const auto executable = device_->Prepare(std::make_shared<const CommandList>(list_), plan);
  char* const address = static_cast<char*>(device_->Allocate(4 * kSmall));
  // Who waits for a command that another thread runs loses so much time.
  const auto run = [&](bool waits_long) {
    kKernels.threads.clear();
    ASSERT_TRUE(executable->Run(*stream_, &address, nullptr, &failed_).ok());
    stream_->Wait();
    const bool here = kKernels.threads == std::set<std::thread::id>{std::this_thread::get_id()};
    if (waits_long != here) std::this_thread::sleep_for(milliseconds(2));
    here_ = here;
  };
  int here = 0;
  for (int i = 0; i < 2 * AdaptiveChoice::kRuns + 3; ++i) {
    run(/*waits_long=*/true);
    here += here_;
  }
  EXPECT_GE(here, AdaptiveChoice::kRuns);
  EXPECT_LE(here, AdaptiveChoice::kRuns + 3);
  for (int i = 0; i < 20; ++i) {
    run(/*waits_long=*/true);
    EXPECT_TRUE(here_);
  }
  for (int64_t i = 0; i < AdaptiveChoice::kSettled + 2 * AdaptiveChoice::kRuns + 3; ++i) run(/*waits_long=*/false);
  for (int i = 0; i < 20; ++i) {
    run(/*waits_long=*/false);
    EXPECT_FALSE(here_);
  }
}

TEST_F(HostExecutables, ManyOrLargeOnesDoNot) {
  constexpr int64_t kOneOfMany = 15000, kMany = 20;
  UseDevice(20000);
  AddFill(10 * kOneOfMany, NewBuffer(10 * kOneOfMany));
  Run();
  EXPECT_EQ(kKernels.threads.count(std::this_thread::get_id()), 0u);
  list_ = CommandList();
  const int buffer = NewBuffer(kOneOfMany);
  for (int i = 0; i < kMany; ++i) AddFill(kOneOfMany, buffer);
  Run();
  EXPECT_EQ(kKernels.threads.count(std::this_thread::get_id()), 0u);
}

TEST_F(HostExecutables, TheFirstFailureIsTheStreamsAndTheRestRuns) {
  AddFill(1000, NewBuffer(1000), 0, 3);
  list_.commands.emplace_back().desc = GatherDesc();
  list_.commands.emplace_back().desc = SoftmaxDesc();
  AddFill(1000, NewBuffer(1000), 0, 4);
  const auto found = Run();
  EXPECT_EQ(stream_->TakeStatus().message(), "index 7 is out of range");
  EXPECT_TRUE(stream_->TakeStatus().ok());
  EXPECT_EQ(found[0].back(), 3);
  EXPECT_EQ(found[1].back(), 4);
}

TEST_F(HostExecutables, AFailureThatIsWaitedForEndsTheList) {
  const DescribeError explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
  for (const int64_t n : {kSmall, int64_t{1} << 20}) {
    list_ = CommandList();
    const int buffer = NewBuffer(n);
    AddFill(n, buffer, 0, 3);
    list_.commands.emplace_back().desc = GatherDesc();
    list_.commands.back().explain = explain;
    AddFill(n, buffer, 0, 4);
    list_.commands.emplace_back().desc = SoftmaxDesc();
    EXPECT_EQ(Run({}, Code::kInvalidArgument)[0].back(), 3);
    EXPECT_EQ(failed_, 1);
    EXPECT_TRUE(stream_->TakeStatus().ok());
  }
}

TEST_F(HostExecutables, AFailureKeepsInputsAsTheyWere) {
  kKernels.met = true;  // nobody waits for another one
  const int computed = NewBuffer(kSmall), variable = NewBuffer(kSmall), before = NewBuffer(kSmall);
  std::vector<float> values(kSmall, 1), earlier(kSmall, 1);
  list_.buffers[variable] = {Buffer::Kind::kFixed, kSmall * 4, values.data()};
  list_.buffers[before] = {Buffer::Kind::kFixed, kSmall * 4, earlier.data()};
  AddFill(kSmall, before, 0, 2);
  list_.commands.emplace_back().desc = GatherDesc();
  list_.commands.back().explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
  AddFill(kSmall, computed, 0, 3);
  AddFill(kSmall, variable, 0, 4);
  (void)Run({}, Code::kInvalidArgument);
  EXPECT_EQ(failed_, 1);
  EXPECT_EQ(values, std::vector<float>(kSmall, 1));
  EXPECT_EQ(earlier, std::vector<float>(kSmall, 2));
}

TEST_F(HostExecutables, WhatFailsBehindAllThatIsWaitedForIsTheStreams) {
  const int buffer = NewBuffer(kSmall);
  AddFill(kSmall, buffer, 0, 3);
  list_.commands.back().explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
  AddFill(kSmall, buffer, 0, 4);
  list_.commands.emplace_back().desc = GatherDesc();
  AddFill(kSmall, buffer, 0, 5);
  EXPECT_EQ(Run()[0].back(), 5);
  EXPECT_EQ(failed_, -1);
  EXPECT_EQ(stream_->TakeStatus().message(), "index 7 is out of range");
}

TEST_F(HostExecutables, ACommandThatThrowsFails) {
  list_.commands.emplace_back().desc = SoftmaxDesc();
  AddFill(kSmall, NewBuffer(kSmall), 0, 4);
  AddFill(kSmall, NewBuffer(kSmall), 0, 5);
  EXPECT_EQ(Run()[1].back(), 5);
  EXPECT_EQ(stream_->TakeStatus().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace xpu::host_runtime
