#include "tensorflow_plugin/backends/host_runtime/thread_team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/machine.h"
#include "tensorflow_plugin/backends/host_runtime/spin.h"

namespace xpu::host_runtime {
namespace {

void SleepMs(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(ThreadTeam, CoversEachIndexOnce) {
  for (int size : {0, 1, 2, 3, 7}) {
    const ThreadTeam team(size);
    EXPECT_EQ(team.size(), size < 1 ? 1 : size);
    for (int64_t n : {0, 1, 5, 64, 1000, 4097}) {
      for (int64_t grain : {0, 1, 16, 1000, 100000}) {
        std::vector<std::atomic<int>> seen(n);
        team.ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          EXPECT_TRUE(grain <= 1 || begin % grain == 0) << begin;
          EXPECT_TRUE(grain <= 1 || end % grain == 0 || end == n) << end;
          for (int64_t i = begin; i < end; ++i) ++seen[i];
        });
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(seen[i], 1) << size << " threads, n " << n << ", grain " << grain;
      }
    }
  }
}

TEST(ThreadTeam, UsesAllItsThreads) {
  const ThreadTeam team(3);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  team.ParallelFor(64, 1, [&](int64_t, int64_t) {
    SleepMs(5);
    std::lock_guard<std::mutex> lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 3u);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 1u);
}

TEST(ThreadTeam, EachThreadBeginsWithItsOwnShare) {
  const ThreadTeam team(2);
  const auto leader = std::this_thread::get_id();
  for (int i = 0; i < 20; ++i) {
    std::atomic<int64_t> first_of_leader{-1}, first_of_helper{-1};
    team.ParallelFor(64, 1, [&](int64_t begin, int64_t) {
      const bool leads = std::this_thread::get_id() == leader;
      int64_t none = -1;
      (leads ? first_of_leader : first_of_helper).compare_exchange_strong(none, begin);
      // Nobody finishes before both have begun.
      while (first_of_leader < 0 || first_of_helper < 0) SleepMs(1);
    });
    EXPECT_EQ(first_of_leader, 0);
    EXPECT_EQ(first_of_helper, 32);
  }
}

TEST(ThreadTeam, AThreadThatIsHeldUpIsLeftOneRange) {
  const ThreadTeam team(2);
  const auto leader = std::this_thread::get_id();
  std::atomic<int> of_leader{0}, of_helper{0};
  std::atomic<bool> is_held{false};
  team.ParallelFor(64, 1, [&](int64_t begin, int64_t end) {
    if (std::this_thread::get_id() != leader) {
      of_helper += static_cast<int>(end - begin);
      while (!is_held) SleepMs(1);
      return;
    }
    of_leader += static_cast<int>(end - begin);
    is_held = true;
    while (of_helper + of_leader < 64) SleepMs(1);
  });
  EXPECT_EQ(of_leader, 8);
  EXPECT_EQ(of_helper, 56);
}

TEST(ThreadTeam, SmallWorkStaysOnTheCaller) {
  const ThreadTeam team(4);
  const auto caller = std::this_thread::get_id();
  team.ParallelFor(100, 100, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 100);
  });
}

// True if a helper takes part in a job of `team`, whose leader waits for it for so many milliseconds.
bool GetsHelp(const ThreadTeam& team, int patience_ms) {
  const auto leader = std::this_thread::get_id();
  std::atomic<bool> helped{false};
  team.ParallelFor(2, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() != leader) helped = true;
    for (int ms = 0; ms < patience_ms && !helped; ++ms) SleepMs(1);
  });
  return helped;
}

TEST(ThreadTeam, WakesHelpersOnlyIfItMay) {
  constexpr int kForever = 60000, kTries = 200;
  const ThreadTeam team(2);
  EXPECT_TRUE(GetsHelp(team, kForever));
  // The helper falls asleep soon, sooner or later on a busy machine.
  int tries = 0;
  do {
    SleepMs(5);
  } while (GetsHelp(team.OfThoseAwake(), 20) && ++tries < kTries);
  EXPECT_LT(tries, kTries);
  EXPECT_TRUE(GetsHelp(team, kForever));
  EXPECT_GT(team.WorthWakingNs(), 0);
}

