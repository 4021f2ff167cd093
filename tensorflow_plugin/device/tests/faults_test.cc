// Injected faults, through the callbacks. The test backend runs one kind of kernel: a fill of eight bytes.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow_plugin/device/stream_executor.h"
#include "tensorflow_plugin/device/tests/core.h"
#include "tensorflow_plugin/faults/faulty_backend.h"

namespace xpu {
namespace {

class OneKernel final : public host_runtime::KernelSet {
 public:
  bool Supports(const RandomDesc&) const override { return true; }
#define XPU_RUN(name)                                                                               \
  Status Run(const name##Desc&, const Args& args, const host_runtime::ThreadTeam&) const override { \
    std::fill_n(static_cast<uint8_t*>(args.out[0]), 8, uint8_t{5});                                 \
    return OkStatus();                                                                              \
  }
  XPU_PRIMITIVES(XPU_RUN)
#undef XPU_RUN
};

class Faults : public ::testing::Test {
 protected:
  void Inject(const std::string& text) {
    std::vector<FaultRule> rules;
    ASSERT_TRUE(ParseFaultRules(text, &rules));
    static const OneKernel kernels;
    static const host_runtime::HostBackend inner("XPU_TEST", kernels);
    const auto* backend = new FaultyBackend(inner, rules);  // TensorFlow's backends live for ever
    core_ = std::make_unique<Core>(OneThread(), 0, *backend);
    other_ = std::make_unique<Core>(OneThread(), 1, *backend);
    memory_ = core_->Allocate(8);
  }

  // The status of launching the kernel on the compute stream; `result` gets the later one of Args::status.
  Status Launch(Core& core, SP_DeviceMemoryBase& memory, Status* result = nullptr) {
    RandomDesc desc;
    desc.n = 2;
    Args args{};
    args.out[0] = memory.opaque;
    args.status = result;
    return core.compute->device->Launch(*core.compute->stream, desc, args);
  }

