// Products of what FakeQuant ops make multiply bytes.
#include "tensorflow_plugin/commands/tests/lists_testing.h"
#include "tensorflow_plugin/primitives/quantize_programs.h"

namespace xpu::commands {
namespace {

constexpr int64_t kBatch = 2, kSize = 5, kChannels = 3, kOut = 4;

// The device, for which bytes always pay.
class BytesPayHere final : public ForwardedCapabilities {
 public:
  BytesPayHere() : ForwardedCapabilities(TheMachine().device->capabilities()) {}
  bool BytesPay(const ConvolutionDesc&) const override { return true; }
};

class ByteProducts : public Lists {
 protected:
  // A given value that stays, or one that changes (WithWhatIsKept).
  float* Given(bool stays, std::vector<float> values) {
    void* spare = nullptr;
    do {
      spare = capture_.NewBuffer(4, Buffer::Kind::kComputed);
    } while ((capture_.Resolve(spare).buffer % 2 == 1) != stays);
    return Lists::Given(std::move(values));
  }
  static std::vector<float> Numbers(int64_t n, float step) {
    std::vector<float> values(n);
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>((i * 37 + 11) % 101 - 50) * step;
    return values;
  }

  struct Rows {
    float* rows;
    int64_t ranges;
  };
  // Scales are powers of two, so that all sums are exact. `steps`: of the range, which begins at -`from` steps.
  Rows RangesOf(const std::vector<float>& scales, const QuantizedRange& steps, double from, bool stays = true) {
    const auto n = static_cast<int64_t>(scales.size());
    std::vector<float> min, max;
    for (float scale : scales) {
      min.push_back(static_cast<float>(-from * scale));
      max.push_back(static_cast<float>((steps.high - steps.low - from) * scale));
    }
    float* const ends[] = {Given(stays, min), Given(stays, max)};
    float* const rows = Computed(FakeQuantRow::kRows * n);
    std::vector<float*> out;
    for (int i = 0; i < FakeQuantRow::kRows; ++i) out.push_back(rows + i * n);
    Launch(FakeQuantRange(steps), {n}, {{ends[0], {1}}, {ends[1], {1}}}, out);
    return {rows, n};
  }
  float* FakeQuantOf(const float* x, int64_t n, const Rows& rows, bool divide = false) {
    float* const y = Computed(n);
    const Dims shape = {n / rows.ranges, rows.ranges};
    std::vector<std::pair<const float*, Dims>> in = {{x, {rows.ranges, 1}}};
    for (int i = 0; i < FakeQuantRow::kRows; ++i)
      in.emplace_back(rows.rows + i * rows.ranges, Dims{0, rows.ranges == 1 ? 0 : 1});
    Launch(FakeQuantize(divide), shape, in, {y});
    return y;
  }
  Rows OfX(double from = 64, bool stays = true) { return RangesOf({0.25f}, {}, from, stays); }
  Rows OfFilter(const QuantizedRange& steps = {}, double from = 128) {
    return RangesOf({0.5f, 0.25f, 2, 1}, steps, from);
  }

  static ConvolutionDesc Convolution(int64_t groups = 1) {
    ConvolutionDesc d;
    d.batch = kBatch;
    d.in_channels = groups == 1 ? kChannels : kOut;
    d.out_channels = kOut;
    d.groups = groups;
    for (int i = 0; i < 2; ++i) {
      d.input[i] = kSize;
      d.filter[i] = 3;
      d.stride[i] = 2;
      d.pad_before[i] = d.pad_after[i] = 1;
      d.output[i] = 3;
    }
    return d;
  }
  static int64_t XSize(const ConvolutionDesc& d) { return d.batch * d.input[0] * d.input[1] * d.in_channels; }
  static int64_t WSize(const ConvolutionDesc& d) {
    return d.filter[0] * d.filter[1] * d.in_channels / d.groups * d.out_channels;
  }
  static int64_t YSize(const ConvolutionDesc& d) { return d.batch * d.output[0] * d.output[1] * d.out_channels; }
  float* X(const ConvolutionDesc& d) { return Given(false, Numbers(XSize(d), 0.27f)); }
  float* W(const ConvolutionDesc& d, bool stays = true) { return Given(stays, Numbers(WSize(d), 0.6f)); }
  float* Convolve(const ConvolutionDesc& d, const float* x, const float* w) {
    float* const y = Computed(YSize(d));
    Record(d, {x, w}, {y});
    Want(y);
    return y;
  }

