// Elementwise commands over a product's elements that its own command computes, and those that it must not.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kRows = 6, kInner = 4, kColumns = 10, kElements = kRows * kColumns;

class Epilogues : public Lists {
 protected:
  Epilogues() : a_(Given(Whole(kRows * kInner))), b_(Given(Whole(kInner * kColumns))) { MatMul(); }

  void MatMul() { Lists::MatMul(a_, b_, c_, 0, kRows, kInner, kColumns); }
  float* New(Opcode op, std::vector<const float*> in) {
    float* out = Computed(kElements);
    Op(op, std::move(in), out, kElements);
    return out;
  }

  // That the pass makes the list one of so many commands, of which so many have an epilogue.
  void Expect(size_t commands, int epilogues, const Capabilities& can = TheMachine().device->capabilities()) {
    CommandList list = capture_.list();
    FuseElementwise(can, &list);
    FuseEpilogues(can, EpilogueWay::kAfterwards, &list);
    EliminateDeadCode(&list);
    EXPECT_EQ(list.commands.size(), commands) << Text(list);
    int found = 0;
    for (const Command& command : list.commands) {
      const auto* product = std::get_if<MatMulDesc>(&command.desc);
      const auto* convolution = std::get_if<ConvolutionDesc>(&command.desc);
      found += (product != nullptr && HasEpilogue(*product)) || (convolution != nullptr && HasEpilogue(*convolution));
    }
    EXPECT_EQ(found, epilogues) << Text(list);
    ExpectEqual(Run(capture_.list()), Run(list), Text(list));
    ExpectSame();
  }

  float *const a_, *const b_, *const c_ = Computed(kElements);
};

TEST_F(Epilogues, ABiasAndAnActivation) {
  float *biased = Computed(kElements), *bias = Given(Whole(kColumns));
  Launch(SingleOpProgram(Opcode::kAdd, DType::kFloat), {kRows, kColumns}, {{c_, {kColumns, 1}}, {bias, {0, 1}}},
         {biased});
  Want(New(Opcode::kAbs, {biased}));
  Expect(1, 1);
}

TEST_F(Epilogues, OfAProductThatIsReadTwiceAtOnce) {
  Want(New(Opcode::kMul, {c_, c_}));
  Expect(1, 1);
}

// A convolution of 3x3 that keeps the size of an image.
ConvolutionDesc OfOneImage(int64_t side, int64_t channels) {
  ConvolutionDesc desc;
  desc.batch = 1, desc.in_channels = desc.out_channels = channels;
  for (int i : {0, 1}) desc.input[i] = desc.output[i] = side, desc.filter[i] = 3, desc.pad_before[i] = 1;
  return desc;
}

// Its bias and activation, and the sum with the activation of another one, as residual networks have it.
TEST_F(Epilogues, OfConvolutions) {
  constexpr int64_t kSide = 4, kChannels = 3, kOutputs = kSide * kSide * kChannels;
  capture_.list().commands.clear();
  ConvolutionDesc desc = OfOneImage(kSide, kChannels);
  float* const filter = Given(Whole(3 * 3 * kChannels * kChannels));
  float *const x = Given(Whole(kOutputs)), *const y = Computed(kOutputs), *const z = Computed(kOutputs);
  Record(desc, {x, filter}, {y});
  float *const biased = Computed(kOutputs), *const bias = Given(Whole(kChannels));
  Launch(SingleOpProgram(Opcode::kAdd, DType::kFloat), {kSide * kSide, kChannels},
         {{y, {kChannels, 1}}, {bias, {0, 1}}}, {biased});
  float *const activated = Computed(kOutputs), *const sum = Computed(kOutputs);
  Op(Opcode::kAbs, {biased}, activated, kOutputs);
  desc.direction = Direction::kDataGradient;
  Record(desc, {filter, activated}, {z});
  Op(Opcode::kAdd, {x, z}, sum, kOutputs);
  Want(sum);
  Expect(2, 2);
}

TEST_F(Epilogues, OperandsKeepTheirOrder) {
  float* x = Given(Whole(kElements));
  Want(New(Opcode::kSub, {x, c_}));
  Want(New(Opcode::kMinimum, {c_, Given(Whole(kElements))}));
  Expect(1, 1);
}

TEST_F(Epilogues, TheProductStaysIfOthersReadIt) {
  Want(New(Opcode::kAbs, {c_}));
  float* sums = Computed(kColumns);
  SumRows(c_, sums, kRows, kColumns);
  Want(sums);
  Expect(2, 1);
}

