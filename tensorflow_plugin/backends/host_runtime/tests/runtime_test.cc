// Devices on host memory: streams, events, timers, launches, failures, memory. Kernels here are the test's own, so that
// nothing but the runtime is on trial.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/host_runtime/host_backend.h"
#include "tensorflow_plugin/backends/host_runtime/host_device.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"

namespace xpu::host_runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void Sleep(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }

// Random writes 1.0 to its n floats after sleeping `key` ms; CopyStrided copies densely; Gather always fails;
// Softmax throws. The rest is not there.
class TestKernels final : public KernelSet {
 public:
  bool Supports(const RandomDesc&) const override { return true; }
  bool Supports(const CopyStridedDesc&) const override { return true; }
  bool Supports(const GatherDesc&) const override { return true; }
  bool Supports(const SoftmaxDesc&) const override { return true; }
  bool Supports(const ElementwiseDesc& desc) const override {
    return desc.program == SingleOpProgram(Opcode::kNeg, DType::kFloat);
  }
  int64_t EstimateNs(const RandomDesc& desc) const override { return desc.n; }
  int64_t EstimateNs(const CopyStridedDesc&) const override { return 100; }
  int64_t EstimateNs(const GatherDesc&) const override { return 100; }
  int64_t EstimateNs(const SoftmaxDesc&) const override { return 100; }
  int64_t EstimateNs(const ElementwiseDesc&) const override { return 100; }
  Status Run(const RandomDesc& desc, const Args& args, const ThreadTeam&) const override {
    Sleep(static_cast<int>(desc.key));
    std::fill_n(static_cast<float*>(args.out[0]), desc.n, 1.0f);
    return OkStatus();
  }
  Status Run(const CopyStridedDesc& desc, const Args& args, const ThreadTeam&) const override {
    std::memcpy(args.out[0], args.in[0], static_cast<size_t>(desc.shape.num_elements()) * desc.element_size);
    return OkStatus();
  }
  Status Run(const GatherDesc&, const Args&, const ThreadTeam&) const override {
    return errors::InvalidArgument("index 7 is out of range");
  }
  Status Run(const SoftmaxDesc&, const Args&, const ThreadTeam&) const override { throw std::bad_alloc(); }
  Status Run(const ElementwiseDesc&, const Args&, const ThreadTeam&) const override { return OkStatus(); }
};
const TestKernels kKernels;

std::unique_ptr<Device> NewDevice(bool isolate = false, int64_t memory = int64_t{64} << 20) {
  HostDeviceOptions options;
  options.isolate_memory = isolate;
  DeviceInfo info;
  info.memory_bytes = memory;
  std::unique_ptr<Device> device;
  EXPECT_TRUE(HostDevice::Create(kKernels, info, options, &device).ok());
  return device;
}

RandomDesc FillOnes(int64_t n, int sleep_ms = 0) {
  RandomDesc desc;
  desc.n = n;
  desc.key = static_cast<uint64_t>(sleep_ms);
  return desc;
}

// The estimate of a sleeping fill is that of its elements: many elements make it go to the worker.
constexpr int64_t kQueued = 1 << 16;

TEST(Stream, EventsFollowTheirPointInTheOrder) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  auto event = device->CreateEvent();
  EXPECT_TRUE(event->Done());
  stream->HostCallback([] {
    Sleep(30);
    return OkStatus();
  });
  stream->Record(*event);
  EXPECT_FALSE(event->Done());
  std::atomic<bool> go{false};
  stream->HostCallback([&] {
    while (!go) Sleep(1);
    return OkStatus();
  });
  event->Wait();
  EXPECT_TRUE(event->Done());
  EXPECT_FALSE(stream->Idle());
  go = true;
  stream->Wait();
}