  static int ProductsIn(const CommandList& list) {
    return static_cast<int>(std::count_if(list.commands.begin(), list.commands.end(), [](const Command& command) {
      const auto* desc = std::get_if<ConvolutionDesc>(&command.desc);
      return desc != nullptr && desc->direction == Direction::kForward && IsMixed(*desc);
    }));
  }
  static bool HasBytes() { return TheMachine().device->capabilities().Supports(OfBytes()); }

  // So many products of bytes, if the device has them, and the same results.
  void Expect(int products) {
    const bool has = HasBytes();
    ExpectSame();
    const CommandList list = WithWhatIsKept(BytesPayHere());
    EXPECT_EQ(ProductsIn(list), has ? products : 0) << Text(list);
    ExpectEqual(Run(capture_.list(), Way::kOneByOne), Run(list), Text(list));
  }
  // The values that conditions look at, if the device has products of bytes.
  void ExpectConditions(int values) {
    const CommandList list = WithWhatIsKept(BytesPayHere());
    EXPECT_EQ(Count<ReduceDesc>(list), HasBytes() ? values : 0) << Text(list);
  }
  static ConvolutionDesc OfBytes() {
    ConvolutionDesc d = OpenExtents(ConvolutionDesc());
    d.type = DType::kUint8;
    d.filter_type = DType::kInt8;
    d.y_type = DType::kInt32;
    return d;
  }
};

TEST_F(ByteProducts, OfConvolutions) {
  for (int64_t groups : {int64_t{1}, kOut}) {
    const ConvolutionDesc d = Convolution(groups);
    for (bool divide : {false, true}) {
      const float* const x = FakeQuantOf(X(d), XSize(d), OfX(groups == 1 ? 64 : 0), divide);
      Convolve(d, x, FakeQuantOf(W(d), WSize(d), OfFilter(), divide));
      Convolve(d, x, FakeQuantOf(W(d), WSize(d), OfFilter({1, 255}, 127)));
      Convolve(d, x, FakeQuantOf(W(d), WSize(d), OfFilter({0, 15}, 3)));             // not symmetric
      Convolve(d, x, FakeQuantOf(W(d), WSize(d), RangesOf({0.5f}, {1, 255}, 127)));  // one range for all
    }
  }
  Expect(16);
}

TEST_F(ByteProducts, OfMatrices) {
  const float* const x = FakeQuantOf(Given(false, Numbers(6 * 10, 0.3f)), 6 * 10, OfX());
  float* const y = Computed(6 * kOut);
  MatMul(x, FakeQuantOf(Given(true, Numbers(10 * kOut, 0.6f)), 10 * kOut, OfFilter()), y, 0, 6, 10, kOut);
  Want(y);
  Expect(1);
}

TEST_F(ByteProducts, OthersReadTheFloats) {
  const ConvolutionDesc d = Convolution();
  float* const x = FakeQuantOf(X(d), XSize(d), OfX());
  float* const w = FakeQuantOf(W(d), WSize(d), OfFilter());
  float* const y = Convolve(d, x, w);
  float *const sum = Computed(YSize(d)), *const twice = Computed(XSize(d));
  Op(Opcode::kAdd, {y, y}, sum, YSize(d));
  Op(Opcode::kAdd, {x, x}, twice, XSize(d));
  for (float* wanted : {sum, twice}) Want(wanted);
  Expect(1);
}

// The next product reads bytes that the epilogue of the one before makes.
TEST_F(ByteProducts, OneAfterTheOther) {
  ConvolutionDesc d = Convolution(kOut);
  for (int i = 0; i < 2; ++i) d.stride[i] = 1, d.output[i] = kSize;
  float* y = FakeQuantOf(X(d), XSize(d), OfX());
  for (int layer = 0; layer < 3; ++layer) {
    float *const scaled = Computed(YSize(d)), *const bounded = Computed(YSize(d));
    y = Convolve(d, y, FakeQuantOf(W(d), WSize(d), OfFilter()));
    Launch(SingleOpProgram(Opcode::kMul, DType::kFloat), {YSize(d) / kOut, kOut},
           {{y, {kOut, 1}}, {Given(true, {0.5f, 0.25f, 0.125f, -0.25f}), {0, 1}}}, {scaled});
    Launch(SingleOpProgram(Opcode::kMaximum, DType::kFloat), {YSize(d)}, {{scaled, {1}}, {Given(true, {0}), {0}}},
           {bounded});
    y = FakeQuantOf(bounded, YSize(d), OfX(0));
  }
  Want(y);
  Expect(3);
}

TEST_F(ByteProducts, NotOfOther) {
  const ConvolutionDesc d = Convolution();
  const float* const x = FakeQuantOf(X(d), XSize(d), OfX());
  const float* const w = FakeQuantOf(W(d), WSize(d), OfFilter());
  Convolve(d, x, W(d));  // floats
  Convolve(d, X(d), w);
  Convolve(d, x, FakeQuantOf(W(d, false), WSize(d), OfFilter()));                    // changes
  Convolve(d, FakeQuantOf(X(d), XSize(d), RangesOf({0.25f, 0.5f, 1}, {}, 100)), w);  // by channel
  Convolve(d, FakeQuantOf(X(d), XSize(d), RangesOf({0.25f}, {0, 1023}, 100)), w);    // 10 bits
  Convolve(d, x, FakeQuantOf(W(d), WSize(d), RangesOf({0.5f, 1}, {}, 128)));         // two ranges
  ConvolutionDesc padded = d;
  padded.pad_before[1] = 3;
  padded.output[1] = (kSize + 4 - 3) / 2 + 1;
  Convolve(padded, x, w);  // a window in the padding
  Expect(0);
}

TEST_F(ByteProducts, NotByRowsOfOthers) {
  const ConvolutionDesc d = Convolution();
  const Rows one = OfX(), other = RangesOf({0.5f}, {}, 64);
  float* const x = Computed(XSize(d));
  std::vector<std::pair<const float*, Dims>> in = {{X(d), {1}}};
  for (int i = 0; i < FakeQuantRow::kRows; ++i)
    in.emplace_back((i == FakeQuantRow::kScale ? other : one).rows + i, Dims{0});
  Launch(FakeQuantize(false), {XSize(d)}, in, {x});
  Convolve(d, x, FakeQuantOf(W(d), WSize(d), OfFilter()));
  Expect(0);
}

// A FakeQuant of an image that changes afterwards: its bytes are those of the image before.
TEST_F(ByteProducts, OfAnOlderImage) {
  const ConvolutionDesc d = Convolution();
  float* const image = Computed(XSize(d));
  const float* const first = X(d);
  Copy(first, image, {XSize(d)}, {1}, {1});
  const float* const x = FakeQuantOf(image, XSize(d), OfX());
  Op(Opcode::kAdd, {first, first}, image, XSize(d));
  Convolve(d, x, FakeQuantOf(W(d), WSize(d), OfFilter()));
  Want(image);
  Expect(1);
}

// Bytes stand for no such numbers. A condition fails, and nothing has been written to what is given.
TEST_F(ByteProducts, NotOfWhatIsNotFinite) {
  const ConvolutionDesc d = Convolution();
  const float *const image = X(d), *const weights = W(d);
  Convolve(d, FakeQuantOf(image, XSize(d), OfX()), FakeQuantOf(weights, WSize(d), OfFilter()));
  const CommandList list = WithWhatIsKept(BytesPayHere());
  expects_failure_ = true;
  for (const float* of : {image, weights}) {
    const auto given = std::find_if(contents_.begin(), contents_.end(), [&](const auto& contents) {
      return contents.first == capture_.Resolve(of).buffer;
    });
    for (float value : {NAN, INFINITY, -INFINITY, 0x1p65f}) {
      for (size_t i : {size_t{0}, given->second.size() - 1}) {
        const float before = std::exchange(given->second[i], value);
        Run(list);
        given->second[i] = before;
        if (!HasBytes()) continue;
        ASSERT_GE(failed_, 0) << value;
        EXPECT_TRUE(list.commands[failed_].is_condition);
      }
    }
  }
  Run(list);
  EXPECT_EQ(failed_, -1);
}

// A proof ends at what is computed in another way. There is a condition for that, too.
TEST_F(ByteProducts, ConditionsOfWhatIsComputed) {
  const ConvolutionDesc d = Convolution();
  const Rows rows = OfX();
  const float* const w = FakeQuantOf(W(d), WSize(d), OfFilter());
  int values = 1;  // the weights
  for (Opcode op : {Opcode::kSigmoid, Opcode::kNeg, Opcode::kExp, Opcode::kSqrt}) {
    float* const x = Computed(XSize(d));
    Op(op, {X(d)}, x, XSize(d));
    Convolve(d, FakeQuantOf(x, XSize(d), rows), w);
    ++values;  // the image, or what becomes of it
  }
  // The bits of an integer may be any float.
  float* const bits = Computed(XSize(d));
  Launch(CastProgram(DType::kFloat, DType::kInt32), {XSize(d)}, {{X(d), {1}}}, {bits});
  Convolve(d, FakeQuantOf(bits, XSize(d), rows), w);
  ++values;
  // Beyond the bounds of floats.
  float* x = X(d);
  for (int i = 0; i < 2; ++i) {
    float* const square = Computed(XSize(d));
    Op(Opcode::kMul, {x, x}, square, XSize(d));
    x = square;
  }
  Convolve(d, FakeQuantOf(x, XSize(d), rows), w);
  ++values;
  ExpectConditions(values);
}

// Integers are finite, and so is what is filled with a number and copied to.
TEST_F(ByteProducts, ConditionsOfImages) {
  ConvolutionDesc d = Convolution();
  const float* const w = FakeQuantOf(W(d), WSize(d), OfFilter());
  float *const of_integers = Computed(XSize(d)), *const padded = Computed(XSize(d));
  Launch(CastProgram(DType::kInt32, DType::kFloat), {XSize(d)}, {{X(d), {1}}}, {of_integers});
  Convolve(d, FakeQuantOf(of_integers, XSize(d), OfX()), w);
  ExpectConditions(1);
  EXPECT_TRUE(capture_.stream().Memset(padded, 0, XSize(d) * sizeof(float)).ok());
  Copy(X(d), padded, {XSize(d) / 2}, {1}, {1}, 0, XSize(d) / 4);
  Convolve(d, FakeQuantOf(padded, XSize(d), OfX()), w);
  ExpectConditions(2);
}

// An image that is copied from the host.
TEST_F(ByteProducts, ConditionsOfImagesOfTheHost) {
  const ConvolutionDesc d = Convolution();
  const float* const image = FromHost(Numbers(XSize(d), 0.27f));
  Convolve(d, FakeQuantOf(image, XSize(d), OfX()), FakeQuantOf(W(d), WSize(d), OfFilter()));
  ExpectConditions(2);
}

// A longer chain of commands has a source in it.
TEST_F(ByteProducts, ConditionsOfALongChain) {
  const ConvolutionDesc d = Convolution();
  const float* x = X(d);
  for (int i = 0; i < 2000; ++i) {
    float* const next = Computed(XSize(d));
    Op(Opcode::kNeg, {x}, next, XSize(d));
    x = next;
  }
  Convolve(d, FakeQuantOf(x, XSize(d), OfX()), FakeQuantOf(W(d), WSize(d), OfFilter()));
  ExpectConditions(2);
}

// Their sums may not fit into 32 bits.
TEST_F(ByteProducts, NotOfLongSums) {
  const Rows of_weights = RangesOf({0.5f}, {}, 128);
  for (int64_t terms : {33026, 33025}) {
    const float* const x = FakeQuantOf(Given(false, Numbers(terms, 0.3f)), terms, OfX());
    float* const y = Computed(kOut);
    MatMul(x, FakeQuantOf(Given(true, Numbers(terms * kOut, 0.6f)), terms * kOut, of_weights), y, 0, 1, terms, kOut);
    Want(y);
  }
  EXPECT_EQ(ProductsIn(WithWhatIsKept(BytesPayHere())), HasBytes() ? 1 : 0);
}

// Conditions look at nothing but a network's input each time.
TEST_F(ByteProducts, ConditionsOfANetwork) {
  ConvolutionDesc d = Convolution(kOut);
  for (int i = 0; i < 2; ++i) d.stride[i] = 1, d.output[i] = kSize;
  const float* const factors = Given(true, {0.5f, 0.25f, 0.125f, -0.25f});
  float *y = FakeQuantOf(X(d), XSize(d), OfX()), *before = y;
  const float* const w = FakeQuantOf(W(d), WSize(d), OfFilter());
  for (int layer = 0; layer < 5; ++layer) {
    float *const scaled = Computed(YSize(d)), *const bounded = Computed(YSize(d)), *const sum = Computed(YSize(d));
    y = Convolve(d, y, w);
    Launch(SingleOpProgram(Opcode::kMul, DType::kFloat), {YSize(d) / kOut, kOut}, {{y, {kOut, 1}}, {factors, {0, 1}}},
           {scaled});
    Op(Opcode::kSigmoid, {scaled}, bounded, YSize(d));
    Op(Opcode::kAdd, {bounded, before}, sum, YSize(d));
    before = y = FakeQuantOf(sum, YSize(d), OfX(0));
  }
  ExpectConditions(3);  // of the input, the weights and the factors
}

}  // namespace
}  // namespace xpu::commands
