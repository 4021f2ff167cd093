#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr DType kIndexTypes[] = {DType::kInt32, DType::kInt64, DType::kInt16, DType::kUint8};

Array Indices(DType type, int64_t n, const Dims& dims, uint32_t seed) {
  return Coordinates(type, n, dims.begin(), dims.rank(), seed);
}

int64_t OutputBytes(const GatherDesc& d) {
  return d.batch * d.outer * d.num_indices * d.inner * static_cast<int64_t>(d.element_size);
}
int64_t ParamsBytes(const GatherDesc& d) {
  return d.batch * d.outer * d.dims.num_elements() * d.inner * static_cast<int64_t>(d.element_size);
}

TEST(Gather, TakesRowsAlongAnAxis) {
  GatherDesc desc;
  desc.element_size = 1;
  desc.index_type = DType::kInt32;
  desc.outer = 2;
  desc.dims = {3};
  desc.inner = 2;
  desc.num_indices = 2;
  const Array params = Values(DType::kUint8, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  ExpectByHand(desc, {params, Values(DType::kInt32, {2, 0})}, {{DType::kUint8, 8}},
               {{Values(DType::kUint8, {4, 5, 0, 1, 10, 11, 6, 7})}}, "axis 1");
}

TEST(Gather, ReadsSeveralCoordinates) {
  GatherDesc desc;
  desc.element_size = 1;
  desc.index_type = DType::kInt64;
  desc.dims = {2, 3};
  desc.num_indices = 3;
  const Array params = Values(DType::kUint8, {0, 1, 2, 3, 4, 5});
  ExpectByHand(desc, {params, Values(DType::kInt64, {1, 2, 0, 1, 1, 0})}, {{DType::kUint8, 3}},
               {{Values(DType::kUint8, {5, 1, 3})}}, "two coordinates");
}

TEST(Gather, ShapesSizesAndIndexTypes) {
  const struct {
    int64_t batch, outer, inner, num_indices;
    Dims dims;
  } cases[] = {
      {1, 1, 1, 1, {1}},         {1, 1, 1, 2000, {100}}, {1, 1, 5, 70, {9}},       {1, 3, 4, 11, {6}},
      {4, 1, 3, 5, {7}},         {3, 2, 8, 600, {5}},    {1, 1, 64, 300, {50}},    {1, 1, 3, 20, {4, 5}},
      {1, 1, 1, 900, {3, 4, 5}}, {1, 1, 7, 3, {}},       {1, 1, 1, 0, {4}},        {1, 1, 0, 4, {4}},
      {0, 1, 1, 4, {4}},         {1, 2, 30000, 3, {4}},  {1, 1, 100, 3000, {100}},
  };
  for (DType index_type : kIndexTypes) {
    for (size_t size : {1, 2, 4, 8, 16}) {
      for (const auto& c : cases) {
        GatherDesc desc;
        desc.element_size = size;
        desc.index_type = index_type;
        desc.batch = c.batch, desc.outer = c.outer, desc.inner = c.inner, desc.num_indices = c.num_indices;
        desc.dims = c.dims;
        ExpectAsTheReference(desc, {Bytes(ParamsBytes(desc)), Indices(index_type, c.batch * c.num_indices, c.dims, 3)},
                             {{DType::kUint8, OutputBytes(desc)}},
                             "dims " + c.dims.ToString() + " inner " + std::to_string(c.inner));
      }
    }
  }
}

TEST(Gather, BadIndexIsNamedAndGivesZeros) {
  const struct {
    int64_t batch, inner, num_indices;
    Dims dims;
    int64_t position;  // of the bad index
    std::vector<int64_t> bad;
    const char* message;
  } cases[] = {
      {1, 3, 5, {10}, 3, {12}, "indices[3] = 12 is not in [0, 10)"},
      {1, 1, 5000, {10}, 4321, {-1}, "indices[4321] = -1 is not in [0, 10)"},
      {1, 30000, 3, {4}, 1, {4}, "indices[1] = 4 is not in [0, 4)"},
      {3, 2, 4, {10}, 9, {10}, "indices[2,1] = 10 is not in [0, 10)"},
      {1, 2, 4, {2, 10}, 1, {0, 12}, "indices[1] = [0, 12] does not index into shape [2,10]"},
      // For rows without elements the indices alone are checked.
      {1, 0, 5000, {10}, 4321, {-1}, "indices[4321] = -1 is not in [0, 10)"},
      {3, 0, 4, {10}, 9, {10}, "indices[2,1] = 10 is not in [0, 10)"},
      {1, 0, 4, {2, 10}, 1, {0, 12}, "indices[1] = [0, 12] does not index into shape [2,10]"},
  };
  for (const auto& c : cases) {
    for (DType index_type : {DType::kInt32, DType::kInt64}) {
      GatherDesc desc;
      desc.element_size = 4;
      desc.index_type = index_type;
      desc.batch = c.batch, desc.inner = c.inner, desc.num_indices = c.num_indices;
      desc.dims = c.dims;
      Array indices = Indices(index_type, c.batch * c.num_indices, c.dims, 5);
      for (int d = 0; d < c.dims.rank(); ++d) {
        // The last index is wrong too: the first one is named.
        for (int64_t at : {c.batch * c.num_indices - 1, c.position}) {
          const int64_t i = at * c.dims.rank() + d;
          if (index_type == DType::kInt32) {
            indices.as<int32_t>()[i] = static_cast<int32_t>(c.bad[d]);
          } else {
            indices.as<int64_t>()[i] = c.bad[d];
          }
        }
      }
      const Array params = Bytes(ParamsBytes(desc));
      Want want = AsTheReference(desc, {params, indices}, {{DType::kUint8, OutputBytes(desc)}});
      const int64_t row = c.inner * 4;
      for (int64_t i = 0; i < row; ++i) ASSERT_EQ(want.out[0].as<uint8_t>()[c.position * row + i], 0) << c.message;
      want.message = c.message;
      ExpectByHand(desc, {params, indices}, {{DType::kUint8, OutputBytes(desc)}}, want, c.message);
    }
  }
}

TEST(Gather, EmptyDimensionHasNoRows) {
  GatherDesc desc;
  desc.element_size = 4;
  desc.index_type = DType::kInt32;
  desc.num_indices = 1;
  desc.dims = {0};
  const Want want{{Values(DType::kInt32, {0})}, {}, Code::kInvalidArgument, "indices[0] = 0 is not in [0, 0)"};
  ExpectByHand(desc, {Array(DType::kInt32, 0), Values(DType::kInt32, {0})}, {{DType::kInt32, 1}}, want, "no rows");
}

}  // namespace
}  // namespace xpu::testing
