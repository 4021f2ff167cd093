// Rows of floats become 8-bit integers in one command.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

class Quantization : public Lists {
 protected:
  float* Magnitudes(const float* x, int64_t n) {
    float* const y = Computed(n);
    Op(Opcode::kAbs, {x}, y, n);
    return y;
  }
  float* Binary(Opcode op, const Dims& shape, std::pair<const float*, Dims> a, std::pair<const float*, Dims> b) {
    float* const y = Computed(shape.num_elements());
    Launch(SingleOpProgram(op, DType::kFloat), shape, {std::move(a), std::move(b)}, {y});
    return y;
  }

  // The scales of rows, or of columns with another axis.
  float* Scales(const float* magnitudes, int64_t rows, int64_t cols, int axis = 1) {
    const int64_t n = axis == 1 ? rows : cols;
    float* const largest = Computed(n);
    ReduceMax(magnitudes, largest, rows, cols, axis);
    const float* const sums = Binary(Opcode::kAdd, {n}, {largest, {1}}, {epsilon_, {0}});
    return Binary(Opcode::kDiv, {n}, {levels_, {0}}, {sums, {1}});
  }
  // The integers, wanted as bytes.
  float* Integers(const float* x, const float* scales, int64_t rows, int64_t cols, Dims of_scale = {1, 0},
                  DType type = DType::kInt8) {
    const int64_t n = rows * cols;
    const float* y = Binary(Opcode::kMul, {rows, cols}, {scales, of_scale}, {x, {cols, 1}});
    float* const rounded = Computed(n);
    Op(Opcode::kRint, {y}, rounded, n);
    y = Binary(Opcode::kMinimum, {n}, {rounded, {1}}, {most_, {0}});
    y = Binary(Opcode::kMaximum, {n}, {least_, {0}}, {y, {1}});
    auto* const q =
        static_cast<float*>(capture_.NewBuffer(n * static_cast<int64_t>(SizeOf(type)), Buffer::Kind::kComputed));
    Launch(CastProgram(DType::kFloat, type), {n}, {{y, {1}}}, {q});
    Want(q);
    return q;
  }
  void Expect(int fused) {
    const bool has = TheMachine().device->capabilities().Supports(QuantizeRowsDesc());
    const CommandList list = ExpectSame();
    EXPECT_EQ(Count<QuantizeRowsDesc>(list), has ? fused : 0) << Text(list);
  }

  float *const epsilon_ = Given({0.5f}), *const levels_ = Given({100}), *const most_ = Given({90}),
               *const least_ = Given({-70});
};

TEST_F(Quantization, IsOneCommand) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 20}, {6, 11}, {5, 1}}) {
    float* const x = Given(Whole(rows * cols));
    float* const scales = Scales(Magnitudes(x, rows * cols), rows, cols);
    // Others read the scales before there are integers.
    Want(Binary(Opcode::kMul, {rows}, {scales, {1}}, {levels_, {0}}));
    Integers(x, scales, rows, cols);
  }
  Expect(3);
}

TEST_F(Quantization, NotIfOthersReadWhatIsInBetween) {
  float *const x = Given(Whole(66)), *const magnitudes = Magnitudes(x, 66);
  Integers(x, Scales(magnitudes, 6, 11), 6, 11);
  Want(magnitudes);
  Expect(0);
}

TEST_F(Quantization, NotByTheMaximaOfOthers) {
  Integers(Given(Whole(66)), Scales(Magnitudes(Given(Whole(67)), 66), 6, 11), 6, 11);
  Expect(0);
}

TEST_F(Quantization, NotByColumnsNorByOneScale) {
  float *const x = Given(Whole(36)), *const y = Given(Whole(36));
  Integers(x, Scales(Magnitudes(x, 36), 6, 6, 0), 6, 6);
  Integers(y, Scales(Magnitudes(y, 36), 6, 6), 6, 6, {0, 0});
  Expect(0);
}

TEST_F(Quantization, NotToOtherIntegers) {
  float* const x = Given(Whole(66));
  Integers(x, Scales(Magnitudes(x, 66), 6, 11), 6, 11, {1, 0}, DType::kInt32);
  Expect(0);
}

TEST_F(Quantization, NotIfTheElementsChangeInBetween) {
  float* const x = Given(Whole(66));
  float* const scales = Scales(Magnitudes(x, 66), 6, 11);
  Op(Opcode::kNeg, {Given(Whole(66))}, x, 66);
  Integers(x, scales, 6, 11);
  Expect(0);
}

}  // namespace
}  // namespace xpu::commands
