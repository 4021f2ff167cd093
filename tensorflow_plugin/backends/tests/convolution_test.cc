#include <array>
#include <cmath>
#include <limits>

#include "tensorflow_plugin/backends/tests/compare.h"
#include "tensorflow_plugin/backends/tests/geometry/convolutions.h"
#include "tensorflow_plugin/primitives/quantize_programs.h"

namespace xpu::testing {
namespace {

const Direction kDirections[] = {Direction::kForward, Direction::kDataGradient, Direction::kFilterGradient};

int64_t Product(const int64_t* e) { return e[0] * e[1] * e[2]; }
int64_t XSize(const ConvolutionDesc& d) { return d.batch * d.in_channels * Product(d.input); }
int64_t YSize(const ConvolutionDesc& d) { return d.batch * d.out_channels * Product(d.output); }
int64_t WSize(const ConvolutionDesc& d) { return d.in_channels / d.groups * d.out_channels * Product(d.filter); }

std::string Text(const ConvolutionDesc& d) {
  return errors::Concat("order ", static_cast<int>(d.order), " rank ", d.spatial_rank, " batch ", d.batch, " ",
                        d.in_channels, "->", d.out_channels, " groups ", d.groups, " input ", d.input[0], " ",
                        d.input[1], " ", d.input[2], " filter ", d.filter[0], " ", d.filter[1], " ", d.filter[2],
                        " stride ", d.stride[0], " dilation ", d.dilation[0]);
}

// The operands of a convolution, or a gradient; an element of its result is a sum of `terms` products at most.
struct Operands {
  template <typename Numbers>  // numbers(n, seed)
  Operands(const ConvolutionDesc& d, uint32_t seed, Numbers numbers) {
    const Array x = numbers(XSize(d), seed), w = numbers(WSize(d), seed + 1), dy = numbers(YSize(d), seed + 2);
    switch (d.direction) {
      case Direction::kForward:
        in = {x, w};
        size = YSize(d);
        terms = Product(d.filter) * d.in_channels / d.groups;
        break;
      case Direction::kDataGradient:
        in = {w, dy};
        size = XSize(d);
        terms = Product(d.filter) * d.out_channels / d.groups;
        break;
      case Direction::kFilterGradient:
        in = {x, dy};
        size = WSize(d);
        terms = d.batch * Product(d.output);
        break;
      case Direction::kPackFilter:
        break;
    }
  }