TEST_F(Epilogues, AndIfItIsWanted) {
  Want(c_);
  Want(New(Opcode::kAbs, {c_}));
  Expect(1, 1);
}

TEST_F(Epilogues, WhatReadsItFirstHasToBeElementwise) {
  float* sums = Computed(kColumns);
  SumRows(c_, sums, kRows, kColumns);
  Want(sums);
  Want(New(Opcode::kAbs, {c_}));
  Expect(3, 0);
}

// Turned, a part of it, and each row several times.
TEST_F(Epilogues, ElementByElement) {
  float* out = Computed(kElements);
  Launch(SingleOpProgram(Opcode::kAbs, DType::kFloat), {kColumns, kRows}, {{c_, {1, kColumns}}}, {out});
  Want(out);
  Expect(2, 0);
}
TEST_F(Epilogues, AllOfThem) {
  float* out = Computed(kElements - kColumns);
  Op(Opcode::kAbs, {c_}, out, kElements - kColumns);
  Want(out);
  Expect(2, 0);
}
TEST_F(Epilogues, FromTheFirstOn) {
  float* out = Computed(kElements - kColumns);
  Op(Opcode::kAbs, {c_ + kColumns}, out, kElements - kColumns);
  Want(out);
  Expect(2, 0);
}
TEST_F(Epilogues, OnceEach) {
  float* out = Computed(2 * kElements);
  Launch(SingleOpProgram(Opcode::kAbs, DType::kFloat), {2, kElements}, {{c_, {0, 1}}}, {out});
  Want(out);
  Expect(2, 0);
}

TEST_F(Epilogues, OfOneOfTwoProducts) {
  float* other = Computed(kElements);
  Lists::MatMul(a_, b_, other, 0, kRows, kInner, kColumns);
  Want(New(Opcode::kAdd, {c_, other}));
  Expect(2, 1);
}

// The product would be made of what it is not of: of a matrix after its update.
TEST_F(Epilogues, NotAcrossAnUpdateOfAMatrix) {
  float* sums = Computed(kColumns);
  SumRows(b_, sums, kInner, kColumns);
  Launch(SingleOpProgram(Opcode::kAdd, DType::kFloat), {kInner, kColumns}, {{b_, {kColumns, 1}}, {sums, {0, 1}}}, {b_});
  Want(New(Opcode::kAbs, {c_}));
  Expect(4, 0);
}
TEST_F(Epilogues, NorByTheUpdateItself) {
  float* square = Given(Whole(kColumns * kColumns));
  float* product = Computed(kColumns * kColumns);
  Lists::MatMul(square, square, product, 0, kColumns, kColumns, kColumns);
  Op(Opcode::kAbs, {product}, square, kColumns * kColumns);
  Expect(2, 0);
}
TEST_F(Epilogues, NotInPlaceOfWhatItReads) {
  float* v = Given(Whole(kElements));
  Op(Opcode::kAdd, {v, c_}, v, kElements);
  Expect(2, 0);
}

TEST_F(Epilogues, TheFirstOutputIsOfTheProductsType) {
  ProgramBuilder builder;
  const auto x = builder.Input(DType::kFloat), y = builder.Input(DType::kFloat);
  builder.Output(builder.Cast(builder.Apply(Opcode::kLess, x, y), DType::kInt32));
  builder.Output(builder.Apply(Opcode::kSub, x, y));
  float *less = Computed(kElements), *difference = Computed(kElements);
  Launch(builder.Build(), {kElements}, {{c_, {1}}, {Given(Whole(kElements)), {1}}}, {less, difference});
  Want(less);
  Want(difference);
  Expect(1, 1);
}
TEST_F(Epilogues, OrThereIsNone) {
  ProgramBuilder builder;
  builder.Output(builder.Cast(builder.Input(DType::kFloat), DType::kInt32));
  float* whole = Computed(kElements);
  Launch(builder.Build(), {kElements}, {{c_, {1}}}, {whole});
  Want(whole);
  Expect(2, 0);
}

TEST_F(Epilogues, FloatsTakeThePlaceOfIntegersThatBytesMade) {
  capture_.list().commands.clear();
  MatMulDesc desc;
  desc.type = DType::kInt8;
  desc.c_type = DType::kInt32;
  desc.m = kRows, desc.k = kInner, desc.n = kColumns;
  if (!TheMachine().device->capabilities().Supports(desc)) GTEST_SKIP() << "the backend has no products of bytes";
  Record(desc, {a_, b_}, {c_});
  ProgramBuilder builder;
  builder.Output(builder.Cast(builder.Input(DType::kInt32), DType::kFloat));
  float* whole = Computed(kElements);
  Launch(builder.Build(), {kElements}, {{c_, {1}}}, {whole});
  Want(whole);
  Expect(1, 1);
}

