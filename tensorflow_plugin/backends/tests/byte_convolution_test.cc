// Convolutions of bytes, compared with sums in 64 bits.
#include <cmath>

#include "tensorflow_plugin/backends/tests/compare.h"
#include "tensorflow_plugin/backends/tests/geometry/convolutions.h"
#include "tensorflow_plugin/primitives/quantize_programs.h"

namespace xpu::testing {
namespace {

int64_t Product(const int64_t* e) { return e[0] * e[1] * e[2]; }
int64_t XSize(const ConvolutionDesc& d) { return d.batch * d.in_channels * Product(d.input); }
int64_t YSize(const ConvolutionDesc& d) { return d.batch * d.out_channels * Product(d.output); }
int64_t WSize(const ConvolutionDesc& d) { return d.in_channels / d.groups * d.out_channels * Product(d.filter); }

ConvolutionDesc OfBytes(ConvolutionDesc d) {
  d.type = DType::kUint8;
  d.filter_type = DType::kInt8;
  d.y_type = DType::kInt32;
  return d;
}

Array Numbers(DType type, int64_t n, uint32_t seed) {
  Array a(type, n);
  for (int64_t i = 0; i < n; ++i)
    a.as<uint8_t>()[i] = static_cast<uint8_t>((seed += 0x9e3779b9u, seed ^ seed >> 15) >> 7);
  return a;
}
Array Ints(const std::vector<int32_t>& values) {
  return Values(DType::kInt32, std::vector<double>(values.begin(), values.end()));
}

// The operands, with zeros of the filter that ascend from `of_filter` on by `step`.
std::vector<Array> Operands(const ConvolutionDesc& d, uint32_t seed, int32_t zero, int32_t of_filter, int32_t step) {
  std::vector<int32_t> zeros(d.out_channels);
  for (size_t i = 0; i < zeros.size(); ++i) zeros[i] = of_filter + step * static_cast<int32_t>(i % 7);
  return {Numbers(DType::kUint8, XSize(d), seed), Numbers(DType::kInt8, WSize(d), seed + 1), Ints({zero}), Ints(zeros)};
}

Array Sums(const ConvolutionDesc& d, const std::vector<Array>& in) {
  const auto* const x = in[0].as<uint8_t>();
  const auto* const w = in[1].as<int8_t>();
  const int64_t depth = d.in_channels / d.groups, of_group = d.out_channels / d.groups;
  Array y(DType::kInt32, YSize(d));
  int64_t at = 0;
  for (int64_t n = 0; n < d.batch; ++n) {
    for (int64_t cell = 0; cell < Product(d.output); ++cell) {
      const int64_t o[3] = {cell / d.output[2] / d.output[1], cell / d.output[2] % d.output[1], cell % d.output[2]};
      for (int64_t channel = 0; channel < d.out_channels; ++channel, ++at) {
        int64_t sum = 0;
        for (int64_t tap = 0; tap < Product(d.filter); ++tap) {
          const int64_t f[3] = {tap / d.filter[2] / d.filter[1], tap / d.filter[2] % d.filter[1], tap % d.filter[2]};
          int64_t i[3];
          bool inside = true;
          for (int a = 0; a < 3; ++a) {
            i[a] = o[a] * d.stride[a] + f[a] * d.dilation[a] - d.pad_before[a];
            inside = inside && i[a] >= 0 && i[a] < d.input[a];
          }
          if (!inside) continue;
          const int64_t from = ((n * d.input[0] + i[0]) * d.input[1] + i[1]) * d.input[2] + i[2];
          for (int64_t k = 0; k < depth; ++k) {
            const int64_t a = x[from * d.in_channels + channel / of_group * depth + k] - in[2].as<int32_t>()[0];
            sum += a * (w[(tap * depth + k) * d.out_channels + channel] - in[3].as<int32_t>()[channel]);
          }
        }
        y.as<int32_t>()[at] = static_cast<int32_t>(sum);
      }
    }
  }
  return y;
}

std::string Text(const ConvolutionDesc& d) {
  return errors::Concat(d.in_channels, "->", d.out_channels, " groups ", d.groups, " input ", d.input[0], " ",
                        d.input[1], " ", d.input[2], " filter ", d.filter[0], " ", d.filter[1], " ", d.filter[2]);
}

void Compare(const ConvolutionDesc& d, const std::vector<Array>& in, const std::string& what) {
  ExpectByHand(d, in, {{DType::kInt32, YSize(d)}}, {{Sums(d, in)}}, Text(d) + what);
}

// With a filter that is packed before, where the backend packs it.
void ComparePacked(const ConvolutionDesc& d, std::vector<Array> in, const std::vector<Output>& outputs,
                   const Want& want, const std::string& what) {
  const auto place = in.begin() + PackedFilterInput(d);
  const size_t at = place - in.begin();
  in.insert(place, Array());
  for (const Variant& variant : Variants()) {
    const UseVariant use(variant);
    ConvolutionDesc with = d;
    with.packed_filter_bytes = variant.device->device().capabilities().PackedFilterBytes(d);
    if (with.packed_filter_bytes == 0 || !variant.device->device().capabilities().Supports(with)) continue;
    const Outcome packed =
        variant.device->Run(PackingOf(with), {in[1]}, {{DType::kUint8, with.packed_filter_bytes}}, variant.waiting);
    ASSERT_TRUE(packed.status.ok()) << packed.status.message();
    in[at] = packed.out[0];
    Judge(variant.device->Run(with, in, outputs, variant.waiting), want, what + ", packed, " + variant.name);
  }
}

std::vector<ConvolutionDesc> Geometries() {
  return {
      ConvolutionOf({{1, 1}}, 1, 1, 1),
      ConvolutionOf({{5, 1}, {5, 1}}, 2, 16, 32),
      ConvolutionOf({{1, 1}}, 3, 130, 70),  // a matrix
      ConvolutionOf({{9, 3, 2, 1, 1, 1}}, 2, 3, 5),
      ConvolutionOf({{20, 3, 1, 4, 8, 0}}, 2, 4, 6),                        // causal
      ConvolutionOf({{8, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}}, 2, 16, 16),   // same
      ConvolutionOf({{8, 3, 2, 1, 0, 1}, {9, 3, 2, 1, 1, 1}}, 2, 3, 8),     // asymmetric
      ConvolutionOf({{11, 2, 4}, {10, 3, 5}}, 2, 3, 4),                     // stride beyond the window
      ConvolutionOf({{12, 3, 2, 2, 2, 3}, {12, 2, 3, 3, 0, 4}}, 1, 4, 4),   // dilation, stride and padding
      ConvolutionOf({{4, 3, 1, 1, 4, 3}, {4, 3, 1, 1, 0, 5}}, 1, 2, 3),     // more padding than window
      ConvolutionOf({{6, 3, 1, 1, 9, 9}, {40, 3, 1, 1, 1, 1}}, 1, 32, 32),  // rows of nothing but padding
      ConvolutionOf({{7, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}, 2, 8, 8, 8),  // depthwise
      ConvolutionOf({{17, 3, 2, 1, 0, 1}, {16, 3, 2, 1, 0, 1}}, 1, 96, 96, 96),
      ConvolutionOf({{7, 3, 2, 1, 0, 1}, {6, 3, 2, 1, 1, 1}}, 2, 5, 15, 5),  // depthwise with multiplier
      ConvolutionOf({{7, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}, 2, 8, 12, 4),  // groups
      ConvolutionOf({{6, 5}, {6, 1}}, 3, 33, 17),                            // odd channels
      ConvolutionOf({{5, 3, 1, 1, 1, 1}, {6, 3, 2, 1, 1, 1}, {7, 2, 1, 2, 1, 0}}, 2, 3, 4),
      ConvolutionOf({{33, 3, 1, 1, 1, 1}, {32, 3, 1, 1, 1, 1}}, 1, 24, 40),  // shared by rows
      ConvolutionOf({{9, 3, 1, 1, 1, 1}, {8, 3, 1, 1, 1, 1}}, 5, 48, 64),    // by images
      ConvolutionOf({{5, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}}, 1, 200, 330),  // by output channels
      ConvolutionOf({{14, 1}, {14, 1}}, 1, 600, 520),
      ConvolutionOf({{34, 7, 2, 1, 3, 3}, {34, 7, 2, 1, 3, 3}}, 1, 3, 16),  // a first layer
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}}, 0, 4, 4),     // empty batch
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}}, 2, 4, 0),     // no output channels
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}}, 2, 0, 4),     // sums of nothing
  };
}

