// Tests that Check refuses bad descriptors, and which memory commands touch.
#include "tensorflow_plugin/primitives/check.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

template <typename Desc>
Footprint FootprintOf(const Desc& desc) {
  Footprint footprint;
  const Status status = Check(desc, &footprint);
  EXPECT_TRUE(status.ok()) << status.message();
  return footprint;
}

// The status of Check after `spoil` has changed a good descriptor.
template <typename Desc, typename F>
std::string Refusal(Desc desc, Code code, F spoil) {
  FootprintOf(desc);
  spoil(&desc);
  Footprint footprint;
  const Status status = Check(desc, &footprint);
  EXPECT_EQ(status.code(), code) << status.message();
  return status.message();
}
template <typename Desc, typename F>
std::string Invalid(const Desc& desc, F spoil) {
  return Refusal(desc, Code::kInvalidArgument, spoil);
}
// For combinations that have no meaning.
template <typename Desc, typename F>
std::string Undefined(const Desc& desc, F spoil) {
  Desc spoilt = desc;
  spoil(&spoilt);
  EXPECT_TRUE(IsDefined(desc));
  EXPECT_FALSE(IsDefined(spoilt));
  return Refusal(desc, Code::kUnimplemented, spoil);
}

void Expect(const Operand& o, DType type, int64_t elements, int64_t begin, int64_t end) {
  EXPECT_EQ(o.type, type);
  if (type != DType::kInvalid) {
    EXPECT_EQ(o.element_size, static_cast<int64_t>(SizeOf(type)));
  }
  EXPECT_EQ(o.elements, elements);
  EXPECT_EQ(o.begin, begin);
  EXPECT_EQ(o.end, end);
  EXPECT_EQ(o.dense(), elements * o.element_size == end - begin);
}
// A dense array.
void Expect(const Operand& o, DType type, int64_t elements) {
  Expect(o, type, elements, 0, elements * static_cast<int64_t>(SizeOf(type)));
}

ElementwiseDesc Add(const Dims& shape, const Dims& a, const Dims& b) {
  ElementwiseDesc desc;
  desc.program = SingleOpProgram(Opcode::kAdd, DType::kFloat);
  desc.shape = shape;
  desc.in_strides[0] = a;
  desc.in_strides[1] = b;
  return desc;
}

TEST(Check, Elementwise) {
  const ElementwiseDesc desc = Add({2, 3}, {3, 1}, {0, -2});
  Footprint f = FootprintOf(desc);
  EXPECT_EQ(f.num_in, 2);
  EXPECT_EQ(f.num_out, 1);
  Expect(f.in[0], DType::kFloat, 6);
  Expect(f.in[1], DType::kFloat, 3, -16, 4);  // elements 0, -2 and -4
  Expect(f.out[0], DType::kFloat, 6);
  EXPECT_FALSE(f.empty());
  f = FootprintOf(Add({2, 0, kHuge, kHuge}, {0, 0, 1, 1}, {1, 1, 0, 0}));
  Expect(f.in[0], DType::kFloat, 0);
  Expect(f.out[0], DType::kFloat, 0);
  EXPECT_TRUE(f.empty());

  EXPECT_EQ(Invalid(desc, [](auto* d) { d->program = nullptr; }), "Elementwise: there is no program");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->in_strides[1] = {1}; }),
            "Elementwise: input strides [1] for the shape [2,3]: the ranks differ");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->shape = {2, -3}; }), "Elementwise: an extent is -3, expected 0 or more");
  const std::string many = "Elementwise: more elements or bytes than 64 bits count";
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->shape = {kHuge, kHuge}; }), many);
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->shape = {kHuge, 1 << 22}; }), many);  // 2^62 elements, 2^64 bytes
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->in_strides[0] = {INT64_MAX, 1}; }), many);
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->in_strides[0] = {INT64_MIN, INT64_MIN}; }), many);
}