  std::vector<Array> in;
  int64_t size = 0, terms = 1;
};

// Each product is rounded once (exact in float for 16-bit types) before it is added: SumError(terms) of the sum of the
// products' magnitudes. For whole numbers it is exact.
void Compare(ConvolutionDesc d, Direction direction, DType type, ChannelOrder order, uint32_t seed,
             bool of_whole_numbers = false) {
  d.direction = direction;
  d.type = type;
  d.order = order;
  const Operands operands(d, seed, [&](int64_t n, uint32_t its_seed) {
    return of_whole_numbers ? Whole(type, n, its_seed, 3) : Random(type, n, its_seed, -2, 2);
  });
  const Output output = {type, operands.size};
  ConvolutionDesc wide = d;
  wide.type = Wide(type);
  if (of_whole_numbers) return ExpectExactSums(d, wide, operands.in, output, Text(d) + " of whole numbers");
  ExpectSums(d, wide, operands.in, output, static_cast<double>(operands.terms), Text(d));
}

// Compares with what is wanted, with a filter that is laid out before; not where the backend likes it as it is.
void ExpectPacked(const ConvolutionDesc& d, std::vector<Array> in, const Output& output, const Want& want) {
  const std::string label = errors::Concat("Convolution of ", Name(d.type), " with a filter laid out");
  in.insert(in.begin() + 2, Array());
  for (const Variant& variant : Variants()) {
    const UseVariant use(variant);
    ConvolutionDesc with = d;
    with.packed_filter_bytes = variant.device->device().capabilities().PackedFilterBytes(d);
    if (with.packed_filter_bytes == 0) {
      CountCase(label, CaseResult::kNotSupported);
      continue;
    }
    const Outcome layout = variant.device->Run(PackingOf(with), {in[FilterInput(d)]},
                                               {{DType::kUint8, with.packed_filter_bytes}}, variant.waiting);
    ASSERT_TRUE(layout.status.ok()) << layout.status.message();
    in[2] = layout.out[0];
    const bool right =
        Judge(variant.device->Run(with, in, {output}, variant.waiting), want, Text(d) + ", laid out, " + variant.name);
    CountCase(label, right ? CaseResult::kRight : CaseResult::kWrong);
  }
}

// (c + x) * y of a result c.
const Program* AddAndMultiply(DType type) {
  ProgramBuilder builder;
  const auto c = builder.Input(type), x = builder.Input(type), y = builder.Input(type);
  builder.Output(builder.Apply(Opcode::kMul, builder.Apply(Opcode::kAdd, c, x), y));
  return builder.Build();
}

// Gives it that, with a number for each of the last axis and one for each element. Two more roundings, each no larger
// than that of the sum of all magnitudes. In 16 bits, which are rounded in between, whole numbers that need none.
// `value` is put among the numbers that are convolved.
void CompareWithEpilogue(ConvolutionDesc d, Direction direction, DType type, ChannelOrder order, uint32_t seed,
                         double value = 0) {
  d.direction = direction;
  d.type = type;
  d.order = order;
  const bool exact = SizeOf(type) == 2;
  constexpr int64_t kExactTerms = 200;
  Operands operands(d, seed, [&](int64_t n, uint32_t its_seed) {
    return exact ? Whole(type, n, its_seed, 1) : Random(type, n, its_seed, value == 0 ? -2 : 0.5, 2);
  });
  if (exact && operands.terms > kExactTerms) return;
  if (value != 0) operands.in[1].as<float>()[operands.in[1].size() / 2] = static_cast<float>(value);
  const bool last = order == ChannelOrder::kLast && direction != Direction::kFilterGradient;
  const int64_t row = last ? (direction == Direction::kForward ? d.out_channels : d.in_channels) : operands.size;
  d.epilogue.program = AddAndMultiply(type);
  d.epilogue.shape = {row == 0 ? 0 : operands.size / row, row};
  d.epilogue.in_strides[0] = {row, 1};
  d.epilogue.in_strides[1] = {0, 1};
  d.epilogue.in_strides[2] = {row, 1};
  operands.in.push_back(exact ? Whole(type, row, seed + 3, 3) : Random(type, row, seed + 3, -2, 2));
  operands.in.push_back(exact ? Whole(type, operands.size, seed + 4, 1) : Random(type, operands.size, seed + 4, 1, 2));
  ConvolutionDesc wide = d;
  wide.type = Wide(type);
  wide.epilogue.program = AddAndMultiply(wide.type);
  const Output output = {type, operands.size};
  const std::string what = Text(d) + " with an epilogue";
  if (exact) return ExpectExactSums(d, wide, operands.in, output, what);
  ExpectSums(d, wide, operands.in, output, static_cast<double>(operands.terms + 2), what);
}

// A scale and an offset for each channel, alone, with an element and bounds, and with what no kernel has in registers.
// All numbers are whole, so results are exact.
void CompareWithAffineEpilogue(ConvolutionDesc d, uint32_t seed, Direction direction = Direction::kForward) {
  d.direction = direction;
  d.type = DType::kFloat;
  d.order = ChannelOrder::kLast;
  Operands operands(d, seed, [](int64_t n, uint32_t its_seed) { return Whole(DType::kFloat, n, its_seed, 3); });
  const int64_t row = direction == Direction::kForward ? d.out_channels : d.in_channels;
  const int64_t rows = row == 0 ? 0 : operands.size / row;
  enum class With { kNothing, kBounds, kMagnitude };
  for (With with : {With::kNothing, With::kBounds, With::kMagnitude}) {
    ProgramBuilder builder;
    std::vector<ProgramBuilder::Reg> in;
    for (int i = 0; i < 4; ++i) in.push_back(builder.Input(DType::kFloat));
    auto sum = builder.Apply(Opcode::kAdd, builder.Apply(Opcode::kMul, in[0], in[1]), in[2]);
    if (with == With::kMagnitude) sum = builder.Apply(Opcode::kAdd, sum, builder.Apply(Opcode::kAbs, in[0]));
    if (with == With::kBounds) {
      sum = builder.Apply(Opcode::kAdd, sum, in[3]);
      const auto low = builder.Apply(Opcode::kMaximum, sum, builder.Const(DType::kFloat, -7));
      sum = builder.Apply(Opcode::kMinimum, low, builder.Const(DType::kFloat, 20));
    }
    builder.Output(sum);
    d.epilogue.program = builder.Build();
    d.epilogue.shape = {rows, row};
    d.epilogue.in_strides[0] = d.epilogue.in_strides[3] = {row, 1};
    d.epilogue.in_strides[1] = d.epilogue.in_strides[2] = {0, 1};
    std::vector<Array> all = operands.in;
    all.push_back(Whole(DType::kFloat, row, seed + 3, 3));
    all.push_back(Whole(DType::kFloat, row, seed + 4, 3));
    all.push_back(Whole(DType::kFloat, operands.size, seed + 5, 3));
    const Output output{DType::kFloat, operands.size};
    ExpectAsTheReference(d, all, {output}, Text(d) + " with an affine epilogue");
    if (d.batch > 0 && row > 0) ExpectPacked(d, all, output, Want{AsTheReference(d, all, {output}).out});
  }
}

std::vector<ConvolutionDesc> Geometries() {
  return {
      ConvolutionOf({{1, 1}}, 1, 1, 1),
      ConvolutionOf({{9, 3, 2, 1, 1, 1}}, 2, 3, 5),
      ConvolutionOf({{20, 3, 1, 4, 8, 0}}, 2, 4, 6),                          // causal
      ConvolutionOf({{5, 1}, {5, 1}}, 2, 16, 32),                             // pointwise
      ConvolutionOf({{8, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}}, 2, 16, 16),     // same
      ConvolutionOf({{8, 3, 2, 1, 0, 1}, {9, 3, 2, 1, 1, 1}}, 2, 3, 8),       // asymmetric
      ConvolutionOf({{11, 2, 4}, {10, 3, 5}}, 2, 3, 4),                       // stride beyond the window
      ConvolutionOf({{12, 3, 1, 2}, {12, 3, 1, 3}}, 1, 5, 7),                 // dilation
      ConvolutionOf({{12, 3, 2, 2, 2, 3}, {12, 2, 3, 3, 0, 4}}, 1, 4, 4),     // dilation, stride and padding
      ConvolutionOf({{4, 3, 1, 1, 4, 3}, {4, 3, 1, 1, 0, 5}}, 1, 2, 3),       // more padding than window
      ConvolutionOf({{7, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}, 2, 8, 8, 8),    // depthwise
      ConvolutionOf({{7, 3, 2, 1, 0, 1}, {6, 3, 2, 1, 1, 1}}, 2, 5, 15, 5),   // depthwise with multiplier
      ConvolutionOf({{7, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}, 2, 8, 12, 4),   // groups
      ConvolutionOf({{7, 3, 1, 1, 1, 1}, {6, 3, 2, 1, 1, 1}}, 2, 40, 60, 2),  // wide groups
      ConvolutionOf({{6, 5}, {6, 1}}, 3, 33, 17),                             // odd channels
      ConvolutionOf({{5, 3, 1, 1, 1, 1}, {6, 3, 2, 1, 1, 1}, {7, 2, 1, 2, 1, 0}}, 2, 3, 4),
      ConvolutionOf({{4, 2, 2}, {4, 2, 2}, {4, 2, 2}}, 1, 16, 16, 2),
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}}, 0, 4, 4),  // empty batch
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}}, 2, 4, 0),  // no output channels
  };
}

