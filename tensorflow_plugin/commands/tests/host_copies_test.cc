// Lists that read the host's memory and write into it.
#include <algorithm>

#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

class HostCopies : public Lists {
 protected:
  CommandList Optimised() {
    CommandList list = capture_.list();
    Optimize(TheMachine().device->capabilities(), {}, &list);
    return list;
  }
  // As recorded and as optimised, by the device and one by one.
  template <typename F>
  void EachRun(F&& check) {
    for (const CommandList& list : {capture_.list(), Optimised()}) {
      for (const Way way : {Way::kPrepared, Way::kOneByOne}) {
        SCOPED_TRACE(Text(list));
        const auto held = Run(list, way);
        check(held);
      }
    }
  }
  void GatherBehindAnUpdate(int32_t index) {
    static const DescribeError explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
    float bits;
    std::memcpy(&bits, &index, sizeof(bits));
    float *indices = FromHost({bits}), *table = Given({1, 2, 3}), *v = Given({1, 1, 1}), *row = Computed(1);
    Op(Opcode::kAdd, {v, v}, v, 3);
    GatherDesc desc;
    desc.element_size = sizeof(float);
    desc.index_type = DType::kInt32;
    desc.num_indices = 1;
    desc.dims = {3};
    capture_.set_origin(0, /*follows_updates=*/false);
    Record(desc, {table, indices}, {row}, &explain);
    Want(row);
  }
  // The number of the first command of a kind.
  template <typename Desc>
  static int First(const CommandList& list) {
    const auto is_one = [](const Command& command) { return std::holds_alternative<Desc>(command.desc); };
    return static_cast<int>(std::find_if(list.commands.begin(), list.commands.end(), is_one) - list.commands.begin());
  }
};

TEST_F(HostCopies, ValuesComeFromTheHost) {
  float *x = FromHost({1, 2, 3}), *y = Computed(3), *v = Given({10, 20, 30});
  Op(Opcode::kSub, {x, v}, y, 3);
  Op(Opcode::kMul, {x, y}, v, 3);
  EachRun([&](const auto& held) { EXPECT_EQ(held.back(), (std::vector<float>{-9, -36, -81})); });
}

TEST_F(HostCopies, TheHostsOwnMemoryIsNoResult) {
  float* x = FromHost({1, 2, 3});
  Want(x);
  EachRun([&](const auto& held) { EXPECT_EQ(held[1], (std::vector<float>{1, 2, 3})); });
}

TEST_F(HostCopies, TheHostsOwnMemoryIsNotUpdated) {
  float *x = FromHost({1, 2, 3}), *y = Given({0, 0, 0});
  Op(Opcode::kAdd, {x, x}, x, 3);
  Op(Opcode::kNeg, {x}, y, 3);
  EachRun([&](const auto& held) {
    EXPECT_EQ(held[0], (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(held[1], (std::vector<float>{-2, -4, -6}));
  });
}

TEST_F(HostCopies, APartOfABufferComesFromTheHost) {
  float *x = Computed(4), *y = Given({0, 0, 0, 0});
  Copy(Given({5, 6}), x, {2}, {1}, {1});
  CopyFromHostTo({7, 8}, x + 2);
  Op(Opcode::kNeg, {x}, y, 4);
  EachRun([&](const auto& held) { EXPECT_EQ(held[0], (std::vector<float>{-5, -6, -7, -8})); });
}

TEST_F(HostCopies, WhatIsCopiedToTheHostIsThereAtOnce) {
  const int64_t n = 1 << 20;
  float *x = Given(std::vector<float>(n, 0.5f)), *y = Computed(n), *z = Computed(n);
  Op(Opcode::kExp, {x}, y, n);
  Op(Opcode::kLog, {y}, z, n);
  ToHost(z, n);
  EachRun([&](const auto& held) {
    for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(held[1][i], 0.5f, 1e-6f);
  });
}

TEST_F(HostCopies, WhatTheHostWaitsForComesFirst) {
  const int64_t n = 1000;
  float *x = Given(std::vector<float>(n, 2)), *table = Given(Whole(n * n)), *sums = Computed(n), *y = Computed(n);
  SumRows(table, sums, n, n);
  Op(Opcode::kSquare, {x}, y, n);
  ToHost(y, n);
  Want(sums);
  const CommandList list = Optimised();
  EXPECT_LT(First<CopyToHost>(list), First<ReduceDesc>(list)) << Text(list);
  EachRun([&](const auto& held) { EXPECT_EQ(held.back(), std::vector<float>(n, 4)); });
}

TEST_F(HostCopies, FewNumbersComeBeforeManyThatNobodyWaitsFor) {
  const int64_t n = 1000;
  float *x = Given(std::vector<float>(n, 2)), *v = Given(std::vector<float>(n, 1)), *y = Computed(n);
  float *sum = Computed(1), *old = Computed(1), *table = Given(Whole(n * n)), *sums = Computed(n);
  SumRows(table, sums, n, n);
  SumRows(v, old, n, 1);
  Op(Opcode::kAdd, {v, x}, v, n);  // an update, behind which nobody may read the old value
  SumRows(v, sum, n, 1);
  Op(Opcode::kSquare, {x}, y, n);
  for (float* result : {y, sums, sum, old}) Want(result);
  const CommandList list = Optimised();
  std::vector<int64_t> bytes;  // of what is written, in order
  for (const Command& command : list.commands) {
    for (const BufferSlice& place : command.out) bytes.push_back(list.buffers[place.buffer].bytes);
  }
  EXPECT_EQ(bytes, (std::vector<int64_t>{4, 4 * n, 4 * n, 4, 4 * n})) << Text(list);
  EachRun([&](const auto& held) {
    EXPECT_EQ(held[3], std::vector<float>{3.0f * n});
    EXPECT_EQ(held[4], std::vector<float>{1.0f * n});
  });
}

TEST_F(HostCopies, TheHostSeesAVariableAsItIsThere) {
  // Before an update, between two, and after both, of which none may run sooner or later for that.
  float *v = Given({1, 2, 3}), *w = Given({10, 10, 10});
  ToHost(v, 3);
  Op(Opcode::kAdd, {v, w}, v, 3);
  ToHost(v, 3);
  Op(Opcode::kMul, {v, v}, v, 3);
  ToHost(v, 3);
  Op(Opcode::kSub, {w, v}, w, 3);
  EachRun([&](const auto& held) {
    EXPECT_EQ(held[1], (std::vector<float>{10 - 121, 10 - 144, 10 - 169}));
    EXPECT_EQ(held[2], (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(held[3], (std::vector<float>{11, 12, 13}));
    EXPECT_EQ(held[4], (std::vector<float>{121, 144, 169}));
  });
}

TEST_F(HostCopies, IndicesOfTheHostAreCheckedFirst) {
  GatherBehindAnUpdate(1);
  const CommandList list = Optimised();
  const auto is_first = [](const Command& command) {
    return std::holds_alternative<CopyFromHost>(command.desc) || command.may_fail();
  };
  const auto behind = std::find_if_not(list.commands.begin(), list.commands.end(), is_first);
  EXPECT_TRUE(std::none_of(behind, list.commands.end(), is_first)) << Text(list);
  EachRun([&](const auto& held) { EXPECT_EQ(held.back(), std::vector<float>{2}); });
}

TEST_F(HostCopies, BadIndicesOfTheHostAreTold) {
  GatherBehindAnUpdate(3);
  expects_failure_ = true;
  EachRun([&](const auto&) { EXPECT_EQ(failure_.code(), Code::kInvalidArgument); });
}

}  // namespace
}  // namespace xpu::commands
