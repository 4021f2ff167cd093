#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr ScatterKind kKinds[] = {ScatterKind::kUpdate, ScatterKind::kAdd, ScatterKind::kSub, ScatterKind::kMul,
                                  ScatterKind::kDiv,    ScatterKind::kMin, ScatterKind::kMax};
constexpr const char* kKindNames[] = {"update", "add", "sub", "mul", "div", "min", "max"};

bool Defined(ScatterKind kind, DType type) {
  if (kind == ScatterKind::kUpdate) return true;
  if (type == DType::kBool) return false;
  return !(IsComplex(type) && (kind == ScatterKind::kMin || kind == ScatterKind::kMax));
}

Array Indices(DType type, int64_t n, const Dims& dims, uint32_t seed) {
  Array a(type, n * dims.rank());
  std::mt19937 rng(seed);
  for (int64_t i = 0; i < a.size(); ++i) {
    const int64_t v = static_cast<int64_t>(rng() % dims[i % dims.rank()]);
    if (type == DType::kInt32) {
      a.as<int32_t>()[i] = static_cast<int32_t>(v);
    } else {
      a.as<int64_t>()[i] = v;
    }
  }
  return a;
}

Status RunOn(const runtime::KernelSet& kernels, int threads, const ScatterDesc& desc, const Array& indices,
             const Array& updates, Array* out) {
  Args args{};
  args.in[0] = indices.data();
  args.in[1] = updates.data();
  args.out[0] = out->data();
  return kernels.Run(desc, args, runtime::ThreadTeam(threads));
}

ScatterDesc Describe(ScatterKind kind, DType type, DType index_type, int64_t num_indices, int64_t inner,
                     const Dims& dims) {
  ScatterDesc desc;
  desc.kind = kind;
  desc.type = type;
  desc.index_type = index_type;
  desc.num_indices = num_indices;
  desc.inner = inner;
  desc.dims = dims;
  return desc;
}

// Updates that divide: between 1 and 4, so that products stay in range too.
Array Updates(DType type, int64_t n, uint32_t seed) { return Random(type, n, seed, 1, 4); }

TEST(Scatter, ReferenceKinds) {
  const struct {
    ScatterKind kind;
    std::initializer_list<double> want;
  } cases[] = {
      {ScatterKind::kUpdate, {5, 6, 12, 12, 12, 12}}, {ScatterKind::kAdd, {20, 22, 12, 12, 15, 16}},
      {ScatterKind::kSub, {4, 2, 12, 12, 9, 8}},      {ScatterKind::kMul, {180, 288, 12, 12, 36, 48}},
      {ScatterKind::kDiv, {0.8, 0.5, 12, 12, 4, 3}},  {ScatterKind::kMin, {3, 4, 12, 12, 3, 4}},
      {ScatterKind::kMax, {12, 12, 12, 12, 12, 12}},
  };
  for (const auto& c : cases) {
    ScatterDesc desc = Describe(c.kind, DType::kDouble, DType::kInt32, 3, 2, {3});
    Array buffer = Values(DType::kDouble, {12, 12, 12, 12, 12, 12});
    Array updates = Values(DType::kDouble, {3, 4, 3, 4, 5, 6});
    if (c.kind == ScatterKind::kUpdate) updates = Values(DType::kDouble, {3, 4, 12, 12, 5, 6});
    ASSERT_TRUE(RunOn(reference::Kernels(), 1, desc, Values(DType::kInt32, {0, 2, 0}), updates, &buffer).ok());
    ExpectClose(buffer, Values(DType::kDouble, c.want), {1e-15, 0}, kKindNames[static_cast<int>(c.kind)]);
  }
}