TEST(Convolution, ByHand) {
  for (DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    // x = [[1,2,3],[4,5,6],[7,8,9]], w = [[1,2],[-3,4]]
    ConvolutionDesc d = ConvolutionOf({{3, 2}, {3, 2}}, 1, 1, 1);
    d.type = type;
    const Array x = Values(type, {1, 2, 3, 4, 5, 6, 7, 8, 9}), w = Values(type, {1, 2, -3, 4});
    ExpectByHand(d, {x, w}, {{type, 4}}, {{Values(type, {13, 17, 25, 29})}}, "forward");
    const Array dy = Values(type, {1, 2, 3, 4});
    d.direction = Direction::kDataGradient;
    ExpectByHand(d, {w, dy}, {{type, 9}}, {{Values(type, {1, 4, 4, 0, 8, 16, -9, 0, 16})}}, "data gradient");
    d.direction = Direction::kFilterGradient;
    ExpectByHand(d, {x, dy}, {{type, 4}}, {{Values(type, {37, 47, 67, 77})}}, "filter gradient");
  }
}

// The gradients of sum(y * dy) by differences: it is linear in x and in w, so a step of 1 is exact.
TEST(Convolution, ReferenceGradientsAreDerivatives) {
  for (ConvolutionDesc d : Geometries()) {
    d.type = DType::kDouble;
    for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
      d.order = order;
      Array x = Random(d.type, XSize(d), 1), w = Random(d.type, WSize(d), 2);
      const Array dy = Random(d.type, YSize(d), 3);
      auto run = [&](Direction direction, const Array& a, const Array& b, int64_t size) {
        ConvolutionDesc e = d;
        e.direction = direction;
        return AsTheReference(e, {a, b}, {{d.type, size}}).out[0];
      };
      auto value = [&] {
        const Array y = run(Direction::kForward, x, w, YSize(d));
        double sum = 0;
        for (int64_t i = 0; i < y.size(); ++i) sum += RealAt(y, i) * RealAt(dy, i);
        return sum;
      };
      const Array dx = run(Direction::kDataGradient, w, dy, XSize(d));
      const Array dw = run(Direction::kFilterGradient, x, dy, WSize(d));
      const double before = value();
      for (Array* v : {&x, &w}) {
        const Array& gradient = v == &x ? dx : dw;
        for (int64_t i = 0; i < v->size(); i += 1 + v->size() / 7) {
          v->as<double>()[i] += 1;
          EXPECT_NEAR(value() - before, RealAt(gradient, i), 1e-9) << (v == &x ? "dx " : "dw ") << i;
          v->as<double>()[i] -= 1;
        }
      }
    }
  }
}

TEST(Convolution, AllGeometriesTypesAndOrders) {
  uint32_t seed = 1;
  for (const ConvolutionDesc& d : Geometries()) {
    for (Direction direction : kDirections) {
      for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
        for (DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
          Compare(d, direction, type, order, seed += 3);
        }
      }
    }
  }
}

// Millions of multiplications: threads share images out, or the rows of one.
TEST(Convolution, LargeOnesAreSharedOut) {
  const ConvolutionDesc geometries[] = {
      ConvolutionOf({{33, 3, 1, 1, 1, 1}, {32, 3, 1, 1, 1, 1}}, 1, 24, 24),  // one image, rows
      ConvolutionOf({{41, 5, 2, 1, 2, 2}, {40, 5, 2, 1, 1, 2}}, 1, 32, 32),  // strides
      ConvolutionOf({{40, 3, 1, 4, 4, 4}, {30, 3, 1, 2, 2, 2}}, 1, 24, 24),  // dilation
      ConvolutionOf({{6, 3, 1, 1, 9, 9}, {64, 3, 1, 1, 1, 1}}, 1, 32, 32),   // rows of nothing but padding
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {200, 3, 1, 1, 1, 1}}, 1, 64, 32),  // fewer rows than parts
      ConvolutionOf({{4000, 2, 1, 8, 8, 0}}, 1, 32, 24),                     // causal
      ConvolutionOf({{16, 3, 1, 1, 1, 1}, {16, 3, 1, 1, 1, 1}}, 3, 32, 32),  // images that do not go into the parts
      ConvolutionOf({{12, 3, 1, 1, 1, 1}, {12, 3, 1, 1, 1, 1}}, 9, 24, 24),
      ConvolutionOf({{20, 3, 2, 1, 0, 1}, {20, 3, 2, 1, 0, 1}}, 7, 3, 64),       // a first layer
      ConvolutionOf({{64, 3, 1, 1, 1, 1}, {64, 3, 1, 1, 1, 1}}, 2, 96, 96, 96),  // depthwise
      ConvolutionOf({{24, 3, 1, 1, 1, 1}, {24, 3, 1, 1, 1, 1}}, 3, 48, 48, 4),   // groups
      ConvolutionOf({{8, 3, 1, 1, 1, 1}, {10, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}}, 2, 16, 16),
  };
  uint32_t seed = 1000;
  for (const ConvolutionDesc& d : geometries) {
    for (Direction direction : kDirections) {
      for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
        Compare(d, direction, DType::kFloat, order, seed += 3);
      }
      Compare(d, direction, DType::kBFloat16, ChannelOrder::kLast, seed += 3);
    }
  }
}

// Cases that a backend may compute with fewer multiplications: filters of three by three, and tiles of the output that
// its edges cut. Channels do and do not fill vectors and panels.
TEST(Convolution, ThreeByThree) {
  const ConvolutionDesc geometries[] = {
      ConvolutionOf({{12, 3, 1, 1, 1, 1}, {16, 3, 1, 1, 1, 1}}, 2, 16, 16),
      ConvolutionOf({{13, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}}, 5, 48, 16),  // tiles that are cut
      ConvolutionOf({{14, 3}, {11, 3}}, 3, 16, 80),                         // valid
      ConvolutionOf({{9, 3, 1, 1, 2, 0}, {10, 3, 1, 1, 0, 2}}, 4, 32, 32),  // asymmetric
      ConvolutionOf({{8, 3, 1, 1, 2, 2}, {9, 3, 1, 1, 2, 2}}, 4, 32, 24),   // full
      ConvolutionOf({{5, 3, 1, 1, 4, 3}, {6, 3, 1, 1, 3, 5}}, 6, 16, 48),   // zeros where there is nothing but padding
      ConvolutionOf({{3, 3}, {200, 3, 1, 1, 1, 1}}, 3, 32, 48),             // a row
      ConvolutionOf({{24, 3, 1, 1, 1, 1}, {20, 3, 1, 1, 1, 1}}, 1, 32, 96),
      ConvolutionOf({{8, 3, 1, 1, 1, 1}, {8, 3, 1, 1, 1, 1}}, 17, 48, 80),  // many blocks of images
      ConvolutionOf({{16, 3, 1, 1, 1, 1}, {16, 3, 1, 1, 1, 1}}, 9, 8, 40),
  };
  uint32_t seed = 3000;
  for (const ConvolutionDesc& d : geometries) {
    for (Direction direction : kDirections) {
      Compare(d, direction, DType::kFloat, ChannelOrder::kLast, seed += 3);
    }
  }
}

