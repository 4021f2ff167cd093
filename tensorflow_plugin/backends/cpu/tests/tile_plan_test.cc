// Plans of programs are kept by how operands lie. Whatever ran before, a command computes what it says.
#include "tensorflow_plugin/backends/cpu/elementwise/tile_plan.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"

namespace xpu::cpu {
namespace {

// (x - y, (x - y) * x): the second result needs x when the first one is there.
const Program* TwoResults() {
  ProgramBuilder builder;
  const ProgramBuilder::Reg x = builder.Input(DType::kFloat), y = builder.Input(DType::kFloat);
  const ProgramBuilder::Reg difference = builder.Apply(Opcode::kSub, x, y);
  builder.Output(difference);
  builder.Output(builder.Apply(Opcode::kMul, difference, x));
  return builder.Build();
}

// An operand of `rows` rows of `cols`: each element, one number, every second column, or the same row again. Or rows
// have gaps between them, or one number each.
enum class Operand { kElements, kOne, kGaps, kRow, kApart, kOfRow };
constexpr Operand kOperands[] = {Operand::kElements, Operand::kOne,   Operand::kGaps,
                                 Operand::kRow,      Operand::kApart, Operand::kOfRow};

Dims StridesOf(Operand operand, int64_t cols) {
  switch (operand) {
    case Operand::kElements:
      return {cols, 1};
    case Operand::kOne:
      return {0, 0};
    case Operand::kGaps:
      return {2 * cols, 2};
    case Operand::kRow:
      return {0, 1};
    case Operand::kApart:
      return {2 * cols, 1};
    case Operand::kOfRow:
      return {1, 0};
  }
  return {};
}

// Where a result goes.
enum class Place { kApart, kOverX, kOverY };
constexpr Place kPlaces[] = {Place::kApart, Place::kOverX, Place::kOverY};

struct TilePlanCase {
  Operand x, y;
  Place first, second;
  int64_t rows, cols;

  // Only elements can be overwritten, and not by both results.
  bool IsPossible() const {
    const auto fits = [this](Place place) {
      return place == Place::kApart || (place == Place::kOverX ? x : y) == Operand::kElements;
    };
    return fits(first) && fits(second) && (first != second || first == Place::kApart);
  }
  std::string Name() const {
    std::string name = std::to_string(rows) + "x" + std::to_string(cols);
    for (int part : {static_cast<int>(x), static_cast<int>(y), static_cast<int>(first), static_cast<int>(second)}) {
      name += " " + std::to_string(part);
    }
    return name;
  }

  void Run() const {
    const Operand operands[] = {x, y};
    std::vector<float> in[2], apart[2];
    ElementwiseDesc desc;
    desc.program = TwoResults();
    desc.shape = {rows, cols};
    Args args{};
    for (int i = 0; i < 2; ++i) {
      in[i].resize(2 * rows * cols);
      for (size_t k = 0; k < in[i].size(); ++k) in[i][k] = static_cast<float>((k * 7 + 3 * i) % 31) - 11;
      desc.in_strides[i] = StridesOf(operands[i], cols);
      args.in[i] = in[i].data();
    }
    const Place places[] = {first, second};
    for (int o = 0; o < 2; ++o) {
      apart[o].resize(rows * cols);
      args.out[o] = places[o] == Place::kApart ? apart[o].data() : in[places[o] == Place::kOverX ? 0 : 1].data();
    }
    std::vector<float> want[2];
    for (int64_t k = 0; k < rows * cols; ++k) {
      const auto at = [&](int i) {
        const Dims& strides = desc.in_strides[i];
        return in[i][k / cols * strides[0] + k % cols * strides[1]];
      };
      want[0].push_back(at(0) - at(1));
      want[1].push_back((at(0) - at(1)) * at(0));
    }
    ASSERT_TRUE(Kernels().Run(desc, args, host_runtime::ThreadTeam(1)).ok());
    for (int o = 0; o < 2; ++o) {
      const auto* const got = static_cast<const float*>(args.out[o]);
      for (int64_t k = 0; k < rows * cols; ++k)
        ASSERT_EQ(got[k], want[o][k]) << Name() << ": result " << o << ", " << k;
    }
  }
};

// More layouts than a program keeps plans for, each after all others.
TEST(TilePlan, EachLayoutHasItsOwn) {
  int cases = 0;
  for (int time = 0; time < 2; ++time) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>(3, 20), {7, 300}, {3, 2500}}) {
      for (Operand x : kOperands) {
        for (Operand y : kOperands) {
          for (Place first : kPlaces) {
            for (Place second : kPlaces) {
              const TilePlanCase each{x, y, first, second, rows, cols};
              if (!each.IsPossible()) continue;
              ++cases;
              each.Run();
            }
          }
        }
      }
    }
  }
  EXPECT_GT(cases, 100);
}