TEST(Stream, CopiesWithTheHostAreDoneAtOnceWhenIdle) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  std::vector<char> host(8 << 20, 1), back(host.size());  // far more than what is cheap
  void* memory = device->Allocate(host.size());
  EXPECT_TRUE(stream->CopyHostToDevice(memory, host.data(), host.size()).ok());
  EXPECT_TRUE(stream->Idle());
  EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), memory, host.size()).ok());
  EXPECT_TRUE(stream->Idle());
  EXPECT_EQ(back, host);
  // Behind queued work they are queued.
  std::atomic<bool> go{false};
  stream->HostCallback([&] {
    while (!go) Sleep(1);
    host[0] = 2;
    return OkStatus();
  });
  EXPECT_TRUE(stream->CopyHostToDevice(memory, host.data(), host.size()).ok());
  EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), memory, host.size()).ok());
  EXPECT_FALSE(stream->Idle());
  go = true;
  stream->Wait();
  EXPECT_EQ(back[0], 2);
}

TEST(Stream, WaitForEventOfADestroyedStream) {
  auto device = NewDevice();
  auto event = device->CreateEvent();
  auto stream = device->CreateStream();
  stream->HostCallback([] { return OkStatus(); });
  stream->Record(*event);
  stream.reset();
  EXPECT_TRUE(event->Done());
  auto other = device->CreateStream();
  other->WaitFor(*event);
  other->Wait();
}

TEST(Stream, HostCallbacksNeverRunOnTheSubmittingThread) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  std::mutex held;
  std::lock_guard<std::mutex> lock(held);
  std::thread::id ran_on;
  stream->HostCallback([&] {
    ran_on = std::this_thread::get_id();
    return errors::Unimplemented("from a callback");
  });
  stream->Wait();
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_EQ(stream->TakeStatus().message(), "from a callback");
}

TEST(Stream, TimerMeasuresWhatRanBetween) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  auto timer = device->CreateTimer();
  EXPECT_EQ(timer->Nanoseconds(), 0u);
  timer->Stop(*stream);
  EXPECT_EQ(timer->Nanoseconds(), 0u);
  auto sleep = [](int ms) {
    return [ms] {
      Sleep(ms);
      return OkStatus();
    };
  };
  stream->HostCallback(sleep(50));  // before Start: does not count
  timer->Start(*stream);
  stream->HostCallback(sleep(20));
  timer->Stop(*stream);
  stream->HostCallback(sleep(50));  // after Stop: neither
  const double ms = static_cast<double>(timer->Nanoseconds()) * 1e-6;
  EXPECT_GE(ms, 20);
  EXPECT_LT(ms, 45);
  timer->Start(*stream);
  EXPECT_EQ(timer->Nanoseconds(), 0u);  // stopped no longer
  timer.reset();                        // the command outlives it
}

TEST(Stream, CopiesAndFills) {
  for (bool isolate : {false, true}) {
    auto device = NewDevice(isolate);
    auto stream = device->CreateStream();
    for (size_t n : {1u, 4u, 1000u, 9u << 20}) {
      std::vector<uint8_t> host(n), back(n);
      for (size_t i = 0; i < n; ++i) host[i] = static_cast<uint8_t>(i * 31);
      void* a = device->Allocate(n);
      void* b = device->Allocate(n);
      ASSERT_NE(a, nullptr);
      ASSERT_NE(b, nullptr);
      EXPECT_TRUE(stream->CopyHostToDevice(a, host.data(), n).ok());
      EXPECT_TRUE(stream->CopyDeviceToDevice(b, a, n).ok());
      EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), b, n).ok());
      stream->Wait();
      EXPECT_EQ(back, host);
      EXPECT_TRUE(stream->Memset(b, 0x5a, n).ok());
      EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), b, n).ok());
      stream->Wait();
      EXPECT_EQ(back, std::vector<uint8_t>(n, 0x5a));
      if (n % 4 == 0) {
        EXPECT_TRUE(stream->MemsetU32(b, 0x01020304, n).ok());
        EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), b, n).ok());
        stream->Wait();
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(back[i], 4 - i % 4) << i;
      } else {
        EXPECT_EQ(stream->MemsetU32(b, 1, n).code(), Code::kInvalidArgument);
      }
      device->Deallocate(a);
      device->Deallocate(b);
    }
    EXPECT_TRUE(stream->CopyHostToDevice(nullptr, nullptr, 0).ok());
    EXPECT_EQ(stream->CopyHostToDevice(nullptr, "x", 1).code(), Code::kInvalidArgument);
  }
}