// Where a backend may multiply windows laid out as rows: padding, strides and dilation decide what lies in them.
TEST(Convolution, LargeFiltersOverFewPixels) {
  const ConvolutionDesc geometries[] = {
      ConvolutionOf({{5, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}}, 3, 336, 352),
      ConvolutionOf({{6, 3, 2, 1, 0, 1}, {5, 3, 2, 1, 1, 1}}, 2, 344, 344),  // strides
      ConvolutionOf({{7, 3, 1, 3, 3, 3}, {6, 3, 1, 2, 0, 2}}, 1, 344, 344),  // dilation
      ConvolutionOf({{3, 5, 1, 1, 2, 2}, {2, 3, 1, 1, 4, 4}}, 1, 272, 272),  // much padding
      ConvolutionOf({{20, 9, 1, 1, 8, 0}}, 2, 344, 352),                     // causal
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {2, 3, 1, 1, 1, 1}, {4, 3, 2, 1, 1, 1}}, 2, 200, 200),
      ConvolutionOf({{7, 7}, {7, 7}}, 4, 152, 152),  // one pixel
  };
  uint32_t seed = 5000;
  for (const ConvolutionDesc& d : geometries) {
    // Each way and type once, and all geometries where most can go wrong: a sanitizer makes minutes of the others.
    const bool first = &d == geometries;
    for (Direction direction : kDirections) {
      if (direction == Direction::kDataGradient && !first) continue;
      const auto compare = [&](DType type, bool of_whole_numbers) {
        Compare(d, direction, type, ChannelOrder::kLast, seed += 3, of_whole_numbers);
      };
      compare(DType::kFloat, /*of_whole_numbers=*/true);
      compare(DType::kBFloat16, false);
      if (first) compare(DType::kFloat, false);
      if (first) compare(DType::kHalf, false);
    }
  }
}

// Where each thread convolves some images, or rows, with all of a filter; its channels fill no blocks.
TEST(Convolution, LargeFiltersOverManyPixels) {
  const ConvolutionDesc geometries[] = {
      ConvolutionOf({{17, 3, 1, 1, 1, 1}, {16, 5, 1, 1, 2, 2}}, 2, 44, 208),
      ConvolutionOf({{40, 1, 2}, {39, 1, 2}}, 1, 300, 450),
      ConvolutionOf({{700, 3, 1, 2, 4, 0}}, 3, 330, 140),
  };
  uint32_t seed = 7000;
  for (const ConvolutionDesc& d : geometries) {
    Compare(d, Direction::kForward, DType::kFloat, ChannelOrder::kLast, seed += 3, /*of_whole_numbers=*/true);
  }
}

// An infinity or a NaN is in what is computed from it, and nowhere else; and what is almost too large is not lost.
TEST(Convolution, InfinitiesStayWhereTheyBelong) {
  for (const double value : {std::numeric_limits<double>::infinity(), std::nan(""), 1e38}) {
    ConvolutionDesc d = ConvolutionOf({{12, 3, 1, 1, 1, 1}, {12, 3, 1, 1, 1, 1}}, 2, 16, 16);
    for (Direction direction : kDirections) {
      d.direction = direction;
      const bool to_filter = direction == Direction::kFilterGradient;
      Array x = Random(DType::kFloat, XSize(d), 1, 0.5, 1);  // of one sign: infinities do not meet
      x.as<float>()[(5 * 12 + 6) * 16 + 3] = static_cast<float>(value);
      const Array other = Random(DType::kFloat, to_filter ? YSize(d) : WSize(d), 2, 0.001, 0.01);
      ConvolutionDesc wide = d;
      wide.type = DType::kDouble;
      const std::vector<Array> in =
          direction == Direction::kDataGradient ? std::vector<Array>{other, x} : std::vector<Array>{x, other};
      const int64_t size = to_filter ? WSize(d) : YSize(d);
      ExpectSums(d, wide, in, {DType::kFloat, size}, 288, errors::Concat(value));
    }
  }
}

// Twice the same descriptor: the second run uses the kept primitive with other buffers.
// Filters' gradients over many pixels, and many channels: a part of a sum that is off, or one product, is wrong. The
// filters are of 5x5, since a backend may compute those of 3x3 by Winograd's algorithm, which leaves whole numbers.
TEST(Convolution, LongSumsOfWholeNumbersAreExact) {
  for (DType type : {DType::kFloat, DType::kBFloat16}) {
    for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
      const Axis far = {32, 5, 1, 1, 2, 2};
      Compare(ConvolutionOf({far, far}, 3, 8, 16), Direction::kFilterGradient, type, order, 1, true);
      Compare(ConvolutionOf({far, far}, 2, 12, 12, 12), Direction::kFilterGradient, type, order, 2, true);
      const Axis near = {4, 5, 1, 1, 2, 2};
      for (Direction direction : {Direction::kForward, Direction::kDataGradient}) {
        Compare(ConvolutionOf({near, near}, 1, 128, 128), direction, type, order, 3, true);
      }
    }
  }
}

// Small, but of several products: one for each group of channels, or for each part of the positions.
TEST(Convolution, GroupsAndPartsOfWholeNumbers) {
  const ConvolutionDesc groups = ConvolutionOf({{3, 2}}, 1, 4, 16, 2), parts = ConvolutionOf({{513, 2}}, 1, 1, 8);
  for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
    for (Direction direction : kDirections) Compare(groups, direction, DType::kFloat, order, 1, true);
    Compare(parts, Direction::kFilterGradient, DType::kFloat, order, 2, true);
  }
}

