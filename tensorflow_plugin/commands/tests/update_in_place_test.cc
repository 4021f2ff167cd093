// Buffers that begin as copies of others and take their place.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kRows = 8, kInner = 16, kElements = kRows * kInner;

class UpdatesInPlace : public Lists {
 protected:
  // A copy of `from`, of which one row is computed anew.
  float* Updated(const float* from, int64_t row, const float* value) {
    float* out = Computed(kElements);
    CopyAll(from, out);
    Negate(value, out, row);
    return out;
  }
  void CopyAll(const float* from, float* to) { Copy(from, to, {kElements}, {1}, {1}); }
  void Negate(const float* value, float* to, int64_t row) { Op(Opcode::kNeg, {value}, to + row * kInner, kInner); }

  // That so many copies are left, and the same results are there.
  void Expect(int copies, const std::vector<const float*>& donated = {}) {
    CommandList list = capture_.list();
    std::vector<int> may_be_written;
    for (const float* address : donated) may_be_written.push_back(capture_.Resolve(address).buffer);
    const std::vector<ReplacedInput> replaced_inputs = UpdateInPlace(may_be_written, &list);
    EXPECT_EQ(Count<CopyStridedDesc>(list), copies) << Text(list);
    pairs_ = static_cast<int>(replaced_inputs.size());
    // A buffer that replaces an input has its contents, and the input is no result.
    const std::vector<std::vector<float>> want = Run(capture_.list());
    auto contents = contents_;
    for (const ReplacedInput& replaced : replaced_inputs) {
      for (auto& [buffer, values] : contents_) {
        if (buffer == replaced.input) buffer = replaced.replacement;
      }
    }
    const std::vector<std::vector<float>> got = Run(list);
    contents_ = std::move(contents);
    if (replaced_inputs.empty()) ExpectEqual(want, got, Text(list));
    for (const ReplacedInput& replaced : replaced_inputs) {
      EXPECT_EQ(IndexOf(capture_.list(), replaced.replacement) >= 0, true);
      EXPECT_EQ(want[IndexOf(capture_.list(), replaced.replacement)],
                got[IndexOf(list, replaced.replacement, replaced.input)])
          << Text(list);
    }
  }

  // Which of Run's results a buffer is; `without`: contents that are not there.
  int IndexOf(const CommandList& list, int buffer, int without = -1) const {
    std::set<int> kept(list.live_out.begin(), list.live_out.end());
    for (const auto& [given, values] : contents_) {
      if (given != without) kept.insert(given);
    }
    int index = 0;
    for (int b : kept) {
      if (b == buffer) return index;
      ++index;
    }
    return -1;
  }

  int pairs_ = 0;
  float *const given_ = Given(Whole(kElements)), *const value_ = Given(Whole(kInner));
};

TEST_F(UpdatesInPlace, AChain) {
  float* first = Computed(kElements);
  Op(Opcode::kAbs, {given_}, first, kElements);
  Want(Updated(Updated(first, 1, value_), 2, value_));
  Expect(0);
}

TEST_F(UpdatesInPlace, AGivenOne) {
  Want(Updated(Updated(given_, 1, value_), 2, value_));
  Expect(0, {given_});
  EXPECT_EQ(pairs_, 1);
}

TEST_F(UpdatesInPlace, NotAGivenOneThatStays) {
  Want(Updated(given_, 1, value_));
  Expect(1);
}

// Its owner sees what is written into it.
TEST_F(UpdatesInPlace, NotAGivenOneThatIsWritten) {
  Op(Opcode::kNeg, {given_}, given_, kElements);
  Want(Updated(given_, 1, value_));
  Expect(1, {given_});
}

TEST_F(UpdatesInPlace, NotWhatIsWanted) {
  float* first = Computed(kElements);
  Op(Opcode::kAbs, {given_}, first, kElements);
  Want(first);
  Want(Updated(first, 1, value_));
  Expect(1);
}

TEST_F(UpdatesInPlace, NotWhatIsReadLater) {
  float *first = Computed(kElements), *sum = Computed(kElements);
  Op(Opcode::kAbs, {given_}, first, kElements);
  float* second = Updated(first, 1, value_);
  Op(Opcode::kAdd, {first, second}, sum, kElements);
  Want(sum);
  Expect(1);
}

TEST_F(UpdatesInPlace, WhatIsReadBeforeTheChange) {
  float *first = Computed(kElements), *sum = Computed(kElements), *second = Computed(kElements);
  Op(Opcode::kAbs, {given_}, first, kElements);
  CopyAll(first, second);
  Op(Opcode::kAdd, {first, second}, sum, kElements);
  Negate(value_, second, 3);
  Want(sum);
  Want(second);
  Expect(0);
}

TEST_F(UpdatesInPlace, NotWhatOverwritesTheChange) {
  float *first = Computed(kElements), *second = Computed(kElements);
  Op(Opcode::kAbs, {given_}, first, kElements);
  Negate(value_, second, 3);
  CopyAll(first, second);
  Negate(value_, second, 5);
  Want(second);
  Expect(1);
}

TEST_F(UpdatesInPlace, NotWhatIsWrittenInBetween) {
  float *first = Computed(kElements), *second = Computed(kElements);
  Op(Opcode::kAbs, {given_}, first, kElements);
  CopyAll(first, second);
  Op(Opcode::kSign, {given_}, first, kElements);
  Negate(value_, second, 5);
  Want(second);
  Expect(1);
}

TEST_F(UpdatesInPlace, ThePartsOfOne) {
  float *first = Computed(kElements), *second = Computed(kElements);
  Op(Opcode::kAbs, {given_}, first, kElements);
  for (int64_t part = 0; part < 2; ++part) {
    const int64_t at = part * kElements / 2;
    Copy(first, second, {kElements / 2}, {1}, {1}, at, at);
    Negate(value_, second, part * kRows / 2 + 1);
  }
  Want(second);
  Expect(0);
}

TEST_F(UpdatesInPlace, NotToAnotherPlace) {
  float *first = Computed(kElements), *second = Computed(kElements);
  Op(Opcode::kAbs, {given_}, first, kElements);
  Copy(first, second, {kElements / 2}, {1}, {1}, kElements / 2, 0);
  Copy(first, second, {kElements / 2}, {1}, {1}, 0, kElements / 2);
  Negate(value_, second, 1);
  Want(second);
  Expect(2);
}

TEST_F(UpdatesInPlace, OneOfTwo) {
  float* first = Computed(kElements);
  Op(Opcode::kAbs, {given_}, first, kElements);
  Want(Updated(first, 1, value_));
  Want(Updated(first, 2, value_));
  Expect(1);
}

}  // namespace
}  // namespace xpu::commands
