// Invariants are computed once, and values that change are not.
#include "tensorflow_plugin/commands/hoist.h"

#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kRows = 6, kInner = 8, kColumns = 10, kWeights = kInner * kColumns, kElements = kRows * kColumns;

class Hoisting : public Lists {
 protected:
  float* New(Opcode op, std::vector<const float*> in, int64_t n = kWeights) {
    float* out = Computed(n);
    Op(op, std::move(in), out, n);
    return out;
  }
  const float* Product(const float* weights) {
    float* out = Computed(kElements);
    MatMul(x_, weights, out, 0, kRows, kInner, kColumns);
    Want(out);
    return out;
  }

  // That so many commands run once, of the weights alone, and so many results of them are kept; and that all computes
  // what it did.
  void Expect(size_t hoisted, size_t kept) {
    CommandList list = capture_.list();
    std::vector<bool> invariant(list.buffers.size(), false);
    invariant[capture_.Resolve(w_).buffer] = true;
    std::vector<bool> of;
    const Capabilities& can = TheMachine().device->capabilities();
    EXPECT_EQ(HoistableBytes(can, list, invariant, &of) > 0, hoisted > 0 || may_);
    PackOperands(can, invariant, &list);
    invariant.resize(list.buffers.size(), false);
    const CommandList first = SplitInvariants(invariant, &list);
    EXPECT_EQ(first.commands.size(), hoisted) << Text(first);
    EXPECT_EQ(first.live_out.size(), kept) << Text(first);
    for (int b : first.live_out) EXPECT_EQ(list.buffers[b].kind, Buffer::Kind::kInput);
    Prepend(first, &list);
    ExpectEqual(Run(capture_.list()), Run(list), Text(list));
  }

  bool may_ = false;  // before the passes there is something
  float *const w_ = Given(Whole(kWeights)), *const x_ = Given(Whole(kRows * kInner));
};

TEST_F(Hoisting, WhatHangsOnNothingElse) {
  Product(New(Opcode::kAbs, {w_}));
  Expect(1, 1);
}

TEST_F(Hoisting, TheLastOfAChain) {
  Product(New(Opcode::kAdd, {New(Opcode::kAbs, {w_}), w_}));
  Expect(2, 1);
}

TEST_F(Hoisting, NotWhatHangsOnAnythingElse) {
  float* other = Given(Whole(kWeights));
  Product(New(Opcode::kAdd, {New(Opcode::kAbs, {w_}), other}));
  Product(New(Opcode::kAbs, {other}));
  Expect(1, 1);
}

TEST_F(Hoisting, NotOfWhatTheListWrites) {
  Product(New(Opcode::kAbs, {w_}));
  Op(Opcode::kNeg, {w_}, w_, kWeights);
  Expect(0, 0);
}

TEST_F(Hoisting, NotWhatIsWanted) {
  float* absolute = New(Opcode::kAbs, {w_});
  Want(absolute);
  Product(absolute);
  Expect(0, 0);
}

TEST_F(Hoisting, NotWhatNobodyReads) {
  New(Opcode::kAbs, {w_});
  Product(w_);
  may_ = true;
  Expect(0, 0);
}

TEST_F(Hoisting, NotWhatIsMuchLarger) {
  constexpr int64_t kTimes = 100;
  float* repeated = Computed(kTimes * kWeights);
  Launch(SingleOpProgram(Opcode::kAbs, DType::kFloat), {kTimes, kWeights}, {{w_, {0, 1}}}, {repeated});
  Want(New(Opcode::kNeg, {repeated}, kTimes * kWeights));
  Expect(0, 0);
}

// A small value is kept, whatever it is computed of.
TEST_F(Hoisting, WhatIsMuchLargerInBetween) {
  constexpr int64_t kTimes = 100;
  float *repeated = Computed(kTimes * kWeights), *sums = Computed(kWeights);
  Launch(SingleOpProgram(Opcode::kAbs, DType::kFloat), {kTimes, kWeights}, {{w_, {0, 1}}}, {repeated});
  SumRows(repeated, sums, kTimes, kWeights);
  Product(sums);
  Expect(2, 1);
}

// A large value's own sources are kept.
TEST_F(Hoisting, WhatIsMuchLargerIsComputedOfWhatIsKept) {
  constexpr int64_t kTimes = 100;
  float* repeated = Computed(kTimes * kWeights);
  Launch(SingleOpProgram(Opcode::kNeg, DType::kFloat), {kTimes, kWeights}, {{New(Opcode::kAbs, {w_}), {0, 1}}},
         {repeated});
  float* both = Computed(kTimes * kWeights);
  Op(Opcode::kAdd, {repeated, Given(Whole(kTimes * kWeights))}, both, kTimes * kWeights);
  Want(both);
  Expect(1, 1);
}

TEST_F(Hoisting, WhatMayFail) {
  const DescribeError explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
  const auto gather = [&](float index, const DescribeError* may_fail) {
    // Bits of small integers.
    int32_t bits[2] = {static_cast<int32_t>(index), 0};
    std::vector<float> indices(2);
    std::memcpy(indices.data(), bits, sizeof(bits));
    float* const address = Given(indices);
    GatherDesc desc;
    desc.element_size = sizeof(float);
    desc.index_type = DType::kInt32;
    desc.inner = kColumns;
    desc.num_indices = 2;
    desc.dims = {kInner};
    float* const out = Computed(2 * kColumns);
    Record(desc, {w_, address}, {out}, may_fail);
    Want(New(Opcode::kNeg, {out}, 2 * kColumns));
    return capture_.Resolve(address).buffer;
  };
  // Only the first of two equal ones is checked.
  const int indices[] = {gather(3, &explain), gather(3, nullptr)};
  CommandList list = capture_.list();
  std::vector<bool> invariant(list.buffers.size(), false);
  invariant[capture_.Resolve(w_).buffer] = invariant[indices[1]] = true;
  // The one of indices that may change stays where it is; the other one is checked by itself.
  const CommandList first = SplitInvariants(invariant, &list);
  ASSERT_EQ(first.commands.size(), 1u) << Text(first);
  EXPECT_TRUE(first.commands[0].may_fail());
  invariant[indices[0]] = true;
  list = capture_.list();
  EXPECT_EQ(SplitInvariants(invariant, &list).commands.size(), 2u);
}