TEST(Convolution, EpilogueByHand) {
  for (DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    ConvolutionDesc d = ConvolutionOf({{3, 2}, {3, 2}}, 1, 1, 1);
    d.type = type;
    ProgramBuilder builder;
    const auto y = builder.Input(type), x = builder.Input(type);
    builder.Output(builder.Apply(Opcode::kSub, x, y));
    builder.Output(builder.Apply(Opcode::kLess, x, y));
    d.epilogue.program = builder.Build();
    d.epilogue.shape = {2, 2};
    d.epilogue.in_strides[1] = {1, 0};
    const std::vector<Array> in = {Values(type, {1, 2, 3, 4, 5, 6, 7, 8, 9}), Values(type, {1, 2, -3, 4}),
                                   Values(type, {15, 26})};
    const Want want{{Values(type, {2, -2, 1, -3}), Values(DType::kBool, {0, 1, 0, 1})}};
    ExpectByHand(d, in, {{type, 4}, {DType::kBool, 4}}, want, "epilogue");
  }
}

// In every way that a convolution is computed and shared out: by images, by rows, with filters that are large, by one
// thread. Also as a product, and by Winograd's algorithm with tiles that edges cut.
TEST(Convolution, Epilogues) {
  const ConvolutionDesc geometries[] = {
      ConvolutionOf({{8, 3, 2, 1, 0, 1}, {9, 3, 2, 1, 1, 1}}, 2, 3, 8),
      ConvolutionOf({{33, 3, 1, 2, 1, 1}, {32, 3, 1, 1, 1, 1}}, 1, 24, 24),
      ConvolutionOf({{16, 5, 1, 1, 2, 2}, {16, 3, 1, 1, 1, 1}}, 3, 32, 40),
      ConvolutionOf({{70, 5, 1, 1, 2, 2}, {64, 3, 1, 1, 1, 1}}, 2, 8, 48),  // more than a cache holds
      ConvolutionOf({{64, 3, 1, 1, 1, 1}, {64, 3, 1, 1, 1, 1}}, 2, 96, 96, 96),
      ConvolutionOf({{17, 3, 1, 1, 1, 1}, {16, 5, 1, 1, 2, 2}}, 2, 44, 208),
      ConvolutionOf({{13, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}}, 5, 48, 16),
      ConvolutionOf({{14, 3}, {31, 3}}, 3, 16, 80),
      ConvolutionOf({{5, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}}, 3, 336, 352),
      ConvolutionOf({{4000, 2, 1, 8, 8, 0}}, 1, 32, 24),
      ConvolutionOf({{128, 4}}, 2, 50, 70),                                  // along one axis
      ConvolutionOf({{21, 3, 1, 2, 2, 2}, {30, 3, 1, 4, 4, 4}}, 2, 20, 36),  // dilated along both
      ConvolutionOf({{24, 3, 1, 1, 1, 1}, {40, 3, 1, 1, 1, 1}}, 1, 32, 3),   // few results
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}}, 0, 4, 4),
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}}, 2, 0, 4),  // sums of nothing
  };
  uint32_t seed = 9000;
  for (const ConvolutionDesc& d : geometries) {
    for (Direction direction : kDirections) {
      if (direction == Direction::kFilterGradient && XSize(d) > 20000) continue;  // as everything else, and slow
      CompareWithEpilogue(d, direction, DType::kFloat, ChannelOrder::kLast, seed += 5);
      if (XSize(d) > 20000) continue;
      CompareWithEpilogue(d, direction, DType::kFloat, ChannelOrder::kFirst, seed += 5);
      CompareWithEpilogue(d, direction, DType::kBFloat16, ChannelOrder::kLast, seed += 5);
      CompareWithEpilogue(d, direction, DType::kHalf, ChannelOrder::kLast, seed += 5);
      CompareWithEpilogue(d, direction, DType::kDouble, ChannelOrder::kLast, seed += 5);
    }
  }
}

// Depthwise filters of each width and stride that has loops of its own, and of others. Channels fill vectors or do not,
// rows have few pixels or many. Padding is on either side, and one batch is empty.
std::vector<ConvolutionDesc> DepthwiseGeometries() {
  std::vector<ConvolutionDesc> geometries;
  for (int64_t filter : {3, 5, 7}) {
    for (int64_t stride : {1, 2}) {
      for (int64_t channels : {1, 7, 16, 33}) {
        const int64_t half = filter / 2;
        geometries.push_back(ConvolutionOf({{9, filter, stride, 1, half, half}, {24, filter, stride, 1, half, half}}, 2,
                                           channels, channels, channels));
      }
      geometries.push_back(ConvolutionOf({{6, 3, 2, 1, 0, 1}, {40, filter, stride, 1, 0, 3}}, 1, 17, 17, 17));
      geometries.push_back(ConvolutionOf({{5, 2, 1, 1, 1, 0}, {filter, filter, stride, 1, 4, 0}}, 1, 20, 20, 20));
      geometries.push_back(
          ConvolutionOf({{3, 3, 1, 1, 5, 5}, {2, filter, stride, 1, 9, 8}}, 1, 24, 24, 24));  // mostly padding
    }
  }
  geometries.push_back(ConvolutionOf({{8, 3, 1, 1, 1, 1}, {8, 3, 1, 1, 1, 1}}, 0, 8, 8, 8));
  geometries.push_back(ConvolutionOf({{9, 3, 1, 2, 2, 2}, {9, 3, 1, 2, 2, 2}}, 1, 16, 16, 16));  // dilated
  geometries.push_back(ConvolutionOf({{9, 3, 3, 1, 1, 1}, {17, 3, 3, 1, 1, 1}}, 1, 16, 16, 16));
  geometries.push_back(ConvolutionOf({{9, 4, 1, 1, 1, 2}, {9, 4, 1, 1, 1, 2}}, 1, 16, 16, 16));
  geometries.push_back(ConvolutionOf({{14, 9, 1, 1, 4, 4}, {14, 9, 1, 1, 4, 4}}, 1, 20, 20, 20));
  geometries.push_back(ConvolutionOf({{60, 3, 1, 1, 1, 1}, {63, 5, 1, 1, 2, 2}}, 2, 72, 72, 72));   // shared by rows
  geometries.push_back(ConvolutionOf({{7, 5, 1, 1, 2, 2}, {7, 5, 1, 1, 2, 2}}, 1, 333, 333, 333));  // by channels
  return geometries;
}

