// The runtime of the CUDA backend on a stand-in for the driver: order, failures and what is kept.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cuda/backend.h"
#include "tensorflow_plugin/backends/cuda/device.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_ins.h"
#include "tensorflow_plugin/primitives/command_list.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::cuda {
namespace {

constexpr int kIllegalAddress = 700;

class Runtime : public OnStandIns {
 protected:
  // x + x to y.
  ElementwiseDesc Add(int64_t n) {
    ElementwiseDesc desc;
    desc.program = SingleOpProgram(Opcode::kAdd, DType::kFloat);
    desc.shape = {n};
    for (int i = 0; i < 2; ++i) desc.in_strides[i] = {1};
    return desc;
  }
};

TEST_F(Runtime, DescribesTheGpu) {
  const DeviceInfo& info = device_->info();
  EXPECT_EQ(info.hardware_name, "stand-in");
  EXPECT_EQ(info.pci_bus_id, "0000:3b:00.0");
  EXPECT_EQ(info.memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(info.instruction_set, "compute capability 9.0");
}

TEST_F(Runtime, DevicesBeyondTheHardwareShareItsMemory) {
  BackendOptions options;
  EXPECT_EQ(TheBackend().DeviceCount(options), 1);
  options.device_count = 4;
  EXPECT_EQ(TheBackend().DeviceCount(options), 4);
  DeviceInfo info;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(TheBackend().Describe(i, options, &info).ok());
    EXPECT_EQ(info.memory_bytes, int64_t{1} << 28) << i;
  }
  EXPECT_EQ(TheBackend().Describe(4, options, &info).message(), "XPU_CUDA has 4 devices, there is none of ordinal 4");
  options.memory_limit = 1000;
  ASSERT_TRUE(TheBackend().Describe(3, options, &info).ok());
  EXPECT_EQ(info.memory_bytes, 1000);
  options.memory_limit = -1;
  EXPECT_EQ(TheBackend().Describe(3, options, &info).message(), "a memory limit of -1 bytes, expected 0 or more");
  EXPECT_EQ(TheBackend().TotalMemory(), int64_t{1} << 30);
}

TEST_F(Runtime, CopiesComeAndGoInOrder) {
  std::vector<char> first(1000, 1), second(1000, 2), seen(1000), seen_later(1000);
  void* const memory = device_->Allocate(1000);
  void* const other = device_->Allocate(1000);
  ASSERT_TRUE(stream_->CopyHostToDevice(memory, first.data(), 1000).ok());
  ASSERT_TRUE(stream_->CopyDeviceToDevice(other, memory, 1000).ok());
  ASSERT_TRUE(stream_->CopyHostToDevice(memory, second.data(), 1000).ok());
  ASSERT_TRUE(stream_->CopyDeviceToHost(seen.data(), other, 1000).ok());
  ASSERT_TRUE(stream_->CopyDeviceToHost(seen_later.data(), memory, 1000).ok());
  stream_->Wait();
  EXPECT_EQ(seen, first);
  EXPECT_EQ(seen_later, second);
  ASSERT_TRUE(stream_->MemsetU32(memory, 0x01020304, 8).ok());
  ASSERT_TRUE(stream_->Memset(static_cast<char*>(memory) + 8, 7, 4).ok());
  ASSERT_TRUE(stream_->CopyDeviceToHost(seen.data(), memory, 12).ok());
  stream_->Wait();
  EXPECT_EQ(std::memcmp(seen.data(), "\4\3\2\1\4\3\2\1\7\7\7\7", 12), 0);
  EXPECT_FALSE(stream_->MemsetU32(memory, 0, 6).ok());
}

TEST_F(Runtime, LaterCommandsWaitForACallback) {
  std::atomic<bool> open{false};
  const int value = 5;
  int seen = 0, seen_by_callback = -1;
  void* const memory = device_->Allocate(sizeof(int));
  ASSERT_TRUE(stream_->Memset(memory, 0, sizeof(int)).ok());
  stream_->HostCallback([&] {
    while (!open) std::this_thread::yield();
    seen_by_callback = seen;
    return OkStatus();
  });
  ASSERT_TRUE(stream_->CopyHostToDevice(memory, &value, sizeof(int)).ok());
  ASSERT_TRUE(stream_->CopyDeviceToHost(&seen, memory, sizeof(int)).ok());
  EXPECT_FALSE(stream_->Idle());
  open = true;
  stream_->Wait();
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(seen_by_callback, 0);
  EXPECT_TRUE(stream_->TakeStatus().ok());
}

// The driver waits for the GPU when it loads a kernel, so that the GPU must not wait for the host.
TEST_F(Runtime, KernelsAreLoadedWhileACallbackBlocks) {
  std::atomic<bool> open{false};
  std::vector<char> seen(100), ones(100, 1);
  void* const x = device_->Allocate(100);
  ASSERT_TRUE(stream_->CopyHostToDevice(x, ones.data(), 100).ok());
  stream_->HostCallback([&] {
    while (!open) std::this_thread::yield();
    return OkStatus();
  });
  ASSERT_TRUE(stream_->CopyDeviceToHost(seen.data(), x, 100).ok());
  Args args{};
  args.in[0] = args.in[1] = args.out[0] = x;
  ASSERT_TRUE(device_->Launch(*stream_, Add(25), args).ok());
  EXPECT_EQ(Launches().size(), 0u);
  const std::unique_ptr<Event> event = device_->CreateEvent();
  stream_->Record(*event);
  EXPECT_FALSE(event->Done());
  open = true;
  event->Wait();
  EXPECT_EQ(seen, ones);
  EXPECT_EQ(Launches().size(), 1u);
}

TEST_F(Runtime, LargeCopiesOfOrdinaryMemoryAreWhole) {
  const size_t size = 2 * Staging::kBytes + 12345;
  std::vector<char> written(size), read(size);
  for (size_t i = 0; i < size; ++i) written[i] = static_cast<char>(i * 7 + i / 1000);
  void* const memory = device_->Allocate(size);
  ASSERT_TRUE(stream_->CopyHostToDevice(memory, written.data(), size).ok());
  ASSERT_TRUE(stream_->CopyDeviceToHost(read.data(), memory, size).ok());
  stream_->Wait();
  EXPECT_EQ(read, written);
  std::fill(read.begin(), read.end(), 0);
  ASSERT_TRUE(stream_->Read(read.data(), memory, size).ok());
  EXPECT_EQ(read, written);
}

TEST_F(Runtime, ManyCallbacksRunInOrderAndTheirFirstFailureIsTheStreams) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    stream_->HostCallback([&order, i]() -> Status {
      order.push_back(i);
      return i == 40 || i == 60 ? errors::InvalidArgument("callback ", i) : OkStatus();
    });
  }
  stream_->Wait();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(stream_->PeekStatus().message(), "callback 40");
  EXPECT_EQ(stream_->TakeStatus().message(), "callback 40");
  EXPECT_TRUE(stream_->TakeStatus().ok());
}

