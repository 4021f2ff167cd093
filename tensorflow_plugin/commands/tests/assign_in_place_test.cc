// New values of inputs that are written over the old ones, and divisions that cannot fail.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kElements = 96;

class AssignsInPlace : public Lists {
 protected:
  // Expects that commands write `value` into `input`, or do not, and that the same numbers are there in the end.
  void Expect(bool is_in_place, const float* input, const float* value) {
    CommandList list = capture_.list();
    const int to = capture_.Resolve(input).buffer, from = capture_.Resolve(value).buffer;
    EXPECT_EQ(AssignInPlace({{to, from}}, &list), std::vector<bool>{is_in_place}) << Text(list);
    EXPECT_EQ(list.live_out.size(), is_in_place ? 0u : 1u);
    const std::vector<std::vector<float>> want = Run(capture_.list());
    const std::vector<std::vector<float>> got = Run(list);
    // Given buffers are kept, in order, then the value, which has come last.
    ASSERT_EQ(got.size(), want.size() - (is_in_place ? 1 : 0));
    for (size_t i = 0; i < got.size(); ++i) {
      const bool is_input = is_in_place && contents_[i].first == to;
      EXPECT_EQ(got[i], want[is_input ? want.size() - 1 : i]) << i << "\n" << Text(list);
    }
  }
  float *const variable_ = Given(Whole(kElements)), *const step_ = Given(Whole(kElements));
};

TEST_F(AssignsInPlace, AnUpdate) {
  float* value = Computed(kElements);
  Op(Opcode::kSub, {variable_, step_}, value, kElements);
  Want(value);
  Expect(true, variable_, value);
}

TEST_F(AssignsInPlace, AnUpdateThatIsUpdated) {
  float* value = Computed(kElements);
  Op(Opcode::kSub, {variable_, step_}, value, kElements);
  Op(Opcode::kMul, {value, step_}, value, kElements);
  Want(value);
  Expect(true, variable_, value);
}

TEST_F(AssignsInPlace, AValueOfOtherNumbers) {
  float *value = Computed(kElements), *other = Computed(kElements);
  Op(Opcode::kNeg, {variable_}, other, kElements);
  Op(Opcode::kAbs, {step_}, value, kElements);
  Op(Opcode::kAdd, {other, value}, value, kElements);
  Want(value);
  Expect(true, variable_, value);
}

TEST_F(AssignsInPlace, NotWhereTheOldValueIsReadLater) {
  float *value = Computed(kElements), *late = Given(Whole(kElements));
  Op(Opcode::kSub, {variable_, step_}, value, kElements);
  Op(Opcode::kAdd, {variable_, value}, late, kElements);
  Want(value);
  Expect(false, variable_, value);
}

TEST_F(AssignsInPlace, NotWhereElementsAreReadFromOtherPlaces) {
  float* value = Computed(kElements);
  Launch(SingleOpProgram(Opcode::kSub, DType::kFloat), {8, 12}, {{variable_, {1, 8}}, {step_, {12, 1}}}, {value});
  Want(value);
  Expect(false, variable_, value);
}

TEST_F(AssignsInPlace, NotWhereAnotherCommandReadsIt) {
  float* value = Computed(64);
  float* const matrix = Given(Whole(64));
  MatMul(matrix, matrix, value, 0, 8, 8, 8);
  Want(value);
  Expect(false, matrix, value);
}

TEST_F(AssignsInPlace, NotWhereAPartIsWritten) {
  float* value = Computed(kElements);
  Op(Opcode::kNeg, {variable_}, value, kElements / 2);
  Op(Opcode::kNeg, {step_}, value + kElements / 2, kElements / 2);
  Want(value);
  Expect(false, variable_, value);
}

TEST_F(AssignsInPlace, NotWhereAnInputIsWritten) {
  float* value = Computed(kElements);
  Op(Opcode::kNeg, {variable_}, variable_, kElements);
  Op(Opcode::kSub, {variable_, step_}, value, kElements);
  Want(value);
  Expect(false, variable_, value);
}

TEST_F(AssignsInPlace, NotWhereACommandMayFailLater) {
  float *value = Computed(kElements), *row = Given({0});
  Op(Opcode::kSub, {variable_, step_}, value, kElements);
  GatherDesc gather;
  gather.element_size = sizeof(float);
  gather.index_type = DType::kInt32;
  gather.num_indices = 1;
  gather.dims = {kElements};
  const DescribeError explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
  Record(gather, {step_, Given({0})}, {row}, &explain);  // the bits of a float's zero are an index
  Want(value);
  Expect(false, variable_, value);
}

class SafeDivisions : public Lists {
 protected:
  // x / divisors, for a scalar or for as many as there are numbers; true if it may fail.
  bool MayFail(const std::vector<int32_t>& divisors, bool is_known = true, Opcode op = Opcode::kFloorDiv) {
    constexpr int64_t kNumbers = 4;
    capture_.list().commands.clear();  // those of calls before
    void* const memory = TheMachine().device->Allocate(1024);
    Machine& m = TheMachine();
    EXPECT_TRUE(m.stream->CopyHostToDevice(memory, divisors.data(), divisors.size() * sizeof(int32_t)).ok());
    m.stream->Wait();
    ElementwiseDesc desc;
    desc.program = SingleOpProgram(op, DType::kInt32);
    desc.shape = {kNumbers};
    desc.in_strides[0] = {1};
    desc.in_strides[1] = {divisors.size() == 1 ? 0 : 1};
    const DescribeError explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
    Record(desc, {Given(Whole(kNumbers)), static_cast<const float*>(memory)}, {Computed(kNumbers)}, &explain);
    CommandList list = capture_.list();
    EXPECT_TRUE(list.commands.back().may_fail());
    FindSafeDivisions(
        [&](int buffer) -> std::vector<char> {
          EXPECT_EQ(list.buffers[buffer].address, memory);
          if (!is_known) return {};
          const char* const bytes = reinterpret_cast<const char*>(divisors.data());
          return {bytes, bytes + divisors.size() * sizeof(int32_t)};
        },
        &list);
    TheMachine().device->Deallocate(memory);
    return list.commands.back().may_fail();
  }
};

TEST_F(SafeDivisions, AreThoseByConstantsOtherThanZero) {
  EXPECT_FALSE(MayFail({256}));  // whose first byte is zero
  EXPECT_FALSE(MayFail({-1}, true, Opcode::kTruncateMod));
  EXPECT_FALSE(MayFail({1, 2, 3, 4}));
  EXPECT_TRUE(MayFail({0}));
  EXPECT_TRUE(MayFail({1, 2, 3, 0}));
  EXPECT_TRUE(MayFail({7}, /*is_known=*/false));
  EXPECT_TRUE(MayFail({2}, true, Opcode::kPow));
}

}  // namespace
}  // namespace xpu::commands
