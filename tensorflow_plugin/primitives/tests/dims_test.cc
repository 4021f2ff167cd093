// Shapes and strides of any rank, and what is merged of them.
#include "tensorflow_plugin/primitives/dims.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace xpu {
namespace {

// 0, 1, 2 ...
Dims CountedUp(int rank) {
  Dims dims;
  for (int i = 0; i < rank; ++i) dims.push_back(i);
  return dims;
}

bool IsCountedUp(const Dims& dims, int rank) {
  if (dims.rank() != rank) return false;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] != i) return false;
  }
  return true;
}

// From those that lie in the object to those that have memory of their own, and back.
TEST(Dims, OfAnyRank) {
  for (int from : {0, 1, 6, 7, 40, 254}) {
    const Dims source = CountedUp(from);
    EXPECT_TRUE(IsCountedUp(source, from));
    for (int to : {0, 3, 6, 7, 33, 254}) {
      Dims target = CountedUp(to);
      target = source;
      EXPECT_TRUE(IsCountedUp(target, from)) << from << " over " << to;
      EXPECT_EQ(target, source);
      Dims copy = source, moved = CountedUp(to);
      moved = std::move(copy);
      EXPECT_TRUE(IsCountedUp(moved, from));
      copy = CountedUp(to);  // what was moved from is as good as new
      EXPECT_TRUE(IsCountedUp(copy, to));
      const Dims taken(std::move(copy));
      EXPECT_TRUE(IsCountedUp(taken, to));
      Dims& same = target;
      target = same;
      EXPECT_TRUE(IsCountedUp(target, from));
      target = std::move(same);
      EXPECT_TRUE(IsCountedUp(target, from));
    }
    Dims resized = source;
    resized.resize(from + 20, 7);
    EXPECT_EQ(resized[from + 19], 7);
    resized.resize(from);
    EXPECT_TRUE(IsCountedUp(resized, from));
    EXPECT_EQ(source != CountedUp(from + 1), true);
  }
  EXPECT_EQ(Dims(20, 2).num_elements(), 1 << 20);
  EXPECT_EQ(Dims(3, 2).ToString(), "[2,2,2]");
  EXPECT_EQ(DenseStrides(Dims(20, 2))[0], 1 << 19);
}

TEST(Dims, ElementsOfRepeatedBlock) {
  const struct {
    Dims shape, strides;
    int64_t elements;
  } cases[] = {
      {{}, {}, 1},
      {{1, 1}, {9, 9}, 1},
      {{2, 3, 4}, {12, 4, 1}, 24},
      {{2, 3, 4}, {0, 4, 1}, 12},
      {{2, 3, 4}, {0, 0, 1}, 4},
      {{2, 3, 4}, {0, 0, 0}, 1},
      {{2, 1, 4}, {0, 7, 1}, 4},
      {{2, 3, 1}, {0, 1, 5}, 3},
      {{2, 3, 4}, {4, 0, 1}, -1},   // in between
      {{2, 3, 4}, {3, 1, 0}, -1},   // along the innermost axis alone
      {{2, 3, 4}, {24, 8, 2}, -1},  // gaps
      {{2, 3, 4}, {1, 2, 6}, -1},   // in another order
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ElementsOfRepeatedBlock(c.shape, c.strides), c.elements) << c.shape.ToString() << c.strides.ToString();
  }
}

TEST(Dims, NeighboursMerge) {
  Dims shape(20, 2), a = DenseStrides(shape), b(20, 0);
  Dims* const strides[] = {&a, &b};
  MergeDims(&shape, strides, 2);
  EXPECT_EQ(shape, Dims({1 << 20}));
  EXPECT_EQ(a, Dims({1}));
  EXPECT_EQ(b, Dims({0}));
  shape = Dims(20, 2);
  a = DenseStrides(shape);
  b = Dims(20, 0);
  for (int i = 0; i < 10; ++i) b[i] = a[i];
  MergeDims(&shape, strides, 2);
  EXPECT_EQ(shape, Dims({1024, 1024}));
  EXPECT_EQ(b, Dims({1024, 0}));
}

}  // namespace
}  // namespace xpu
