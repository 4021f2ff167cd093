// Products read weights of 4 bits instead of the floats that they become.
#include "tensorflow_plugin/commands/hoist.h"
#include "tensorflow_plugin/commands/tests/lists_testing.h"

namespace xpu::commands {
namespace {

constexpr int64_t kK = 96, kN = 34, kGroup = 32, kGroups = kK / kGroup;

class PackedWeights : public Lists {
 protected:
  const float* GivenBytes(const std::vector<int8_t>& bytes) {
    std::vector<float> floats((bytes.size() + sizeof(float) - 1) / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    // A buffer is as large as what it holds.
    auto* address = capture_.NewBuffer(static_cast<int64_t>(bytes.size()), Buffer::Kind::kInput);
    contents_.push_back({capture_.Resolve(address).buffer, std::move(floats)});
    return static_cast<const float*>(address);
  }
  float* Bytes(int64_t n) { return static_cast<float*>(capture_.NewBuffer(n, Buffer::Kind::kComputed)); }

  // Rows of a table by the group of each row, as a model finds its scales; or columns, of a table that lies turned.
  float* RowsOf(const float* table, size_t element_size, const float* groups, bool turned) {
    GatherDesc desc;
    desc.element_size = element_size;
    desc.index_type = DType::kInt32;
    (turned ? desc.outer : desc.inner) = kN;
    desc.num_indices = kK;
    desc.dims = {kGroups};
    float* const rows = Bytes(kK * kN * static_cast<int64_t>(element_size));
    Record(desc, {table, groups}, {rows});
    return rows;
  }

  // The matrix that weights stand for, times `factor`: the halves of bytes, put in order, less a zero, times a scale.
  // `turned`: its columns are rows.
  float* Matrix(float factor, bool turned = false) {
    ProgramBuilder halves;
    const auto byte = halves.Input(DType::kInt8);
    const auto constant = [&](int value) { return halves.Const(DType::kInt8, value); };
    const auto weight = [&](ProgramBuilder::Reg half) {
      const auto flipped = halves.Apply(Opcode::kBitwiseXor, half, constant(8));
      halves.Output(halves.Apply(Opcode::kSub, flipped, constant(8)));
    };
    weight(halves.Apply(Opcode::kBitwiseAnd, byte, constant(15)));
    weight(halves.Apply(Opcode::kBitwiseAnd, halves.Apply(Opcode::kRightShift, byte, constant(4)), constant(15)));
    constexpr int64_t kBytes = kK * kN / 2;
    float *const first = Bytes(kBytes), *const second = Bytes(kBytes), *const weights = Bytes(2 * kBytes);
    Launch(halves.Build(), {kBytes}, {{packed_, {1}}}, {first, second});
    for (int64_t half : {0, 1}) {
      CopyStridedDesc desc;
      desc.element_size = 1;
      desc.shape = {kBytes};
      desc.src_strides = {1};
      desc.dst_strides = {2};
      desc.dst_offset = half;
      Record(desc, {half == 0 ? first : second}, {weights});
    }
    ProgramBuilder scale;
    const auto q = scale.Cast(scale.Input(DType::kInt8), DType::kFloat);
    const auto z = scale.Cast(scale.Input(DType::kInt8), DType::kFloat);
    const auto scaled = scale.Apply(Opcode::kMul, scale.Apply(Opcode::kSub, q, z), scale.Input(DType::kFloat));
    scale.Output(factor == 1 ? scaled : scale.Apply(Opcode::kMul, scaled, scale.Const(DType::kFloat, factor)));
    float* const matrix = Computed(kK * kN);
    Launch(scale.Build(), {kK * kN},
           {{weights, {1}},
            {RowsOf(zeros_, 1, groups_, turned), {1}},
            {RowsOf(scales_, sizeof(float), groups_, turned), {1}}},
           {matrix});
    return matrix;
  }
  const float* Product(const float* matrix, int64_t rows) {
    float* const c = Computed(rows * kN);
    MatMul(Given(Whole(rows * kK)), matrix, c, 0, rows, kK, kN);
    return c;
  }

  static std::vector<int8_t> Values(int64_t n, int low, int count, int step) {
    std::vector<int8_t> values(n);
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<int8_t>(low + i * step % count);
    return values;
  }
  static std::vector<float> Groups() {
    std::vector<float> floats(kK);
    for (int32_t i = 0; i < kK; ++i) {
      const int32_t group = i / static_cast<int32_t>(kGroup);
      std::memcpy(&floats[i], &group, sizeof(group));
    }
    return floats;
  }

  // The list as it runs once the weights are known to stay, and what runs once.
  CommandList Divided(CommandList* first, const std::vector<const float*>& also = {}) {
    CommandList list = capture_.list();
    std::vector<bool> invariant(list.buffers.size(), false);
    for (const float* address :
         {packed_, zeros_, static_cast<const float*>(scales_), static_cast<const float*>(groups_)}) {
      invariant[capture_.Resolve(address).buffer] = true;
    }
    for (const float* address : also) invariant[capture_.Resolve(address).buffer] = true;
    Optimize(TheMachine().device->capabilities(), {}, invariant, &list, first);
    return list;
  }

  const float* const packed_ = GivenBytes(Values(kK * kN / 2, -128, 255, 37));
  const float* const zeros_ = GivenBytes(Values(kGroups * kN, -8, 16, 5));
  float *const scales_ = Given(Whole(kGroups * kN)), *const groups_ = Given(Groups());
};

// A backend may have no such products.
bool HasThem() {
  return TheMachine().device->capabilities().Supports(FindWeightsDesc()) &&
         TheMachine().device->capabilities().Supports(WeightMatMulDesc());
}

TEST_F(PackedWeights, ProductsReadThem) {
  const float* const matrix = Matrix(1);
  for (int64_t rows : {1, 20}) Want(Product(matrix, rows));
  CommandList first, list = Divided(&first);
  EXPECT_EQ(Count<FindWeightsDesc>(first), HasThem() ? 2 : 0) << Text(first);
  EXPECT_EQ(Count<WeightMatMulDesc>(list), HasThem() ? 2 : 0) << Text(list);
  // Only two small values are kept.
  int64_t kept = 0;
  for (int b : first.live_out) kept += list.buffers[b].bytes;
  EXPECT_TRUE(!HasThem() || kept <= 64) << kept;
  Prepend(first, &list);
  ExpectEqual(Run(capture_.list()), Run(list), Text(list));
}

// An epilogue becomes part of such a product.
TEST_F(PackedWeights, Epilogue) {
  float* const sum = Computed(3 * kN);
  Op(Opcode::kAdd, {Product(Matrix(1), 3), Given(Whole(3 * kN))}, sum, 3 * kN);
  Want(sum);
  CommandList first, list = Divided(&first);
  EXPECT_TRUE(!HasThem() || Count<ElementwiseDesc>(list) == 0) << Text(list);
  Prepend(first, &list);
  ExpectEqual(Run(capture_.list()), Run(list), Text(list));
}

// A batch that shares the matrix is more rows, if those lie in rows. A matrix may be read transposed.
TEST_F(PackedWeights, ProductsOfABatch) {
  constexpr int64_t kBatch = 3, kRows = 2;
  const float* const matrix = Matrix(1);
  float* const turned = Computed(kK * kN);
  Copy(matrix, turned, {kN, kK}, {1, kN}, {kK, 1});
  const auto product = [&](int64_t between, int64_t of_b, bool transposed) {
    MatMulDesc desc;
    desc.batch = {kBatch};
    desc.a_batch_strides = {between};
    desc.b_batch_strides = {of_b};
    desc.m = kRows;
    desc.k = kK;
    desc.n = kN - (kBatch - 1) * of_b;  // other columns for each of the batch
    desc.ldb = transposed ? kK : kN;
    desc.transpose_b = transposed;
    float* const c = Computed(kBatch * kRows * desc.n);
    Record(desc, {Given(Whole(kBatch * (kRows + 1) * kK)), transposed ? turned : matrix}, {c});
    Want(c);
  };
  product(kRows * kK, 0, false);
  product(kRows * kK, 0, true);
  product((kRows + 1) * kK, 0, false);  // rows apart
  product(kRows * kK, 1, false);        // matrices apart
  CommandList first, list = Divided(&first);
  EXPECT_EQ(Count<WeightMatMulDesc>(list), HasThem() ? 2 : 0) << Text(list);
  EXPECT_EQ(Count<MatMulDesc>(list), HasThem() ? 2 : 4) << Text(list);
  Prepend(first, &list);
  ExpectEqual(Run(capture_.list()), Run(list), Text(list));
}

// As of an embedding that gives logits, too.
TEST_F(PackedWeights, ATurnedMatrix) {
  const float* const matrix = Matrix(1, true);
  for (const int64_t rows : {1, 20}) {
    float* const c = Computed(rows * kN);
    MatMul(Given(Whole(rows * kK)), matrix, c, 0, rows, kK, kN, true);
    Want(c);
  }
  CommandList first, list = Divided(&first);
  EXPECT_EQ(Count<WeightMatMulDesc>(list), HasThem() ? 2 : 0) << Text(list);
  Prepend(first, &list);
  ExpectEqual(Run(capture_.list()), Run(list), Text(list));
}

// Another matrix that is computed of weights. The list that runs once fails, and its caller keeps the floats.
TEST_F(PackedWeights, AnotherMatrix) {
  Want(Product(Matrix(2), 1));
  CommandList first, list = Divided(&first);
  if (!HasThem()) return;
  ASSERT_EQ(Count<WeightMatMulDesc>(list), 1) << Text(list);
  Prepend(first, &list);
  expects_failure_ = true;
  Run(list);
  EXPECT_EQ(failure_.code(), Code::kInvalidArgument) << failure_.message();
}

// A matrix that depends on anything that changes stays as it is, and so does one of sources that are alike.
TEST_F(PackedWeights, NotIfItChanges) {
  float* const sum = Computed(kK * kN);
  Op(Opcode::kAdd, {Matrix(1), Given(Whole(kK * kN))}, sum, kK * kN);
  Want(Product(sum, 1));
  CommandList first, list = Divided(&first);
  EXPECT_EQ(Count<WeightMatMulDesc>(list), 0) << Text(list);
}

TEST_F(PackedWeights, NotIfSourcesAreAlike) {
  float* const sum = Computed(kK * kN);
  float* const other = Given(Whole(kGroups * kN));
  Op(Opcode::kAdd, {Matrix(1), RowsOf(other, sizeof(float), groups_, false)}, sum, kK * kN);
  Want(Product(sum, 1));
  CommandList first, list = Divided(&first, {other});
  EXPECT_EQ(Count<WeightMatMulDesc>(list), 0) << Text(list);
  Prepend(first, &list);
  ExpectEqual(Run(capture_.list()), Run(list), Text(list));
}

}  // namespace
}  // namespace xpu::commands