TEST(Device, LaunchesAreOrderedWithCopies) {
  auto device = NewDevice(true);
  auto stream = device->CreateStream();
  auto* memory = static_cast<float*>(device->Allocate(kQueued * 4));
  Args args{};
  args.out[0] = memory;
  EXPECT_TRUE(stream->Memset(memory, 0, kQueued * 4).ok());
  EXPECT_TRUE(device->Launch(*stream, FillOnes(kQueued, 20), args).ok());
  float value = -1;
  EXPECT_TRUE(stream->CopyDeviceToHost(&value, memory + kQueued - 1, 4).ok());
  stream->Wait();
  EXPECT_EQ(value, 1.0f);
}

TEST(Device, LaunchCopiesItsDescriptor) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  const int64_t n = 1 << 20;
  auto* memory = static_cast<char*>(device->Allocate(2 * n));
  stream->HostCallback([] {
    Sleep(20);
    return OkStatus();
  });
  EXPECT_TRUE(stream->Memset(memory, 3, n).ok());
  CopyStridedDesc desc;
  desc.element_size = 1;
  desc.shape = {n};
  desc.src_strides = desc.dst_strides = {1};
  Args args{};
  args.in[0] = memory;
  args.out[0] = memory + n;
  EXPECT_TRUE(device->Launch(*stream, desc, args).ok());
  desc.shape = {0};
  args.out[0] = nullptr;
  char value = 0;
  EXPECT_TRUE(stream->CopyDeviceToHost(&value, memory + 2 * n - 1, 1).ok());
  stream->Wait();
  EXPECT_EQ(value, 3);
  EXPECT_EQ(desc.shape[0], 0);  // the compiler may not forget it before
}

TEST(Device, FailuresGoWhereTheyWereAskedFor) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  void* memory = device->Allocate(1024);
  GatherDesc desc;
  desc.element_size = 4;
  desc.dims = {3};
  Args args{};
  args.in[0] = args.in[1] = args.out[0] = memory;
  for (int64_t num_indices : {1, 1 << 20}) {  // without a status at once, and queued
    desc.num_indices = num_indices;
    Status status;
    args.status = &status;
    EXPECT_TRUE(device->Launch(*stream, desc, args).ok());
    EXPECT_TRUE(stream->Idle());
    EXPECT_EQ(status.message(), "index 7 is out of range");
    EXPECT_TRUE(stream->PeekStatus().ok());
    args.status = nullptr;
    EXPECT_TRUE(device->Launch(*stream, desc, args).ok());
    stream->Wait();
    EXPECT_EQ(stream->TakeStatus().message(), "index 7 is out of range");
  }
  SoftmaxDesc softmax;
  softmax.rows = softmax.cols = 1;
  Status status;
  args.status = &status;
  EXPECT_TRUE(device->Launch(*stream, softmax, args).ok());
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
}

TEST(Device, LaunchRefusesWhatWouldCrash) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  void* memory = device->Allocate(1024);
  Args args{};
  args.in[0] = args.out[0] = memory;
  ElementwiseDesc desc;
  EXPECT_EQ(device->Launch(*stream, desc, args).code(), Code::kInvalidArgument);  // no program
  desc.program = SingleOpProgram(Opcode::kNeg, DType::kFloat);
  desc.shape = {2, 2};
  desc.in_strides[0] = {1};
  EXPECT_EQ(device->Launch(*stream, desc, args).message(),
            "Elementwise: input strides [1] for the shape [2,2]: the ranks differ");
  desc.in_strides[0] = {2, 1};
  EXPECT_TRUE(device->Launch(*stream, desc, args).ok());
  args.in[0] = nullptr;
  EXPECT_EQ(device->Launch(*stream, desc, args).message(), "input 0 of a command has elements but a null address");
  desc.shape = {2, 0};
  EXPECT_TRUE(device->Launch(*stream, desc, args).ok());  // empty: nothing is touched
  desc.shape = {-2, 2};
  EXPECT_EQ(device->Launch(*stream, desc, args).message(), "Elementwise: an extent is -2, expected 0 or more");
  desc.shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(device->Launch(*stream, desc, args).code(), Code::kInvalidArgument);
  desc.shape = {2, 2};
  args.in[0] = memory;
  desc.program = SingleOpProgram(Opcode::kExp, DType::kFloat);
  EXPECT_EQ(device->Launch(*stream, desc, args).message(), "this XPU backend does not implement Exp of float");
  stream->Wait();
  EXPECT_TRUE(stream->TakeStatus().ok());
}