  std::unique_ptr<Core> core_, other_;
  SP_DeviceMemoryBase memory_;
};

TEST_F(Faults, Allocations) {
  Inject("alloc:fail@2-3");
  EXPECT_NE(memory_.opaque, nullptr);
  EXPECT_EQ(core_->Allocate(8).opaque, nullptr);
  EXPECT_EQ(core_->Allocate(8).opaque, nullptr);
  EXPECT_NE(core_->Allocate(8).opaque, nullptr);
  EXPECT_NE(other_->Allocate(8).opaque, nullptr) << "each device counts for itself";
  EXPECT_EQ(other_->Allocate(8).opaque, nullptr);
}

TEST_F(Faults, CommandsFailInTheirTurn) {
  Inject("command:fail@2");
  EXPECT_TRUE(Launch(*core_, memory_).ok());
  core_->se.memset(&core_->device, core_->compute, &memory_, 3, 8, Checked());  // number 2: not done
  Failure failure = StatusOf([&](TF_Status* s) { core_->se.block_host_until_done(&core_->device, core_->compute, s); });
  EXPECT_EQ(failure.code, TF_INTERNAL);
  EXPECT_EQ(failure.message, "TF_XPU_FAULT asks for this failure (command:fail@2; it was number 2 on XPU:0)");
  EXPECT_EQ(core_->Read(memory_), std::vector<uint8_t>(8, 5));
  core_->se.memset(&core_->device, core_->compute, &memory_, 3, 8, Checked());
  EXPECT_EQ(core_->Read(memory_), std::vector<uint8_t>(8, 3));
}

TEST_F(Faults, CommandsThatAskForMemory) {
  Inject("command=MatMul:workspace=1MiB,command:workspace=16B,xpu:1/command=Random:workspace=1KiB");
  const Status none = Launch(*core_, memory_);
  EXPECT_EQ(none.code(), Code::kInvalidArgument);
  EXPECT_NE(none.message().find("needs a workspace of 16 bytes, there is none"), std::string::npos) << none.message();
  EXPECT_NE(Launch(*other_, memory_).message().find("workspace of 1024 bytes"), std::string::npos);

  RandomDesc desc;
  desc.n = 2;
  SP_DeviceMemoryBase scratch = core_->Allocate(24);
  core_->se.memset(&core_->device, core_->compute, &scratch, 3, 24, Checked());
  Args args{};
  args.out[0] = memory_.opaque;
  args.workspace = scratch.opaque;
  EXPECT_TRUE(core_->compute->device->Launch(*core_->compute->stream, desc, args).ok());
  std::vector<uint8_t> expected(24, 3);
  std::fill_n(expected.begin(), 16, 0xA5);
  EXPECT_EQ(core_->Read(scratch), expected);
  EXPECT_EQ(core_->Read(memory_), std::vector<uint8_t>(8, 5));

  // A fault loses data that a command does not keep apart from its results.
  SP_DeviceMemoryBase both = core_->Allocate(16);
  args.out[0] = args.workspace = both.opaque;
  EXPECT_TRUE(core_->compute->device->Launch(*core_->compute->stream, desc, args).ok());
  EXPECT_EQ(core_->Read(both), std::vector<uint8_t>(16, 0xA5));
  args.workspace = static_cast<char*>(both.opaque) + 8;
  EXPECT_EQ(core_->compute->device->Launch(*core_->compute->stream, desc, args).code(), Code::kInternal);
}

TEST_F(Faults, CommandsWhoseFailureIsAskedFor) {
  Inject("command:fail@1");
  Status result;
  EXPECT_TRUE(Launch(*core_, memory_, &result).ok());
  EXPECT_EQ(result.code(), Code::kInternal);
}

TEST_F(Faults, CopiesFailWhenEnqueued) {
  Inject("copy:fail@1-2,copy:fail@4");
  char host[8] = {};
  const auto there = [&](TF_Status* s) { core_->se.memcpy_htod(&core_->device, core_->h2d, &memory_, host, 8, s); };
  EXPECT_EQ(StatusOf(there).message, "TF_XPU_FAULT asks for this failure (copy:fail@1-2; it was number 1 on XPU:0)");
  EXPECT_EQ(StatusOf(there).code, TF_INTERNAL);
  EXPECT_EQ(StatusOf(there).code, TF_OK);
  const auto back = [&](TF_Status* s) { core_->se.sync_memcpy_dtoh(&core_->device, host, &memory_, 8, s); };
  EXPECT_EQ(StatusOf(back).message, "TF_XPU_FAULT asks for this failure (copy:fail@4; it was number 4 on XPU:0)");
  EXPECT_EQ(StatusOf(back).code, TF_OK);
}

// Whichever way a copy is asked for, it is one; whatever fills memory is a command; neither is the other.
TEST_F(Faults, CallsAreOfTheirKind) {
  const auto code = [](auto call) { return StatusOf(call).code; };
  char host[8] = {};
  for (const char* fault : {"copy:fail", "command:fail"}) {
    Inject(fault);
    const SP_Device* d = &core_->device;
    SP_Stream s = core_->compute;
    const TF_Code copied = fault == std::string("copy:fail") ? TF_INTERNAL : TF_OK;
    const TF_Code filled = copied == TF_OK ? TF_INTERNAL : TF_OK;
    EXPECT_EQ(code([&](TF_Status* t) { core_->se.memcpy_htod(d, s, &memory_, host, 8, t); }), copied);
    EXPECT_EQ(code([&](TF_Status* t) { core_->se.memcpy_dtoh(d, s, host, &memory_, 8, t); }), copied);
    EXPECT_EQ(code([&](TF_Status* t) { core_->se.memcpy_dtod(d, s, &memory_, &memory_, 8, t); }), copied);
    EXPECT_EQ(code([&](TF_Status* t) { core_->se.sync_memcpy_htod(d, &memory_, host, 8, t); }), copied);
    EXPECT_EQ(code([&](TF_Status* t) { core_->se.sync_memcpy_dtoh(d, host, &memory_, 8, t); }), copied);
    EXPECT_EQ(code([&](TF_Status* t) { core_->se.sync_memcpy_dtod(d, &memory_, &memory_, 8, t); }), copied);
    const auto done = [&] { return code([&](TF_Status* t) { core_->se.block_host_until_done(d, s, t); }); };
    EXPECT_EQ(done(), TF_OK);
    core_->se.mem_zero(d, s, &memory_, 8, Checked());
    EXPECT_EQ(done(), filled);
    core_->se.memset(d, s, &memory_, 1, 8, Checked());
    EXPECT_EQ(done(), filled);
    core_->se.memset32(d, s, &memory_, 1, 8, Checked());
    EXPECT_EQ(done(), filled);
    EXPECT_TRUE(Launch(*core_, memory_).ok());
    EXPECT_EQ(done(), filled);
  }
}

TEST_F(Faults, DelayedAllocationsHoldUpTheirCaller) {
  Inject("alloc:delay=40ms@2");  // the fixture's was the first
  const auto seconds = [&] {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_NE(core_->Allocate(8).opaque, nullptr);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  EXPECT_GE(seconds(), 0.04);
  EXPECT_LT(seconds(), 0.03);
}

// All else is the device's that is wrapped.
TEST_F(Faults, WhatIsNotAskedForIsAsEver) {
  Inject("xpu:1/copy:fail");
  const SP_Device* d = &core_->device;
  auto& se = core_->se;
  SP_AllocatorStats stats{SP_ALLOCATORSTATS_STRUCT_SIZE};
  EXPECT_TRUE(se.get_allocator_stats(d, &stats));
  EXPECT_EQ(stats.num_allocs, 1);
  core_->compute->device->ResetStats();
  EXPECT_TRUE(se.get_allocator_stats(d, &stats));
  EXPECT_EQ(stats.num_allocs, 0);
  int64_t free_bytes = 0, total_bytes = 0;
  EXPECT_TRUE(se.device_memory_usage(d, &free_bytes, &total_bytes));
  EXPECT_EQ(total_bytes, kLimit);
  EXPECT_EQ(free_bytes, kLimit - 8);
  char byte = 0;
  se.sync_memcpy_dtoh(d, &byte, &memory_, 1, Checked());
  se.deallocate(d, &memory_);
  EXPECT_TRUE(se.device_memory_usage(d, &free_bytes, &total_bytes));
  EXPECT_EQ(free_bytes, kLimit);
  void* host = se.host_memory_allocate(d, 100);
  EXPECT_NE(host, nullptr);
  se.host_memory_deallocate(d, host);
  SP_DeviceMemoryBase theirs = other_->Allocate(1);
  const auto copy = [&](TF_Status* s) { other_->se.sync_memcpy_dtoh(&other_->device, &byte, &theirs, 1, s); };
  EXPECT_EQ(StatusOf(copy).code, TF_INTERNAL) << "this one is asked for";
  EXPECT_STREQ(core_->device.pci_bus_id, "ffff:00:00.0");
  EXPECT_TRUE(core_->compute->device->Supports(RandomDesc()));
  EXPECT_FALSE(core_->compute->device->Supports(SoftmaxDesc()));
  SP_Stream low = nullptr;
  CreateStream(d, 3, &low, Checked());
  int niceness = -100;
  core_->Enqueue(low, [&] { niceness = getpriority(PRIO_PROCESS, 0); });
  se.block_host_until_done(d, low, Checked());
  EXPECT_EQ(niceness, std::min(getpriority(PRIO_PROCESS, 0) + 3, 19));
  se.destroy_stream(d, low);
}

TEST_F(Faults, DelaysHoldUpTheStreamAndNotItsCaller) {
  Inject("command:delay=15ms,copy:delay=15ms@2,xpu:1/command:delay=15ms");
  for (Core* core : {core_.get(), other_.get()}) {
    SP_DeviceMemoryBase memory = core->Allocate(8);
    SP_Timer timer = nullptr;
    core->se.create_timer(&core->device, &timer, Checked());
    core->se.start_timer(&core->device, core->compute, timer, Checked());
    Gate gate;  // until it opens nothing can run: a delayed caller would be seen to wait for the device
    core->Enqueue(core->compute, gate.Wait());
    EXPECT_TRUE(Launch(*core, memory).ok());
    core->se.memcpy_dtod(&core->device, core->compute, &memory, &memory, 8, Checked());
    core->se.memcpy_dtod(&core->device, core->compute, &memory, &memory, 8, Checked());
    gate.Open();
    core->se.stop_timer(&core->device, core->compute, timer, Checked());
    // A command and a copy; the second device has a rule more.
    EXPECT_GE(core->timer_fns.nanoseconds(timer), core == core_.get() ? 30e6 : 45e6);
    EXPECT_LT(core->timer_fns.nanoseconds(timer), 300e6);
    EXPECT_EQ(core->Read(memory), std::vector<uint8_t>(8, 5));
    core->se.destroy_timer(&core->device, timer);
  }
}

TEST_F(Faults, StreamsAndEventsWorkAsEver) {
  Inject("xpu:0/command:delay=10ms,xpu:1/command:delay=1ms");
  SP_DeviceMemoryBase to = other_->Allocate(8);
  SP_Event event = core_->NewEvent();
  EXPECT_TRUE(Launch(*core_, memory_).ok());
  core_->se.record_event(&core_->device, core_->compute, event, Checked());
  core_->se.create_stream_dependency(&core_->device, core_->d2h, core_->compute, Checked());
  core_->se.create_stream_dependency(&core_->device, core_->d2h, other_->compute, Checked());
  core_->se.memcpy_dtod(&core_->device, core_->d2h, &to, &memory_, 8, Checked());
  core_->se.block_host_for_event(&core_->device, event, Checked());
  core_->se.synchronize_all_activity(&core_->device, Checked());
  EXPECT_EQ(other_->Read(to), std::vector<uint8_t>(8, 5));
  EXPECT_STREQ(core_->platform.name, "XPU_TEST");
  core_->se.destroy_event(&core_->device, event);
}

}  // namespace
}  // namespace xpu