TEST(Check, Reduce) {
  ReduceDesc desc;
  desc.source.program = IdentityProgram(DType::kHalf);
  desc.source.shape = {4, 5, 6};
  desc.source.in_strides[0] = {30, 6, 1};
  desc.axes = 2;
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kHalf, 120);
  Expect(f.out[0], DType::kHalf, 24);
  desc.kind = ReduceKind::kArgMax;
  Expect(FootprintOf(desc).out[0], DType::kInt64, 24);
  // The identities are written though nothing is read.
  desc.source.shape = {4, 0, 6};
  f = FootprintOf(desc);
  Expect(f.in[0], DType::kHalf, 0);
  Expect(f.out[0], DType::kInt64, 24);
  EXPECT_FALSE(f.empty());

  EXPECT_EQ(Invalid(desc, [](auto* d) { d->axes = 8; }),
            "Reduce: the axes mask 8 names axes that the shape [4,0,6] does not have");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->axes = 3; }), "Reduce: ArgMax and ArgMin need one axis, not the mask 3");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->index_type = DType::kFloat; }), "Reduce: positions cannot be float");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->source.program = nullptr; }), "Elementwise: there is no program");
  EXPECT_EQ(Invalid(desc,
                    [](auto* d) {
                      ProgramBuilder b;
                      const auto x = b.Input(DType::kHalf);
                      b.Output(x);
                      b.Output(x);
                      d->source.program = b.Build();
                    }),
            "Reduce: the program has 2 outputs, expected 1");
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->source.program = IdentityProgram(DType::kComplex64); }),
            "Reduce ArgMax of complex64 is not defined");
  EXPECT_EQ(Undefined(desc,
                      [](auto* d) {
                        d->kind = ReduceKind::kMax;
                        d->source.program = SingleOpProgram(Opcode::kSquare, DType::kComplex64);
                      }),
            "Reduce Max of complex64 from Square of complex64 is not defined");
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->kind = ReduceKind::kAll; }), "Reduce All of half is not defined");
  // A mask has so many bits.
  desc.source.shape = desc.source.in_strides[0] = Dims(32, 1);
  desc.axes = 1u << 31;
  EXPECT_EQ(FootprintOf(desc).out[0].elements, 1);
  const std::string refused =
      Refusal(desc, Code::kUnimplemented, [](auto* d) { d->source.shape = d->source.in_strides[0] = Dims(33, 1); });
  EXPECT_EQ(refused.rfind("Reduce: 33 axes of the shape [1,1,", 0), 0u) << refused;
}

TEST(Check, MatMul) {
  MatMulDesc desc;
  desc.m = 2, desc.n = 3, desc.k = 4;
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 8);
  Expect(f.in[1], DType::kFloat, 12);
  Expect(f.out[0], DType::kFloat, 6);
  desc.batch = {5};
  desc.a_batch_strides = {100};
  desc.b_batch_strides = {0};
  desc.lda = 7;
  f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 40, 0, 4 * (400 + 7 + 4));
  Expect(f.in[1], DType::kFloat, 12);
  Expect(f.out[0], DType::kFloat, 30);
  desc.transpose_a = true;  // four rows of two
  Expect(FootprintOf(desc).in[0], DType::kFloat, 40, 0, 4 * (400 + 3 * 7 + 2));
  desc.c_batch_strides = {50};
  desc.ldc = 10;
  Expect(FootprintOf(desc).out[0], DType::kFloat, 30, 0, 4 * (200 + 10 + 3));
  MatMulDesc none = desc;
  none.k = 0;  // zeros are written
  f = FootprintOf(none);
  Expect(f.in[0], DType::kFloat, 0);
  EXPECT_FALSE(f.empty());

  EXPECT_EQ(Invalid(desc, [](auto* d) { d->a_batch_strides = {}; }),
            "MatMul: batch strides of a [] for the shape [5]: the ranks differ");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->c_batch_strides = {}; }),
            "MatMul: batch strides of c [] for the shape [5]: the ranks differ");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->ldb = -1; }), "MatMul: a row stride is -1, expected 0 or more");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->m = -1; }), "MatMul: an extent is -1, expected 0 or more");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->type = DType::kInvalid; }), "MatMul: the type is not set");
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->type = DType::kBool; }), "MatMul of bool is not defined");
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->b_type = DType::kInt8; }), "MatMul of float and int8 is not defined");
  EXPECT_EQ(Undefined(desc,
                      [](auto* d) {
                        d->type = DType::kInt8;
                        d->c_type = DType::kFloat;
                      }),
            "MatMul of int8 to float is not defined");
}