TEST(Device, SynchronizeAndDeallocateWaitForAllStreams) {
  auto device = NewDevice();
  auto a = device->CreateStream(), b = device->CreateStream();
  auto* memory = static_cast<float*>(device->Allocate(2 * kQueued * 4));
  Args args{};
  args.out[0] = memory;
  EXPECT_TRUE(device->Launch(*a, FillOnes(kQueued, 20), args).ok());
  args.out[0] = memory + kQueued;
  EXPECT_TRUE(device->Launch(*b, FillOnes(kQueued, 30), args).ok());
  device->Synchronize();
  EXPECT_TRUE(a->Idle());
  EXPECT_TRUE(b->Idle());
  EXPECT_TRUE(device->Launch(*b, FillOnes(kQueued, 30), args).ok());
  device->Deallocate(memory);  // the sleeping command has written before the memory went
  EXPECT_TRUE(b->Idle());
}

TEST(Device, SynchronousRunsOnTheCallingThreadOnHostAddresses) {
  auto device = HostBackend("XPU_TEST", kKernels).NewHostExecutor(2);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->Allocate(16), nullptr);
  auto stream = device->CreateStream();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        std::vector<float> out(kQueued / 64);
        Args args{};
        Status status;
        args.status = &status;
        args.out[0] = out.data();
        if (!device->Launch(*stream, FillOnes(kQueued / 64), args).ok()) return;
        good += out.back() == 1.0f && status.ok();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 800);
  EXPECT_TRUE(stream->Idle());
}

TEST(Memory, LimitAlignmentAndStatistics) {
  auto device = NewDevice(false, 1 << 20);
  void* a = device->Allocate(600 << 10);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
  EXPECT_EQ(device->Allocate(600 << 10), nullptr);
  EXPECT_EQ(device->Allocate(0), nullptr);
  EXPECT_EQ(device->Allocate(SIZE_MAX), nullptr);
  void* b = device->Allocate(100);
  ASSERT_NE(b, nullptr);
  AllocatorStats stats = device->Stats();
  EXPECT_EQ(stats.num_allocs, 2);
  EXPECT_EQ(stats.bytes_in_use, (600 << 10) + 100);
  EXPECT_EQ(stats.largest_alloc_size, 600 << 10);
  EXPECT_EQ(stats.bytes_limit, 1 << 20);
  int64_t free_bytes, total_bytes;
  device->MemoryUsage(&free_bytes, &total_bytes);
  EXPECT_EQ(total_bytes, 1 << 20);
  EXPECT_EQ(free_bytes, (1 << 20) - (600 << 10) - 100);
  device->Deallocate(a);
  void* c = device->Allocate(1000 << 10);
  EXPECT_NE(c, nullptr);
  device->Deallocate(b);
  device->Deallocate(c);
  stats = device->Stats();
  EXPECT_EQ(stats.bytes_in_use, 0);
  EXPECT_EQ(stats.peak_bytes_in_use, (1000 << 10) + 100);
  EXPECT_NE(device->Allocate(5), nullptr);
  EXPECT_EQ(device->Stats().peak_bytes_in_use, (1000 << 10) + 100);
}