TEST(ByteConvolution, ByHand) {
  const ConvolutionDesc d = OfBytes(ConvolutionOf({{3, 2, 1, 1, 1, 0}}, 1, 1, 1));
  const std::vector<Array> in = {Values(DType::kUint8, {10, 20, 255}), Values(DType::kInt8, {-128, 3}), Ints({5}),
                                 Ints({1})};
  // The first cell of the first window is padding: (10 - 5) * (3 - 1), ...
  ExpectByHand(d, in, {{DType::kInt32, 3}}, {{Ints({10, -645 + 30, -1935 + 500})}}, "by hand");
}

TEST(ByteConvolution, AllGeometriesAndZeros) {
  uint32_t seed = 1;
  for (const ConvolutionDesc& geometry : Geometries()) {
    const ConvolutionDesc d = OfBytes(geometry);
    for (int32_t zero : {0, 7, 128, 255}) {
      Compare(d, Operands(d, seed += 5, zero, 0, 0), errors::Concat(", zero ", zero));
    }
    Compare(d, Operands(d, seed += 5, 0, -128, 9), ", zeros of the filter");
    Compare(d, Operands(d, seed += 5, 31, -3, 1), ", all zeros");
  }
}

TEST(ByteConvolution, Extremes) {
  for (const ConvolutionDesc& geometry : {ConvolutionOf({{6, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}}, 1, 67, 33),
                                          ConvolutionOf({{7, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}}, 1, 32, 32, 32),
                                          ConvolutionOf({{4, 1}, {5, 1}}, 1, 259, 66)}) {
    const ConvolutionDesc d = OfBytes(geometry);
    for (int x : {0, 255}) {
      for (int w : {-128, 127}) {
        for (int32_t zero : {0, 255}) {
          std::vector<Array> in = Operands(d, 3, zero, w == 127 ? -128 : 0, 0);
          in[0] = Values(DType::kUint8, std::vector<double>(XSize(d), x));
          in[1] = Values(DType::kInt8, std::vector<double>(WSize(d), w));
          Compare(d, in, errors::Concat(" of ", x, " and ", w, ", zero ", zero));
        }
      }
    }
  }
}

