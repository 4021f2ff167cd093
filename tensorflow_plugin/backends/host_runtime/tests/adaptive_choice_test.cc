#include "tensorflow_plugin/backends/host_runtime/adaptive_choice.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace xpu::host_runtime {
namespace {

// A program whose runs take so long, by the way that they take.
struct Program {
  int64_t false_ns, true_ns;
  int64_t now_ns = 1000000;

  // How many of n runs took the way `true`.
  int Run(AdaptiveChoice* way, int n) {
    int count = 0;
    for (int i = 0; i < n; ++i) {
      const bool taken = way->Next(now_ns);
      now_ns += taken ? true_ns : false_ns;
      count += taken;
    }
    return count;
  }
};

constexpr int kBothTrials = 2 * AdaptiveChoice::kRuns + 3;

TEST(AdaptiveChoice, FindsTheQuickerOneWhateverWasGuessed) {
  for (bool guess : {false, true}) {
    for (bool quicker : {false, true}) {
      AdaptiveChoice way(guess);
      Program program{quicker ? 1100 : 1000, quicker ? 1000 : 1100};
      program.Run(&way, kBothTrials);
      EXPECT_EQ(program.Run(&way, 100), quicker ? 100 : 0) << "guess " << guess;
    }
  }
}

TEST(AdaptiveChoice, TriesBothEquallyOften) {
  AdaptiveChoice way(false);
  Program program{1000, 1000};
  EXPECT_EQ(program.Run(&way, AdaptiveChoice::kRuns + 1), 0);
  EXPECT_EQ(program.Run(&way, AdaptiveChoice::kRuns + 1), AdaptiveChoice::kRuns + 1);
}

TEST(AdaptiveChoice, StaysWithTheGuessWhereNothingSpeaksAgainstIt) {
  for (bool guess : {false, true}) {
    AdaptiveChoice way(guess);
    Program program{guess ? 990 : 1000, guess ? 1000 : 990};
    program.Run(&way, kBothTrials);
    EXPECT_EQ(program.Run(&way, 100), guess ? 100 : 0);
  }
}

TEST(AdaptiveChoice, IsNotMisledByPauses) {
  AdaptiveChoice way(false);
  Program program{1000, 900};
  for (int i = 0; i < kBothTrials; ++i) {
    program.Run(&way, 1);
    if (i % 3 == 1) program.now_ns += 1000000;  // of each way's
  }
  EXPECT_EQ(program.Run(&way, 100), 100);
}

TEST(AdaptiveChoice, LooksAgainLater) {
  AdaptiveChoice way(false);
  Program program{1000, 1100};
  program.Run(&way, kBothTrials + AdaptiveChoice::kSettled);
  std::swap(program.false_ns, program.true_ns);
  program.Run(&way, kBothTrials);
  EXPECT_EQ(program.Run(&way, 100), 100);
}

TEST(AdaptiveChoice, TrialsBecomeRare) {
  AdaptiveChoice way(false);
  Program program{1000, 1100};
  program.Run(&way, 100000);
  EXPECT_LT(program.Run(&way, 10 * AdaptiveChoice::kMostSettled), 12 * (AdaptiveChoice::kRuns + 2));
}

TEST(AdaptiveChoice, ManyThreads) {
  AdaptiveChoice way(false);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&way] {
      Program program{1000, 900};
      program.Run(&way, 20000);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace xpu::host_runtime
