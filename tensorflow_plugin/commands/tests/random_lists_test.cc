// Lists of random commands, optimised and as they are.
#include <cstdlib>
#include <random>
#include <string>

#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

// Lists of random commands: chains, broadcasts, transposed reads, updates in place, single elements, products, sums of
// these, reductions, layers of 8-bit integers, and copies. The copies are of parts, to parts, and of axes in another
// order.
class RandomLists : public Lists, public ::testing::WithParamInterface<int> {
 protected:
  // Rows as 8-bit integers, by the largest magnitude of each; their products with one another, and floats of those.
  // Some steps' results are values of the list, too.
  template <typename New>
  void QuantizedProduct(const float* x, int64_t rows, int64_t cols, bool shows_steps, New make) {
    const int64_t n = rows * cols;
    const Dims number{0}, one{1};
    const auto step = [&](int64_t r, int64_t c) { return shows_steps ? make(r, c) : Computed(r * c); };
    const auto two = [&](Opcode op, const Dims& shape, std::pair<const float*, Dims> a, std::pair<const float*, Dims> b,
                         float* y) {
      Launch(SingleOpProgram(op, DType::kFloat), shape, {std::move(a), std::move(b)}, {y});
    };
    float *const magnitudes = step(rows, cols), *const largest = step(rows, 1), *const sums = Computed(rows);
    float *const scales = make(rows, 1), *const scaled = Computed(n), *const rounded = step(rows, cols);
    float *const below = Computed(n), *const between = Computed(n);
    const float *const levels = Given({127}), *const least = Given({-127});
    Op(Opcode::kAbs, {x}, magnitudes, n);
    ReduceMax(magnitudes, largest, rows, cols, 1);
    two(Opcode::kAdd, {rows}, {largest, one}, {Given({1e-7f}), number}, sums);
    two(Opcode::kDiv, {rows}, {levels, number}, {sums, one}, scales);
    two(Opcode::kMul, {rows, cols}, {x, {cols, 1}}, {scales, {1, 0}}, scaled);
    Op(Opcode::kRint, {scaled}, rounded, n);
    two(Opcode::kMinimum, {n}, {rounded, one}, {levels, number}, below);
    two(Opcode::kMaximum, {n}, {below, one}, {least, number}, between);
    auto* const q = static_cast<float*>(capture_.NewBuffer(n, Buffer::Kind::kComputed));
    Launch(CastProgram(DType::kFloat, DType::kInt8), {n}, {{between, one}}, {q});
    MatMulDesc product;
    product.type = product.b_type = DType::kInt8;
    product.c_type = DType::kInt32;
    product.m = product.n = rows;
    product.k = cols;
    product.transpose_b = true;
    float* const integers = Computed(rows * rows);
    Record(product, {q, q}, {integers});
    float* const floats = Computed(rows * rows);
    Launch(CastProgram(DType::kInt32, DType::kFloat), {rows * rows}, {{integers, one}}, {floats});
    two(Opcode::kDiv, {rows, rows}, {floats, {rows, 1}}, {scales, {1, 0}}, make(rows, rows));
  }
};