// However many allocations of however many sizes there were, what was given back is whole again.
TEST(Memory, HolesMerge) {
  auto device = NewDevice(false, int64_t{512} << 20);
  for (size_t i = 1; i <= 64; ++i) {
    const size_t size = i * 4 << 20;  // does not fit into the holes before
    void* const a = device->Allocate(size);
    void* const b = device->Allocate(size);
    ASSERT_TRUE(a != nullptr && b != nullptr) << i;
    device->Deallocate(i % 2 == 0 ? a : b);
    device->Deallocate(i % 2 == 0 ? b : a);
  }
}

// Pages are given when they are touched, which would end the process where there are no more.
TEST(Memory, MoreThanTheMachineHasIsNotGiven) {
  const int64_t available = AvailableMachineMemory();
  auto device = NewDevice(false, 4 * available);
  EXPECT_EQ(device->Allocate(static_cast<size_t>(2 * available)), nullptr);
  int64_t free_bytes, total_bytes;
  device->MemoryUsage(&free_bytes, &total_bytes);
  EXPECT_EQ(total_bytes, 4 * available);
  EXPECT_LT(free_bytes, 2 * available);
}

TEST(Memory, IsZeroWhoeverHadItBefore) {
  for (bool isolate : {false, true}) {
    auto device = NewDevice(isolate, 1 << 20);
    auto stream = device->CreateStream();
    for (int i = 0; i < 2; ++i) {
      void* const memory = device->Allocate(1 << 20);
      char first = 9;
      EXPECT_TRUE(stream->CopyDeviceToHost(&first, memory, 1).ok());
      EXPECT_TRUE(stream->Memset(memory, 5, 1 << 20).ok());
      stream->Wait();
      EXPECT_EQ(first, 0);
      device->Deallocate(memory);
    }
  }
}

// The flags that the system keeps for the mapping that holds an address, such as "rd wr mr mw me ac hg".
std::string MappingFlags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin, end;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      inside = begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end;
    } else if (inside && line.rfind("VmFlags:", 0) == 0) {
      return line;
    }
  }
  return "";
}

TEST(Memory, LargePagesAreAskedForWhereTheyHelp) {
  if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) GTEST_SKIP() << "the system has none";
  constexpr size_t kSize = size_t{12} << 20;
  for (bool wanted : {true, false}) {
    HostDeviceOptions options;
    options.large_pages = wanted;
    DeviceInfo info;
    info.memory_bytes = int64_t{64} << 20;
    std::unique_ptr<Device> device;
    ASSERT_TRUE(HostDevice::Create(kKernels, info, options, &device).ok());
    device->Allocate(4096);
    void* const memory = device->Allocate(kSize);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % (2 << 20), 0u);
    EXPECT_NE(MappingFlags(memory).find(wanted ? " hg" : " nh"), std::string::npos) << MappingFlags(memory);
    // A copy to fresh host memory, whose first and last pages are shared with nothing large.
    void* const mapping = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* const fresh = static_cast<char*>(mapping) + 256;
    auto stream = device->CreateStream();
    EXPECT_TRUE(stream->Memset(memory, 7, kSize).ok());
    EXPECT_TRUE(stream->CopyDeviceToHost(fresh, memory, kSize - 256).ok());
    stream->Wait();
    EXPECT_EQ(fresh[0], 7);
    EXPECT_EQ(fresh[kSize - 257], 7);
    EXPECT_EQ(MappingFlags(fresh + kSize / 2).find(" hg") != std::string::npos, wanted) << MappingFlags(fresh);
    munmap(mapping, kSize);
    void* const host = device->AllocateHost(kSize);
    EXPECT_EQ(MappingFlags(host).find(" hg") != std::string::npos, wanted) << MappingFlags(host);
    device->DeallocateHost(host);
  }
}