// A program of `inputs` values of a type. Its first output is an operation on the first of them, or a comparison.
const Program* EpilogueProgram(DType type, int inputs, Opcode op) {
  ProgramBuilder b;
  const auto c = b.Input(type);
  for (int i = 1; i < inputs; ++i) b.Input(type);
  b.Output(b.Apply(op, c, c));
  b.Output(c);
  return b.Build();
}

TEST(Check, ConvolutionWithAnEpilogue) {
  ConvolutionDesc desc;
  desc.batch = 1, desc.in_channels = 2, desc.out_channels = 3;
  desc.input[0] = desc.output[0] = 2;
  desc.epilogue = Add({3, 2}, {}, {0, 5});
  const Footprint f = FootprintOf(desc);
  EXPECT_EQ(f.num_in, 3);
  EXPECT_EQ(f.num_out, 1);
  Expect(f.in[1], DType::kFloat, 6);
  Expect(f.in[2], DType::kFloat, 2, 0, 4 * 6);
  Expect(f.out[0], DType::kFloat, 6);
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->direction = Direction::kDataGradient; }),
            "Convolution: the epilogue's shape [3,2] has 6 elements, expected 4");
}

TEST(Check, MatMulWithAnEpilogue) {
  MatMulDesc desc;
  desc.m = 2, desc.n = 3, desc.k = 4;
  desc.epilogue = Add({3, 2}, {}, {0, 5});
  Footprint f = FootprintOf(desc);
  EXPECT_EQ(f.num_in, 3);
  EXPECT_EQ(f.num_out, 1);
  Expect(f.in[1], DType::kFloat, 12);
  Expect(f.in[2], DType::kFloat, 2, 0, 4 * 6);
  Expect(f.out[0], DType::kFloat, 6);

  const auto with = [](DType type, int inputs, Opcode op) {
    return [=](auto* d) {
      d->epilogue.program = EpilogueProgram(type, inputs, op);
      for (int i = 1; i < inputs; ++i) d->epilogue.in_strides[i] = {0, 0};
    };
  };
  MatMulDesc most = desc;
  with(DType::kFloat, 15, Opcode::kAdd)(&most);
  f = FootprintOf(most);
  EXPECT_EQ(f.num_in, 16);
  EXPECT_EQ(f.num_out, 2);
  EXPECT_EQ(Invalid(desc, with(DType::kFloat, 16, Opcode::kAdd)),
            "MatMul: the epilogue has 16 inputs, expected 15 or fewer");
  const std::string types = "MatMul: the epilogue's first input and first output are not of float";
  EXPECT_EQ(Invalid(desc, with(DType::kHalf, 1, Opcode::kAdd)), types);
  EXPECT_EQ(Invalid(desc, with(DType::kFloat, 1, Opcode::kLess)), types);
  EXPECT_EQ(Invalid(desc,
                    [&](auto* d) {
                      d->type = d->b_type = DType::kInt8;
                      d->c_type = DType::kInt32;
                      with(DType::kInt32, 1, Opcode::kLess)(d);
                    }),
            "MatMul: the epilogue's first input and first output are not of int32");
  EXPECT_EQ(Invalid(desc,
                    [&](auto* d) {
                      d->type = DType::kInt32;
                      with(DType::kInt32, 1, Opcode::kFloorDiv)(d);
                    }),
            "MatMul: the epilogue may fail");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->epilogue.shape = {3, 3}; }),
            "MatMul: the epilogue's shape [3,3] has 9 elements, expected 6");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->epilogue.in_strides[1] = {1}; }),
            "Elementwise: input strides [1] for the shape [3,2]: the ranks differ");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->ldc = 5; }), "MatMul: c has strides, and an epilogue");
}

ConvolutionDesc Convolution(Direction direction) {
  ConvolutionDesc desc;
  desc.direction = direction;
  desc.batch = 2, desc.in_channels = 4, desc.out_channels = 6, desc.groups = 2;
  desc.input[0] = desc.input[1] = 5;
  desc.filter[0] = desc.filter[1] = 3;
  desc.output[0] = desc.output[1] = 3;
  return desc;
}