TEST_F(Epilogues, NoMoreInputsThanACommandHas) {
  for (int inputs : {Program::kMaxInputs - 1, Program::kMaxInputs}) {
    SCOPED_TRACE(inputs);
    ProgramBuilder builder;
    auto sum = builder.Input(DType::kFloat);
    std::vector<std::pair<const float*, Dims>> in = {{c_, {1}}};
    while (static_cast<int>(in.size()) < inputs) {
      sum = builder.Apply(Opcode::kAdd, sum, builder.Input(DType::kFloat));
      in.push_back({Given(Whole(kElements)), {1}});
    }
    builder.Output(sum);
    capture_.list().commands.clear();
    MatMul();
    float* out = Computed(kElements);
    Launch(builder.Build(), {kElements}, in, {out});
    Want(out);
    if (inputs < Program::kMaxInputs) {
      Expect(1, 1);
    } else {
      Expect(2, 0);
    }
    capture_.list().live_out.clear();
  }
}

// As the device, but for the way of epilogues. Those whose instructions each change the value of the one before run in
// registers.
class HasRegisters final : public ForwardedCapabilities {
 public:
  explicit HasRegisters(EpilogueWay of_others = EpilogueWay::kPartByPart)
      : ForwardedCapabilities(TheMachine().device->capabilities()), of_others_(of_others) {}
  EpilogueWay WayOfEpilogue(const MatMulDesc& desc) const override { return WayOf(*desc.epilogue.program); }
  EpilogueWay WayOfEpilogue(const ConvolutionDesc& desc) const override { return WayOf(*desc.epilogue.program); }

 private:
  EpilogueWay WayOf(const Program& p) const {
    int value = 0;
    bool is_chain = p.num_outputs() == 1;
    for (const Instr& instr : p.instrs()) {
      const int a = instr.a, b = Info(instr.op).arity > 1 ? instr.b : 0;
      is_chain =
          is_chain && ((a == value && b < p.first_instr_register()) || (b == value && a < p.first_instr_register()));
      value = value == 0 ? p.first_instr_register() : value + 1;
    }
    return is_chain ? EpilogueWay::kInRegisters : of_others_;
  }

  const EpilogueWay of_others_;
};

// The sums of a product's columns after an elementwise command, as of an activation that is averaged.
class SummedEpilogues : public Epilogues {
 protected:
  // That a list of two commands has so many instructions in the product's epilogue, and so many in the reduction.
  void ExpectInstructions(size_t of_epilogue, size_t of_reduction, const Capabilities& can) {
    float* const sums = Computed(kColumns);
    SumRows(New(Opcode::kAbs, {c_}), sums, kRows, kColumns);
    Want(sums);
    CommandList list = capture_.list();
    Optimize(can, {}, &list);
    ASSERT_EQ(list.commands.size(), 2u) << Text(list);
    const auto& product = std::get<MatMulDesc>(list.commands[0].desc);
    EXPECT_EQ(HasEpilogue(product) ? product.epilogue.program->instrs().size() : 0, of_epilogue) << Text(list);
    EXPECT_EQ(std::get<ReduceDesc>(list.commands[1].desc).source.program->instrs().size(), of_reduction) << Text(list);
    ExpectSame();
  }
};

TEST_F(SummedEpilogues, AreComputedInRegisters) { ExpectInstructions(1, 0, HasRegisters()); }

TEST_F(SummedEpilogues, OrElseByTheReduction) {
  const class : public ForwardedCapabilities {
   public:
    using ForwardedCapabilities::ForwardedCapabilities;
    EpilogueWay WayOfEpilogue(const MatMulDesc&) const override { return EpilogueWay::kPartByPart; }
  } has_none(TheMachine().device->capabilities());
  ExpectInstructions(0, 1, has_none);
}

// Several products, each scaled and shifted by column, that are added up.
class PartsOfEpilogues : public Epilogues {
 protected:
  float* OneMore() {
    float* const out = Computed(kElements);
    Lists::MatMul(a_, b_, out, 0, kRows, kInner, kColumns);
    return out;
  }
  float* ByColumn(Opcode op, const float* x, const float* columns) {
    float* const out = Computed(kElements);
    Launch(SingleOpProgram(op, DType::kFloat), {kRows, kColumns}, {{x, {kColumns, 1}}, {columns, {0, 1}}}, {out});
    return out;
  }
  float* Scaled(const float* x) {
    return ByColumn(Opcode::kAdd, ByColumn(Opcode::kMul, x, Given(Whole(kColumns))), Given(Whole(kColumns)));
  }
  // No part of it is that of a product.
  float* OfElements(const float* x) { return New(Opcode::kMul, {x, Given(Whole(kElements))}); }
  void ExpectDivided(size_t commands, int epilogues) { Expect(commands, epilogues, HasRegisters()); }
};

