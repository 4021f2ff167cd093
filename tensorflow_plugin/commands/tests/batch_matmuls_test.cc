// Products that become one of stacked matrices, and what must not.
#include <random>

#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kRows = 3, kIn = 4, kOut = 5;

class BatchedMatMuls : public Lists {
 protected:
  // The list without the parts that it is made of.
  static int Products(const CommandList& list) { return Count<MatMulDesc>(list); }

  float* Bytes(const float* from, int64_t n) {
    float* to = Computed(n);
    EXPECT_TRUE(capture_.stream().CopyDeviceToDevice(to, from, n * sizeof(float)).ok());
    return to;
  }
  // x w, for the rows of x.
  float* Times(const float* x, const float* w) {
    float* y = Computed(kRows * kOut);
    MatMul(x, w, y, 0, kRows, kIn, kOut);
    return y;
  }
  // The gradient of w.
  float* Gradient(const float* x, const float* g) {
    float* d = Computed(kIn * kOut);
    MatMul(x, g, d, 0, kIn, kRows, kOut, false, true);
    return d;
  }
  float* Sum(const std::vector<float*>& terms, int64_t n) {
    float* sum = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) {
      float* next = Computed(n);
      Op(Opcode::kAdd, {sum, terms[i]}, next, n);
      sum = next;
    }
    return sum;
  }
};

TEST_F(BatchedMatMuls, WhatAllStepsMultiplyIsOneProduct) {
  float *x = Given(Whole(4 * kRows * kIn)), *w = Given(Whole(kIn * kOut)), *state = Given(Whole(kRows * kOut));
  for (int t = 0; t < 4; ++t) {
    float* y = Times(Bytes(x + t * kRows * kIn, kRows * kIn), w);
    float* next = Computed(kRows * kOut);
    Op(Opcode::kSub, {y, state}, next, kRows * kOut);
    state = next;
  }
  Want(state);
  const CommandList list = ExpectSame();
  EXPECT_EQ(Products(list), 1);
  EXPECT_EQ(Count<CopyStridedDesc>(list), 0);
}

TEST_F(BatchedMatMuls, APartThatIsWantedIsNotStacked) {
  float *x = Given(Whole(2 * kRows * kIn)), *w = Given(Whole(kIn * kOut)), *y = Computed(kRows * kOut);
  float *a = Times(x, w), *b = Times(x + kRows * kIn, w);
  Op(Opcode::kSub, {a, b}, y, kRows * kOut);
  Want(a);
  Want(y);
  EXPECT_EQ(Products(ExpectSame()), 2);
}

TEST_F(BatchedMatMuls, AProductThatHangsOnAnotherWaits) {
  float *x = Given(Whole(16)), *w = Given(Whole(16)), *a = Computed(16), *b = Computed(16);
  MatMul(x, w, a, 0, 4, 4, 4);
  MatMul(a, w, b, 0, 4, 4, 4);
  Want(b);
  EXPECT_EQ(Products(ExpectSame()), 2);
}

TEST_F(BatchedMatMuls, WeightsThatWereChangedAreOthers) {
  float *x = Given(Whole(2 * kRows * kIn)), *w = Given(Whole(kIn * kOut)), *y = Computed(kRows * kOut);
  float* a = Times(x, w);
  Op(Opcode::kNeg, {w}, w, kIn * kOut);
  float* b = Times(x + kRows * kIn, w);
  Op(Opcode::kSub, {a, b}, y, kRows * kOut);
  Want(y);
  EXPECT_EQ(Products(ExpectSame()), 2);
}

TEST_F(BatchedMatMuls, AnInputThatIsChangedInBetweenIsReadBefore) {
  float *x = Given(Whole(kRows * kIn)), *w = Given(Whole(kIn * kOut)), *y = Computed(kRows * kOut);
  float* a = Times(x, w);
  Op(Opcode::kSquare, {x}, x, kRows * kIn);
  float* b = Times(x, w);
  Op(Opcode::kSub, {a, b}, y, kRows * kOut);
  Want(y);
  EXPECT_EQ(Products(ExpectSame()), 2);
}

TEST_F(BatchedMatMuls, AGradientOfAllStepsIsOneProduct) {
  const int steps = 5;
  float *x = Given(Whole(steps * kRows * kIn)), *g = Given(Whole(kRows * kOut)), *last = Computed(kIn * kOut);
  std::vector<float*> products, sums;
  for (int t = steps - 1; t >= 0; --t) {  // as gradients come
    float *next = Computed(kRows * kOut), *of_bias = Computed(kOut);
    Op(Opcode::kFloor, {g}, next, kRows * kOut);
    Op(t % 2 ? Opcode::kNeg : Opcode::kAbs, {g}, next, kRows * kOut);
    g = next;
    products.push_back(Gradient(Bytes(x + t * kRows * kIn, kRows * kIn), g));
    SumRows(g, of_bias, kRows, kOut);
    sums.push_back(of_bias);
  }
  float* bias = Computed(kOut);
  Op(Opcode::kNeg, {Sum(sums, kOut)}, bias, kOut);
  Op(Opcode::kNeg, {Sum(products, kIn * kOut)}, last, kIn * kOut);
  Want(last);
  Want(bias);
  const CommandList list = ExpectSame();
  EXPECT_EQ(Products(list), 1) << Text(list);
  EXPECT_EQ(Count<ReduceDesc>(list), 1) << Text(list);
  EXPECT_EQ(Count<CopyStridedDesc>(list), 0) << Text(list);
}