TEST(Convolution, Depthwise) {
  uint32_t seed = 20000;
  for (const ConvolutionDesc& d : DepthwiseGeometries()) {
    Compare(d, Direction::kForward, DType::kFloat, ChannelOrder::kLast, seed += 3);
    Compare(d, Direction::kForward, DType::kFloat, ChannelOrder::kLast, seed += 3, /*of_whole_numbers=*/true);
    CompareWithEpilogue(d, Direction::kForward, DType::kFloat, ChannelOrder::kLast, seed += 5);
    CompareWithAffineEpilogue(d, seed += 6);
    for (Direction direction : {Direction::kForward, Direction::kDataGradient, Direction::kFilterGradient}) {
      Compare(d, direction, DType::kDouble, ChannelOrder::kLast, seed += 3);
    }
  }
}

// Images of a few channels. The filter is read once for several rows of the output, or for a part of a long one.
// Padding is on either side or none, and some pixels meet nothing else. Output channels fill vectors and panels or do
// not.
TEST(Convolution, FewChannels) {
  std::vector<ConvolutionDesc> geometries = {
      ConvolutionOf({{34, 3, 2, 1, 0, 1}, {34, 3, 2, 1, 0, 1}}, 2, 3, 16),
      ConvolutionOf({{30, 7, 2, 1, 3, 3}, {37, 7, 2, 1, 3, 3}}, 1, 3, 64),
      ConvolutionOf({{1, 1}, {4100, 80, 4, 1, 38, 38}}, 2, 1, 20),  // longer than what is computed at once
      ConvolutionOf({{32, 16, 16}, {48, 16, 16}}, 2, 3, 70),        // no padding
      ConvolutionOf({{9, 2, 3}, {1200, 3, 1, 1, 1, 1}}, 1, 4, 130),
      ConvolutionOf({{5, 3, 1, 1, 7, 9}, {4, 5, 2, 1, 11, 8}}, 2, 2, 9),
      ConvolutionOf({{3, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}}, 3, 1, 4),
      ConvolutionOf({{9, 3, 1, 2}, {9, 3, 1, 2}}, 1, 3, 8),  // dilated
  };
  for (int64_t pixels : {1, 2, 3, 5, 6, 7, 11, 12, 13, 23}) {  // tiles and their remainders
    geometries.push_back(ConvolutionOf({{4, 3, 1, 1, 1, 1}, {pixels, 3, 1, 1, 1, 1}}, 1, 3, 4 + 13 * (pixels % 5)));
  }
  uint32_t seed = 30000;
  for (const ConvolutionDesc& d : geometries) {
    Compare(d, Direction::kForward, DType::kFloat, ChannelOrder::kLast, seed += 3);
    Compare(d, Direction::kForward, DType::kFloat, ChannelOrder::kLast, seed += 3, /*of_whole_numbers=*/true);
    CompareWithEpilogue(d, Direction::kForward, DType::kFloat, ChannelOrder::kLast, seed += 5);
    CompareWithAffineEpilogue(d, seed += 6);
  }
}

// Data gradients with strides, which layers call transposed convolutions. Pixels of the result meet as many taps or
// not, and some meet nothing but padding.
std::vector<ConvolutionDesc> StridedGeometries() {
  std::vector<ConvolutionDesc> geometries = {
      ConvolutionOf({{8, 4, 2, 1, 1, 1}, {16, 4, 2, 1, 1, 1}}, 2, 16, 24),
      ConvolutionOf({{16, 3, 2, 1, 0, 1}, {32, 3, 2, 1, 0, 1}}, 1, 3, 40),
      ConvolutionOf({{15, 3, 2, 1, 1, 1}, {29, 3, 2, 1, 1, 1}}, 2, 20, 7),
      ConvolutionOf({{12, 2, 2}, {14, 2, 2}}, 1, 33, 16),
      ConvolutionOf({{13, 5, 3, 1, 2, 2}, {9, 3, 2, 1, 2, 2}}, 1, 8, 12),
      ConvolutionOf({{7, 3, 1, 1, 1, 1}, {26, 4, 2, 1, 1, 1}}, 1, 70, 9),  // strides of one axis
      ConvolutionOf({{1, 1}, {2000, 16, 8, 1, 4, 4}}, 2, 8, 16),           // along one axis
      ConvolutionOf({{1400, 4, 2, 1, 1, 1}}, 1, 5, 6),                     // longer than what is computed at once
      ConvolutionOf({{5, 4, 4, 1, 3, 4}, {6, 4, 3, 1, 3, 3}}, 2, 4, 4),
      ConvolutionOf({{5, 2, 3}, {7, 2, 3}}, 1, 6, 6),                         // some pixels meet no taps
      ConvolutionOf({{9, 3, 2, 2, 2, 2}, {9, 3, 2, 1, 1, 1}}, 1, 16, 16),     // dilated
      ConvolutionOf({{8, 4, 2, 1, 1, 1}, {8, 4, 2, 1, 1, 1}}, 1, 16, 16, 2),  // groups
  };
  return geometries;
}

TEST(Convolution, StridedDataGradients) {
  uint32_t seed = 35000;
  for (const ConvolutionDesc& d : StridedGeometries()) {
    Compare(d, Direction::kDataGradient, DType::kFloat, ChannelOrder::kLast, seed += 3);
    CompareWithEpilogue(d, Direction::kDataGradient, DType::kFloat, ChannelOrder::kLast, seed += 5);
    CompareWithAffineEpilogue(d, seed += 6, Direction::kDataGradient);
  }
}

