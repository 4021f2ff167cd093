// Batches in parts: which commands make a stretch, which must not, and what becomes of their values.
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kBatch = 8, kPixels = 6, kChannels = 4;
constexpr int64_t kImage = kPixels * kPixels * kChannels;  // elements
constexpr int64_t kBytes = kBatch * kImage * static_cast<int64_t>(sizeof(float));

class TiledBatches : public Lists {
 protected:
  static ConvolutionDesc Window(int64_t size, int64_t batch = kBatch) {
    ConvolutionDesc desc;
    desc.batch = batch;
    desc.in_channels = desc.out_channels = kChannels;
    for (int i : {0, 1}) {
      desc.input[i] = desc.output[i] = kPixels;
      desc.filter[i] = size;
      desc.pad_before[i] = desc.pad_after[i] = size / 2;
    }
    return desc;
  }
  float* Convolved(const float* x, int64_t size) {
    float* const y = Computed(kBatch * kImage);
    Record(Window(size), {x, Given(Whole(size * size * kChannels * kChannels))}, {y});
    return y;
  }
  float* Sum(const float* a, const float* b) {
    float* const y = Computed(kBatch * kImage);
    Op(Opcode::kAdd, {a, b}, y, kBatch * kImage);
    return y;
  }
  // The maxima of all pixels of an image, or of a row of pixels over all images.
  float* Maxima(const float* x, bool of_images) {
    ReduceDesc desc;
    desc.kind = ReduceKind::kMax;
    desc.source.program = IdentityProgram(DType::kFloat);
    desc.source.shape = {kBatch, kPixels * kPixels, kChannels};
    desc.source.in_strides[0] = DenseStrides(desc.source.shape);
    desc.axes = of_images ? 2 : 1;
    float* const y = Computed((of_images ? kBatch : kPixels * kPixels) * kChannels);
    Record(desc, {x}, {y});
    return y;
  }

  // The list in parts. It must compute the same.
  CommandList Tiled(int64_t cache) {
    CommandList list = capture_.list(), hoisted;
    TileBatch(SmallCache(cache), &list, &hoisted);
    ExpectEqual(Run(capture_.list()), Run(list), Text(list));
    return list;
  }
  // That each command of a stretch comes so many times, all commands of one part before those of the next.
  void ExpectParts(int parts, size_t commands, int64_t cache) {
    const CommandList list = Tiled(cache);
    ASSERT_EQ(list.commands.size(), parts * commands) << Text(list);
    for (size_t i = 0; i < list.commands.size(); ++i) {
      EXPECT_EQ(list.commands[i].desc.index(), capture_.list().commands[i % commands].desc.index()) << Text(list);
    }
  }
  void ExpectWhole(int64_t cache) {
    const CommandList list = Tiled(cache);
    EXPECT_EQ(list.commands.size(), capture_.list().commands.size()) << Text(list);
  }

  float* const x_ = Given(Whole(kBatch * kImage));
};

TEST_F(TiledBatches, AStretchRunsPartByPart) {
  float* const y = Convolved(x_, 1);
  Want(Sum(Convolved(y, 3), y));
  ExpectParts(8, 3, kBytes / 4);
}

TEST_F(TiledBatches, InAsFewPartsAsTheCacheAllows) {
  Want(Convolved(Convolved(x_, 1), 3));
  ExpectParts(2, 2, kBytes * 3 / 2);
}

TEST_F(TiledBatches, NotIfTheCacheHoldsThem) {
  Want(Convolved(Convolved(x_, 1), 3));
  ExpectWhole(4 * kBytes);
}

TEST_F(TiledBatches, ValuesInBetweenAreOfOnePart) {
  float* const y = Convolved(Convolved(Convolved(x_, 1), 3), 1);
  Want(y);
  const CommandList list = Tiled(kBytes / 4);
  int wide = 0;
  for (const Command& command : list.commands) wide += list.buffers[command.out[0].buffer].bytes == kBytes;
  EXPECT_EQ(wide, 8) << Text(list);  // the last one's parts
  EXPECT_LE(PlanMemory(list).bytes, kBytes / 2);
}

TEST_F(TiledBatches, WhatElseIsWantedStaysWhole) {
  float* const y = Convolved(x_, 1);
  float* const z = Convolved(y, 3);
  Want(y);
  Want(z);
  Want(Sum(Convolved(z, 1), y));
  (void)Tiled(kBytes / 4);
}

TEST_F(TiledBatches, SmallValuesBetweenLargeOnes) {
  float* const y = Convolved(x_, 3);
  float* const largest = Maxima(y, true);
  float* const scaled = Computed(kBatch * kImage);
  Launch(SingleOpProgram(Opcode::kMul, DType::kFloat), {kBatch, kPixels * kPixels, kChannels},
         {{y, {kImage, kChannels, 1}}, {largest, {kChannels, 0, 1}}}, {scaled});
  Want(Convolved(scaled, 1));
  ExpectParts(8, 4, kBytes / 2);
}

