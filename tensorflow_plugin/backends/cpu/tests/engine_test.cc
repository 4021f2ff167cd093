// Which engine computes which product and convolution: the table that a change of a threshold changes.
#include "tensorflow_plugin/backends/cpu/convolution/engine.h"

#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cpu/matmul/engine.h"

namespace xpu::cpu {
namespace {

Machine MachineOf(Isa isa, int threads) {
  Machine machine;
  machine.isa = isa;
  machine.threads = threads;
  return machine;
}

// The engines on 1, 2 and 8 threads, without those at the end that are the same: "few rows | partial sums".
template <typename Choose>
std::string OnThreads(Isa isa, Choose choose) {
  std::vector<std::string> names;
  for (int threads : {1, 2, 8}) {
    const auto choice = choose(MachineOf(isa, threads));
    names.emplace_back(Name(choice.engine));
    if (choice.alone && threads > 1) names.back() += " alone";
  }
  while (names.size() > 1 && names.back() == names[names.size() - 2]) names.pop_back();
  std::string text = names[0];
  for (size_t i = 1; i < names.size(); ++i) text += " | " + names[i];
  return text;
}

struct Product {
  const char* text;
  const char* engines;
  DType type;
  int64_t m, k, n;
  bool transpose_a = false, transpose_b = false;
  EpilogueForm epilogue = EpilogueForm::kNone;
  Dims batch = {}, a_strides = {}, b_strides = {};
};

MatMulDesc DescOf(const Product& p) {
  MatMulDesc d;
  d.type = p.type;
  if (p.type == DType::kInt8 || p.type == DType::kUint8) {
    d.b_type = DType::kInt8;
    d.c_type = DType::kInt32;
  }
  d.m = p.m;
  d.k = p.k;
  d.n = p.n;
  d.transpose_a = p.transpose_a;
  d.transpose_b = p.transpose_b;
  d.batch = p.batch;
  d.a_batch_strides = p.a_strides;
  d.b_batch_strides = p.b_strides;
  return d;
}

constexpr DType kF = DType::kFloat;
constexpr EpilogueForm kNone = EpilogueForm::kNone, kChain = EpilogueForm::kChain, kProgram = EpilogueForm::kProgram;

void Expect(const Product& p, Isa isa) {
  const auto choose = [&p](const Machine& machine) { return ChooseEngine(DescOf(p), p.epilogue, machine); };
  EXPECT_EQ(OnThreads(isa, choose), p.engines) << p.text;
}

TEST(Engine, OfProducts) {
  const Product products[] = {
      {"nothing", "plain loops", kF, 0, 8, 8},
      {"sums of nothing", "plain loops", kF, 8, 0, 8},
      {"a dense layer of a small network, one row", "unpacked", kF, 1, 64, 64},
      {"23 rows", "unpacked", kF, 23, 256, 256},
      {"24 rows", "oneDNN | oneDNN in parts", kF, 24, 256, 256},
      {"24 rows and a chain", "panels", kF, 24, 256, 256, false, false, kChain},
      {"24 rows and a program", "oneDNN in parts", kF, 24, 256, 256, false, false, kProgram},
      {"64 rows and a chain", "panels", kF, 64, 256, 256, false, false, kChain},
      {"one row of many columns", "few rows", kF, 1, 64, 1024},
      {"one row of a large matrix", "few rows", kF, 1, 1024, 1024},
      {"one row of a narrow matrix", "few rows | partial sums", kF, 1, 65536, 32},
      {"one row of a large matrix, read transposed", "few rows | partial sums", kF, 1, 1024, 1024, false, true},
      {"4 rows of a large matrix", "few rows", kF, 4, 1024, 1024},
      {"5 rows of a large matrix", "oneDNN | oneDNN in parts", kF, 5, 1024, 1024},
      {"a token and its keys, short", "small", kF, 1, 8, 8, false, true},
      {"a token and its keys", "few rows", kF, 1, 64, 20, false, true},
      {"6x6", "small", kF, 6, 6, 6, true, false},
      {"128 rows", "panels", kF, 128, 256, 256},
      {"128 rows, a transposed", "oneDNN | oneDNN in parts", kF, 128, 256, 256, true, false},
      {"128 rows, b transposed", "oneDNN | oneDNN in parts", kF, 128, 256, 256, false, true},
      {"128 rows of a large matrix", "panels", kF, 128, 1024, 1024},
      {"128 rows of a larger matrix", "oneDNN | oneDNN in parts", kF, 128, 2048, 1024},
      {"300 rows of a matrix of 256 KiB", "panels", kF, 300, 256, 256},
      {"300 rows of a large matrix", "oneDNN | oneDNN in parts", kF, 300, 1024, 1024},
      {"512 rows, program", "oneDNN in parts", kF, 512, 1024, 1024, false, false, kProgram},
      {"long sums", "oneDNN | oneDNN in parts", kF, 512, 4096, 512},
      {"128 short rows", "panels", kF, 128, 16, 128},
      {"classes, 64 rows", "few columns", kF, 64, 1024, 10, false, false},
      {"classes, b transposed", "few columns", kF, 64, 512, 10, false, true},
      {"classes, 32", "few columns", kF, 64, 512, 32, false, true},
      {"classes, 33", "oneDNN | oneDNN in parts", kF, 64, 512, 33, false, true},
      {"classes, 5 rows", "oneDNN | oneDNN alone", kF, 5, 1024, 10},
      {"one column", "one column", kF, 512, 512, 1},
      {"a column of 8 rows", "one column", kF, 8, 8192, 1},
      {"gradient of a filter", "oneDNN | partial sums", kF, 64, 100000, 64, true, false},
      {"gradient of a weight", "oneDNN | oneDNN in parts", kF, 784, 128, 512, true, false},
      {"gradient of an input", "oneDNN | oneDNN in parts", kF, 128, 512, 784, false, true},
      {"batch that stacks rows", "panels", kF, 16, 256, 256, false, false, kNone, {8}, {16 * 256}, {0}},
      {"batch that stacks one row", "unpacked", kF, 1, 64, 64, false, false, kNone, {2, 4}, {256, 64}, {0, 0}},
      {"heads", "oneDNN | oneDNN in parts", kF, 64, 64, 64, false, true, kNone, {8}, {4096}, {4096}},
      {"heads, many", "oneDNN | oneDNN in parts", kF, 128, 64, 128, false, true, kNone, {96}, {8192}, {8192}},
      {"batch of one", "unpacked", kF, 23, 256, 256, false, false, kNone, {1}, {0}, {0}},
      {"half: one row", "few rows", DType::kHalf, 1, 64, 64},
      {"half: 64 rows", "in float", DType::kHalf, 64, 256, 256},
      {"bfloat16: one column", "one column", DType::kBFloat16, 64, 256, 1},
      {"double", "GEMM", DType::kDouble, 64, 256, 256},
      {"int32", "GEMM", DType::kInt32, 64, 256, 256},
      {"uint64", "GEMM", DType::kUint64, 1, 256, 256},
      {"int16", "plain loops", DType::kInt16, 64, 256, 256},
      {"complex64", "complex GEMM", DType::kComplex64, 64, 256, 256},
      {"complex128", "complex GEMM", DType::kComplex128, 64, 256, 256},
      {"small complex64", "small", DType::kComplex64, 8, 1, 16},
      {"small double", "small", DType::kDouble, 16, 16, 16},
      {"small int32", "small", DType::kInt32, 4, 5, 6},
      {"more than small", "GEMM", DType::kDouble, 16, 16, 17},
      {"bytes: one row", "bytes as they lie", DType::kInt8, 1, 1024, 1024},
      {"bytes: 5 rows", "packed bytes", DType::kUint8, 5, 1024, 1024},
      {"bytes: one row, b transposed", "bytes by columns", DType::kInt8, 1, 1024, 1024, false, true},
  };
  for (const Product& p : products) Expect(p, Isa::kAvx512);
  const Product of_avx2[] = {
      {"classes, 32", "oneDNN | oneDNN in parts", kF, 64, 512, 32, false, true},
      {"bytes, 4 rows", "packed bytes", DType::kInt8, 4, 1024, 1024},
  };
  for (const Product& p : of_avx2) Expect(p, Isa::kAvx2);
  const Product of_baseline[] = {
      {"128 rows", "oneDNN | oneDNN in parts", kF, 128, 256, 256},
      {"classes", "oneDNN | oneDNN alone", kF, 64, 512, 10, false, true},
  };
  for (const Product& p : of_baseline) Expect(p, Isa::kBaseline);
}

// Where oneDNN has types of 16 bits at the speed of float.
TEST(Engine, OfProductsOfNativeTypes) {
  Machine machine = MachineOf(Isa::kAvx512, 2);
  machine.has_half = true;
  const auto engine = [&](DType type, int64_t rows) {
    return ChooseEngine(DescOf({"", "", type, rows, 256, 256}), kNone, machine).engine;
  };
  EXPECT_EQ(engine(DType::kHalf, 64), MatMulEngine::kOnednnInParts);
  EXPECT_EQ(engine(DType::kHalf, 8), MatMulEngine::kOnednn);
  EXPECT_EQ(engine(DType::kHalf, 4), MatMulEngine::kFewRows);
  EXPECT_EQ(engine(DType::kBFloat16, 64), MatMulEngine::kInFloat);
  EXPECT_EQ(ChooseEngine(DescOf({"", "", DType::kHalf, 8, 8, 8}), kNone, machine).engine, MatMulEngine::kInFloat);
}

// A small product is not worth a descriptor of another form.
TEST(Engine, GivesADescriptorWhereItNeedsOne) {
  const Machine machine = MachineOf(Isa::kAvx512, 1);
  EXPECT_FALSE(ChooseEngine(DescOf({"", "", kF, 1, 64, 64}), kNone, machine).canonical.has_value());
  const Product stacks{"", "", kF, 16, 256, 256, false, false, kNone, {8}, {16 * 256}, {0}};
  const MatMulChoice choice = ChooseEngine(DescOf(stacks), kNone, machine);
  ASSERT_TRUE(choice.canonical.has_value());
  EXPECT_EQ(choice.canonical->m, 128);
  EXPECT_FALSE(ChooseEngine(*choice.canonical, kNone, machine).canonical.has_value());
}

TEST(Engine, OfProductsOfWeights) {
  using Engine = WeightMatMulEngine;
  WeightMatMulDesc d;
  d.n = d.k = 128;
  for (const auto& [m, vnni, avx512, floats] :
       {std::tuple<int64_t, Engine, Engine, Engine>{1, Engine::kInDigits, Engine::kInDigits, Engine::kInRegisters},
        {16, Engine::kInDigits, Engine::kInRegisters, Engine::kInRegisters},
        {17, Engine::kInDigits, Engine::kInPanels, Engine::kInPanels}}) {
    d.m = m;
    Machine machine;
    machine.isa = Isa::kAvx512Vnni;
    EXPECT_EQ(ChooseEngine(d, true, machine), vnni);
    EXPECT_EQ(ChooseEngine(d, false, machine), floats);
    machine.isa = Isa::kAvx512;
    EXPECT_EQ(ChooseEngine(d, true, machine), avx512);
  }
  d.m = 1, d.k = 127;
  EXPECT_EQ(ChooseEngine(d, true, Machine()), Engine::kInRegisters);
  d.k = 0;
  EXPECT_EQ(ChooseEngine(d, true, Machine()), Engine::kPlain);
}

constexpr Direction kForward = Direction::kForward, kToData = Direction::kDataGradient,
                    kToFilter = Direction::kFilterGradient;

struct Image {
  const char* text;
  const char* engines;
  Direction direction;
  int64_t batch, side, in, out, filter;
  int64_t stride = 1, groups = 1;
  bool is_packed = false;
  DType type = DType::kFloat;
  ChannelOrder order = ChannelOrder::kLast;
};

// With padding so that stride 1 keeps the extent.
ConvolutionDesc DescOf(const Image& image) {
  ConvolutionDesc d;
  d.direction = image.direction;
  d.type = image.type;
  d.order = image.order;
  d.batch = image.batch;
  d.in_channels = image.in;
  d.out_channels = image.out;
  d.groups = image.groups;
  for (int i = 0; i < 2; ++i) {
    d.input[i] = image.side;
    d.output[i] = (image.side - 1) / image.stride + 1;
    d.filter[i] = image.filter;
    d.stride[i] = image.stride;
    d.pad_before[i] = d.pad_after[i] = image.filter / 2;
  }
  if (image.is_packed) d.packed_filter_bytes = 1;
  return d;
}

void Expect(const Image& image, Isa isa) {
  const auto choose = [&image](const Machine& machine) { return ChooseEngine(DescOf(image), machine); };
  EXPECT_EQ(OnThreads(isa, choose), image.engines) << image.text;
}

TEST(Engine, OfConvolutions) {
  constexpr ChannelOrder kFirst = ChannelOrder::kFirst;
  const Image images[] = {
      {"no images", "nothing", kForward, 0, 28, 16, 16, 3},
      {"gradient of no images", "zeros", kToFilter, 0, 28, 16, 16, 3},
      {"first layer", "direct", kForward, 1, 224, 3, 64, 7, 2},
      {"first layer's gradient", "oneDNN | oneDNN in partial sums", kToFilter, 32, 224, 3, 64, 7, 2},
      {"four channels", "direct", kForward, 1, 28, 4, 16, 3},
      {"five channels", "oneDNN | oneDNN alone", kForward, 1, 28, 5, 16, 3},
      {"three output channels", "direct", kForward, 1, 28, 4, 3, 3},
      {"three output channels, packed", "direct", kForward, 1, 28, 4, 3, 3, 1, 1, true},
      {"three output channels, packed, few pixels", "oneDNN | oneDNN alone", kForward, 1, 10, 4, 3, 3, 1, 1, true},
      {"three output channels, large filter", "oneDNN | oneDNN in parts", kForward, 1, 28, 1024, 3, 3},
      {"stride 2, gradient to the input, packed", "direct", kToData, 1, 28, 64, 64, 3, 2, 1, true},
      {"stride 2, gradient to the input", "oneDNN | oneDNN in parts", kToData, 4, 28, 64, 64, 3, 2},
      {"stride 2, gradient to the input, small filter", "direct", kToData, 4, 28, 3, 16, 3, 2},
      {"stride 2, gradient to the input, much work, packed", "oneDNN | oneDNN in parts", kToData, 32, 28, 64, 64, 3, 2,
       1, true},
      {"5x5, gradient to the input, packed", "oneDNN | oneDNN in parts", kToData, 32, 28, 64, 64, 5, 1, 1, true},
      {"channels first", "oneDNN | oneDNN alone", kForward, 1, 28, 4, 16, 3, 1, 1, false, kF, kFirst},
      {"depthwise 3x3", "depthwise", kForward, 1, 56, 96, 96, 3, 1, 96},
      {"depthwise 4x4", "oneDNN | oneDNN in parts", kForward, 1, 56, 96, 96, 4, 1, 96},
      {"depthwise, stride 3", "oneDNN | oneDNN alone", kForward, 1, 56, 96, 96, 3, 3, 96},
      {"depthwise gradient", "oneDNN | oneDNN in partial sums", kToFilter, 8, 56, 96, 96, 3, 1, 96},
      {"depthwise, two filters for each channel", "oneDNN | oneDNN alone", kForward, 1, 56, 48, 96, 3, 1, 48},
      {"3x3, 14x14", "Winograd", kForward, 1, 14, 64, 64, 3},
      {"3x3, 14x14, packed", "Winograd", kForward, 1, 14, 64, 64, 3, 1, 1, true},
      {"3x3, 28x28, 32 images", "Winograd", kForward, 32, 28, 64, 64, 3},
      {"3x3, stride 2", "oneDNN | oneDNN in parts", kForward, 32, 28, 64, 64, 3, 2},
      {"3x3, 30 channels", "oneDNN | oneDNN in parts", kForward, 32, 28, 30, 64, 3},
      {"3x3, gradient to the input", "Winograd", kToData, 32, 28, 64, 64, 3},
      {"3x3, gradient to the filter", "Winograd", kToFilter, 32, 28, 64, 64, 3},
      {"5x5, gradient to the input", "oneDNN | oneDNN in parts", kToData, 32, 28, 64, 64, 5},
      {"5x5, gradient to the filter", "oneDNN | oneDNN in partial sums", kToFilter, 32, 28, 64, 64, 5},
      {"5x5, gradient to the filter of one image", "oneDNN", kToFilter, 1, 28, 64, 64, 5},
      {"5x5, gradient to a large filter", "oneDNN", kToFilter, 32, 28, 128, 128, 5},
      {"groups", "oneDNN | oneDNN in parts", kForward, 8, 28, 64, 64, 3, 1, 4},
      {"pointwise", "oneDNN | oneDNN in parts", kForward, 1, 14, 256, 256, 1},
      {"pointwise, packed", "pointwise", kForward, 1, 14, 256, 256, 1, 1, 1, true},
      {"pointwise, packed, 4 pixels", "oneDNN | oneDNN alone", kForward, 1, 2, 256, 256, 1, 1, 1, true},
      {"pointwise, packed, 9 pixels", "oneDNN | oneDNN alone", kForward, 1, 3, 256, 256, 1, 1, 1, true},
      {"pointwise, packed, 9 pixels, larger", "pointwise", kForward, 1, 3, 512, 256, 1, 1, 1, true},
      {"pointwise, packed, many pixels", "oneDNN | oneDNN in parts", kForward, 1, 56, 64, 256, 1, 1, 1, true},
      {"pointwise, 81 pixels, packed, large", "pointwise", kForward, 1, 9, 1024, 2048, 1, 1, 1, true},
      {"pointwise, rows of three channels", "oneDNN | oneDNN alone", kForward, 8192, 1, 3, 64, 1},
      {"pointwise, one row, packed", "pointwise", kForward, 1, 1, 256, 256, 1, 1, 1, true},
      {"pointwise, one row, packed, small", "oneDNN | oneDNN alone", kForward, 1, 1, 100, 256, 1, 1, 1, true},
      {"pointwise, one row, packed, large", "oneDNN | oneDNN alone", kForward, 1, 1, 1024, 300, 1, 1, 1, true},
      {"pointwise, two rows, packed", "oneDNN | oneDNN alone", kForward, 2, 1, 256, 256, 1, 1, 1, true},
      {"pointwise, stride 2, packed", "windows in panels", kForward, 1, 14, 256, 256, 1, 2, 1, true},
      {"pointwise, stride 2", "oneDNN | oneDNN alone", kForward, 1, 14, 256, 256, 1, 2},
      {"large filter, few pixels", "product of windows", kForward, 1, 4, 512, 512, 3},
      {"large filter, few pixels, packed", "windows in panels", kForward, 1, 4, 512, 512, 3, 1, 1, true},
      {"large filter, few pixels, long sums, packed", "product of windows", kForward, 1, 4, 1024, 512, 3, 1, 1, true},
      {"large filter, few pixels, gradient", "product of windows", kToFilter, 1, 4, 512, 512, 3},
      {"large filter, few pixels, gradient to the input", "oneDNN", kToData, 1, 4, 512, 512, 3},
      {"large filter, many pixels", "oneDNN | oneDNN in parts", kForward, 16, 14, 256, 256, 5},
      {"large filter, some pixels", "product of windows", kForward, 1, 14, 256, 256, 5},
      {"small", "oneDNN | oneDNN alone", kForward, 1, 5, 16, 20, 3},
      {"3x3, 8 channels", "oneDNN | oneDNN in parts", kForward, 32, 28, 8, 24, 3},
      {"double", "windows", kForward, 1, 14, 64, 64, 3, 1, 1, false, DType::kDouble},
      {"half", "in float", kForward, 1, 14, 64, 64, 3, 1, 1, false, DType::kHalf},
      {"bfloat16, depthwise", "in float", kForward, 1, 14, 64, 64, 3, 1, 64, false, DType::kBFloat16},
  };
  for (const Image& image : images) Expect(image, Isa::kAvx512);
  const Image of_avx2[] = {
      {"3x3, 8 channels", "Winograd", kForward, 32, 28, 8, 24, 3},
  };
  for (const Image& image : of_avx2) Expect(image, Isa::kAvx2);
  const Image of_baseline[] = {
      {"3x3", "oneDNN | oneDNN in parts", kForward, 32, 28, 64, 64, 3},
      {"first layer", "oneDNN | oneDNN in parts", kForward, 1, 224, 3, 64, 7, 2},
  };
  for (const Image& image : of_baseline) Expect(image, Isa::kBaseline);
}

TEST(Engine, OfConvolutionsOfNativeTypes) {
  Machine machine = MachineOf(Isa::kAvx512, 2);
  machine.has_bfloat16 = true;
  Image image{"", "", kForward, 32, 28, 64, 64, 5};
  image.type = DType::kBFloat16;
  EXPECT_EQ(ChooseEngine(DescOf(image), machine).engine, ConvolutionEngine::kOnednnInParts);
  image.direction = kToFilter;  // sums of parts are of float alone
  EXPECT_EQ(ChooseEngine(DescOf(image), machine).engine, ConvolutionEngine::kOnednn);
  image.type = DType::kHalf;
  EXPECT_EQ(ChooseEngine(DescOf(image), machine).engine, ConvolutionEngine::kInFloat);
}

TEST(Engine, OfWinogradIsAnOption) {
  Machine machine = MachineOf(Isa::kAvx512, 2);
  const ConvolutionDesc d = DescOf(Image{"", "", kForward, 32, 28, 64, 64, 3});
  EXPECT_EQ(ChooseEngine(d, machine).engine, ConvolutionEngine::kWinograd);
  EXPECT_EQ(ChooseEngineWithoutWinograd(d, machine).engine, ConvolutionEngine::kOnednnInParts);
  machine.winograd = false;
  EXPECT_EQ(ChooseEngine(d, machine).engine, ConvolutionEngine::kOnednnInParts);
}

// Rows of the output where images are few, whole images otherwise. No part reads nothing but padding.
TEST(Engine, SharesConvolutionsOut) {
  const Machine machine = MachineOf(Isa::kAvx512, 2);
  const auto choose = [&](const ConvolutionDesc& d) { return ChooseEngine(d, machine); };
  ConvolutionDesc d = DescOf(Image{"", "", kForward, 32, 28, 64, 64, 5});
  EXPECT_EQ(choose(d).images, 8);
  EXPECT_EQ(choose(d).rows, 28);
  d.batch = 1;
  EXPECT_EQ(choose(d).images, 1);
  EXPECT_EQ(choose(d).rows, 7);
  d.output[0] += 64;
  d.pad_after[0] += 64;
  EXPECT_EQ(choose(d).engine, ConvolutionEngine::kOnednn);
}

}  // namespace
}  // namespace xpu::cpu
