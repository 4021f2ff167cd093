#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

// Runs `desc` with buffers of the given numbers of elements; what the copy leaves alone is compared too.
void Check(const CopyStridedDesc& desc, int64_t src_elements, int64_t dst_elements, const std::string& what) {
  const int64_t size = static_cast<int64_t>(desc.element_size);
  const Array before = Values(DType::kUint8, std::vector<double>(dst_elements * size, 0x3c));
  ExpectAsTheReference(desc, {Bytes(src_elements * size)}, {{DType::kUint8, dst_elements * size, &before}}, what);
}

// A transpose from dense to dense.
CopyStridedDesc Transpose(size_t size, const Dims& shape, const std::vector<int>& permutation) {
  CopyStridedDesc desc;
  desc.element_size = size;
  const Dims src = DenseStrides(shape);
  for (int axis : permutation) {
    desc.shape.push_back(shape[axis]);
    desc.src_strides.push_back(src[axis]);
  }
  desc.dst_strides = DenseStrides(desc.shape);
  return desc;
}

TEST(CopyStrided, TransposesAndReversesByHand) {
  CopyStridedDesc desc;
  desc.element_size = 1;
  desc.shape = {2, 3};
  desc.src_strides = {-1, 2};
  desc.dst_strides = {3, 1};
  desc.src_offset = 1;
  desc.dst_offset = 1;
  const Array before = Values(DType::kUint8, std::vector<double>(8, 99));
  ExpectByHand(desc, {Values(DType::kUint8, {0, 1, 2, 3, 4, 5})}, {{DType::kUint8, 8, &before}},
               {{Values(DType::kUint8, {99, 1, 3, 5, 0, 2, 4, 99})}}, "transpose and reverse");
}

TEST(CopyStrided, Transposes) {
  const struct {
    Dims shape;
    std::vector<int> permutation;
  } cases[] = {
      {{1, 1}, {1, 0}},
      {{3, 5}, {1, 0}},
      {{16, 16}, {1, 0}},
      {{17, 33}, {1, 0}},
      {{129, 65}, {1, 0}},
      {{300, 2}, {1, 0}},
      {{2, 300}, {1, 0}},
      {{128, 256}, {1, 0}},
      {{2, 7, 9, 3}, {0, 3, 1, 2}},
      {{2, 3, 7, 9}, {0, 2, 3, 1}},
      {{2, 8, 8, 64}, {0, 3, 1, 2}},
      {{2, 5, 4, 8}, {0, 2, 1, 3}},
      {{3, 4, 5, 2}, {3, 2, 1, 0}},
      {{2, 3, 4, 5, 6}, {4, 2, 0, 3, 1}},
      {{40, 1, 50}, {2, 1, 0}},
      {{31, 3, 70}, {2, 0, 1}},
      {{64, 6, 5}, {1, 0, 2}},
      {{9, 40, 2}, {1, 0, 2}},
  };
  for (size_t size : {1, 2, 3, 4, 6, 8, 12, 16, 24}) {
    for (const auto& c : cases) {
      const int64_t n = c.shape.num_elements();
      std::string what = "size " + std::to_string(size) + " shape " + c.shape.ToString() + " permutation";
      for (int axis : c.permutation) what += " " + std::to_string(axis);
      Check(Transpose(size, c.shape, c.permutation), n, n, what);
    }
  }
}

// Whole tiles and parts of them, with rows that begin at multiples of words and elsewhere.
TEST(CopyStrided, Tiles) {
  for (size_t size : {1, 2, 4, 12, 16}) {
    for (const Dims& shape : {Dims{2, 36, 40}, Dims{1, 33, 70}}) {
      const int64_t n = shape.num_elements();
      Check(Transpose(size, shape, {0, 2, 1}), n, n, "size " + std::to_string(size) + " shape " + shape.ToString());
    }
  }
}

// Two or four columns of any length become rows.
TEST(CopyStrided, FewColumns) {
  for (size_t size : {1, 2, 4, 8, 16}) {
    for (int64_t columns : {2, 3, 4}) {
      for (int64_t rows : {1, 2, 3, 5, 8, 13, 29, 64, 131}) {
        const int64_t n = 3 * columns * rows;
        const std::string what = std::to_string(columns) + " of " + std::to_string(rows);
        Check(Transpose(size, {3, columns, rows}, {0, 2, 1}), n, n, what + ", size " + std::to_string(size));
      }
    }
  }
}