TEST_F(TiledBatches, NotWhatGoesAcrossTheBatch) {
  float* const y = Convolved(Convolved(x_, 3), 1);
  float* const largest = Maxima(y, false);
  float* const scaled = Computed(kBatch * kImage);
  Launch(SingleOpProgram(Opcode::kMul, DType::kFloat), {kBatch, kImage}, {{y, {kImage, 1}}, {largest, {0, 1}}},
         {scaled});
  Want(scaled);
  const CommandList list = Tiled(kBytes / 4);
  EXPECT_EQ(Count<ReduceDesc>(list), 1) << Text(list);
}

TEST_F(TiledBatches, NotWhatReadsAnotherPart) {
  float* const y = Convolved(Convolved(x_, 3), 1);
  float* const turned = Computed(kBatch * kImage);  // the last image first
  Copy(y, turned, {kBatch, kImage}, {-kImage, 1}, {kImage, 1}, (kBatch - 1) * kImage);
  Want(Convolved(turned, 1));
  float* const halves = Computed(kBatch * kImage);
  float* const z = Convolved(turned, 3);
  Copy(z, halves, {kBatch / 2, kImage}, {kImage, 1}, {kImage, 1}, 0, kBatch / 2 * kImage);
  Copy(z, halves, {kBatch / 2, kImage}, {kImage, 1}, {kImage, 1}, kBatch / 2 * kImage, 0);
  Want(halves);
  (void)Tiled(kBytes / 4);
}

TEST_F(TiledBatches, ChannelsThatAreJoined) {
  float* const both = Computed(2 * kBatch * kImage);
  const Dims shape = {kBatch * kPixels * kPixels, kChannels};
  Copy(Convolved(x_, 1), both, shape, {kChannels, 1}, {2 * kChannels, 1});
  Copy(Convolved(x_, 3), both, shape, {kChannels, 1}, {2 * kChannels, 1}, 0, kChannels);
  float* const y = Computed(2 * kBatch * kImage);
  Op(Opcode::kNeg, {both}, y, 2 * kBatch * kImage);
  Want(y);
  ExpectParts(8, 5, kBytes / 2);
}

TEST_F(TiledBatches, RowsOfProducts) {
  const int64_t rows = kBatch * kPixels * kPixels;
  float* y = x_;
  for (int i = 0; i < 3; ++i) {
    float* const next = Computed(rows * kChannels);
    MatMul(y, Given(Whole(kChannels * kChannels)), next, 0, rows, kChannels, kChannels);
    y = next;
  }
  Want(y);
  ExpectParts(8, 3, kBytes / 4);
}

TEST_F(TiledBatches, BatchesOfProductsAndSoftmax) {
  const int64_t rows = kPixels * kPixels;
  float *const scores = Computed(kBatch * rows * rows), *const shares = Computed(kBatch * rows * rows),
               *const y = Computed(kBatch * kImage);
  MatMul(x_, x_, scores, kBatch, rows, kChannels, rows, true);
  SoftmaxDesc softmax;
  softmax.rows = kBatch * rows;
  softmax.cols = rows;
  Record(softmax, {scores}, {shares});
  MatMul(shares, x_, y, kBatch, rows, rows, kChannels);
  Want(y);
  const int64_t bytes = kBatch * rows * rows * static_cast<int64_t>(sizeof(float));
  ExpectParts(8, 3, bytes / 4);
}

TEST_F(TiledBatches, ABatchThatIsNoMultiple) {
  ConvolutionDesc desc = Window(1, 3);
  float *const y = Computed(3 * kImage), *const z = Computed(3 * kImage);
  Record(desc, {Given(Whole(3 * kImage)), Given(Whole(kChannels * kChannels))}, {y});
  Record(desc, {y, Given(Whole(kChannels * kChannels))}, {z});
  Want(z);
  ExpectWhole(kBytes / 16);
}

// The filter is packed for a part. All passes before find the weights, which are the second of two given buffers.
TEST_F(TiledBatches, FiltersThatArePackedOnce) {
  float* y = x_;
  std::vector<bool> invariant;
  for (int i = 0; i < 4; ++i) y = Convolved(y, 3);
  Want(y);
  CommandList list = capture_.list(), hoisted;
  invariant.assign(list.buffers.size(), false);
  for (const Command& command : list.commands) invariant[command.in[1].buffer] = true;
  Optimize(SmallCache(kBytes / 4), {}, invariant, &list, &hoisted);
  EXPECT_EQ(Count<ConvolutionDesc>(list), 4 * 8) << Text(list);
  for (const Command& command : hoisted.commands) {
    const auto* desc = std::get_if<ConvolutionDesc>(&command.desc);
    if (desc != nullptr) EXPECT_EQ(desc->batch, 1) << Text(hoisted);
  }
  Prepend(hoisted, &list);
  ExpectEqual(Run(capture_.list()), Run(list), Text(list));
}

}  // namespace
}  // namespace xpu::commands