TEST_P(RandomLists, ComputeTheSame) {
  std::mt19937 random(GetParam());
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  struct Matrix {
    float* at;
    int64_t rows, cols;
    bool given;
    DType type = DType::kFloat;
  };
  // Every fourth has commands that are worth having run side by side, if they may.
  const int64_t scale = GetParam() % 4 == 0 ? 6 : 1;
  // Every third has rows that can be cut in two.
  const int64_t drawn = 1 + pick(40 * scale), rows = GetParam() % 3 == 0 ? 2 * drawn : drawn;
  const int64_t cols = 1 + pick(60 * scale);
  std::vector<Matrix> matrices;
  const auto given = [&](int64_t r, int64_t c) {
    std::vector<float> values(r * c);
    for (float& v : values) v = static_cast<float>(pick(2000)) / 500 - 2;
    matrices.push_back({Given(std::move(values)), r, c, true});
  };
  for (int i = 0; i < 3; ++i) given(rows, cols);
  given(1, cols);
  given(rows, 1);
  given(1, 1);
  const Opcode unary[] = {Opcode::kNeg, Opcode::kAbs, Opcode::kSquare, Opcode::kTanh, Opcode::kSigmoid, Opcode::kFloor};
  const Opcode binary[] = {Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kMaximum, Opcode::kMinimum};
  const int length = 5 + pick(GetParam() % 8 == 1 ? 400 : 60);
  for (int i = 0; i < length; ++i) {
    const Matrix a = matrices[pick(matrices.size())], b = matrices[pick(matrices.size())];
    const int kind = pick(20);
    const auto computed = [&](int64_t r, int64_t c, DType type) {
      const int64_t bytes = r * c * static_cast<int64_t>(SizeOf(type));
      return Matrix{static_cast<float*>(capture_.NewBuffer(bytes, Buffer::Kind::kComputed)), r, c, false, type};
    };
    if (kind == 17) {  // as another type
      const DType reduced = GetParam() % 2 == 0 ? DType::kBFloat16 : DType::kHalf;
      const Matrix y = computed(a.rows, a.cols, a.type == DType::kFloat ? reduced : DType::kFloat);
      Launch(CastProgram(a.type, y.type), {a.rows * a.cols}, {{a.at, Dims{1}}}, {y.at});
      matrices.push_back(y);
      continue;
    }
    const bool is_elementwise = kind == 0 || (kind >= 2 && kind < 10);
    if (!is_elementwise && (a.type != DType::kFloat || b.type != DType::kFloat)) continue;
    if (kind == 0) {  // in place
      if (!a.given) continue;
      Op(unary[pick(6)], {a.at}, a.at, a.rows * a.cols);
    } else if (kind == 1) {
      Matrix y{Computed(a.rows * a.cols), a.rows, a.cols, false};
      ASSERT_TRUE(capture_.stream().CopyDeviceToDevice(y.at, a.at, a.rows * a.cols * sizeof(float)).ok());
      matrices.push_back(y);
    } else if (kind == 2) {  // transposed where it is square, else with its rows reversed in order of reading
      const Matrix y = computed(a.rows, a.cols, a.type);
      const bool square = a.rows == a.cols;
      Launch(SingleOpProgram(unary[pick(6)], a.type), {a.rows, a.cols},
             {{a.at, square ? Dims{1, a.rows} : Dims{a.cols, 1}}}, {y.at});
      matrices.push_back(y);
    } else if (kind == 10) {  // some rows and columns
      const int64_t r0 = pick(a.rows), r = 1 + pick(a.rows - r0), c0 = pick(3) ? 0 : pick(a.cols);
      const int64_t c = 1 + pick(a.cols - c0);
      Matrix y{Computed(r * c), r, c, false};
      Copy(a.at, y.at, {r, c}, {a.cols, 1}, {c, 1}, r0 * a.cols + c0);
      matrices.push_back(y);
    } else if (kind == 11) {  // transposed
      Matrix y{Computed(a.rows * a.cols), a.cols, a.rows, false};
      Copy(a.at, y.at, {a.cols, a.rows}, {1, a.cols}, {a.rows, 1});
      matrices.push_back(y);
    } else if (kind == 12) {  // joined
      if (a.cols != b.cols) continue;
      Matrix y{Computed((a.rows + b.rows) * a.cols), a.rows + b.rows, a.cols, false};
      Copy(a.at, y.at, {a.rows, a.cols}, {a.cols, 1}, {a.cols, 1});
      Copy(b.at, y.at, {b.rows, a.cols}, {a.cols, 1}, {a.cols, 1}, 0, a.rows * a.cols);
      matrices.push_back(y);
    } else if (kind == 13) {  // a part of a given one is written over
      if (!a.given || a.cols != b.cols || b.rows >= a.rows || a.at == b.at) continue;
      Copy(b.at, a.at, {b.rows, a.cols}, {a.cols, 1}, {a.cols, 1}, 0, pick(a.rows - b.rows) * a.cols);
    } else if (kind == 14) {  // as signs, whose products are exact
      if (a.cols != b.rows) continue;
      Matrix x{Computed(a.rows * a.cols), a.rows, a.cols, false}, w{Computed(b.rows * b.cols), b.rows, b.cols, false};
      Op(Opcode::kSign, {a.at}, x.at, a.rows * a.cols);
      Op(Opcode::kSign, {b.at}, w.at, b.rows * b.cols);
      Matrix y{Computed(a.rows * b.cols), a.rows, b.cols, false};
      MatMul(x.at, w.at, y.at, 1, a.rows, a.cols, b.cols);
      matrices.insert(matrices.end(), {x, w, y});
    } else if (kind == 19) {  // products of signs, each scaled and shifted by column, added up and perhaps bounded
      const int64_t n = 1 + pick(30);
      Matrix x{Computed(a.rows * a.cols), a.rows, a.cols, false}, sum{nullptr, a.rows, n, false};
      Op(Opcode::kSign, {a.at}, x.at, a.rows * a.cols);
      const auto by_column = [&](Opcode op, const float* y) {
        float* const out = Computed(a.rows * n);
        Launch(SingleOpProgram(op, DType::kFloat), {a.rows, n}, {{y, {n, 1}}, {matrices.back().at, {0, 1}}}, {out});
        return out;
      };
      for (int p = 2 + pick(2); p > 0; --p) {
        std::vector<float> signs(a.cols * n);
        for (float& v : signs) v = static_cast<float>(pick(3) - 1);
        float* const product = Computed(a.rows * n);
        MatMul(x.at, Given(std::move(signs)), product, 0, a.rows, a.cols, n);
        if (pick(4) == 0) Want(product);  // no value for others: a function of it may be another one in registers
        given(1, n);
        float* const scaled = by_column(Opcode::kMul, product);
        given(1, n);
        float* const shifted = pick(4) == 0 ? scaled : by_column(Opcode::kAdd, scaled);
        if (sum.at == nullptr) {
          sum.at = shifted;
          continue;
        }
        float* const next = Computed(a.rows * n);
        Op(pick(2) == 0 ? Opcode::kAdd : Opcode::kSub, {sum.at, shifted}, next, a.rows * n);
        sum.at = next;
      }
      matrices.insert(matrices.end(), {x, sum});
    } else if (kind == 18) {
      QuantizedProduct(a.at, a.rows, a.cols, pick(4) == 0, [&](int64_t r, int64_t c) {
        matrices.push_back({Computed(r * c), r, c, false});
        return matrices.back().at;
      });
    } else if (kind >= 15) {
      const int axis = pick(2);
      Matrix y{Computed(axis == 0 ? a.cols : a.rows), axis == 0 ? 1 : a.rows, axis == 0 ? a.cols : 1, false};
      ReduceMax(a.at, y.at, a.rows, a.cols, axis);
      matrices.push_back(y);
    } else if (kind < 6) {
      const Matrix y = computed(a.rows, a.cols, a.type);
      Launch(SingleOpProgram(unary[pick(6)], a.type), {a.rows * a.cols}, {{a.at, Dims{1}}}, {y.at});
      matrices.push_back(y);
    } else {
      const bool fits =
          (a.rows == b.rows || a.rows == 1 || b.rows == 1) && (a.cols == b.cols || a.cols == 1 || b.cols == 1);
      if (!fits || a.type != b.type) continue;
      const int64_t r = std::max(a.rows, b.rows), c = std::max(a.cols, b.cols);
      const Matrix y = computed(r, c, a.type);
      const auto strides = [&](const Matrix& m) { return Dims{m.rows == 1 ? 0 : m.cols, m.cols == 1 ? 0 : 1}; };
      Launch(SingleOpProgram(binary[pick(5)], a.type), {r, c}, {{a.at, strides(a)}, {b.at, strides(b)}}, {y.at});
      matrices.push_back(y);
    }
  }
  for (const Matrix& m : matrices) {
    if (!m.given && pick(4) == 0) Want(m.at);
  }
  const size_t before = capture_.list().commands.size();
  const CommandList optimised = ExpectSame("seed " + std::to_string(GetParam()));
  EXPECT_LE(optimised.commands.size(), before);
}

// Fewer where each new program is compiled for most of a second.
int Seeds() {
  const char* const backend = std::getenv("XPU_TEST_BACKEND");
  return backend != nullptr && std::string(backend) == "XPU_OPENCL" ? 24 : 600;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLists, ::testing::Range(0, Seeds()));

}  // namespace
}  // namespace xpu::commands
