// Which convolutions Winograd's algorithm takes, and what it says of infinities. Its results are those that
// convolution_test expects of every device.
#include "tensorflow_plugin/backends/cpu/convolution/winograd.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

ConvolutionDesc Square(int64_t batch, int64_t side, int64_t in, int64_t out, int64_t filter = 3) {
  ConvolutionDesc d;
  d.type = DType::kFloat;
  d.order = ChannelOrder::kLast;
  d.spatial_rank = 2;
  d.batch = batch;
  d.in_channels = in;
  d.out_channels = out;
  d.groups = 1;
  for (int i = 0; i < 2; ++i) {
    d.input[i] = d.output[i] = side;
    d.filter[i] = filter;
    d.pad_before[i] = d.pad_after[i] = filter / 2;
  }
  return d;
}

const host_runtime::ThreadTeam& Team() {
  static const host_runtime::ThreadTeam team(2);
  return team;
}

TEST(Winograd, TakesWhatItIsQuickerAt) {
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (!HasIsa(isa)) continue;
    const ScopedIsa use(isa);
    for (Direction direction : {Direction::kForward, Direction::kDataGradient, Direction::kFilterGradient}) {
      ConvolutionDesc d = Square(32, 32, 32, 32);  // of a small residual network
      d.direction = direction;
      EXPECT_TRUE(WinogradPays(d, Machine::Here(2))) << Name(isa);
      d = Square(8, 28, 256, 256);
      d.direction = direction;
      EXPECT_TRUE(WinogradPays(d, Machine::Here(2))) << Name(isa);
      d = Square(4, 5, 512, 512);  // too few tiles for so large a filter
      d.direction = direction;
      EXPECT_FALSE(WinogradPays(d, Machine::Here(2))) << Name(isa);
      d.packed_filter_bytes = 1;  // nor do they pay for reading its points
      EXPECT_FALSE(WinogradPays(d, Machine::Here(2))) << Name(isa);
      d = Square(32, 32, 32, 32, 5);
      d.direction = direction;
      EXPECT_FALSE(WinogradPays(d, Machine::Here(2))) << Name(isa);
      d = Square(32, 32, 3, 32);  // a first layer
      d.direction = direction;
      EXPECT_FALSE(WinogradPays(d, Machine::Here(2))) << Name(isa);
    }
    ConvolutionDesc d = Square(32, 32, 32, 32);
    d.type = DType::kDouble;
    EXPECT_FALSE(WinogradPays(d, Machine::Here(2)));
    d = Square(32, 32, 32, 32);
    d.order = ChannelOrder::kFirst;
    EXPECT_FALSE(WinogradPays(d, Machine::Here(2)));
    d = Square(32, 32, 32, 32);
    d.groups = 2;
    EXPECT_FALSE(WinogradPays(d, Machine::Here(2)));
    d = Square(32, 32, 32, 32);
    d.dilation[0] = 2;
    EXPECT_FALSE(WinogradPays(d, Machine::Here(2)));
    d = Square(32, 32, 32, 32);
    d.stride[1] = 2;
    EXPECT_FALSE(WinogradPays(d, Machine::Here(2)));
  }
  const ScopedIsa use(Isa::kBaseline);
  EXPECT_FALSE(WinogradPays(Square(32, 32, 32, 32), Machine::Here(2)));
}

// Few tiles are computed by all threads together, more of them in blocks that each thread has for itself.
TEST(Winograd, IsTheSameForAnyNumberOfThreads) {
  for (const int64_t side : {5, 14, 31, 50}) {
    const ConvolutionDesc d = Square(1, side, 32, 80);
    std::vector<float> image(side * side * 32), weights(9 * 32 * 80), expected(side * side * 80, -7);
    for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 37) * 0.3f - 5;
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 29) * 0.2f - 3;
    Args args{};
    args.in[0] = image.data();
    args.in[1] = weights.data();
    args.out[0] = expected.data();
    std::optional<FusedEpilogue> none;
    ASSERT_TRUE(RunWinograd(d, args, host_runtime::ThreadTeam(1), &none));
    // The pixel in the middle, by hand.
    double sum = 0;
    const int64_t middle = side / 2;
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t c = 0; c < 32; ++c) {
        sum += image[((middle + i / 3 - 1) * side + middle + i % 3 - 1) * 32 + c] * weights[(i * 32 + c) * 80 + 79];
      }
    }
    EXPECT_NEAR(expected[(middle * side + middle) * 80 + 79], sum, 0.05) << side;
    for (const int threads : {2, 3, 8}) {
      std::vector<float> out(expected.size(), -7);
      args.out[0] = out.data();
      ASSERT_TRUE(RunWinograd(d, args, host_runtime::ThreadTeam(threads), &none));
      EXPECT_EQ(out, expected) << side << ", " << threads << " threads";
    }
  }
}

TEST(Winograd, SaysWhetherAllIsFinite) {
  for (Direction direction : {Direction::kForward, Direction::kDataGradient, Direction::kFilterGradient}) {
    ConvolutionDesc d = Square(2, 9, 32, 32);
    d.direction = direction;
    const int64_t images = 2 * 9 * 9 * 32, filter = 9 * 32 * 32;
    for (int64_t at : {int64_t{-1}, int64_t{0}, int64_t{40 * 32 + 31}, images - 1}) {
      std::vector<float> image(images, 0.5f), other(images, 0.25f), weights(filter, 0.25f);
      std::vector<float> out(std::max(images, filter));
      if (at >= 0) image[at] = std::numeric_limits<float>::infinity();
      Args args{};
      args.in[0] = direction == Direction::kDataGradient ? weights.data() : image.data();
      args.in[1] = direction == Direction::kForward        ? weights.data()
                   : direction == Direction::kDataGradient ? image.data()
                                                           : other.data();
      args.out[0] = out.data();
      std::optional<FusedEpilogue> none;
      EXPECT_EQ(RunWinograd(d, args, Team(), &none), at < 0) << at;
    }
  }
}

}  // namespace
}  // namespace xpu::cpu