TEST_F(BatchedMatMuls, ATermThatSomebodyElseReadsStays) {
  float *x = Given(Whole(3 * kRows * kIn)), *g = Given(Whole(3 * kRows * kOut)), *z = Computed(kIn * kOut);
  std::vector<float*> terms;
  for (int t = 0; t < 3; ++t) terms.push_back(Gradient(x + t * kRows * kIn, g + t * kRows * kOut));
  Op(Opcode::kNeg, {terms[1]}, z, kIn * kOut);
  Want(z);
  Want(Sum(terms, kIn * kOut));
  EXPECT_EQ(Products(ExpectSame()), 2);
}

TEST_F(BatchedMatMuls, ATermThatSomebodyElseReadsAfterwardsStays) {
  float *x = Given(Whole(3 * kRows * kIn)), *g = Given(Whole(3 * kRows * kOut)), *z = Computed(kIn * kOut);
  std::vector<float*> terms;
  for (int t = 0; t < 3; ++t) terms.push_back(Gradient(x + t * kRows * kIn, g + t * kRows * kOut));
  Want(Sum(terms, kIn * kOut));
  Op(Opcode::kNeg, {terms[1]}, z, kIn * kOut);
  Want(z);
  EXPECT_EQ(Products(ExpectSame()), 2);
}

TEST_F(BatchedMatMuls, WhatIsAddedTwiceCountsTwice) {
  float *x = Given(Whole(2 * kRows * kIn)), *g = Given(Whole(2 * kRows * kOut)), *twice = Computed(kIn * kOut);
  float *a = Gradient(x, g), *b = Gradient(x + kRows * kIn, g + kRows * kOut);
  Op(Opcode::kAdd, {a, a}, twice, kIn * kOut);
  Want(Sum({twice, b}, kIn * kOut));
  ExpectSame();
}

// A recurrent network with steps of all kinds, whose numbers are whole and stay small.
class RandomLoops : public BatchedMatMuls, public ::testing::WithParamInterface<int> {};

TEST_P(RandomLoops, ComputeTheSame) {
  std::mt19937 random(GetParam());
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  const int steps = 1 + pick(7);
  const int64_t rows = 1 + pick(6), n = 1 + pick(6), of_step = rows * n, of_weights = n * n;
  const auto signs = [&](int64_t count) {
    std::vector<float> values(count);
    for (float& v : values) v = static_cast<float>(pick(3)) - 1;
    return values;
  };
  float *x = Given(signs(steps * of_step)), *w = Given(signs(of_weights)), *u = Given(signs(of_weights));
  const auto sign = [&](const float* from, int64_t count) {
    float* to = Computed(count);
    Op(Opcode::kSign, {from}, to, count);
    return to;
  };
  const auto maybe_want = [&](const float* address) {
    if (pick(12) == 0) Want(address);
  };
  // Forwards.
  std::vector<float*> inputs, states;
  float* state = sign(x, of_step);
  float* stacked = Computed(steps * of_step);
  for (int t = 0; t < steps; ++t) {
    float* input = pick(3) ? Bytes(x + t * of_step, of_step) : sign(x + t * of_step, of_step);
    inputs.push_back(input);
    states.push_back(state);
    float *a = Computed(of_step), *b = Computed(of_step), *sum = Computed(of_step);
    MatMul(input, w, a, 0, rows, n, n);
    MatMul(state, u, b, 0, rows, n, n, pick(6) == 0);
    Op(Opcode::kAdd, {a, b}, sum, of_step);
    maybe_want(a);
    state = sign(sum, of_step);
    maybe_want(state);
    if (pick(8) == 0) Op(Opcode::kNeg, {w}, w, of_weights);
    if (pick(8) == 0) Op(Opcode::kSign, {x}, x, steps * of_step);
    if (pick(3) == 0) Copy(state, stacked, {of_step}, {1}, {1}, 0, t * of_step);
  }
  const bool whole = pick(2) == 0;
  for (int t = 0; t < steps; ++t) {
    if (whole) Copy(t + 1 < steps ? states[t + 1] : state, stacked, {of_step}, {1}, {1}, 0, t * of_step);
  }
  if (whole) Want(stacked);
  // And back.
  std::vector<float*> of_w, of_u, of_bias;
  float* g = sign(state, of_step);
  for (int i = 0; i < steps; ++i) {
    const int t = steps - 1 - i;
    float *dw = Computed(of_weights), *du = Computed(of_weights), *db = Computed(n), *joined = g;
    if (pick(3) == 0) {  // put together of parts
      joined = Computed(of_step);
      Copy(g, joined, {rows, n}, {n, 1}, {n, 1});
    }
    MatMul(inputs[t], joined, dw, 0, n, rows, n, false, true);
    MatMul(states[t], joined, du, 0, n, rows, n, false, true);
    SumRows(joined, db, rows, n);
    maybe_want(dw);
    of_w.push_back(dw);
    of_u.push_back(du);
    of_bias.push_back(db);
    float *back = Computed(of_step), *product = Computed(of_step), *dx = Computed(of_step);
    MatMul(joined, u, product, 0, rows, n, n, true);
    MatMul(joined, w, dx, 0, rows, n, n, true);
    Op(Opcode::kSub, {product, states[t]}, back, of_step);
    float* of_input = sign(dx, of_step);
    maybe_want(of_input);
    g = sign(back, of_step);
    maybe_want(g);
  }
  if (pick(3) == 0) of_w.push_back(sign(w, of_weights));
  Want(Sum(of_w, of_weights));
  Op(Opcode::kAdd, {Sum(of_u, of_weights), u}, u, of_weights);
  Want(Sum(of_bias, n));
  Want(g);
  ExpectSame("seed " + std::to_string(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLoops, ::testing::Range(0, 400));

}  // namespace
}  // namespace xpu::commands