TEST(ByteConvolution, PackedFilters) {
  uint32_t seed = 70;
  for (const ConvolutionDesc& geometry : Geometries()) {
    const ConvolutionDesc d = OfBytes(geometry);
    const std::vector<Array> in = Operands(d, seed += 5, 9, seed % 2 == 0 ? 0 : 4, 0);
    ComparePacked(d, in, {{DType::kInt32, YSize(d)}}, {{Sums(d, in)}}, Text(d));
  }
}

// The sums are scaled by channel and get an offset, an element, and bounds. Then they are floats, bytes or both.
struct Ends {
  bool elements, floats, bytes, sigmoid, divides;
};

void CompareEnds(ConvolutionDesc d, uint32_t seed, const Ends& ends) {
  const int64_t size = YSize(d), channels = d.out_channels;
  std::vector<Array> in = Operands(d, seed, 12, 0, 0);
  ProgramBuilder b;
  const auto input = [&](Array values, Dims strides) {
    d.epilogue.in_strides[in.size() - 3] = strides;
    in.push_back(std::move(values));
    return b.Input(in.back().type());
  };
  d.epilogue.shape = {channels == 0 ? 0 : size / channels, channels};
  d.epilogue.in_strides[0] = {channels, 1};
  auto value = b.Cast(b.Input(DType::kInt32), DType::kFloat);
  value = b.Apply(Opcode::kMul, value, input(Random(DType::kFloat, channels, seed + 7, 1e-4, 2e-3), {0, 1}));
  value = b.Apply(Opcode::kAdd, value, input(Random(DType::kFloat, channels, seed + 8, -1, 1), {0, 1}));
  if (ends.elements) {
    value = b.Apply(Opcode::kAdd, value, input(Random(DType::kFloat, size, seed + 9, -3, 3), {channels, 1}));
  }
  if (ends.sigmoid) value = b.Apply(Opcode::kNeg, b.Apply(Opcode::kSquare, value));
  value = b.Apply(Opcode::kMaximum, value, b.Const(DType::kFloat, -2));
  std::vector<Output> outputs;
  if (ends.floats) {
    b.Output(value);
    outputs.push_back({DType::kFloat, size});
  }
  if (ends.bytes) {
    std::vector<ProgramBuilder::Reg> registers = {value};
    const double rows[] = {-1.5, 2.25, ends.divides ? 0.0147 : 68.0, 102, 102};
    for (double row : rows) registers.push_back(input(Values(DType::kFloat, std::vector<double>{row}), {0, 0}));
    const Program& to_bytes = *FakeQuantizeToBytes(ends.divides, DType::kUint8);
    b.Output(b.Inline(to_bytes, registers)[to_bytes.outputs()[0]]);
    outputs.push_back({DType::kUint8, size});
  }
  d.epilogue.program = b.Build();
  ASSERT_NE(d.epilogue.program, nullptr) << b.error();
  const std::string what = Text(d) + errors::Concat(" ends ", ends.elements, ends.floats, ends.bytes, ends.sigmoid);
  const Want want = AsTheReference(d, in, outputs);
  Expect(d, in, outputs, want, what);
  ComparePacked(d, in, outputs, want, what);
}