TEST(Scatter, KindsTypesAndShapes) {
  const struct {
    int64_t num_indices, inner;
    Dims dims;
  } cases[] = {
      {1, 1, {1}},         {50, 1, {7}}, {40, 3, {100}}, {20, 9, {3, 5}},
      {600, 5, {4, 2, 3}}, {3, 7, {}},   {0, 4, {5}},    {4, 0, {5}},
  };
  for (DType index_type : {DType::kInt32, DType::kInt64}) {
    for (int t = 1; t < kNumDTypes; ++t) {
      const DType type = static_cast<DType>(t);
      for (ScatterKind kind : kKinds) {
        if (!Defined(kind, type)) continue;
        for (const auto& c : cases) {
          for (bool scalar : {false, true}) {
            ScatterDesc desc = Describe(kind, type, index_type, c.num_indices, c.inner, c.dims);
            desc.scalar_update = scalar;
            const int64_t n = c.dims.num_elements() * c.inner;
            CompareBackends(
                desc,
                {Indices(index_type, c.num_indices, c.dims, 2), Updates(type, scalar ? 1 : c.num_indices * c.inner, 3)},
                {{type, n}}, 0, std::string(kKindNames[static_cast<int>(kind)]) + " " + Name(type),
                {Random(type, n, 4)});
          }
        }
      }
    }
  }
}

// Sums of floats depend on their order: bit equality says that threads kept it.
TEST(Scatter, DuplicatesCombineInOrderOnSeveralThreads) {
  const struct {
    int64_t num_indices, inner;
    Dims dims;
  } cases[] = {{100000, 1, {50}}, {3000, 40, {1000}}, {20000, 4, {2, 70}},
               {200, 1000, {3}},  {70000, 2, {1}},    {20, 10007, {5}}};
  for (const auto& c : cases) {
    for (ScatterKind kind : {ScatterKind::kUpdate, ScatterKind::kAdd}) {
      for (DType type : {DType::kFloat, DType::kHalf}) {
        const ScatterDesc desc = Describe(kind, type, DType::kInt64, c.num_indices, c.inner, c.dims);
        const int64_t n = c.dims.num_elements() * c.inner;
        CompareBackends(desc,
                        {Indices(DType::kInt64, c.num_indices, c.dims, 2), Random(type, c.num_indices * c.inner, 3)},
                        {{type, n}}, 0, "duplicates", {Random(type, n, 4)});
      }
    }
  }
}

TEST(Scatter, BadIndexIsNamedAndLeftOut) {
  const struct {
    int64_t num_indices, inner;
    Dims dims;
    int64_t position;
    std::vector<int64_t> bad;
    const char* message;
  } cases[] = {
      {5, 3, {10}, 3, {12}, "indices[3] = 12 is not in [0, 10)"},
      {50000, 1, {10}, 4321, {-3}, "indices[4321] = -3 is not in [0, 10)"},
      {100, 1000, {10}, 7, {10}, "indices[7] = 10 is not in [0, 10)"},
      {4, 2, {2, 10}, 1, {2, 5}, "indices[1] = [2, 5] does not index into shape [2,10]"},
  };
  for (const auto& c : cases) {
    const ScatterDesc desc = Describe(ScatterKind::kAdd, DType::kFloat, DType::kInt64, c.num_indices, c.inner, c.dims);
    Array indices = Indices(DType::kInt64, c.num_indices, c.dims, 5);
    for (int d = 0; d < c.dims.rank(); ++d) {
      for (int64_t at : {c.num_indices - 1, c.position}) indices.as<int64_t>()[at * c.dims.rank() + d] = c.bad[d];
    }
    const Array updates = Random(DType::kFloat, c.num_indices * c.inner, 6);
    const int64_t n = c.dims.num_elements() * c.inner;
    CompareBackends(desc, {indices, updates}, {{DType::kFloat, n}}, 0, c.message, {Random(DType::kFloat, n, 7)});
    for (int threads : {1, 3}) {
      Array out = Random(DType::kFloat, n, 7);
      EXPECT_EQ(RunOn(host::Kernels(), threads, desc, indices, updates, &out).message(), c.message);
      EXPECT_EQ(RunOn(reference::Kernels(), 1, desc, indices, updates, &out).message(), c.message);
    }
  }
}