TEST_F(PartsOfEpilogues, BelongToTheirProducts) {
  float* const other = OneMore();
  Want(New(Opcode::kAbs, {New(Opcode::kAdd, {Scaled(c_), Scaled(other)})}));
  ExpectDivided(2, 2);
}

TEST_F(PartsOfEpilogues, AreOnesWithoutThemWhereTheDeviceGainsNothing) {
  float* const other = OneMore();
  Want(New(Opcode::kAbs, {New(Opcode::kAdd, {Scaled(c_), Scaled(other)})}));
  Expect(2, 1, HasRegisters(EpilogueWay::kInRegisters));  // all are there already
}

TEST_F(PartsOfEpilogues, OfThreeProducts) {
  float *const second = OneMore(), *const third = OneMore();
  Want(New(Opcode::kSub, {New(Opcode::kSub, {Scaled(c_), Scaled(second)}), Scaled(third)}));
  ExpectDivided(3, 3);
}

TEST_F(PartsOfEpilogues, OfThoseProductsThatHaveSome) {
  float *const second = OneMore(), *const third = OneMore();
  Want(New(Opcode::kAdd, {New(Opcode::kAdd, {OfElements(c_), Scaled(second)}), Scaled(third)}));
  Want(third);
  Expect(3, 2, HasRegisters());
}

// The first product has the part, and the second one the rest.
TEST_F(PartsOfEpilogues, OfWhicheverProductHasOne) {
  float* const other = OneMore();
  Want(New(Opcode::kAdd, {Scaled(c_), OfElements(other)}));
  ExpectDivided(2, 2);
}

// The columns are added to one another before they meet the product.
TEST_F(PartsOfEpilogues, HaveWhatIsComputedOfColumns) {
  float *const other = OneMore(), *const sum = Computed(kElements);
  Launch(SingleOpProgram(Opcode::kAdd, DType::kFloat), {kRows, kColumns},
         {{Given(Whole(kColumns)), {0, 1}}, {Given(Whole(kColumns)), {0, 1}}}, {sum});
  Want(New(Opcode::kSub, {OfElements(c_), New(Opcode::kMul, {sum, New(Opcode::kAbs, {other})})}));
  ExpectDivided(2, 2);
}

TEST_F(PartsOfEpilogues, HaveTheElementsSeveralTimes) {
  float* const other = OneMore();
  Want(New(Opcode::kAdd, {Scaled(c_), New(Opcode::kMul, {Scaled(other), other})}));
  ExpectDivided(2, 2);
}

TEST_F(PartsOfEpilogues, LeaveOneValue) {
  float* const other = OneMore();
  Want(New(Opcode::kMul, {New(Opcode::kAdd, {OfElements(c_), Scaled(other)}), other}));
  Expect(2, 1, HasRegisters());
}

TEST_F(PartsOfEpilogues, HaveNothingThatOthersRead) {
  float* const other = OneMore();
  Want(New(Opcode::kAdd, {OfElements(c_), Scaled(other)}));
  float* const sums = Computed(kColumns);
  SumRows(other, sums, kRows, kColumns);
  Want(sums);
  Expect(3, 1, HasRegisters());
}
TEST_F(PartsOfEpilogues, NorWhatIsWanted) {
  float* const other = OneMore();
  Want(New(Opcode::kAdd, {OfElements(c_), Scaled(other)}));
  Want(other);
  Expect(2, 1, HasRegisters());
}
TEST_F(PartsOfEpilogues, NorWhatIsWantedOfThem) {
  float *const other = OneMore(), *const scaled = ByColumn(Opcode::kMul, other, Given(Whole(kColumns)));
  Want(New(Opcode::kAdd, {OfElements(c_), scaled}));
  Want(scaled);
  Expect(2, 1, HasRegisters());
}