// More axes than a shape holds without memory of its own, none of which merge.
TEST(CopyStrided, ManyAxes) {
  std::vector<int> reversed(18), shuffled;
  for (int i = 0; i < 18; ++i) reversed[i] = 17 - i;
  for (int first : {1, 0}) {
    for (int i = first; i < 18; i += 2) shuffled.push_back(i);
  }
  Dims shape(18, 2);
  shape[4] = 1;
  shape[17] = 3;
  for (const std::vector<int>& permutation : {reversed, shuffled}) {
    for (size_t size : {1, 3, 4, 16}) {
      Check(Transpose(size, shape, permutation), shape.num_elements(), shape.num_elements(), "many axes");
    }
  }
}

TEST(CopyStrided, LargeEnoughForSeveralThreads) {
  Check(Transpose(4, {1000, 501}, {1, 0}), 501000, 501000, "large transpose");
  Check(Transpose(4, {8, 100, 100, 3}, {0, 3, 1, 2}), 240000, 240000, "large to channels first");
  Check(Transpose(4, {8, 3, 100, 100}, {0, 2, 3, 1}), 240000, 240000, "large to channels last");
  Check(Transpose(4, {4, 50, 12, 64}, {0, 2, 1, 3}), 153600, 153600, "large heads");
  Check(Transpose(1, {300001}, {0}), 300001, 300001, "large copy");
}

TEST(CopyStrided, FillsFromZeroStrides) {
  CopyStridedDesc desc;
  for (size_t size : {1, 2, 4, 8, 16}) {
    desc.element_size = size;
    desc.shape = {100, 1000};
    desc.src_strides = {0, 0};
    desc.dst_strides = {1000, 1};
    Check(desc, 1, 100000, "scalar fill");
    desc.src_strides = {1, 0};
    Check(desc, 100, 100000, "column fill");
    desc.src_strides = {0, 1};
    Check(desc, 1000, 100000, "row fill");
    desc.dst_strides = {1, 100};
    Check(desc, 1000, 100000, "row fill, transposed");
  }
}

TEST(CopyStrided, RandomViews) {
  std::mt19937 rng(7);
  auto below = [&](int n) { return static_cast<int>(rng() % n); };
  for (int round = 0; round < 3000; ++round) {
    CopyStridedDesc desc;
    const size_t sizes[] = {1, 2, 3, 4, 5, 8, 16};
    desc.element_size = sizes[below(7)];
    const int rank = below(6);
    std::vector<int> src_order(rank), dst_order(rank);
    std::iota(src_order.begin(), src_order.end(), 0);
    std::iota(dst_order.begin(), dst_order.end(), 0);
    std::shuffle(src_order.begin(), src_order.end(), rng);
    std::shuffle(dst_order.begin(), dst_order.end(), rng);
    for (int d = 0; d < rank; ++d) desc.shape.push_back(1 + below(below(4) == 0 ? 40 : 5));
    if (desc.shape.num_elements() > 10000) continue;  // the reference takes its time
    // Each side is a view, in its own order, of a dense array with some extra room and some reversed dimensions.
    auto lay_out = [&](const std::vector<int>& order, bool may_broadcast, Dims* strides, int64_t* offset) {
      *strides = Dims(rank, 0);
      int64_t stride = 1 + (below(4) == 0);
      *offset = 0;
      for (int d : order) {
        if (may_broadcast && below(6) == 0) continue;
        const int64_t extent = desc.shape[d];
        const bool reverse = below(4) == 0;
        (*strides)[d] = reverse ? -stride : stride;
        if (reverse) *offset += stride * (extent - 1);
        stride *= extent + (below(3) == 0 ? below(3) : 0);
      }
      const int64_t before = below(3);
      *offset += before;
      return stride + before;
    };
    const int64_t src_elements = lay_out(src_order, true, &desc.src_strides, &desc.src_offset);
    const int64_t dst_elements = lay_out(dst_order, false, &desc.dst_strides, &desc.dst_offset);
    Check(desc, src_elements, dst_elements,
          "round " + std::to_string(round) + " shape " + desc.shape.ToString() + " strides " +
              desc.src_strides.ToString() + " to " + desc.dst_strides.ToString());
    if (HasFailure()) return;
  }
}

TEST(CopyStrided, EmptyAndScalar) {
  CopyStridedDesc desc;
  desc.element_size = 4;
  Check(desc, 1, 1, "scalar");
  desc.shape = {3, 0, 2};
  desc.src_strides = {0, 2, 1};
  desc.dst_strides = {0, 2, 1};
  Check(desc, 1, 1, "empty");
}

}  // namespace
}  // namespace xpu::testing
