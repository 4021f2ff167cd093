// Images that are copied into zeros to be convolved, and copies that are no padding.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kBatch = 2, kRows = 5, kCols = 4, kChannels = 3, kOut = 6;

class FoldedPadding : public Lists {
 protected:
  struct Around {
    int64_t top = 1, bottom = 2, left = 3, right = 0;
  };

  // A convolution of the padded image that has padding of its own.
  static ConvolutionDesc Convolution(const Around& around, ChannelOrder order = ChannelOrder::kLast) {
    ConvolutionDesc d;
    d.order = order;
    d.batch = kBatch;
    d.in_channels = kChannels;
    d.out_channels = kOut;
    d.input[0] = kRows + around.top + around.bottom;
    d.input[1] = kCols + around.left + around.right;
    for (int i = 0; i < 2; ++i) {
      d.filter[i] = 3;
      d.stride[i] = 2;
      d.pad_before[i] = i;
      d.output[i] = (d.input[i] + i - 3) / 2 + 1;
    }
    return d;
  }
  static int64_t Size(const ConvolutionDesc& d, const int64_t* extent, int64_t channels) {
    return d.batch * extent[0] * extent[1] * channels;
  }

  void Fill(float* to, int64_t n, int value = 0) {
    EXPECT_TRUE(capture_.stream().Memset(to, value, n * sizeof(float)).ok());
  }
  // The image to its place.
  void CopyInto(float* padded, const ConvolutionDesc& d, const Around& around) {
    const int64_t cols = d.input[1], rows = d.input[0];
    if (d.order == ChannelOrder::kLast) {
      Copy(x_, padded, {kBatch, kRows, kCols * kChannels}, {kRows * kCols * kChannels, kCols * kChannels, 1},
           {rows * cols * kChannels, cols * kChannels, 1}, 0, (around.top * cols + around.left) * kChannels);
    } else {
      Copy(x_, padded, {kBatch * kChannels, kRows, kCols}, {kRows * kCols, kCols, 1}, {rows * cols, cols, 1}, 0,
           around.top * cols + around.left);
    }
  }
  void Pad(float* padded, const ConvolutionDesc& d, const Around& around) {
    Fill(padded, Size(d, d.input, kChannels));
    CopyInto(padded, d, around);
  }
  float* Convolve(const ConvolutionDesc& d, const float* padded) {
    float* const y = Computed(Size(d, d.output, kOut));
    Record(d, {padded, w_}, {y});
    Want(y);
    return y;
  }

  // That the pass, and the one that clears up behind it, leave so many commands.
  void Expect(size_t commands) {
    CommandList list = capture_.list();
    FoldPadding(TheMachine().device->capabilities(), &list);
    EliminateDeadCode(&list);
    EXPECT_EQ(list.commands.size(), commands) << Text(list);
    ExpectEqual(Run(capture_.list()), Run(list), Text(list));
    ExpectSame();
  }

  float *const x_ = Given(Whole(kBatch * kRows * kCols * kChannels)), *const w_ = Given(Whole(9 * kChannels * kOut));
};

TEST_F(FoldedPadding, OfEachSide) {
  for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
    for (const Around& around : {Around{}, Around{0, 1, 0, 1}, Around{2, 0, 0, 0}, Around{0, 0, 0, 4}}) {
      SCOPED_TRACE(around.top * 1000 + around.bottom * 100 + around.left * 10 + around.right);
      capture_.list().commands.clear();
      capture_.list().live_out.clear();
      const ConvolutionDesc d = Convolution(around, order);
      float* const padded = Computed(Size(d, d.input, kChannels));
      Pad(padded, d, around);
      Convolve(d, padded);
      Expect(1);
    }
  }
}

TEST_F(FoldedPadding, OfTheFiltersGradient) {
  ConvolutionDesc d = Convolution({});
  float* const padded = Computed(Size(d, d.input, kChannels));
  float *const dy = Given(Whole(Size(d, d.output, kOut))), *const dw = Computed(9 * kChannels * kOut);
  Pad(padded, d, {});
  d.direction = Direction::kFilterGradient;
  Record(d, {padded, dy}, {dw});
  Want(dw);
  Expect(1);
}

TEST_F(FoldedPadding, OthersMayReadItToo) {
  const ConvolutionDesc d = Convolution({});
  const int64_t size = Size(d, d.input, kChannels);
  float *const padded = Computed(size), *const negative = Computed(size);
  Pad(padded, d, {});
  Convolve(d, padded);
  Op(Opcode::kNeg, {padded}, negative, size);
  Want(negative);
  Expect(4);
}

TEST_F(FoldedPadding, NotOfOtherNumbers) {
  const ConvolutionDesc d = Convolution({});
  const int64_t size = Size(d, d.input, kChannels);
  float* const padded = Computed(size);
  Fill(padded, size, 1);
  CopyInto(padded, d, {});
  Convolve(d, padded);
  Expect(3);
}

TEST_F(FoldedPadding, NotIfSomethingElseIsThere) {
  const ConvolutionDesc d = Convolution({});
  float* const padded = Computed(Size(d, d.input, kChannels));
  float* const corner = Given({7});
  Pad(padded, d, {});
  Copy(corner, padded, {1}, {1}, {1});
  Convolve(d, padded);
  Expect(4);
}

TEST_F(FoldedPadding, NotIfTheImageHasChanged) {
  const ConvolutionDesc d = Convolution({});
  float* const padded = Computed(Size(d, d.input, kChannels));
  Pad(padded, d, {});
  Op(Opcode::kNeg, {x_}, x_, kBatch * kRows * kCols * kChannels);
  Convolve(d, padded);
  Expect(4);
}

TEST_F(FoldedPadding, NotOfChannelsOrImages) {
  const ConvolutionDesc d = Convolution({});
  const int64_t pixels = kBatch * d.input[0] * d.input[1];
  float *const padded = Computed(pixels * kChannels), *const two = Given(Whole(pixels * 2));
  Fill(padded, pixels * kChannels);
  Copy(two, padded, {pixels, 2}, {2, 1}, {kChannels, 1});
  Convolve(d, padded);
  float *const last = Computed(pixels * kChannels), *const image = Given(Whole(pixels * kChannels / kBatch));
  Fill(last, pixels * kChannels);
  Copy(image, last, {pixels * kChannels / kBatch}, {1}, {1}, 0, pixels * kChannels / kBatch);
  Convolve(d, last);
  Expect(6);
}

TEST_F(FoldedPadding, NotWhereAxesAreSwapped) {
  const ConvolutionDesc d = Convolution({0, 0, 0, 2});
  float* const padded = Computed(Size(d, d.input, kChannels));
  Fill(padded, Size(d, d.input, kChannels));
  // The rows of an image are the columns of the other.
  Copy(x_, padded, {kBatch, 4, 5, kChannels}, {60, 15, 3, 1}, {d.input[0] * d.input[1] * 3, 3, d.input[1] * 3, 1});
  Convolve(d, padded);
  Expect(3);
}

}  // namespace
}  // namespace xpu::commands
