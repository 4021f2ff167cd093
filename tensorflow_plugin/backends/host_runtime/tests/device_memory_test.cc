// The memory of devices on host memory: its limit, its reuse, and accesses of the host that end the process.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"
#include "tensorflow_plugin/backends/host_runtime/tests/runtime_testing.h"

namespace xpu::host_runtime {
namespace {

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
#endif

}  // namespace
}  // namespace xpu::host_runtime