TEST(Check, Convolution) {
  constexpr int64_t x = 2 * 4 * 25, filter = 9 * 2 * 6, y = 2 * 6 * 9;
  const struct {
    Direction direction;
    int64_t in[2], out;
  } table[] = {{Direction::kForward, {x, filter}, y},
               {Direction::kDataGradient, {filter, y}, x},
               {Direction::kFilterGradient, {x, y}, filter}};
  for (const auto& row : table) {
    const Footprint f = FootprintOf(Convolution(row.direction));
    EXPECT_EQ(f.num_in, 2);
    Expect(f.in[0], DType::kFloat, row.in[0]);
    Expect(f.in[1], DType::kFloat, row.in[1]);
    EXPECT_EQ(f.num_out, 1);
    Expect(f.out[0], DType::kFloat, row.out);
  }
  const ConvolutionDesc desc = Convolution(Direction::kDataGradient);
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->groups = 3; }),
            "Convolution: 4 input and 6 output channels do not split into 3 groups");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->groups = 0; }), "Convolution: groups is 0, expected 1 or more");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->stride[1] = 0; }), "Convolution: a stride is 0, expected 1 or more");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->dilation[0] = -1; }), "Convolution: a dilation is -1, expected 1 or more");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->spatial_rank = 4; }), "Convolution: 4 spatial dimensions, expected 1 to 3");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->spatial_rank = 1; }),
            "Convolution of 1 spatial dimensions: the extent of axis 1 is 5, expected 1");
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->type = DType::kInt32; }),
            "Convolution data gradient of int32 is not defined");
}

TEST(Check, Pool) {
  PoolDesc desc;
  desc.batch = 2, desc.channels = 3;
  desc.input[0] = desc.input[1] = 4;
  desc.window[0] = desc.window[1] = 2;
  desc.output[0] = desc.output[1] = 3;
  constexpr int64_t x = 2 * 3 * 16, y = 2 * 3 * 9;
  const struct {
    PoolKind kind;
    bool gradient;
    std::vector<int64_t> in;
    int64_t out;
  } table[] = {{PoolKind::kMax, false, {x}, y},
               {PoolKind::kMax, true, {x, y, y}, x},
               {PoolKind::kAverage, false, {x}, y},
               {PoolKind::kAverage, true, {y}, x}};
  for (const auto& row : table) {
    desc.kind = row.kind;
    desc.gradient = row.gradient;
    const Footprint f = FootprintOf(desc);
    ASSERT_EQ(f.num_in, static_cast<int>(row.in.size()));
    for (int i = 0; i < f.num_in; ++i) Expect(f.in[i], DType::kFloat, row.in[i]);
    Expect(f.out[0], DType::kFloat, row.out);
  }
  PoolDesc with_positions = desc;
  with_positions.kind = PoolKind::kMax;
  with_positions.gradient = false;
  with_positions.positions_type = DType::kInt64;
  const Footprint f = FootprintOf(with_positions);
  ASSERT_EQ(f.num_out, 2);
  Expect(f.out[1], DType::kInt64, y);
  EXPECT_EQ(Undefined(with_positions, [](auto* d) { d->positions_type = DType::kInt16; }),
            "Pool maximum with positions of float is not defined");
  EXPECT_EQ(Undefined(with_positions, [](auto* d) { d->kind = PoolKind::kAverage; }),
            "Pool average with positions of float is not defined");
  EXPECT_EQ(Undefined(with_positions, [](auto* d) { d->order = ChannelOrder::kFirst; }),
            "Pool maximum with positions of float is not defined");
  EXPECT_EQ(Undefined(with_positions, [](auto* d) { d->gradient = true; }),
            "Pool maximum with positions gradient of float is not defined");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->stride[0] = 0; }), "Pool: a stride is 0, expected 1 or more");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->window[1] = 0; }), "Pool: a window extent is 0, expected 1 or more");
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->type = DType::kBool; }), "Pool average gradient of bool is not defined");
}