TEST(Patience, LooksForLongIfWorkComesSoonNearlyAlways) {
  using std::chrono::microseconds;
  const auto is_long = [](const Patience& patience) { return patience.look() > Patience::kBriefLook; };
  const microseconds soon = Patience::kLongLook, late = Patience::kLongLook + microseconds(1);
  Patience patience;
  for (int i = 0; i < 1000; ++i) patience.Note(Patience::kBriefLook, false);  // says nothing
  for (int i = 0; i < Patience::kSoonForEachLate; ++i) {
    patience.Note(soon, false);
    EXPECT_FALSE(is_long(patience)) << i;
  }
  patience.Note(soon, false);
  EXPECT_TRUE(is_long(patience));
  patience.Note(late, false);
  EXPECT_FALSE(is_long(patience));
  // Now and then it may be late, for years.
  for (int i = 0; i < 1000; ++i) patience.Note(soon, false);
  for (int i = 0; i < 1000; ++i) {
    patience.Note(late, false);
    EXPECT_TRUE(is_long(patience)) << i;
    for (int k = 0; k < Patience::kSoonForEachLate; ++k) patience.Note(soon, false);
  }
  // Others that work count as much, and the past is soon forgotten.
  for (int i = 0; i < 4; ++i) patience.Note(soon, true);
  EXPECT_FALSE(is_long(patience));
  for (int i = 0; i < 1000; ++i) patience.Note(late, false);
  for (int i = 0; i <= Patience::kSoonForEachLate; ++i) patience.Note(soon, false);
  EXPECT_TRUE(is_long(patience));
}

TEST(LeaveProcessor, MovesThisThreadAndKeepsItsProcessors) {
  cpu_set_t usable, now;
  ASSERT_EQ(sched_getaffinity(0, sizeof(usable), &usable), 0);
  if (CPU_COUNT(&usable) == 1) GTEST_SKIP() << "one processor";
  EXPECT_FALSE(LeaveProcessor(-1));
  bool has_moved = false;
  for (int i = 0; i < 1000 && !has_moved; ++i) {  // the system may have moved it meanwhile
    const int before = sched_getcpu();
    has_moved = LeaveProcessor(before) && sched_getcpu() != before;
    ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
    ASSERT_TRUE(CPU_EQUAL(&usable, &now));
  }
  EXPECT_TRUE(has_moved);
}

TEST(ThreadTeam, HelpersKeepAllProcessors) {
  const ThreadTeam team(2);
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof(usable), &usable), 0);
  const auto leader = std::this_thread::get_id();
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> helped{false};
    team.ParallelFor(2, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != leader) {
        cpu_set_t own;
        EXPECT_EQ(sched_getaffinity(0, sizeof(own), &own), 0);
        EXPECT_TRUE(CPU_EQUAL(&own, &usable)) << "run " << i;
        helped = true;
      }
      while (!helped) SleepMs(1);
    });
    SleepMs(i % 3);  // the helper sleeps, or looks for work
  }
}

TEST(ThreadTeam, DoesNotWaitForAHelperThatIsBusyElsewhere) {
  const ThreadTeam team(2);
  std::atomic<bool> release{false}, helper_is_held{false};
  // This leader finishes its own half at once; the only helper is held in the other.
  std::thread other([&] {
    const auto leader = std::this_thread::get_id();
    team.ParallelFor(2, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() == leader) {
        while (!helper_is_held) SleepMs(1);
      } else {
        helper_is_held = true;
        while (!release) SleepMs(1);
      }
    });
  });
  while (!helper_is_held) SleepMs(1);
  std::atomic<int> done{0};
  team.ParallelFor(8, 1, [&](int64_t begin, int64_t end) { done += static_cast<int>(end - begin); });
  EXPECT_EQ(done, 8);
  release = true;
  other.join();
}

