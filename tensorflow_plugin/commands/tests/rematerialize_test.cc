// Values that are computed again where they are read, instead of being kept.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kRows = 128, kColumns = 256, kLarge = kRows * kColumns;

class Rematerialized : public Lists {
 protected:
  Rematerialized() { sums_are_exact_ = false; }

  // [kRows, kColumns], of a product.
  float* Product() {
    float* product = Computed(kLarge);
    MatMul(Given(Tenths(kRows * 8)), Given(Tenths(8 * kColumns)), product, 0, kRows, 8, kColumns);
    return product;
  }
  // The same of a matrix by products one behind the other.
  float* Through(int products, const float* x) {
    for (; products > 0; --products) {
      float* next = Computed(kLarge);
      MatMul(x, Given(Tenths(kColumns * kColumns)), next, 0, kRows, kColumns, kColumns);
      x = next;
    }
    return const_cast<float*>(x);
  }
  float* New(Opcode op, std::vector<const float*> in) {
    float* out = Computed(kLarge);
    Op(op, std::move(in), out, kLarge);
    return out;
  }
  static std::vector<float> Tenths(int64_t n) {
    std::vector<float> values = Whole(n);
    for (float& value : values) value /= 50;
    return values;
  }

  // How many elementwise commands the pass adds, which must be as many as `want`, to what gives the same then.
  void ExpectMore(int want) {
    CommandList list = capture_.list();
    Rematerialize(&list);
    EXPECT_EQ(Count<ElementwiseDesc>(list) - Count<ElementwiseDesc>(capture_.list()), want) << Text(list);
    ExpectEqual(Run(capture_.list()), Run(list), Text(list));
    saved_ = PlanMemory(capture_.list()).bytes - PlanMemory(list).bytes;
    ExpectSame();
  }

  int64_t saved_ = 0;  // bytes
};

TEST_F(Rematerialized, AnActivationAndWhatItsGradientNeeds) {
  float *x = Product(), *t = New(Opcode::kTanh, {x}), *u = New(Opcode::kAdd, {t, t}), *y = New(Opcode::kMul, {u, x});
  float* g = Through(3, y);
  Want(New(Opcode::kAdd, {New(Opcode::kMul, {New(Opcode::kMul, {g, u}), t}), x}));
  ExpectMore(2);
}

TEST_F(Rematerialized, NeedsLessMemory) {
  // Several layers, since within one nothing else is alive.
  std::vector<float*> kept;
  float* y = Product();
  for (int layer = 0; layer < 4; ++layer) {
    float *x = Through(1, y), *t = New(Opcode::kTanh, {x}), *u = New(Opcode::kSquare, {t}),
          *v = New(Opcode::kAdd, {u, x});
    kept.insert(kept.end(), {t, u, v, x});
    y = Through(2, v);
  }
  for (; !kept.empty(); kept.pop_back()) y = New(Opcode::kMul, {y, kept.back()});
  Want(y);
  // One for each of t, u and v in every layer but the last, which is not far from its gradient.
  ExpectMore(3 * 3);
  EXPECT_GE(saved_, 2 * 3 * kLarge * static_cast<int64_t>(sizeof(float)));
}

TEST_F(Rematerialized, OnlyWhereItIsFar) {
  float *v = Given(Tenths(kLarge)), *t = New(Opcode::kTanh, {v});
  Want(New(Opcode::kMul, {Through(2, t), t}));
  ExpectMore(0);
}

TEST_F(Rematerialized, WhatIsReadNearbyToo) {
  float *v = Given(Tenths(kLarge)), *t = New(Opcode::kTanh, {v}), *g = Through(3, New(Opcode::kSquare, {t}));
  Want(New(Opcode::kMul, {g, t}));
  ExpectMore(1);
}

TEST_F(Rematerialized, NotFromWhatIsWrittenSince) {
  float *v = Given(Tenths(kLarge)), *t = New(Opcode::kTanh, {v}), *g = Through(3, t);
  Op(Opcode::kAdd, {v, v}, v, kLarge);
  Want(New(Opcode::kMul, {g, t}));
  ExpectMore(0);
}

TEST_F(Rematerialized, FromWhatIsWrittenLater) {
  float *v = Given(Tenths(kLarge)), *t = New(Opcode::kTanh, {v}), *g = Through(3, t);
  Op(Opcode::kMul, {g, t}, v, kLarge);
  Want(New(Opcode::kMul, {v, g}));
  ExpectMore(1);
}

TEST_F(Rematerialized, NotWhatAProductReads) {
  float *v = Given(Tenths(kLarge)), *t = New(Opcode::kTanh, {v}), *g = Through(3, t), *out = Computed(kRows * kRows);
  MatMul(t, Given(Tenths(kColumns * kRows)), out, 0, kRows, kColumns, kRows);
  Want(New(Opcode::kMul, {g, t}));
  Want(out);
  ExpectMore(0);
}

TEST_F(Rematerialized, NotFromWhatIsAsLarge) {
  float *t = New(Opcode::kTanh, {Product()}), *g = Through(3, t);
  Want(New(Opcode::kMul, {g, t}));
  ExpectMore(0);
}

TEST_F(Rematerialized, FromWhatAProductReads) {
  float *x = Product(), *t = New(Opcode::kTanh, {x}), *g = Through(3, t), *out = Computed(kRows * kRows);
  Want(New(Opcode::kMul, {g, t}));
  MatMul(x, Given(Tenths(kColumns * kRows)), out, 0, kRows, kColumns, kRows);
  Want(out);
  ExpectMore(1);
}

TEST_F(Rematerialized, NotWhatIsWanted) {
  float *v = Given(Tenths(kLarge)), *t = New(Opcode::kTanh, {v}), *g = Through(3, t);
  Want(New(Opcode::kMul, {g, t}));
  Want(t);
  ExpectMore(0);
}

TEST_F(Rematerialized, NotWhatTakesLong) {
  // Four simple instructions for a byte, of which a float has four and a Tanh takes eight.
  for (const bool longer : {false, true}) {
    float *v = Given(Tenths(kLarge)), *t = New(Opcode::kTanh, {New(Opcode::kTanh, {v})});
    if (longer) t = New(Opcode::kAdd, {t, v});
    Want(New(Opcode::kMul, {Through(3, t), t}));
    ExpectMore(2);  // of the first
  }
}

TEST_F(Rematerialized, NotWhatIsSmall) {
  const int64_t n = int64_t{16} << 10;
  float *v = Given(Tenths(n)), *t = Computed(n), *out = Computed(n);
  Op(Opcode::kTanh, {v}, t, n);
  Want(Through(3, Product()));
  Op(Opcode::kMul, {v, t}, out, n);
  Want(out);
  ExpectMore(0);
}

TEST_F(Rematerialized, ReadersFarFromEachOtherAreNotOneProgram) {
  for (const int products : {2, 3}) {
    float *v = Given(Tenths(kLarge)), *product = Product();
    const auto programs = [this] { return Count<ElementwiseDesc>(ExpectSame()); };
    const int before = programs();
    Want(New(Opcode::kTanh, {v}));
    Want(Through(products, product));
    Want(New(Opcode::kExp, {v}));
    EXPECT_EQ(programs() - before, products == 3 ? 2 : 1);
  }
}

}  // namespace
}  // namespace xpu::commands