TEST(Check, Normalize) {
  NormalizeDesc desc;
  desc.type = DType::kHalf;
  desc.batch = 2, desc.spatial = 5, desc.channels = 3;
  Footprint f = FootprintOf(desc);
  ASSERT_EQ(f.num_in, 5);
  ASSERT_EQ(f.num_out, 5);
  Expect(f.in[0], DType::kHalf, 30);
  Expect(f.in[2], DType::kFloat, 3);
  Expect(f.in[3], DType::kFloat, 0);  // the running mean is not read
  Expect(f.out[0], DType::kHalf, 30);
  Expect(f.out[4], DType::kFloat, 3);
  desc.factor = 0.5f;
  Expect(FootprintOf(desc).in[3], DType::kFloat, 3);
  desc.batch = 0;  // statistics of nothing are written
  EXPECT_FALSE(FootprintOf(desc).empty());
  desc.training = false;
  EXPECT_EQ(FootprintOf(desc).num_out, 1);
  EXPECT_TRUE(FootprintOf(desc).empty());
  desc.gradient = true;
  f = FootprintOf(desc);
  EXPECT_EQ(f.num_in, 5);
  EXPECT_EQ(f.num_out, 3);
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->type = DType::kDouble; }),
            "Normalize gradient in inference of double is not defined");
}

TEST(Check, Softmax) {
  SoftmaxDesc desc;
  desc.rows = 2, desc.cols = 3;
  desc.kind = SoftmaxKind::kCrossEntropy;
  desc.logits_row_stride = 0;
  desc.labels_row_stride = 10;
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 3);
  Expect(f.in[1], DType::kFloat, 6, 0, 4 * 13);
  Expect(f.out[0], DType::kFloat, 2);
  Expect(f.out[1], DType::kFloat, 6);
  desc.kind = SoftmaxKind::kSparseCrossEntropy;
  f = FootprintOf(desc);
  Expect(f.in[0], DType::kFloat, 6);
  Expect(f.in[1], DType::kInt64, 2);
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->label_type = DType::kFloat; }),
            "sparse softmax cross entropy of float with labels of float is not defined");
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->type = DType::kInt32; }),
            "sparse softmax cross entropy of int32 with labels of int64 is not defined");
  desc.kind = SoftmaxKind::kLogSoftmax;
  f = FootprintOf(desc);
  EXPECT_EQ(f.num_in, 1);
  EXPECT_EQ(f.num_out, 1);
}

TEST(Check, CopyStrided) {
  CopyStridedDesc desc;
  desc.element_size = 6;
  desc.shape = {2, 3};
  desc.src_strides = {0, -1};
  desc.dst_strides = {10, 2};
  desc.src_offset = 2;
  desc.dst_offset = 100;
  const Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kInvalid, 3, 0, 18);
  EXPECT_TRUE(f.in[0].dense());
  Expect(f.out[0], DType::kInvalid, 6, 600, 600 + 6 * 15);
  EXPECT_FALSE(f.out[0].dense());
  EXPECT_EQ(f.out[0].element_size, 6);
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->src_strides = {}; }),
            "CopyStrided: source strides [] for the shape [2,3]: the ranks differ");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->element_size = 0; }),
            "CopyStrided: elements of 0 bytes, expected 1 or more");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->dst_offset = INT64_MAX; }),
            "CopyStrided: more elements or bytes than 64 bits count");
}

TEST(Check, Gather) {
  GatherDesc desc;
  desc.element_size = 4;
  desc.batch = 2, desc.outer = 3, desc.inner = 5, desc.num_indices = 7;
  desc.dims = {11, 13};
  desc.index_type = DType::kInt32;
  const Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kInvalid, 2 * 3 * 5 * 11 * 13, 0, 4 * 2 * 3 * 5 * 11 * 13);
  Expect(f.in[1], DType::kInt32, 2 * 7 * 2);
  Expect(f.out[0], DType::kInvalid, 2 * 3 * 7 * 5, 0, 4 * 2 * 3 * 7 * 5);
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->index_type = DType::kFloat; }), "Gather: indices cannot be float");
}