// Rows of several axes, of which a thread runs parts that begin and end inside of rows, or all. Operands repeat along
// any of the axes, or have one element for a row; some are combined before they meet whole rows.
TEST(TilePlan, ByRows) {
  for (int64_t columns : {int64_t{40}, int64_t{200}, int64_t{1500}}) {
    ProgramBuilder b;
    const auto x = b.Input(DType::kFloat), scale = b.Input(DType::kFloat), mean = b.Input(DType::kFloat),
               of_head = b.Input(DType::kHalf), limit = b.Input(DType::kFloat);
    const auto centred = b.Apply(Opcode::kSub, x, b.Apply(Opcode::kMul, mean, b.Const(DType::kFloat, 2)));
    const auto sum = b.Apply(Opcode::kAdd, b.Apply(Opcode::kMul, centred, scale), b.Cast(of_head, DType::kFloat));
    b.Output(b.Apply(Opcode::kSelect, b.Apply(Opcode::kLess, mean, limit), sum, x));
    b.Output(b.Apply(Opcode::kMul, mean, limit));
    ElementwiseDesc desc;
    desc.program = b.Build();
    ASSERT_NE(desc.program, nullptr) << b.error();
    desc.shape = {2, 3, 5, columns};
    desc.in_strides[0] = DenseStrides(desc.shape);
    desc.in_strides[1] = {0, 0, 0, 1};        // a row for all
    desc.in_strides[2] = {15, 5, 1, 0};       // a number for each row
    desc.in_strides[3] = {0, columns, 0, 1};  // a row for each head
    desc.in_strides[4] = {0, 0, 0, 0};
    const int64_t n = desc.shape.num_elements();
    std::vector<float> x_values(n), scales(columns), means(30), got(n), products(n);
    std::vector<Half> heads(3 * columns);
    const float most = 3;
    for (int64_t i = 0; i < n; ++i) x_values[i] = static_cast<float>(i % 37 - 18);
    for (int64_t i = 0; i < columns; ++i) scales[i] = static_cast<float>(i % 5 - 2);
    for (int64_t i = 0; i < 30; ++i) means[i] = static_cast<float>(i % 7);
    for (int64_t i = 0; i < 3 * columns; ++i) heads[i] = static_cast<Half>(static_cast<float>(i % 11) / 4);
    Args args{};
    const void* const in[] = {x_values.data(), scales.data(), means.data(), heads.data(), &most};
    std::copy(std::begin(in), std::end(in), args.in);
    args.out[0] = got.data();
    args.out[1] = products.data();
    const ElementwiseDesc merged = Merged(desc);
    for (int64_t length : {columns + 7, 4 * columns + 3, n}) {
      std::fill(got.begin(), got.end(), -1.0f);
      std::fill(products.begin(), products.end(), -1.0f);
      TileRunner runner(merged, args);
      for (int64_t begin = 0; begin < n; begin += length) runner.Run(begin, std::min(length, n - begin));
      for (int64_t i = 0; i < n; ++i) {
        const int64_t row = i / columns, column = i % columns;
        const float mean_here = means[row], head = static_cast<float>(heads[row / 5 % 3 * columns + column]);
        const float want = mean_here < most ? (x_values[i] - 2 * mean_here) * scales[column] + head : x_values[i];
        ASSERT_EQ(got[i], want) << columns << " columns, " << length << " at a time: " << i;
        ASSERT_EQ(products[i], mean_here * most) << columns << " columns, " << length << " at a time: " << i;
      }
    }
  }
}

TileLayout LayoutWith(TileLayout::Walk x, TileLayout::Walk y) {
  TileLayout layout;
  layout.walk[0] = x;
  layout.walk[1] = y;
  layout.stores_outputs = 1;
  return layout;
}

TEST(TilePlan, IsKept) {
  using Walk = TileLayout::Walk;
  ProgramBuilder builder;
  const ProgramBuilder::Reg x = builder.Input(DType::kFloat), y = builder.Input(DType::kFloat);
  builder.Output(builder.Apply(Opcode::kTanh, builder.Apply(Opcode::kAdd, x, y)));
  const PreparedProgram& prepared = Prepare(builder.Build());
  std::unique_ptr<TilePlan> own;
  const TilePlan* const dense = &prepared.PlanFor(LayoutWith(Walk::kContiguous, Walk::kContiguous), &own);
  const TilePlan* const scalar = &prepared.PlanFor(LayoutWith(Walk::kContiguous, Walk::kScalar), &own);
  EXPECT_NE(dense, scalar);
  EXPECT_EQ(&prepared.PlanFor(LayoutWith(Walk::kContiguous, Walk::kContiguous), &own), dense);
  EXPECT_EQ(&prepared.PlanFor(LayoutWith(Walk::kContiguous, Walk::kScalar), &own), scalar);
  EXPECT_EQ(own, nullptr);
}

// A program that is called with ever new layouts does not take ever more memory.
TEST(TilePlan, SomeAreKept) {
  using Walk = TileLayout::Walk;
  ProgramBuilder builder;
  ProgramBuilder::Reg sum = builder.Input(DType::kFloat);
  for (int i = 1; i < 6; ++i) sum = builder.Apply(Opcode::kAdd, sum, builder.Input(DType::kFloat));
  builder.Output(sum);
  const PreparedProgram& prepared = Prepare(builder.Build());
  int kept = 0, not_kept = 0;
  for (unsigned scalars = 0; scalars < 1u << 6; ++scalars) {
    TileLayout layout;
    layout.stores_outputs = 1;
    for (int i = 0; i < 6; ++i) layout.walk[i] = (scalars >> i & 1) != 0 ? Walk::kScalar : Walk::kContiguous;
    std::unique_ptr<TilePlan> own;
    EXPECT_EQ(prepared.PlanFor(layout, &own).layout, layout);
    ++(own == nullptr ? kept : not_kept);
  }
  EXPECT_GE(kept, 8);
  EXPECT_GE(not_kept, 32);
}

}  // namespace
}  // namespace xpu::cpu