TEST(Scatter, NegativeIndicesAreSkippedOnRequestOnly) {
  ScatterDesc desc = Describe(ScatterKind::kAdd, DType::kInt32, DType::kInt32, 3, 1, {2});
  desc.skip_negative = true;
  const Array updates = Values(DType::kInt32, {1, 10, 100});
  const Array start = Values(DType::kInt32, {1000, 2000});
  const std::vector<Array> out =
      CompareBackends(desc, {Values(DType::kInt32, {1, -1, 0}), updates}, {{DType::kInt32, 2}}, 0, "skip", {start});
  ExpectClose(out[0], Values(DType::kInt32, {1100, 2001}), {}, "skip");
  for (const runtime::KernelSet* kernels : {static_cast<const runtime::KernelSet*>(&reference::Kernels()),
                                            static_cast<const runtime::KernelSet*>(&host::Kernels())}) {
    Array buffer = start;
    EXPECT_TRUE(RunOn(*kernels, 1, desc, Values(DType::kInt32, {1, -1, 0}), updates, &buffer).ok());
    // Too large is still wrong.
    EXPECT_EQ(RunOn(*kernels, 1, desc, Values(DType::kInt32, {1, -1, 2}), updates, &buffer).message(),
              "indices[2] = 2 is not in [0, 2)");
  }
}

TEST(Scatter, IntegerDivision) {
  for (const runtime::KernelSet* kernels : {static_cast<const runtime::KernelSet*>(&reference::Kernels()),
                                            static_cast<const runtime::KernelSet*>(&host::Kernels())}) {
    const ScatterDesc desc = Describe(ScatterKind::kDiv, DType::kInt32, DType::kInt32, 2, 2, {2});
    const int32_t lowest = std::numeric_limits<int32_t>::min();
    Array buffer = Values(DType::kInt32, {7, -7, double(lowest), 9});
    const Array indices = Values(DType::kInt32, {0, 1});
    ASSERT_TRUE(RunOn(*kernels, 1, desc, indices, Values(DType::kInt32, {2, 2, -1, 3}), &buffer).ok());
    ExpectClose(buffer, Values(DType::kInt32, {3, -3, double(lowest), 3}), {}, "integer division");
    const Status s = RunOn(*kernels, 1, desc, indices, Values(DType::kInt32, {1, 1, 3, 0}), &buffer);
    EXPECT_EQ(s.code(), Code::kInvalidArgument);
    EXPECT_EQ(s.message(), "integer division by zero: updates[1] has a 0 at position 1");
  }
}

TEST(Scatter, AnIndexOutOfRangeIsNamedRatherThanADivisionByZero) {
  const ScatterDesc desc = Describe(ScatterKind::kDiv, DType::kInt32, DType::kInt32, 3, 1, {2});
  for (const runtime::KernelSet* kernels : {static_cast<const runtime::KernelSet*>(&reference::Kernels()),
                                            static_cast<const runtime::KernelSet*>(&host::Kernels())}) {
    Array buffer = Values(DType::kInt32, {8, 8});
    EXPECT_EQ(
        RunOn(*kernels, 1, desc, Values(DType::kInt32, {0, 5, 1}), Values(DType::kInt32, {0, 2, 0}), &buffer).message(),
        "indices[1] = 5 is not in [0, 2)");
  }
}

TEST(Scatter, IntegersWrapAround) {
  const ScatterDesc desc = Describe(ScatterKind::kMul, DType::kInt16, DType::kInt32, 2, 1, {1});
  const std::vector<Array> out =
      CompareBackends(desc, {Values(DType::kInt32, {0, 0}), Values(DType::kInt16, {300, 300})}, {{DType::kInt16, 1}}, 0,
                      "wrap", {Values(DType::kInt16, {3})});
  EXPECT_EQ(out[0].as<int16_t>()[0], static_cast<int16_t>(270000 & 0xffff));
}

}  // namespace
}  // namespace xpu::testing
