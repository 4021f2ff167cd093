// Command lists on a stand-in for the driver: which graphs are kept, and what reports of commands cost.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cuda/device.h"
#include "tensorflow_plugin/backends/cuda/tests/lists.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_ins.h"

namespace xpu::cuda {
namespace {

class Graphs : public OnStandIns {
 protected:
  // Gathers of 4 of 16 numbers, whose indices the list has not to check.
  static std::shared_ptr<CommandList> Gathers(size_t count) {
    GatherDesc desc;
    desc.element_size = sizeof(float);
    desc.index_type = DType::kInt32;
    desc.dims = {16};
    desc.num_indices = 4;
    return ListOf(count, desc);
  }

  // Checks of 4 indices into 16 numbers, in buffer 0, then the sums.
  static std::shared_ptr<CommandList> ChecksAndSums(size_t count) {
    std::shared_ptr<CommandList> list = Gathers(count);
    for (Command& command : list->commands) {
      auto& desc = std::get<GatherDesc>(command.desc);
      desc.element_size = 1;
      desc.inner = 0;
      EXPECT_TRUE(Check(desc, &command.footprint).ok());
      command.in[0] = {};
      command.out[0] = {};
      command.explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
    }
    const std::shared_ptr<const CommandList> sums = Sums();
    list->commands.insert(list->commands.end(), sums->commands.begin(), sums->commands.end());
    return list;
  }