TEST(Memory, WrongDeallocationsAreReportedNotFatal) {
  auto device = NewDevice();
  char* a = static_cast<char*>(device->Allocate(8192));
  int local;
  ::testing::internal::CaptureStderr();
  device->Deallocate(nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  device->Deallocate(&local);
  device->Deallocate(a + 256);
  device->Deallocate(a);
  device->Deallocate(a);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
  EXPECT_NE(log.find("not allocated device memory"), std::string::npos);
  EXPECT_EQ(device->Stats().bytes_in_use, 0);
}

TEST(Memory, ManySizesFromManyThreadsReuseTheRange) {
  std::unique_ptr<DeviceMemory> memory;
  ASSERT_TRUE(DeviceMemory::Create({int64_t{256} << 20, true}, &memory).ok());
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::pair<char*, size_t>> held;
      for (int i = 0; i < 150; ++i) {
        const size_t size = static_cast<size_t>(1 + (i * 7919 + t * 104729) % 3000000);
        if (char* p = static_cast<char*>(memory->Allocate(size))) {
          std::memset(memory->Translate(p), t, size);
          held.push_back({p, size});
        } else {
          ++failures;
        }
        if (i % 3 == 2) {
          auto [p, n] = held.front();
          if (memory->Translate(p)[0] != t || memory->Translate(p)[n - 1] != t) ++failures;
          memory->Deallocate(p);
          held.erase(held.begin());
        }
        while (held.size() > 10) {
          memory->Deallocate(held.back().first);
          held.pop_back();
        }
      }
      for (auto& h : held) memory->Deallocate(h.first);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(memory->Stats().bytes_in_use, 0);
  // All holes have merged again: the whole limit fits in one piece.
  void* all = memory->Allocate(size_t{256} << 20);
  EXPECT_NE(all, nullptr);
  memory->Deallocate(all);
}

#if !defined(__SANITIZE_THREAD__)
TEST(MemoryDeathTest, IsolatedMemoryFaultsOnTheHost) {
  auto device = NewDevice(true);
  auto* p = static_cast<volatile char*>(device->Allocate(4096));
  ASSERT_NE(p, nullptr);
  EXPECT_DEATH({ p[0] = 1; }, "");
  EXPECT_DEATH({ [[maybe_unused]] char c = p[0]; }, "");
}

TEST(MemoryDeathTest, HostAccessNamesDeviceAndAllocation) {
  for (bool pool : {false, true}) {
    HostDeviceOptions options;
    options.name = "XPU:5";
    options.isolate_memory = true;
    options.pool_memory = pool;
    DeviceInfo info;
    info.memory_bytes = int64_t{64} << 20;
    std::unique_ptr<Device> device;
    ASSERT_TRUE(HostDevice::Create(kKernels, info, options, &device).ok());
    auto* other = device->Allocate(300000);
    auto* p = static_cast<volatile char*>(device->Allocate(300001));
    const std::string in_device = "memory of device XPU:5, which TF_XPU_ISOLATE_MEMORY=1 keeps from it";
    const std::string where =
        errors::Concat("It is byte 77 of the allocation of 300001 bytes at ", static_cast<void*>(const_cast<char*>(p)));
    EXPECT_DEATH({ p[77] = 1; }, in_device);
    EXPECT_DEATH({ [[maybe_unused]] char c = p[77]; }, where + (pool ? ", a tensor" : ".*TF_XPU_ALLOCATOR=pool"));
    EXPECT_DEATH(
        { [[maybe_unused]] char c = p[300010]; },
        "No allocation is there .any more.; it is byte 300010 from the begin of");
    device->Deallocate(const_cast<char*>(p));
    EXPECT_DEATH({ [[maybe_unused]] char c = p[77]; }, "No allocation is there");
    device->Deallocate(other);
    EXPECT_DEATH({ [[maybe_unused]] char c = p[77]; }, "No allocation is or begins before that address");
    // Whatever the order in which they were made.
    auto* first = device->Allocate(300000);
    device->Allocate(300001);
    device->Deallocate(first);
    auto* last = static_cast<volatile char*>(device->Allocate(700001));
    EXPECT_DEATH({ last[5] = 1; }, "It is byte 5 of the allocation of 700001 bytes");
#if defined(__x86_64__)
    EXPECT_DEATH({ p[77] = 1; }, "the host wrote to address");
    EXPECT_DEATH({ [[maybe_unused]] char c = p[77]; }, "the host read address");
#endif
  }
}

// There is a limit to how many allocations are told apart, and none to how many there were before.
TEST(MemoryDeathTest, HostAccessIsNamedAfterManyAllocations) {
  HostDeviceOptions options;
  options.isolate_memory = options.pool_memory = true;
  DeviceInfo info;
  info.memory_bytes = int64_t{64} << 20;
  std::unique_ptr<Device> device;
  ASSERT_TRUE(HostDevice::Create(kKernels, info, options, &device).ok());
  for (int i = 0; i < 40000; ++i) device->Deallocate(device->Allocate(256));
  auto* p = static_cast<volatile char*>(device->Allocate(5000));
  EXPECT_DEATH({ p[7] = 1; }, "It is byte 7 of the allocation of 5000 bytes");
}

#if !defined(__SANITIZE_ADDRESS__)  // it ends the process by itself
void EarlierHandler(int) {
  (void)!write(STDERR_FILENO, "the earlier handler", 19);
  _exit(3);
}

TEST(MemoryDeathTest, AnEarlierHandlerRunsAfterTheReport) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a fresh process: the handler is installed once in each
  for (bool with_information : {false, true}) {
    EXPECT_EXIT(
        {
          struct sigaction action{};
          if (with_information) {
            action.sa_flags = SA_SIGINFO;
            action.sa_sigaction = [](int signal, siginfo_t*, void*) { EarlierHandler(signal); };
          } else {
            action.sa_handler = EarlierHandler;
          }
          sigaction(SIGSEGV, &action, nullptr);
          auto device = NewDevice(true);
          *static_cast<volatile char*>(device->Allocate(4096)) = 1;
        },
        testing::ExitedWithCode(3), "keeps from it(.|\n)*the earlier handler");
  }
  testing::FLAGS_gtest_death_test_style = "fast";
}