TEST_F(Runtime, StreamsWaitForEventsAndForOneAnother) {
  std::atomic<bool> open{false};
  const std::unique_ptr<Stream> other = device_->CreateStream();
  const std::unique_ptr<Event> event = device_->CreateEvent();
  EXPECT_TRUE(event->Done());
  std::atomic<int> turn{0};
  int seen[3] = {};
  other->HostCallback([&] {
    while (!open) std::this_thread::yield();
    seen[0] = ++turn;
    return OkStatus();
  });
  other->Record(*event);
  EXPECT_FALSE(event->Done());
  stream_->WaitFor(*event);
  stream_->HostCallback([&] {
    seen[1] = ++turn;
    return OkStatus();
  });
  other->WaitFor(*stream_);
  other->HostCallback([&] {
    seen[2] = ++turn;
    return OkStatus();
  });
  open = true;
  other->Wait();
  event->Wait();
  device_->Synchronize();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(seen[i], i + 1);
}

TEST_F(Runtime, KernelsGetTheirArguments) {
  void* const x = device_->Allocate(4000);
  void* const y = device_->Allocate(4000);
  Args args{};
  args.in[0] = args.in[1] = x;
  args.out[0] = y;
  ASSERT_TRUE(device_->Launch(*stream_, Add(1000), args).ok());
  stream_->Wait();
  const std::vector<StandInLaunch> launches = Launches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_GE(launches[0].grid[0] * launches[0].block[0], 250u);  // items of four elements, at most
  EXPECT_EQ(launches[0].arguments[0] & 0xffffffff, 1000u);
}