// The same with a filter that is laid out before, in whatever way the backend likes; not where it likes it as it is.
TEST(Convolution, PackedFilters) {
  std::vector<ConvolutionDesc> geometries = {
      ConvolutionOf({{5, 1}, {5, 1}}, 2, 16, 32),
      ConvolutionOf({{8, 3, 2, 1, 0, 1}, {9, 3, 2, 1, 1, 1}}, 2, 3, 8),         // by one thread
      ConvolutionOf({{7, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}, 2, 8, 8, 8),      // depthwise
      ConvolutionOf({{33, 3, 1, 2, 1, 1}, {32, 3, 1, 1, 1, 1}}, 1, 24, 24),     // in rows
      ConvolutionOf({{16, 5, 1, 1, 2, 2}, {16, 3, 1, 1, 1, 1}}, 3, 32, 40, 4),  // in images, of groups
      ConvolutionOf({{17, 3, 1, 1, 1, 1}, {16, 5, 1, 1, 2, 2}}, 2, 44, 208),    // large filters
      ConvolutionOf({{6, 3, 2, 1, 0, 1}, {5, 3, 2, 1, 1, 1}}, 2, 160, 160),
      ConvolutionOf({{13, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}}, 5, 48, 16),  // Winograd's algorithm
      ConvolutionOf({{4000, 2, 1, 8, 8, 0}}, 1, 32, 24),
      ConvolutionOf({{128, 4}}, 2, 50, 70),                                  // along one axis
      ConvolutionOf({{21, 3, 1, 2, 2, 2}, {30, 3, 1, 4, 4, 4}}, 2, 20, 36),  // dilated along both
      ConvolutionOf({{24, 3, 1, 1, 1, 1}, {40, 3, 1, 1, 1, 1}}, 1, 32, 3),   // few results
      ConvolutionOf({{8, 3, 1, 1, 1, 1}, {10, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}}, 2, 16, 16),
  };
  for (ConvolutionDesc d : StridedGeometries()) {
    d.direction = Direction::kDataGradient;
    geometries.push_back(d);
  }
  uint32_t seed = 11000;
  for (ConvolutionDesc d : geometries) {
    for (DType type : {DType::kFloat, DType::kBFloat16}) {
      for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
        for (bool infinite : {false, true}) {
          d.type = type, d.order = order;
          Operands operands(d, seed += 3,
                            [&](int64_t n, uint32_t its_seed) { return Random(type, n, its_seed, 1, 2); });
          if (infinite && type == DType::kFloat) {
            Array& image = operands.in[1 - FilterInput(d)];
            image.as<float>()[image.size() / 2] = std::numeric_limits<float>::infinity();
          }
          ConvolutionDesc wide = d;
          wide.type = Wide(type);
          const std::vector<Output> wide_output = WidenedOutputs({{type, operands.size}});
          Want want{AsTheReference(wide, WidenedInputs(operands.in), wide_output).out};
          want.bounds = {SumBound(want.out[0], static_cast<double>(operands.terms), type)};
          ExpectPacked(d, operands.in, {type, operands.size}, want);
        }
      }
    }
  }
}

// Filters of one pixel are matrices. Rows and columns do and do not fill tiles, and threads share rows or columns out.
TEST(Convolution, PackedMatrices) {
  uint32_t seed = 12000;
  for (const auto& [rows, in, out] : {std::array<int64_t, 3>{6, 700, 100},
                                      {25, 96, 1000},
                                      {49, 160, 90},
                                      {49, 960, 70},
                                      {100, 33, 17},
                                      {196, 64, 300},
                                      {1000, 20, 5},
                                      {130, 800, 40},
                                      {30, 2500, 72},
                                      {1, 300, 230},
                                      {1, 2300, 70}}) {
    CompareWithAffineEpilogue(ConvolutionOf({{rows, 1}}, 1, in, out), seed += 7);
  }
}

// Other filters over few pixels: some of the pixels, and windows with padding, of sums that fill a panel or more.
TEST(Convolution, PackedWindows) {
  uint32_t seed = 12500;
  for (const ConvolutionDesc& d : {
           ConvolutionOf({{13, 1, 2}, {9, 1, 2}}, 2, 300, 230),
           ConvolutionOf({{7, 1, 1}, {12, 1, 3}}, 1, 40, 24),
           ConvolutionOf({{5, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}}, 1, 360, 330),
           ConvolutionOf({{9, 3, 2, 1, 0, 1}, {7, 3, 2, 1, 1, 1}}, 2, 220, 540),
       }) {
    CompareWithAffineEpilogue(d, seed += 7);
    CompareWithEpilogue(d, Direction::kForward, DType::kFloat, ChannelOrder::kLast, seed += 5);
  }
}

// Results that are computed in another way, after all: the epilogue is of those.
TEST(Convolution, EpiloguesOfInfinities) {
  const ConvolutionDesc d = ConvolutionOf({{12, 3, 1, 1, 1, 1}, {12, 3, 1, 1, 1, 1}}, 2, 16, 16);
  for (Direction direction : {Direction::kForward, Direction::kDataGradient}) {
    for (const double value : {std::numeric_limits<double>::infinity(), std::nan("")}) {
      CompareWithEpilogue(d, direction, DType::kFloat, ChannelOrder::kLast, 1, value);
    }
  }
}

TEST(Convolution, PlansAreReused) {
  const ConvolutionDesc d = ConvolutionOf({{8, 3, 1, 1, 1, 1}, {8, 3, 1, 1, 1, 1}}, 2, 16, 32);
  for (uint32_t seed : {1, 2, 3}) Compare(d, Direction::kForward, DType::kFloat, ChannelOrder::kLast, seed);
}

// ---- Of bytes, compared with sums in 64 bits. ----