// The process ends with the signal as it would have; other faults and signals are none of our business.
TEST(MemoryDeathTest, HostAccessIsPassedOn) {
  auto device = NewDevice(true);
  auto* p = static_cast<volatile char*>(device->Allocate(4096));
  auto* elsewhere = static_cast<volatile char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  EXPECT_EXIT({ p[0] = 1; }, testing::KilledBySignal(SIGSEGV), "E XPU");
  EXPECT_EXIT({ elsewhere[0] = 1; }, testing::KilledBySignal(SIGSEGV), "^$");
  EXPECT_EXIT({ raise(SIGSEGV); }, testing::KilledBySignal(SIGSEGV), "^$");
}
#endif

TEST(MemoryDeathTest, UseAfterFreeAndOverrunFault) {
  auto device = NewDevice(false);
  auto* p = static_cast<volatile char*>(device->Allocate(4096));
  p[4095] = 1;
  EXPECT_DEATH({ p[4096] = 1; }, "");
  device->Deallocate(const_cast<char*>(p));
  EXPECT_DEATH({ p[0] = 1; }, "");
}

// A process that ends with work queued and running ends: it neither hangs nor crashes.
TEST(ExitTest, QueuedWorkDoesNotHoldUpTheProcess) {
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      static Device* const device = NewDevice().release();  // none is destroyed, none is lost
      static Stream* const stream = device->CreateStream().release();
      static Stream* const other = device->CreateStream().release();
      void* memory = device->Allocate(1 << 20);
      stream->HostCallback([] {
        Sleep(5);
        return OkStatus();
      });
      other->WaitFor(*stream);
      for (int i = 0; i < 2000; ++i) {
        (void)stream->Memset(memory, 1, 1 << 20);
        (void)other->Memset(memory, 1, 1 << 20);
      }
      std::exit(0);
    }
    int status = -1;
    const auto deadline = steady_clock::now() + std::chrono::seconds(10);
    while (waitpid(child, &status, WNOHANG) == 0 && steady_clock::now() < deadline) Sleep(1);
    ASSERT_NE(status, -1) << "still running";
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}
#endif

}  // namespace
}  // namespace xpu::host_runtime