TEST(Check, Scatter) {
  ScatterDesc desc;
  desc.num_indices = 7, desc.inner = 5;
  desc.dims = {11};
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kInt64, 7);
  Expect(f.in[1], DType::kFloat, 35);
  Expect(f.out[0], DType::kFloat, 55);
  desc.scalar_update = true;
  Expect(FootprintOf(desc).in[1], DType::kFloat, 1);
  desc.dims = {0};  // every index is out of range: the kernel has to say so
  EXPECT_FALSE(FootprintOf(desc).empty());
  desc.num_indices = 0;
  EXPECT_TRUE(FootprintOf(desc).empty());
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->index_type = DType::kBool; }), "Scatter: indices cannot be bool");
  EXPECT_EQ(Undefined(desc,
                      [](auto* d) {
                        d->kind = ScatterKind::kAdd;
                        d->type = DType::kBool;
                      }),
            "Scatter add of bool by indices of int64 is not defined");
  desc.type = DType::kComplex64;
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->kind = ScatterKind::kMax; }),
            "Scatter max of complex64 by indices of int64 is not defined");
}

TEST(Check, Random) {
  RandomDesc desc;
  desc.n = 10;
  Expect(FootprintOf(desc).out[0], DType::kFloat, 10);
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->n = -1; }), "Random: an extent is -1, expected 0 or more");
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->type = DType::kInt32; }),
            "random uniform numbers of int32 is not defined");
  desc.kind = RandomKind::kUniformInt;
  desc.type = DType::kInt64;
  desc.low = -5, desc.high = 3;
  FootprintOf(desc);
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->high = -5; }), "Need minval < maxval, got -5 >= -5");
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->type = DType::kUint64; }), "Need minval < maxval, got -5 >= 3");
  EXPECT_EQ(Undefined(desc, [](auto* d) { d->type = DType::kInt8; }),
            "random uniform integer numbers of int8 is not defined");
  desc.high = -5, desc.n = 0;
  FootprintOf(desc);
  desc = RandomDesc();
  desc.kind = RandomKind::kBoundedNormal;
  desc.n = 6, desc.parameters = 3;
  EXPECT_EQ(FootprintOf(desc).num_in, 4);
  desc.kind = RandomKind::kGamma, desc.start = RandomStart::kGiven;
  Expect(FootprintOf(desc).in[2], DType::kFloat, 3);
  EXPECT_EQ(Invalid(desc, [](auto* d) { d->parameters = 4; }), "Random: 6 numbers of 4 distributions");
}

TEST(Check, Compact) {
  CompactDesc desc;
  desc.type = DType::kBool;
  desc.shape = {2, 3};
  desc.count = 4;
  Footprint f = FootprintOf(desc);
  Expect(f.in[0], DType::kBool, 6);
  Expect(f.out[0], DType::kInt64, 8);
  desc.count = 0;  // that there is none is to be checked
  EXPECT_FALSE(FootprintOf(desc).empty());
  desc.shape = {0};
  EXPECT_TRUE(FootprintOf(desc).empty());
}

// Open extents are no extents: nobody can launch a question, and what it asks about is left as it was.
TEST(OpenExtents, KeepKindsAndTypes) {
  const MatMulDesc product = OpenExtents([] {
    MatMulDesc d;
    d.type = DType::kHalf;
    d.transpose_b = true;
    return d;
  }());
  EXPECT_EQ(Name(product), "MatMul of half");
  EXPECT_TRUE(product.transpose_b);
  EXPECT_EQ(product.n, kAny);
  EXPECT_EQ(product.batch, Dims({kAny}));
  Footprint footprint;
#define XPU_TRY(name)                                                       \
  EXPECT_FALSE(Check(OpenExtents(name##Desc()), &footprint).ok()) << #name; \
  footprint = Footprint();
  XPU_PRIMITIVES(XPU_TRY)
#undef XPU_TRY
  const ElementwiseDesc add = OpenExtents(Add({}, {}, {}));
  EXPECT_EQ(add.shape, Dims({kAny}));
  EXPECT_EQ(add.in_strides[1], Dims({kAny}));
  EXPECT_TRUE(IsDefined(add));
}

}  // namespace
}  // namespace xpu