namespace bytes {

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
    for (int64_t pixel = 0; pixel < Product(d.output); ++pixel) {
      const int64_t o[3] = {pixel / d.output[2] / d.output[1], pixel / d.output[2] % d.output[1], pixel % d.output[2]};
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
      ConvolutionOf({{7, 3, 2, 1, 0, 1}, {6, 3, 2, 1, 1, 1}}, 2, 5, 15, 5),   // depthwise with multiplier
      ConvolutionOf({{7, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}, 2, 8, 12, 4),   // groups
      ConvolutionOf({{7, 3, 1, 1, 1, 1}, {6, 3, 2, 1, 1, 1}}, 2, 40, 60, 2),  // wide groups
      ConvolutionOf({{6, 5}, {6, 1}}, 3, 33, 17),                             // odd channels
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

// Filters of one pixel: rows that fill blocks of a product or do not, and columns that fill vectors or do not.
std::vector<ConvolutionDesc> PointwiseGeometries() {
  std::vector<ConvolutionDesc> geometries;
  for (int64_t pixels : {1, 4, 5, 7, 11, 12, 16, 17, 33, 49, 70}) {
    for (int64_t channels : {16, 32, 64, 80, 100}) {
      geometries.push_back(ConvolutionOf({{1, 1}, {pixels, 1}}, 1, pixels % 2 == 0 ? 24 : 13, channels));
    }
  }
  return geometries;
}

TEST(ByteConvolution, ByHand) {
  const ConvolutionDesc d = OfBytes(ConvolutionOf({{3, 2, 1, 1, 1, 0}}, 1, 1, 1));
  const std::vector<Array> in = {Values(DType::kUint8, {10, 20, 255}), Values(DType::kInt8, {-128, 3}), Ints({5}),
                                 Ints({1})};
  // The first pixel of the first window is padding: (10 - 5) * (3 - 1), ...
  ExpectByHand(d, in, {{DType::kInt32, 3}}, {{Ints({10, -645 + 30, -1935 + 500})}}, "by hand");
}

TEST(ByteConvolution, AllGeometriesAndZeros) {
  uint32_t seed = 1;
  std::vector<ConvolutionDesc> geometries = Geometries();
  for (const auto& more : {PointwiseGeometries(), DepthwiseGeometries()}) {
    geometries.insert(geometries.end(), more.begin(), more.end());
  }
  for (const ConvolutionDesc& geometry : geometries) {
    const ConvolutionDesc d = OfBytes(geometry);
    for (int32_t zero : {0, 7, 128, 255}) {
      Compare(d, Operands(d, seed += 5, zero, 0, 0), errors::Concat(", zero ", zero));
    }
    Compare(d, Operands(d, seed += 5, 0, -128, 9), ", zeros of the filter");
    Compare(d, Operands(d, seed += 5, 31, -3, 1), ", all zeros");
    for (int32_t zero : {-300, 40000}) Compare(d, Operands(d, seed += 5, zero, 0, 0), ", zeros of no byte");
  }
}

// Windows are copied in several pieces, which several panels of the filter read.
TEST(ByteConvolution, ManyLongWindows) {
  const ConvolutionDesc d = OfBytes(ConvolutionOf({{23, 3, 1, 1, 1, 1}, {23, 3, 1, 1, 1, 1}}, 1, 456, 70));
  Compare(d, Operands(d, 11, 77, 0, 0), "");
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
    seed += 5;
    const std::vector<Array> in = Operands(d, seed, 9, seed % 2 == 0 ? 0 : 4, 0);
    ComparePacked(d, in, {{DType::kInt32, YSize(d)}}, {{Sums(d, in)}}, Text(d));
  }
}

// The sums are scaled by channel and get an offset, an element, and bounds. Then they are floats, bytes or both.
struct Ends {
  bool elements, floats, bytes, sigmoid, divides, positive;
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
    const double factor = ends.divides ? 0.0147 : 68.0, zero = ends.positive ? 0 : 102;
    const double rows[] = {ends.positive ? 0 : -1.5, 2.25, factor, zero, zero};
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
    for (const Ends& ends : {Ends{false, false, true, false, false, false}, Ends{false, false, true, false, true, true},
                             Ends{true, true, true, false, true, false}, Ends{true, true, false, false, false, false},
                             Ends{false, true, true, true, false, false}}) {
      CompareEnds(OfBytes(geometry), seed += 20, ends);
    }
  }
  for (const auto& geometries : {PointwiseGeometries(), DepthwiseGeometries()}) {
    for (const ConvolutionDesc& geometry : geometries) {
      CompareEnds(OfBytes(geometry), seed += 20, {true, true, true, false, true, false});
      CompareEnds(OfBytes(geometry), seed += 20, {false, false, true, false, true, true});
    }
  }
}

// A command of its own makes bytes of floats, with an operand before it. Rounding decides about some of the floats.
TEST(ByteConvolution, BytesOfFloats) {
  struct Range {
    double low, factor, zero;
    bool divides;
  };
  uint32_t seed = 900;
  for (const Range& range : {Range{0, 6.0 / 255, 0, true}, Range{0, 0.0147, 0, true}, Range{-1.5, 0.0147, 102, true},
                             Range{-3.3, 0.0312, 106, true}, Range{0, 42.5, 0, false}, Range{-1.5, 68, 102, false},
                             Range{-1e-25, 1e-27, 100, true}, Range{0, 1, 0, true}}) {
    const double step = range.divides ? range.factor : 1 / range.factor;
    for (int64_t n : {1, 63, 64, 130, 5000}) {
      ProgramBuilder b;
      const auto x = b.Input(DType::kFloat), more = b.Input(DType::kFloat);
      std::vector<ProgramBuilder::Reg> registers = {b.Apply(Opcode::kAdd, x, more)};
      std::vector<double> values(n);
      const Array spread = Random(DType::kFloat, n, seed += 3, -20, 275);
      for (int64_t i = 0; i < n; ++i) {
        const double steps = i % 2 == 0 ? spread.as<float>()[i] : std::floor(spread.as<float>()[i]) + 0.5;
        values[i] = range.low + steps * step;
      }
      std::vector<Array> in = {Values(DType::kFloat, values), Values(DType::kFloat, std::vector<double>(n))};
      ElementwiseDesc d;
      d.shape = {n};
      d.in_strides[0] = d.in_strides[1] = {1};
      for (double row : {range.low, range.low + 255 * step, range.factor, range.zero, range.zero}) {
        registers.push_back(b.Input(DType::kFloat));
        d.in_strides[in.size()] = {0};
        in.push_back(Values(DType::kFloat, std::vector<double>{row}));
      }
      const Program& to_bytes = *FakeQuantizeToBytes(range.divides, DType::kUint8);
      b.Output(b.Inline(to_bytes, registers)[to_bytes.outputs()[0]]);
      d.program = b.Build();
      ASSERT_NE(d.program, nullptr) << b.error();
      ExpectAsTheReference(d, in, {{DType::kUint8, n}}, errors::Concat("bytes of floats ", n, " ", range.factor));
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

}  // namespace bytes

}  // namespace
}  // namespace xpu::testing
