// The pool of blocks over device memory: sizes, reuse, limits, pressure, threads.
#include "tensorflow_plugin/backends/host_runtime/pool_allocator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace xpu::host_runtime {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

struct PoolTest : testing::Test {
  explicit PoolTest(int64_t limit = 64 * kMiB) {
    EXPECT_TRUE(DeviceMemory::Create({limit, false}, &memory).ok());
    pool = std::make_unique<PoolAllocator>(*memory, [this] { ++waits; });
  }
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<PoolAllocator> pool;
  std::atomic<int> waits{0};
};

TEST_F(PoolTest, BlocksAreAlignedDisjointAndLargeEnough) {
  std::vector<std::pair<char*, size_t>> held;
  for (size_t size = 1; size <= 3 * kMiB; size = size * 5 / 4 + 1) {
    char* p = static_cast<char*>(pool->Allocate(size));
    ASSERT_NE(p, nullptr) << size;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 256, 0u);
    std::memset(p, 1, size);
    held.push_back({p, size});
  }
  std::sort(held.begin(), held.end());
  for (size_t i = 1; i < held.size(); ++i) EXPECT_LE(held[i - 1].first + held[i - 1].second, held[i].first);
  EXPECT_EQ(pool->Allocate(0), nullptr);
  EXPECT_EQ(pool->Allocate(SIZE_MAX), nullptr);
}

TEST_F(PoolTest, AtMostANinthOfALargeBlockIsWasted) {
  for (size_t size : {size_t{4097}, size_t{70000}, kMiB + 1, 3 * kMiB + 12345}) {
    const int64_t before = pool->Stats().bytes_in_use;
    ASSERT_NE(pool->Allocate(size), nullptr);
    const int64_t taken = pool->Stats().bytes_in_use - before;
    EXPECT_GE(taken, static_cast<int64_t>(size));
    EXPECT_LE(taken - static_cast<int64_t>(size), taken / 9) << size;
  }
}

TEST_F(PoolTest, OfASmallBlockAtMost255BytesAreWasted) {
  for (size_t size = 1; size <= 4096; size += 85) {
    const int64_t before = pool->Stats().bytes_in_use;
    ASSERT_NE(pool->Allocate(size), nullptr);
    const int64_t wasted = pool->Stats().bytes_in_use - before - static_cast<int64_t>(size);
    EXPECT_TRUE(wasted >= 0 && wasted <= 255) << size << " " << wasted;
  }
}

// The last freed comes first, without the system or the device being asked.
TEST_F(PoolTest, FreedMemoryIsReusedAtOnce) {
  for (size_t size : {size_t{100}, size_t{5000}, 2 * kMiB}) {
    void* a = pool->Allocate(size);
    void* b = pool->Allocate(size);
    EXPECT_NE(a, b);
    pool->Deallocate(a);
    pool->Deallocate(b);
    const int64_t from_system = memory->Stats().num_allocs;
    EXPECT_EQ(pool->Allocate(size), b);
    EXPECT_EQ(pool->Allocate(size - 3), a);
    EXPECT_EQ(memory->Stats().num_allocs, from_system);
  }
  EXPECT_EQ(waits, 0);
}

TEST_F(PoolTest, StatisticsAndReset) {
  void* a = pool->Allocate(kMiB);
  void* b = pool->Allocate(256);
  AllocatorStats stats = pool->Stats();
  EXPECT_EQ(stats.num_allocs, 2);
  EXPECT_EQ(stats.bytes_in_use, static_cast<int64_t>(kMiB) + 256);
  EXPECT_EQ(stats.largest_alloc_size, static_cast<int64_t>(kMiB));
  EXPECT_EQ(stats.bytes_limit, static_cast<int64_t>(64 * kMiB));
  EXPECT_EQ(stats.bytes_reserved, memory->Stats().bytes_in_use);
  pool->Deallocate(a);
  stats = pool->Stats();
  EXPECT_EQ(stats.bytes_in_use, 256);
  EXPECT_EQ(stats.peak_bytes_in_use, static_cast<int64_t>(kMiB) + 256);
  EXPECT_EQ(stats.bytes_reserved, memory->Stats().bytes_in_use);
  int64_t free_bytes, total_bytes;
  pool->Usage(&free_bytes, &total_bytes);
  EXPECT_EQ(total_bytes, static_cast<int64_t>(64 * kMiB));
  EXPECT_EQ(free_bytes, total_bytes - 256);
  pool->ResetStats();
  stats = pool->Stats();
  EXPECT_EQ(stats.num_allocs, 0);
  EXPECT_EQ(stats.peak_bytes_in_use, 256);
  EXPECT_EQ(stats.peak_bytes_reserved, stats.bytes_reserved);
  EXPECT_EQ(stats.largest_alloc_size, 0);
  pool->Deallocate(b);
  // Memory that went back to the system is reserved no longer, and was.
  pool->Deallocate(pool->Allocate(40 * kMiB));
  pool->Deallocate(pool->Allocate(32 * kMiB));
  stats = pool->Stats();
  EXPECT_GE(stats.peak_bytes_reserved, stats.bytes_reserved + static_cast<int64_t>(8 * kMiB));
  pool->ResetStats();
  EXPECT_EQ(pool->Stats().peak_bytes_reserved, stats.bytes_reserved);
}