TEST_F(PartsOfEpilogues, DoNotReadElements) {
  float* const other = OneMore();
  Want(New(Opcode::kAdd, {OfElements(c_), OfElements(other)}));
  Expect(2, 1, HasRegisters());
}
TEST_F(PartsOfEpilogues, NorOneNumberForEachRow) {
  float *const other = OneMore(), *const product = Computed(kElements);
  Launch(SingleOpProgram(Opcode::kMul, DType::kFloat), {kRows, kColumns},
         {{other, {kColumns, 1}}, {Given(Whole(kRows)), {1, 0}}}, {product});
  Want(New(Opcode::kAdd, {OfElements(c_), product}));
  Expect(2, 1, HasRegisters());
}
TEST_F(PartsOfEpilogues, NorColumnsThatAreWrittenLater) {
  float *const other = OneMore(), *const scale = Given(Whole(kColumns));
  Op(Opcode::kNeg, {scale}, scale, kColumns);
  Want(New(Opcode::kAdd, {OfElements(c_), ByColumn(Opcode::kMul, other, scale)}));
  Expect(3, 1, HasRegisters());
}

// A function's last bit may depend on the way.
TEST_F(PartsOfEpilogues, HaveNoFunctions) {
  float* const other = OneMore();
  Want(New(Opcode::kSigmoid, {New(Opcode::kAdd, {Scaled(c_), Scaled(other)})}));
  Expect(2, 1, HasRegisters());
}

// Their values are rounded once, with the sum.
TEST_F(PartsOfEpilogues, HaveNoValuesOf16Bits) {
  capture_.list().commands.clear();
  MatMulDesc desc;
  desc.type = DType::kBFloat16;
  desc.m = kRows, desc.k = kInner, desc.n = kColumns;
  if (!TheMachine().device->capabilities().Supports(desc)) GTEST_SKIP() << "the backend has no products of bfloat16";
  const auto computed = [&] {
    return static_cast<float*>(capture_.NewBuffer(kElements * SizeOf(desc.type), Buffer::Kind::kComputed));
  };
  const auto reduced = [&](int64_t n) {
    auto* const out = static_cast<float*>(capture_.NewBuffer(n * SizeOf(desc.type), Buffer::Kind::kComputed));
    Launch(CastProgram(DType::kFloat, desc.type), {n}, {{Given(Whole(n)), {1}}}, {out});
    return out;
  };
  float *const a = reduced(kRows * kInner), *const b = reduced(kInner * kColumns), *const scale = reduced(kColumns);
  float* parts[2];
  for (float*& part : parts) {
    float* const product = computed();
    Record(desc, {a, b}, {product});
    part = computed();
    Launch(SingleOpProgram(Opcode::kMul, desc.type), {kRows, kColumns}, {{product, {kColumns, 1}}, {scale, {0, 1}}},
           {part});
  }
  float* const sum = computed();
  Launch(SingleOpProgram(Opcode::kAdd, desc.type), {kElements}, {{parts[0], {1}}, {parts[1], {1}}}, {sum});
  Want(sum);
  Expect(5, 1, HasRegisters());
}

// A product has two operands, and together they read two products and the columns.
TEST_F(PartsOfEpilogues, AreThereIfTheWholeHasTooManyInputs) {
  float* sum = OneMore();
  for (int i = 0; i < Program::kMaxInputs - 2; ++i) sum = ByColumn(Opcode::kAdd, sum, Given(Whole(kColumns)));
  Want(New(Opcode::kAdd, {c_, sum}));
  ExpectDivided(2, 2);
}

// As residual networks have it where the shortcut has a convolution.
TEST_F(PartsOfEpilogues, OfConvolutions) {
  constexpr int64_t kSide = 4, kChannels = 3, kOutputs = kSide * kSide * kChannels;
  capture_.list().commands.clear();
  ConvolutionDesc desc = OfOneImage(kSide, kChannels);
  float* scaled[2];
  for (float*& y : scaled) {
    float* const x = Computed(kOutputs);
    Record(desc, {Given(Whole(kOutputs)), Given(Whole(3 * 3 * kChannels * kChannels))}, {x});
    y = Computed(kOutputs);
    Launch(SingleOpProgram(Opcode::kMul, DType::kFloat), {1, kSide, kSide, kChannels},
           {{x, {kOutputs, kSide * kChannels, kChannels, 1}}, {Given(Whole(kChannels)), {0, 0, 0, 1}}}, {y});
  }
  float *const sum = Computed(kOutputs), *const activated = Computed(kOutputs);
  Op(Opcode::kAdd, {scaled[0], scaled[1]}, sum, kOutputs);
  Op(Opcode::kAbs, {sum}, activated, kOutputs);
  Want(activated);
  ExpectDivided(2, 2);
}

}  // namespace
}  // namespace xpu::commands