TEST(ByteConvolution, Epilogues) {
  uint32_t seed = 500;
  for (const ConvolutionDesc& geometry : Geometries()) {
    for (const Ends& ends : {Ends{false, false, true, false, false}, Ends{true, true, true, false, true},
                             Ends{true, true, false, false, false}, Ends{false, true, true, true, false}}) {
      CompareEnds(OfBytes(geometry), seed += 20, ends);
    }
  }
}

TEST(ByteConvolution, BytesOfRanges) {
  // The rows of an ordinary range, of that from 0 to 0, and of one that is not finite.
  const Program* const range = FakeQuantRange({});
  const float kNan = NAN, kInfinity = INFINITY;
  ElementwiseDesc of_range;
  of_range.program = range;
  of_range.shape = {5};
  of_range.in_strides[0] = of_range.in_strides[1] = {1};
  const std::vector<Array> ends = {Values(DType::kFloat, std::vector<double>{-1, 0, kNan, -kInfinity, 0}),
                                   Values(DType::kFloat, std::vector<double>{1, 0, 1, 1, 63.75})};
  const std::vector<Output> rows(FakeQuantRow::kRows, Output{DType::kFloat, 5});
  const std::vector<Array> row = AsTheReference(of_range, ends, rows).out;
  ElementwiseDesc to_bytes = of_range;
  to_bytes.program = FakeQuantByteRange(false, 128);
  for (int i = 0; i < FakeQuantRow::kRows; ++i) to_bytes.in_strides[i] = {1};
  std::vector<Output> byte_rows(ByteRow::kRows, Output{DType::kFloat, 5});
  byte_rows[ByteRow::kInteger].type = DType::kInt32;
  const std::vector<Array> of_bytes = ExpectAsTheReference(to_bytes, row, byte_rows, "rows of bytes");
  const auto* const scale = of_bytes[ByteRow::kScale].as<float>();
  EXPECT_FLOAT_EQ(scale[0], 2.0f / 255);
  EXPECT_EQ(scale[1], 0);
  EXPECT_TRUE(std::isnan(scale[2]) && std::isnan(scale[3]));
  EXPECT_EQ(scale[4], 0.25f);
  for (int i = 0; i < ByteRow::kScale; ++i) {
    for (int j = 0; j < 5; ++j) EXPECT_TRUE(std::isfinite(of_bytes[i].as<float>()[j])) << i << " " << j;
  }
  // 0 is between two integers in the first one, and rounding decides.
  const int32_t integers[] = {-1, -128, -128, -128, -128};
  for (int j = 0; j < 5; ++j) EXPECT_EQ(of_bytes[ByteRow::kInteger].as<int32_t>()[j], integers[j]) << j;
}

}  // namespace
}  // namespace xpu::testing