TEST(ThreadTeam, SeveralLeadersShareTheHelpers) {
  const ThreadTeam team(3);
  std::vector<std::thread> leaders;
  std::atomic<int64_t> total{0};
  for (int t = 0; t < 4; ++t) {
    leaders.emplace_back([&, mine = team] {
      for (int i = 0; i < 300; ++i) {
        std::vector<int> values(257, 1);  // on this leader's side; written by the helpers
        mine.ParallelFor(257, 16, [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) values[k] = static_cast<int>(k);
        });
        int64_t sum = 0;
        for (int v : values) sum += v;
        total += sum;
      }
    });
  }
  for (std::thread& leader : leaders) leader.join();
  EXPECT_EQ(total, 4 * 300 * (256 * 257 / 2));
}

// Some of them find no place for helpers, and work alone.
TEST(ThreadTeam, ManyMayLeadAtOnce) {
  constexpr int kLeaders = 40;
  const ThreadTeam team(3);
  std::vector<std::thread> leaders;
  std::atomic<int> begun{0}, done{0};
  for (int t = 0; t < kLeaders; ++t) {
    leaders.emplace_back([&] {
      const auto leader = std::this_thread::get_id();
      team.ParallelFor(3, 1, [&](int64_t begin, int64_t end) {
        done += static_cast<int>(end - begin);
        if (begin == 0) ++begun;
        while (std::this_thread::get_id() == leader && begun < kLeaders) SleepMs(1);
      });
    });
  }
  for (std::thread& leader : leaders) leader.join();
  EXPECT_EQ(done, 3 * kLeaders);
}

TEST(ThreadTeam, ALeaderSleepsUntilItsHelpersHaveLeft) {
  const ThreadTeam team(3);
  for (int i = 0; i < 10; ++i) {
    std::vector<int> values(3, 0);
    std::atomic<int> begun{0};
    team.ParallelFor(3, 1, [&](int64_t begin, int64_t) {
      ++begun;
      while (begun < 3) SleepMs(1);  // each thread has one
      if (begin != 0) SleepMs(5);
      values[begin] = 1;
    });
    EXPECT_EQ(values, std::vector<int>(3, 1));
  }
}

TEST(ThreadTeam, HelpersThatSleepAreWoken) {
  const ThreadTeam team(3);
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> begun{0};
    team.ParallelFor(3, 1, [&](int64_t, int64_t) {
      ++begun;
      while (begun < 3) SleepMs(1);
    });
    SleepMs(i % 3);  // helpers go to sleep after a while
  }
}

TEST(ThreadTeam, MayBeNested) {
  const ThreadTeam team(2);
  std::atomic<int> done{0};
  team.ParallelFor(8, 1, [&](int64_t, int64_t) {
    team.ParallelFor(8, 1, [&](int64_t begin, int64_t end) { done += static_cast<int>(end - begin); });
  });
  EXPECT_GE(done, 16);
  EXPECT_EQ(done % 8, 0);
}

TEST(ThreadTeam, WhatABodyThrowsReachesTheCaller) {
  const ThreadTeam team(2);
  for (int64_t thrower : {0, 3, 7}) {
    EXPECT_THROW(team.ParallelFor(8, 1,
                                  [&](int64_t begin, int64_t end) {
                                    if (begin <= thrower && thrower < end) throw std::runtime_error("thrown");
                                  }),
                 std::runtime_error);
  }
  std::atomic<int> done{0};
  team.ParallelFor(8, 1, [&](int64_t begin, int64_t end) { done += static_cast<int>(end - begin); });
  EXPECT_EQ(done, 8);
}

}  // namespace
}  // namespace xpu::host_runtime
