// Tests that Check refuses bad descriptors of primitives on images, and which memory their commands touch.
#include "gtest/gtest.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu {
namespace {

SampleDesc Sample() {
  SampleDesc d;
  d.images = d.batch = 2, d.height = 4, d.width = 5, d.channels = 3, d.out_h = 6, d.out_w = 7;
  d.y_strides = {0, 1, 0}, d.x_strides = {7, 0, 1};
  d.result_type = DType::kHalf;
  return d;
}

Footprint FootprintOf(const SampleDesc& d) {
  Footprint f;
  const Status status = Check(d, &f);
  EXPECT_TRUE(status.ok()) << status.message();
  return f;
}

template <typename Desc, typename F>
void ExpectRefused(Desc desc, Code code, F spoil) {
  Footprint f;
  EXPECT_TRUE(Check(desc, &f).ok());
  spoil(&desc);
  f = {};
  const Status status = Check(desc, &f);
  EXPECT_EQ(status.code(), code) << status.message();
  if (code == Code::kUnimplemented) {
    EXPECT_FALSE(IsDefined(desc));
  }
}

TEST(CheckImages, Sample) {
  SampleDesc d = Sample();
  Footprint f = FootprintOf(d);
  ASSERT_EQ(f.num_in, 4);
  ASSERT_EQ(f.num_out, 1);
  EXPECT_EQ(f.in[0].elements, 120);
  EXPECT_EQ(f.in[1].elements, 6);
  EXPECT_EQ(f.in[2].elements, 14);
  EXPECT_EQ(f.in[3].elements, 0);
  EXPECT_EQ(f.out[0].elements, 252);
  EXPECT_EQ(f.out[0].type, DType::kHalf);
  d.direction = SampleDirection::kImageGradient;
  f = FootprintOf(d);
  EXPECT_EQ(f.in[0].elements, 252);
  EXPECT_EQ(f.out[0].elements, 120);
  d.direction = SampleDirection::kPointGradient;
  f = FootprintOf(d);
  EXPECT_EQ(f.num_in, 5);
  EXPECT_EQ(f.num_out, 2);
  EXPECT_EQ(f.out[1].elements, 84);
  EXPECT_EQ(f.out[1].type, DType::kFloat);
  d.numbered = true, d.images = 9;
  EXPECT_EQ(FootprintOf(d).in[4].elements, 2);

  d = Sample();
  ExpectRefused(d, Code::kInvalidArgument, [](SampleDesc* s) { s->y_strides = {1}; });
  ExpectRefused(d, Code::kInvalidArgument, [](SampleDesc* s) { s->x_strides = {1, 2}; });
  ExpectRefused(d, Code::kInvalidArgument, [](SampleDesc* s) { s->images = 3; });
  ExpectRefused(d, Code::kInvalidArgument, [](SampleDesc* s) { s->channels = -1; });
  ExpectRefused(d, Code::kInvalidArgument, [](SampleDesc* s) { s->height = 0; });
  ExpectRefused(d, Code::kInvalidArgument, [](SampleDesc* s) { s->type = DType::kInvalid; });
  ExpectRefused(d, Code::kUnimplemented, [](SampleDesc* s) { s->type = DType::kComplex64; });
  ExpectRefused(d, Code::kUnimplemented, [](SampleDesc* s) { s->result_type = DType::kInt32; });
  d.direction = SampleDirection::kPointGradient;
  ExpectRefused(d, Code::kUnimplemented, [](SampleDesc* s) { s->kind = SampleKind::kNearest; });
  d.direction = SampleDirection::kImageGradient;
  ExpectRefused(d, Code::kUnimplemented, [](SampleDesc* s) { s->type = DType::kUint8; });
}

TEST(CheckImages, Resample) {
  ResampleDesc d;
  d.type = DType::kUint8;
  d.batch = 2, d.height = 3, d.width = 4, d.channels = 5, d.out_h = 6, d.out_w = 7, d.y_taps = 8, d.x_taps = 9;
  Footprint f;
  ASSERT_TRUE(Check(d, &f).ok());
  const int64_t elements[] = {120, 12, 48, 14, 63};
  ASSERT_EQ(f.num_in, 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f.in[i].elements, elements[i]) << i;
  EXPECT_EQ(f.in[0].type, DType::kUint8);
  EXPECT_EQ(f.in[1].type, DType::kInt32);
  EXPECT_EQ(f.in[2].type, DType::kFloat);
  EXPECT_EQ(f.out[0].elements, 420);
  EXPECT_EQ(f.out[0].type, DType::kFloat);
  ExpectRefused(d, Code::kInvalidArgument, [](ResampleDesc* r) { r->y_taps = -1; });
  ExpectRefused(d, Code::kInvalidArgument, [](ResampleDesc* r) { r->width = -1; });
  ExpectRefused(d, Code::kInvalidArgument, [](ResampleDesc* r) { r->result_type = DType::kInvalid; });
  ExpectRefused(d, Code::kUnimplemented, [](ResampleDesc* r) { r->result_type = DType::kUint8; });
  ExpectRefused(d, Code::kUnimplemented, [](ResampleDesc* r) { r->type = DType::kBool; });
}

TEST(CheckImages, Suppress) {
  SuppressDesc d;
  d.n = 5;
  Footprint f;
  ASSERT_TRUE(Check(d, &f).ok());
  EXPECT_EQ(f.in[0].elements, 20);
  EXPECT_EQ(f.out[0].elements, 5);
  EXPECT_EQ(f.out[0].type, DType::kBool);
  d.pairs = true;
  f = {};
  ASSERT_TRUE(Check(d, &f).ok());
  EXPECT_EQ(f.in[0].elements, 25);
  ExpectRefused(d, Code::kInvalidArgument, [](SuppressDesc* s) { s->n = -1; });
}

TEST(CheckImages, SelectBoxes) {
  SelectBoxesDesc d;
  d.batch = 2, d.n = 5, d.classes = 3, d.rows = 7, d.most_of_class = 4;
  Footprint f;
  ASSERT_TRUE(Check(d, &f).ok());
  EXPECT_EQ(f.in[0].elements, 40);
  EXPECT_EQ(f.in[1].elements, 30);
  EXPECT_EQ(f.out[0].elements, 56);
  EXPECT_EQ(f.out[1].elements, 14);
  EXPECT_EQ(f.out[2].elements, 14);
  EXPECT_EQ(f.out[3].elements, 2);
  EXPECT_EQ(f.out[3].type, DType::kInt32);
  d.box_sets = 3;
  f = {};
  ASSERT_TRUE(Check(d, &f).ok());
  EXPECT_EQ(f.in[0].elements, 120);
  ExpectRefused(d, Code::kInvalidArgument, [](SelectBoxesDesc* s) { s->n = -1; });
  ExpectRefused(d, Code::kInvalidArgument, [](SelectBoxesDesc* s) { s->box_sets = 2; });
  ExpectRefused(d, Code::kUnimplemented, [](SelectBoxesDesc* s) { s->n = int64_t{1} << 31; });
}

}  // namespace
}  // namespace xpu
