// Command lists on a stand-in for the driver: which graphs are kept, and what reports of commands cost.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cuda/device.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_ins.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::cuda {
namespace {

class Graphs : public OnStandIns {
 protected:
  // Three sums of 16 numbers, of buffer 0 to buffer 1.
  static std::shared_ptr<CommandList> Sums() {
    ElementwiseDesc desc;
    desc.program = SingleOpProgram(Opcode::kAdd, DType::kFloat);
    desc.shape = {16};
    desc.in_strides[0] = desc.in_strides[1] = {1};
    auto list = std::make_shared<CommandList>();
    list->buffers.resize(2);
    for (Buffer& buffer : list->buffers) buffer.kind = Buffer::Kind::kInput;
    Command command;
    command.desc = desc;
    EXPECT_TRUE(Check(desc, &command.footprint).ok());
    command.in = {{0, 0}, {0, 0}};
    command.out = {{1, 0}};
    list->commands.assign(3, command);
    return list;
  }
  // Gathers of 4 of 16 numbers, whose indices the list has not to check.
  static std::shared_ptr<CommandList> Gathers(size_t count) {
    GatherDesc desc;
    desc.element_size = sizeof(float);
    desc.index_type = DType::kInt32;
    desc.dims = {16};
    desc.num_indices = 4;
    auto list = std::make_shared<CommandList>();
    list->buffers.resize(2);
    for (Buffer& buffer : list->buffers) buffer.kind = Buffer::Kind::kInput;
    Command command;
    command.desc = desc;
    EXPECT_TRUE(Check(desc, &command.footprint).ok());
    command.in = {{0, 0}, {0, 0}};
    command.out = {{1, 0}};
    list->commands.assign(count, command);
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
  char* const memory = static_cast<char*>(device_->Allocate(1 << 16));
  char* const addresses[] = {memory, memory + 4096};
  Run(*executable, memory, memory + 8192, 1);  // compiles the kernel
  const int waits = Calls("cuStreamSynchronize");
  int failed = -1;
  ASSERT_TRUE(executable->Run(*stream_, addresses, nullptr, &failed).ok());
  EXPECT_FALSE(static_cast<Queue&>(*stream_).HasDeferred());
  EXPECT_EQ(Calls("cuStreamSynchronize"), waits);
  stream_->Wait();
  EXPECT_EQ(Launches().size(), 2 * kGathers);
  EXPECT_TRUE(stream_->TakeStatus().ok());
}

}  // namespace
}  // namespace xpu::cuda