TEST_F(PoolTest, ThePoolHoldsNothingBackFromALargeTensor) {
  std::vector<void*> held;
  for (size_t size = 1000; size < 4 * kMiB; size *= 2) held.push_back(pool->Allocate(size));
  for (void* p : held) pool->Deallocate(p);
  EXPECT_GT(pool->Stats().bytes_reserved, static_cast<int64_t>(4 * kMiB));
  // All of the limit.
  void* all = pool->Allocate(64 * kMiB);
  ASSERT_NE(all, nullptr);
  EXPECT_GT(waits, 0);  // before memory went back to the system
  EXPECT_EQ(pool->Allocate(1), nullptr);
  EXPECT_EQ(pool->Stats().bytes_reserved, static_cast<int64_t>(64 * kMiB));
  pool->Deallocate(all);
  EXPECT_EQ(pool->Allocate(64 * kMiB), all);  // a block of an odd size is found again
}

// No rounded size is this limit.
struct OddPoolTest : PoolTest {
  OddPoolTest() : PoolTest(kLimit) {}
  static constexpr size_t kLimit = 61 * kMiB + 256;
};
TEST_F(OddPoolTest, AllOfTheLimitCanBeOneTensor) {
  for (int i = 0; i < 2; ++i) {
    void* const all = pool->Allocate(kLimit);
    ASSERT_NE(all, nullptr);
    EXPECT_EQ(pool->Allocate(1), nullptr);
    pool->Deallocate(all);
  }
}

// Memory on its way to the system: while the device is waited for nobody can be given it any more, and it is there.
TEST_F(PoolTest, WaitsBetweenTakingMemoryOutOfThePoolAndGivingItBack) {
  constexpr size_t kSize = 40 * kMiB;
  char* freed = nullptr;
  int looked = 0;
  PoolAllocator* self = nullptr;
  PoolAllocator own(*memory, [&] {
    EXPECT_EQ(self->Stats().bytes_reserved, 0);
    EXPECT_EQ(freed[kSize - 1], 7);
    ++looked;
  });
  self = &own;
  freed = static_cast<char*>(own.Allocate(kSize));
  freed[kSize - 1] = 7;
  own.Deallocate(freed);
  EXPECT_NE(own.Allocate(64 * kMiB), nullptr);
  EXPECT_EQ(looked, 1);
}

TEST_F(PoolTest, BlocksInUseSurviveThePressure) {
  char* kept = static_cast<char*>(pool->Allocate(1000));
  std::memset(kept, 7, 1000);
  void* large = pool->Allocate(30 * kMiB);
  pool->Deallocate(large);
  ASSERT_NE(pool->Allocate(60 * kMiB), nullptr);
  EXPECT_EQ(pool->Allocate(30 * kMiB), nullptr);
  EXPECT_EQ(kept[0], 7);
  EXPECT_EQ(kept[999], 7);
  EXPECT_NE(pool->Allocate(1000), nullptr);
}

TEST_F(PoolTest, WrongDeallocationsAreReportedNotFatal) {
  char* a = static_cast<char*>(pool->Allocate(8192));
  int local;
  testing::internal::CaptureStderr();
  pool->Deallocate(nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  pool->Deallocate(&local);
  pool->Deallocate(a + 256);
  pool->Deallocate(a);
  pool->Deallocate(a);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
  EXPECT_EQ(pool->Stats().bytes_in_use, 0);
}

// Near the limit, so that threads take memory from the system and give it back under each other's feet.
TEST_F(PoolTest, ManyThreadsNearTheLimit) {
  std::atomic<int> wrong{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::pair<unsigned char*, size_t>> held;
      uint32_t random = 12345u + static_cast<uint32_t>(t);
      auto check_and_free = [&](size_t i) {
        auto [p, n] = held[i];
        wrong += p[0] != t || p[n - 1] != t;
        pool->Deallocate(p);
        held[i] = held.back();
        held.pop_back();
      };
      for (int i = 0; i < 3000; ++i) {
        random = random * 1664525u + 1013904223u;
        const size_t size = (random >> 28) == 0 ? 1 + (random >> 4) % (12 * kMiB) : 1 + (random >> 8) % 40000;
        if (auto* p = static_cast<unsigned char*>(pool->Allocate(size))) {
          p[0] = p[size - 1] = static_cast<unsigned char>(t);
          held.push_back({p, size});
        } else {
          ++refused;
        }
        while (held.size() > 24 || (!held.empty() && random % 3 == 0 && i % 2 == 0)) {
          check_and_free(random % held.size());
          if (held.size() <= 24) break;
        }
      }
      while (!held.empty()) check_and_free(0);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(refused, 0);  // else this was not near the limit
  EXPECT_EQ(pool->Stats().bytes_in_use, 0);
  EXPECT_EQ(pool->Stats().bytes_reserved, memory->Stats().bytes_in_use);
  EXPECT_NE(pool->Allocate(64 * kMiB), nullptr);
}

}  // namespace
}  // namespace xpu::host_runtime