TEST_F(Runtime, ListsBecomeGraphs) {
  auto list = std::make_shared<CommandList>();
  list->buffers.resize(2);
  for (Buffer& buffer : list->buffers) buffer.kind = Buffer::Kind::kInput;
  Command command;
  const ElementwiseDesc desc = Add(16);
  command.desc = desc;
  ASSERT_TRUE(Check(desc, &command.footprint).ok());
  command.in.resize(2);
  command.out.resize(1);
  for (int i = 0; i < 2; ++i) command.in[static_cast<size_t>(i)].buffer = 0;
  command.out[0].buffer = 1;
  list->commands.assign(5, command);
  const std::unique_ptr<Executable> executable = device_->Prepare(list, {});
  const auto& graphs = static_cast<const GraphExecutable&>(*executable);
  char* const addresses[] = {static_cast<char*>(device_->Allocate(64)), static_cast<char*>(device_->Allocate(64))};
  char* const others[] = {addresses[1], addresses[0]};
  int failed = -1;
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(executable->Run(*stream_, addresses, nullptr, &failed).ok());
    EXPECT_EQ(graphs.NumGraphs(), run == 0 ? 0 : 1);
  }
  ASSERT_TRUE(executable->Run(*stream_, others, nullptr, &failed).ok());
  stream_->Wait();
  EXPECT_EQ(Launches().size(), 20u);
  EXPECT_EQ(graphs.NumGraphs(), 1);
  // Another stream needs a graph of its own, which uses the scratch memory of that stream.
  const std::unique_ptr<Stream> other = device_->CreateStream();
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(executable->Run(*other, addresses, nullptr, &failed).ok());
  EXPECT_EQ(graphs.NumGraphs(), 2);
  // A list that cannot be captured is enqueued.
  Fail("cuGraphInstantiateWithFlags", 0, kIllegalAddress);
  ASSERT_TRUE(executable->Run(*stream_, others, nullptr, &failed).ok());
  EXPECT_EQ(graphs.NumGraphs(), 2);
  other->Wait();
  stream_->Wait();
  EXPECT_EQ(Launches().size(), 35u);
  // A profiler sees each command within the list.
  ASSERT_TRUE(trace::Start());
  ASSERT_TRUE(executable->Run(*stream_, addresses, nullptr, &failed).ok());
  stream_->Wait();
  const trace::Trace trace = trace::Stop();
  EXPECT_EQ(Launches().size(), 40u);
  ASSERT_EQ(trace.events.size(), 6u);
  EXPECT_EQ(trace.events[0].label.kind, trace::Kind::kList);
  for (size_t i = 1; i < 6; ++i) {
    EXPECT_EQ(trace.events[i].label.kind, trace::Kind::kCommand);
    EXPECT_GE(trace.events[i].begin_ns, trace.events[0].begin_ns);
    EXPECT_LE(trace.events[i].end_ns, trace.events[0].end_ns);
  }
}