  void Run(const Executable& executable, char* from, char* to, int times) {
    char* const addresses[] = {from, to};
    int failed = -1;
    for (int i = 0; i < times; ++i) {
      const Status status = executable.Run(*stream_, addresses, nullptr, &failed);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    stream_->Wait();
  }
  // How often a run waits for the GPU. A run with another result comes before and compiles the kernels.
  int WaitsOfARun(const Executable& executable) {
    char* const memory = static_cast<char*>(device_->Allocate(1 << 16));
    Run(executable, memory, memory + 8192, 1);
    const int before = Calls("cuStreamSynchronize");
    char* const addresses[] = {memory, memory + 4096};
    int failed = -1;
    EXPECT_TRUE(executable.Run(*stream_, addresses, nullptr, &failed).ok());
    return Calls("cuStreamSynchronize") - before;
  }
  int Instantiations() { return Calls("cuGraphInstantiateWithFlags"); }
};

TEST_F(Graphs, TheLeastRecentlyUsedGoes) {
  constexpr int kKept = 16;
  const std::unique_ptr<Executable> executable = device_->Prepare(Sums(), {});
  const auto& graphs = static_cast<const GraphExecutable&>(*executable);
  char* const memory = static_cast<char*>(device_->Allocate(1 << 16));
  const auto run = [&](int set, int times) { Run(*executable, memory, memory + 64 * (set + 1), times); };
  for (int set = 0; set < kKept; ++set) run(set, 2);
  EXPECT_EQ(Instantiations(), kKept);
  EXPECT_EQ(graphs.NumGraphs(), kKept);
  run(0, 1);
  run(kKept, 2);  // one more: set 1 goes, and no other
  EXPECT_EQ(Instantiations(), kKept + 1);
  EXPECT_EQ(graphs.NumGraphs(), kKept);
  for (int set = 0; set <= kKept; ++set) {
    if (set != 1) run(set, 1);
  }
  EXPECT_EQ(Instantiations(), kKept + 1);
  run(1, 2);  // now set 0 was used least recently
  EXPECT_EQ(Instantiations(), kKept + 2);
  run(2, 1);
  EXPECT_EQ(Instantiations(), kKept + 2);
  run(0, 2);
  EXPECT_EQ(Instantiations(), kKept + 3);
  EXPECT_EQ(graphs.NumGraphs(), kKept);
}

// Addresses that come once each, between runs with those that come again.
TEST_F(Graphs, AddressesThatNeverComeAgainTakeNoGraphAway) {
  const std::unique_ptr<Executable> executable = device_->Prepare(Sums(), {});
  char* const memory = static_cast<char*>(device_->Allocate(1 << 16));
  for (int i = 0; i < 100; ++i) {
    Run(*executable, memory, memory + 64, 1);
    Run(*executable, memory, memory + 128 + 64 * i, 1);
  }
  EXPECT_EQ(Instantiations(), 1);
}

// A wait for each would leave the GPU idle, and give what follows to the queue's thread.
TEST_F(Graphs, ReportsOfAListTakeNoWait) {
  constexpr size_t kGathers = 100;
  const std::unique_ptr<Executable> executable = device_->Prepare(Gathers(kGathers), {});
  EXPECT_EQ(WaitsOfARun(*executable), 0);
  EXPECT_FALSE(static_cast<Queue&>(*stream_).HasDeferred());
  stream_->Wait();
  EXPECT_EQ(Launches().size(), 2 * kGathers);
  EXPECT_TRUE(stream_->TakeStatus().ok());
}

TEST_F(Graphs, ChecksOfAListTakeOneWait) {
  constexpr size_t kChecks = 26;
  const std::unique_ptr<Executable> executable = device_->Prepare(ChecksAndSums(kChecks), {});
  EXPECT_EQ(WaitsOfARun(*executable), 1);
  stream_->Wait();
  EXPECT_EQ(Launches().size(), 2 * (kChecks + 3));
}

TEST_F(Graphs, TheFirstOfSeveralChecksThatFailsIsTold) {
  const std::unique_ptr<Executable> executable = device_->Prepare(ChecksAndSums(4), {});
  char* const memory = static_cast<char*>(device_->Allocate(1 << 16));
  char* const addresses[] = {memory, memory + 4096};
  const int32_t indices[] = {0, 1, 99, -3};
  ASSERT_TRUE(stream_->CopyHostToDevice(memory, indices, sizeof(indices)).ok());
  Function<void(int, uint32_t)>("StandInReport")(/*skipped=*/1, /*number=*/2);
  int failed = -1;
  const Status status = executable->Run(*stream_, addresses, nullptr, &failed);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("99"), std::string::npos) << status.message();
  EXPECT_EQ(failed, 1);
  stream_->Wait();
  EXPECT_EQ(Launches().size(), 4u);  // no sum
  EXPECT_TRUE(stream_->TakeStatus().ok());
  // A check that cannot be enqueued.
  char* const others[] = {memory, memory + 8192};
  Fail("cuLaunchKernel", /*skipped=*/2, /*error=*/kOutOfMemory);
  EXPECT_EQ(executable->Run(*stream_, others, nullptr, &failed).code(), Code::kResourceExhausted);
  EXPECT_EQ(failed, 2);
  EXPECT_TRUE(executable->Run(*stream_, others, nullptr, &failed).ok());
}

// The indices come from the host, which finds what is wrong before anything runs behind it.
TEST_F(Graphs, IndicesOfTheHostTakeNoWait) {
  std::shared_ptr<CommandList> list = ChecksAndSums(1);
  list->buffers.push_back({Buffer::Kind::kOnHost, 16, nullptr});
  Command copy;
  copy.desc = CopyFromHost{16};
  copy.in = {{2, 0}};
  copy.out = {{0, 0}};
  list->buffers[0].kind = Buffer::Kind::kComputed;
  list->commands.insert(list->commands.begin(), copy);
  // Behind a sum: it is not run if the check fails.
  Command scatter;
  ScatterDesc desc;
  desc.kind = ScatterKind::kAdd;
  desc.index_type = DType::kInt32;
  desc.num_indices = 4;
  desc.dims = {16};
  desc.skip_negative = true;
  ASSERT_TRUE(Check(desc, &scatter.footprint).ok());
  scatter.desc = desc;
  scatter.in = {{0, 0}, {1, 0}};
  scatter.out = {{1, 64}};
  scatter.workspace = {1, 4096};
  scatter.explain = list->commands[1].explain;
  list->commands.insert(list->commands.end() - 1, scatter);
  const std::unique_ptr<Executable> executable = device_->Prepare(list, {});
  char* const memory = static_cast<char*>(device_->Allocate(1 << 16));
  int32_t indices[] = {0, 15, 3, 3};
  char* const addresses[] = {memory, memory + 4096, reinterpret_cast<char*>(indices)};
  int failed = -1;
  for (int i = 0; i < 4; ++i) {
    const int waits = Calls("cuStreamSynchronize");
    ASSERT_TRUE(executable->Run(*stream_, addresses, nullptr, &failed).ok()) << i;
    if (i > 0) EXPECT_EQ(Calls("cuStreamSynchronize"), waits) << i;  // the first run compiles kernels
    stream_->Wait();
  }
  EXPECT_EQ(Instantiations(), 1);
  const size_t launches = Launches().size();
  indices[2] = 16;
  const Status high = executable->Run(*stream_, addresses, nullptr, &failed);
  EXPECT_EQ(high.message(), "indices[2] = 16 is not in [0, 16)");
  EXPECT_EQ(failed, 1);
  indices[2] = -1;
  const Status negative = executable->Run(*stream_, addresses, nullptr, &failed);
  EXPECT_EQ(negative.message(), "indices[2] = -1 is not in [0, 16)");
  stream_->Wait();
  EXPECT_EQ(Launches().size(), launches);
  // Without the check of the gather, which lets no negative index through.
  list->commands.erase(list->commands.begin() + 1);
  const std::unique_ptr<Executable> other = device_->Prepare(list, {});
  EXPECT_TRUE(other->Run(*stream_, addresses, nullptr, &failed).ok());
  indices[2] = 99;
  EXPECT_EQ(other->Run(*stream_, addresses, nullptr, &failed).message(), "indices[2] = 99 is not in [0, 16)");
  EXPECT_EQ(failed, 3);
  stream_->Wait();
}

// Such as a result's: each run has a new place for it.
TEST_F(Graphs, CommandsOnABufferThatMovesAreInNoGraph) {
  std::shared_ptr<CommandList> list = Sums();
  list->buffers.push_back({Buffer::Kind::kInput, 0, nullptr});
  list->commands.insert(list->commands.end(), 3, list->commands[0]);
  list->commands.push_back(list->commands[0]);
  list->commands.back().out[0].buffer = 2;
  const std::unique_ptr<Executable> executable = device_->Prepare(list, {});
  char* const memory = static_cast<char*>(device_->Allocate(1 << 16));
  int failed = -1;
  for (int i = 0; i < 20; ++i) {
    char* const addresses[] = {memory, memory + 64, memory + 128 + 64 * i};
    ASSERT_TRUE(executable->Run(*stream_, addresses, nullptr, &failed).ok());
    stream_->Wait();
  }
  EXPECT_EQ(Instantiations(), 1);
  EXPECT_EQ(Launches().size(), 20u * 7);
  EXPECT_EQ(Launches().back().arguments[3], AddressOf(memory + 128 + 64 * 19));
}

}  // namespace
}  // namespace xpu::cuda