TEST_F(Hoisting, NotAPartOfWhatElseIsWritten) {
  float* both = Computed(2 * kWeights);
  Copy(New(Opcode::kAbs, {w_}), both, {kWeights}, {1}, {1});
  Copy(Given(Whole(kWeights)), both, {kWeights}, {1}, {1}, 0, kWeights);
  Want(New(Opcode::kNeg, {both}, 2 * kWeights));
  Expect(1, 1);
}

TEST_F(Hoisting, NotWhatIsReadBetweenTwoWrites) {
  float* value = New(Opcode::kAbs, {w_});
  Want(New(Opcode::kAdd, {value, Given(Whole(kWeights))}));
  Op(Opcode::kNeg, {w_}, value, kWeights);
  Product(value);
  Expect(0, 0);
}

TEST_F(Hoisting, FiltersArePacked) {
  ConvolutionDesc desc;
  desc.batch = 1, desc.in_channels = 2, desc.out_channels = kWeights / 2 / 4;
  for (int i : {0, 1}) desc.input[i] = 3, desc.output[i] = desc.filter[i] = 2;
  may_ = true;
  float *const x = Given(Whole(9 * 2)), *const y = Computed(4 * desc.out_channels);
  Record(desc, {x, w_}, {y});
  Want(y);
  const size_t packed = TheMachine().device->capabilities().PackedFilterBytes(desc) > 0 ? 1 : 0;
  Expect(packed, packed);
}

// A product of so many rows that packing pays on the CPU, and all weights.
MatMulDesc ManyRows() {
  MatMulDesc desc;
  desc.m = 40, desc.k = 5, desc.n = kWeights / desc.k;
  return desc;
}

// Once for all products that read them in the same way.
TEST_F(Hoisting, MatricesOfManyRowsArePacked) {
  MatMulDesc whole = ManyRows(), in_batch = whole, other = whole;
  other.k = kInner, other.n = kColumns;
  in_batch.m = whole.m / 2, in_batch.batch = {2};
  in_batch.a_batch_strides = {in_batch.m * in_batch.k}, in_batch.b_batch_strides = {0};
  for (const MatMulDesc& desc : {whole, in_batch, other}) {
    float* const y = Computed(whole.m * desc.n);
    Record(desc, {Given(Whole(whole.m * desc.k)), w_}, {y});
    Want(y);
  }
  ConvolutionDesc same;
  same.spatial_rank = 1, same.batch = whole.m, same.in_channels = whole.k, same.out_channels = whole.n;
  const size_t packed = TheMachine().device->capabilities().PackedFilterBytes(same) > 0 ? 2 : 0;
  Expect(packed, packed);
}

// They are no convolutions: a turned matrix, rows with gaps, and a matrix for each of a batch.
TEST_F(Hoisting, NotMatricesOfOtherProducts) {
  MatMulDesc turned = ManyRows(), with_gaps = turned, in_batch = turned;
  turned.transpose_b = true;
  with_gaps.lda = with_gaps.k + 1;
  in_batch.batch = {2}, in_batch.n /= 2;
  in_batch.a_batch_strides = {in_batch.m * in_batch.k}, in_batch.b_batch_strides = {in_batch.k * in_batch.n};
  for (const MatMulDesc& desc : {turned, with_gaps, in_batch}) {
    float* const y = Computed(2 * desc.m * desc.n);
    Record(desc, {Given(Whole(2 * desc.m * (desc.k + 1))), w_}, {y});
    Want(y);
  }
  Expect(0, 0);
}

TEST_F(Hoisting, MatricesOfBytesAreTransposed) {
  MatMulDesc desc;
  desc.type = desc.b_type = DType::kInt8;
  desc.c_type = DType::kInt32;
  desc.m = 3, desc.n = kColumns, desc.k = 4 * kInner;
  if (!TheMachine().device->capabilities().Supports(desc)) GTEST_SKIP() << "the backend has no products of bytes";
  const auto multiply = [&](bool transpose_b) {
    desc.transpose_b = transpose_b;
    float* const product = Computed(desc.m * desc.n);
    Record(desc, {x_, w_}, {product});
    Want(product);
  };
  multiply(true);
  Expect(0, 0);
  multiply(false);
  may_ = true;
  Expect(1, 1);
}

// Nobody could lay them out once.
TEST_F(Hoisting, NotThoseThatAreComputedOfSomethingElse) {
  ConvolutionDesc desc;
  desc.batch = 1, desc.in_channels = 2, desc.out_channels = kWeights / 2 / 4;
  for (int i : {0, 1}) desc.input[i] = 3, desc.output[i] = desc.filter[i] = 2;
  float *const x = Given(Whole(9 * 2)), *const y = Computed(4 * desc.out_channels);
  Record(desc, {x, New(Opcode::kAdd, {w_, Given(Whole(kWeights))})}, {y});
  Want(y);
  Expect(0, 0);
}

}  // namespace
}  // namespace xpu::commands