// Its kernel would report indices out of range, but the list has checked them before.
TEST_F(Runtime, GraphsHaveCommandsWithReportsAndWhatFollows) {
  auto list = std::make_shared<CommandList>();
  list->buffers.resize(3);
  for (Buffer& buffer : list->buffers) buffer.kind = Buffer::Kind::kInput;
  Command add, gather;
  const ElementwiseDesc sum = Add(16);
  add.desc = sum;
  ASSERT_TRUE(Check(sum, &add.footprint).ok());
  GatherDesc rows;
  rows.element_size = sizeof(float);
  rows.index_type = DType::kInt32;
  rows.dims = {16};
  rows.num_indices = 4;
  gather.desc = rows;
  ASSERT_TRUE(Check(rows, &gather.footprint).ok());
  for (Command* command : {&add, &gather}) {
    command->in.resize(2);
    command->out.resize(1);
    for (size_t i = 0; i < 2; ++i) command->in[i].buffer = command == &gather ? static_cast<int>(i) : 0;
    command->out[0].buffer = 2;
  }
  list->commands = {add, gather, add, gather, add};
  const std::unique_ptr<Executable> executable = device_->Prepare(list, {});
  char* addresses[3];
  for (char*& address : addresses) address = static_cast<char*>(device_->Allocate(64));
  int failed = -1;
  for (int run = 0; run < 4; ++run) ASSERT_TRUE(executable->Run(*stream_, addresses, nullptr, &failed).ok());
  EXPECT_EQ(static_cast<const GraphExecutable&>(*executable).NumGraphs(), 1);
  stream_->Wait();
  const std::vector<StandInLaunch> launches = Launches();
  ASSERT_EQ(launches.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(launches[i].arguments[0], launches[i % 5].arguments[0]) << i;
  EXPECT_TRUE(stream_->TakeStatus().ok());
}

// Each command of one kind has a name of its own here.
trace::Event EventNamed(const trace::Trace& trace, const std::string& name) {
  trace::Event found;
  int count = 0;
  for (const trace::Event& event : trace.events) {
    if (trace::TextOf(event.label.what) != name) continue;
    found = event;
    ++count;
  }
  EXPECT_EQ(count, 1) << name;
  return found;
}

TEST_F(Runtime, AProfilerSeesWhenCommandsRan) {
  constexpr uint64_t kSlackNs = 1000;  // the driver's times are floats
  std::vector<char> bytes(4 << 20);
  void* const x = device_->Allocate(bytes.size());
  void* const y = device_->Allocate(bytes.size());
  Args args{};
  args.in[0] = args.in[1] = x;
  args.out[0] = y;
  ASSERT_TRUE(device_->Launch(*stream_, Add(16), args).ok());  // compiles the kernel
  stream_->Wait();
  ASSERT_TRUE(trace::Start());
  ASSERT_TRUE(stream_->CopyHostToDevice(x, bytes.data(), bytes.size()).ok());
  ASSERT_TRUE(stream_->Memset(y, 0, 64).ok());
  uint64_t woke_ns = 0;
  stream_->HostCallback([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    woke_ns = trace::NowNs();
    return OkStatus();
  });
  {
    // Given to the driver behind the callback; by then the op has returned.
    const trace::ScopedOp op("model/add", "AddV2");
    ASSERT_TRUE(device_->Launch(*stream_, Add(16), args).ok());
  }
  ASSERT_TRUE(stream_->CopyDeviceToDevice(x, y, 100).ok());
  ASSERT_TRUE(stream_->CopyDeviceToHost(bytes.data(), x, 100).ok());
  stream_->Wait();
  const trace::Trace trace = trace::Stop();
  ASSERT_EQ(trace.events.size(), 6u);
  const trace::Event from_host = EventNamed(trace, "copy from the host"), fill = EventNamed(trace, "fill"),
                     callback = EventNamed(trace, "callback on the host"),
                     copy = EventNamed(trace, "copy on the device"), to_host = EventNamed(trace, "copy to the host");
  const trace::Event* add = nullptr;
  for (const trace::Event& event : trace.events) {
    if (event.label.kind == trace::Kind::kCommand) add = &event;
  }
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(trace::TextOf(add->label.op), "model/add");
  EXPECT_EQ(trace::TextOf(add->label.op_type), "AddV2");
  EXPECT_EQ(add->label.flops, 16);
  EXPECT_EQ(from_host.label.bytes, 2 * (4 << 20));
  EXPECT_GT(from_host.end_ns, from_host.begin_ns);
  const trace::Event* order[] = {&from_host, &fill, add, &copy, &to_host};
  for (size_t i = 0; i < std::size(order); ++i) {
    EXPECT_LE(order[i]->begin_ns, order[i]->end_ns + kSlackNs) << i;
    EXPECT_EQ(order[i]->line, from_host.line) << i;
    if (i > 0) EXPECT_LE(order[i - 1]->end_ns, order[i]->begin_ns + kSlackNs) << i;
  }
  // The clock is at most too late, by as long as the host took to see the end of an event.
  EXPECT_GE(from_host.begin_ns + kSlackNs, trace.begin_ns);
  EXPECT_GE(callback.end_ns, woke_ns);
  EXPECT_GE(add->begin_ns + kSlackNs, woke_ns);
  EXPECT_GE(add->begin_ns + kSlackNs, fill.end_ns + 20'000'000);
  // Another profile has nothing of the first one, and nobody asks for times without one.
  ASSERT_TRUE(stream_->Memset(y, 0, 64).ok());
  ASSERT_TRUE(trace::Start());
  ASSERT_TRUE(stream_->Memset(y, 0, 64).ok());
  stream_->Wait();
  EXPECT_EQ(trace::Stop().events.size(), 1u);
}

TEST_F(Runtime, AFailureOfACallbackNamesItsOp) {
  {
    const trace::ScopedOp op("model/gather", "Gather");
    stream_->HostCallback([] { return errors::InvalidArgument("index 7"); });
  }
  stream_->Wait();
  const std::string message = stream_->TakeStatus().message();
  EXPECT_NE(message.find("index 7"), std::string::npos) << message;
  EXPECT_NE(message.find("Gather model/gather"), std::string::npos) << message;
}

TEST_F(Runtime, WithoutMemoryThereIsNullAndWhatIsKeptGoesFirst) {
  EXPECT_EQ(device_->Allocate(size_t{2} << 30), nullptr);
  void* const most = device_->Allocate(size_t{700} << 20);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(device_->Allocate(size_t{700} << 20), nullptr);
  device_->Deallocate(most);
  // The driver has no room for this one beside what is kept of the former.
  void* const larger = device_->Allocate(size_t{800} << 20);
  EXPECT_NE(larger, nullptr);
  device_->Deallocate(larger);
  EXPECT_EQ(device_->Stats().bytes_in_use % 512, 0);
  EXPECT_TRUE(TheBackend().HostCanAddress(&*this, BackendOptions()));
  EXPECT_FALSE(TheBackend().HostCanAddress(static_cast<char*>(larger) + 5, BackendOptions()));
}

// The driver waits for the commands that it has when it frees memory, and knows nothing of those behind a callback.
TEST_F(Runtime, WhatQueuedCommandsUseGoesBackToTheDriverBehindThem) {
  constexpr size_t kBytes = size_t{600} << 20;
  auto* const memory = static_cast<char*>(device_->Allocate(kBytes));
  ASSERT_NE(memory, nullptr);
  std::vector<char> seen(100);
  const int allocations = Calls("cuMemAlloc_v2"), frees = Calls("cuMemFree_v2");
  stream_->HostCallback([&] {
    // Until the driver has no memory for the other block, and some turns longer.
    while (Calls("cuMemAlloc_v2") == allocations) std::this_thread::yield();
    for (int i = 0; i < 10000 && Calls("cuMemFree_v2") == frees; ++i) std::this_thread::yield();
    EXPECT_EQ(Calls("cuMemFree_v2"), frees);
    return OkStatus();
  });
  ASSERT_TRUE(stream_->Memset(memory, 7, seen.size()).ok());
  ASSERT_TRUE(stream_->CopyDeviceToHost(seen.data(), memory, seen.size()).ok());
  device_->Deallocate(memory);
  void* const other = device_->Allocate(kBytes + (size_t{2} << 20));
  EXPECT_NE(other, nullptr);
  EXPECT_EQ(Calls("cuMemFree_v2"), frees + 1);
  stream_->Wait();
  EXPECT_EQ(seen, std::vector<char>(100, 7));
  EXPECT_TRUE(stream_->TakeStatus().ok());
}

// A thread that enqueues may hold what a callback waits for: it takes no memory rather than wait.
TEST_F(Runtime, ScratchMemoryWaitsForNoCallback) {
  std::atomic<bool> open{false};
  void* const memory = device_->Allocate(size_t{1010} << 20);
  ASSERT_NE(memory, nullptr);
  stream_->HostCallback([&] {
    while (!open) std::this_thread::yield();
    return OkStatus();
  });
  ASSERT_TRUE(stream_->Memset(memory, 7, 100).ok());
  device_->Deallocate(memory);
  void* scratch = nullptr;
  Queue& queue = static_cast<Queue&>(*stream_);
  EXPECT_EQ(queue.Scratch(Queue::kScratchBytes, &scratch).code(), Code::kResourceExhausted);
  EXPECT_EQ(Calls("cuMemFree_v2"), 0);
  open = true;
  stream_->Wait();
  EXPECT_TRUE(queue.Scratch(Queue::kScratchBytes, &scratch).ok());
  EXPECT_EQ(Calls("cuMemFree_v2"), 1);
  EXPECT_TRUE(stream_->TakeStatus().ok());
}

TEST_F(Runtime, ReportsAreJudgedInOrderAndBeforeLaterCallbacks) {
  Queue& queue = static_cast<Queue&>(*stream_);
  const auto report = [&](uint32_t number) {
    size_t place = 0;
    ASSERT_TRUE(queue.NewReport(number, &place).ok());
    const auto judge = [](uint32_t seen) { return seen == 0 ? OkStatus() : errors::InvalidArgument("report ", seen); };
    ASSERT_TRUE(queue.JudgeReport(place, judge).ok());
  };
  {
    const trace::ScopedOp op("model/gather", "Gather");
    for (uint32_t number : {0, 7, 8}) report(number);
  }
  stream_->Wait();
  const std::string message = stream_->TakeStatus().message();
  EXPECT_NE(message.find("report 7"), std::string::npos) << message;
  EXPECT_NE(message.find("Gather model/gather"), std::string::npos) << message;
  EXPECT_TRUE(stream_->TakeStatus().ok());
  // Their places are used again, and none is lost.
  for (uint32_t i = 0; i < 5000; ++i) report(i == 100 ? i : 0);
  stream_->Wait();
  EXPECT_EQ(stream_->TakeStatus().message(), "report 100");
  report(9);
  stream_->HostCallback([&] {
    EXPECT_EQ(stream_->PeekStatus().message(), "report 9");
    return errors::InvalidArgument("a callback");
  });
  report(10);
  stream_->Wait();
  EXPECT_EQ(stream_->TakeStatus().message(), "report 9");
}

// Commands that are queued may still use what was freed, and a table or another stream does not wait for them.
TEST_F(Runtime, TablesAndStreamsTakeNoMemoryThatWasFreed) {
  void* const reports = device_->Allocate(4096);
  void* const table = device_->Allocate(size_t{1} << 20);
  void* const scratch = device_->Allocate(size_t{32} << 20);
  for (void* block : {reports, table, scratch}) device_->Deallocate(block);
  const std::unique_ptr<Stream> other = device_->CreateStream();
  GatherDesc rows;
  rows.element_size = sizeof(float);
  rows.dims = {16};
  rows.num_indices = 4;
  Args args{};
  args.in[0] = args.in[1] = args.out[0] = device_->Allocate(64);
  ASSERT_TRUE(device_->Launch(*other, rows, args).ok());
  other->Wait();
  void* found = nullptr;
  ASSERT_TRUE(static_cast<Queue&>(*other).Scratch(Queue::kScratchBytes, &found).ok());
  EXPECT_EQ(device_->Allocate(4096), reports);
  EXPECT_EQ(device_->Allocate(size_t{1} << 20), table);
  EXPECT_EQ(device_->Allocate(size_t{32} << 20), scratch);
}

TEST_F(Runtime, ErrorsHaveTheDriversNames) {
  int value = 0;
  void* const memory = device_->Allocate(sizeof(value));
  Fail("cuMemcpyHtoDAsync_v2", 0, kOutOfMemory);
  const Status status = stream_->CopyHostToDevice(memory, &value, sizeof(value));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(), "a copy of 4 bytes to the device failed with CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  EXPECT_TRUE(stream_->CopyHostToDevice(memory, &value, sizeof(value)).ok());
}

TEST_F(Runtime, ALostDeviceIsToldOnce) {
  Fail("cuLaunchKernel", 0, kIllegalAddress, /*for_ever=*/true);
  void* const x = device_->Allocate(64);
  Args args{};
  args.in[0] = args.in[1] = x;
  args.out[0] = x;
  const Status status = device_->Launch(*stream_, Add(16), args);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << status.message();
  stream_->Wait();
  EXPECT_NE(stream_->TakeStatus().message().find("a command on the device failed with CUDA_ERROR_ILLEGAL_ADDRESS"),
            std::string::npos);
  EXPECT_TRUE(stream_->TakeStatus().ok());
}

TEST_F(Runtime, ASourceThatDoesNotCompileIsInAFile) {
  std::unique_ptr<Machine> machine;
  ASSERT_TRUE(Machine::Create(UsedHardware()[0], int64_t{1} << 20, "XPU:0", &machine).ok());
  gpu::Kernel* kernel = nullptr;
  const Status status = machine->compiler().Get("bad", [] { return "no_such_thing(x);"; }, &kernel);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("NVRTC 13.0 failed with error 6. The source is in /"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace xpu::cuda
