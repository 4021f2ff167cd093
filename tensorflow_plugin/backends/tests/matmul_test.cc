#include <array>
#include <complex>
#include <limits>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

const DType kTypes[] = {DType::kInt8,   DType::kInt16,  DType::kInt32,     DType::kInt64,     DType::kUint8,
                        DType::kUint16, DType::kUint32, DType::kUint64,    DType::kHalf,      DType::kBFloat16,
                        DType::kFloat,  DType::kDouble, DType::kComplex64, DType::kComplex128};

MatMulDesc Dense(DType type, int64_t m, int64_t n, int64_t k, Dims batch = {}) {
  MatMulDesc d;
  d.type = type;
  d.m = m;
  d.n = n;
  d.k = k;
  d.batch = batch;
  d.a_batch_strides = d.b_batch_strides = DenseStrides(batch);
  for (int i = 0; i < batch.rank(); ++i) {
    d.a_batch_strides[i] *= m * k;
    d.b_batch_strides[i] *= k * n;
  }
  return d;
}

// An element is a sum of k products. Each is rounded once (exact in float for 16-bit types) before it is added:
// SumError(k) of the sum of the products' magnitudes.
void Compare(const MatMulDesc& d, const Array& a, const Array& b, int64_t c_size) {
  const std::string what =
      errors::Concat("batch ", d.batch.ToString(), " ", d.m, "x", d.k, "x", d.n, d.transpose_a ? " ta" : "",
                     d.transpose_b ? " tb" : "", d.conjugate_a ? " ca" : "", d.conjugate_b ? " cb" : "");
  MatMulDesc wide = d;
  wide.type = Wide(d.type);
  ExpectSums(d, wide, {a, b}, {d.type, c_size}, static_cast<double>(d.k), what);
}

void Compare(const MatMulDesc& d, int64_t a_batches, int64_t b_batches) {
  Compare(d, Random(d.type, a_batches * d.m * d.k, 1), Random(d.type, b_batches * d.k * d.n, 2),
          d.batch.num_elements() * d.m * d.n);
}

// A product with gaps, and how many elements its matrices span.
struct WithGaps {
  // With `gap` elements between the rows of all matrices, transposed as bits 0 (a) and 1 (b) of `flags` say. All of the
  // batch share b, if they are to.
  WithGaps(const MatMulDesc& dense, int flags, int64_t gap, bool share_b) : d(dense) {
    d.transpose_a = flags & 1;
    d.transpose_b = flags & 2;
    const int64_t a_rows = d.transpose_a ? d.k : d.m, b_rows = d.transpose_b ? d.n : d.k;
    d.lda = (d.transpose_a ? d.m : d.k) + gap;
    d.ldb = (d.transpose_b ? d.k : d.n) + gap;
    d.ldc = d.n + gap;
    d.a_batch_strides = d.b_batch_strides = d.c_batch_strides = DenseStrides(d.batch);
    for (int i = 0; i < d.batch.rank(); ++i) {
      d.a_batch_strides[i] *= a_rows * d.lda;
      d.b_batch_strides[i] *= share_b ? 0 : b_rows * d.ldb;
      d.c_batch_strides[i] *= d.m * d.ldc;
    }
    const int64_t batches = d.batch.num_elements();
    a_size = batches * a_rows * d.lda;
    b_size = (share_b ? 1 : batches) * b_rows * d.ldb;
    c_size = batches * d.m * d.ldc;
    what = errors::Concat("batch ", d.batch.ToString(), " ", d.m, "x", d.k, "x", d.n, " flags ", flags, " gap ", gap);
  }
  MatMulDesc d;
  int64_t a_size, b_size, c_size;
  std::string what;
};

// Elements in the gaps of c stay.
void CompareWithGaps(const MatMulDesc& dense, int flags, int64_t gap, bool share_b) {
  const auto [d, a_size, b_size, c_size, what] = WithGaps(dense, flags, gap, share_b);
  const Array a = Random(d.type, a_size, 1), b = Random(d.type, b_size, 2), before = Random(d.type, c_size, 3);
  MatMulDesc wide = d;
  wide.type = Wide(d.type);
  ExpectSums(d, wide, {a, b}, {d.type, c_size, &before}, static_cast<double>(d.k), what);
}

TEST(MatMul, ByHand) {
  for (DType type : kTypes) {
    const MatMulDesc d = Dense(type, 2, 2, 3);
    const Array a = Values(type, {1, 2, 3, 4, 5, 6}), b = Values(type, {5, 4, 3, 2, 1, 0});
    ExpectByHand(d, {a, b}, {{type, 4}}, {{Values(type, {14, 8, 41, 26})}}, "plain");
    MatMulDesc t = d;  // a as [k, m] = [[1,2],[3,4],[5,6]], b as [n, k]
    t.transpose_a = t.transpose_b = true;
    ExpectByHand(t, {a, b}, {{type, 4}}, {{Values(type, {32, 5, 44, 8})}}, "transposed");
  }
}

// As gradients to weights are: a device may add up parts of such sums.
void CompareLongSum(DType type, int64_t m, int64_t n, int64_t k) {
  MatMulDesc d = Dense(type, m, n, k);
  d.transpose_a = true;
  Compare(d, 1, 1);
}

TEST(MatMul, LongSumsOfFewElements) {
  for (DType type : {DType::kFloat, DType::kDouble, DType::kBFloat16}) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{20, 33, 4096}, {130, 5, 1536}, {7, 9, 2042}, {3, 4, 1031}}) {
      CompareLongSum(type, m, n, k);
    }
  }
}

TEST(MatMul, OneLongSumOfFewElements) { CompareLongSum(DType::kFloat, 3, 4, 1024); }

TEST(MatMul, ComplexConjugatesByHand) {
  for (DType type : {DType::kComplex64, DType::kComplex128}) {
    const Array a = Values(type, {std::complex<double>(1, 2)}), b = Values(type, {std::complex<double>(3, 4)});
    for (int conjugates = 0; conjugates < 4; ++conjugates) {
      MatMulDesc d = Dense(type, 1, 1, 1);
      d.conjugate_a = conjugates & 1;
      d.conjugate_b = conjugates & 2;
      const std::complex<double> want[] = {{-5, 10}, {11, -2}, {11, 2}, {-5, -10}};
      ExpectByHand(d, {a, b}, {{type, 1}}, {{Values(type, {want[conjugates]})}}, "conjugates");
    }
  }
}

TEST(MatMul, AllTypesAndTransposes) {
  const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {16, 16, 16}, {33, 65, 17}, {70, 40, 300}};
  for (DType type : kTypes) {
    for (const auto& s : sizes) {
      for (int flags = 0; flags < 4; ++flags) {
        MatMulDesc d = Dense(type, s[0], s[1], s[2]);
        d.transpose_a = flags & 1;
        d.transpose_b = flags & 2;
        d.conjugate_a = IsComplex(type) && (flags == 1 || flags == 3);
        d.conjugate_b = IsComplex(type) && flags >= 2;
        Compare(d, 1, 1);
      }
    }
  }
}

// As ops do that have an attribute for each of them.
TEST(MatMul, EqualTypesMayBeNamed) {
  constexpr int64_t kBatch = 2, kM = 7, kN = 3, kK = 4;
  std::vector<double> a(kBatch * kM * kK), b(kBatch * kK * kN), want(kBatch * kM * kN);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i * 7 % 11) - 5;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i * 5 % 7) - 3;
  for (int64_t i = 0; i < kBatch * kM; ++i) {
    for (int64_t n = 0; n < kN; ++n) {
      for (int64_t k = 0; k < kK; ++k) want[i * kN + n] += a[i * kK + k] * b[(i / kM * kK + k) * kN + n];
    }
  }
  for (DType type : {DType::kFloat, DType::kBFloat16, DType::kHalf, DType::kDouble, DType::kComplex64, DType::kInt32}) {
    MatMulDesc d = Dense(type, kM, kN, kK, {kBatch});
    d.b_type = d.c_type = type;
    ExpectByHand(d, {Values(type, a), Values(type, b)}, {{type, kBatch * kM * kN}}, {{Values(type, want)}}, Name(type));
  }
}

TEST(MatMul, Vectors) {
  const int64_t sizes[][3] = {{1, 700, 300}, {700, 1, 300}, {1, 1, 5000}, {200, 300, 1}, {1, 4000, 2}};
  for (DType type : {DType::kFloat, DType::kBFloat16, DType::kHalf, DType::kDouble}) {
    for (const auto& s : sizes) {
      for (int flags = 0; flags < 4; ++flags) {
        MatMulDesc d = Dense(type, s[0], s[1], s[2]);
        d.transpose_a = flags & 1;
        d.transpose_b = flags & 2;
        Compare(d, 1, 1);
      }
    }
  }
}

// One to five rows or one column, on both sides of a vector and of a register tile. Also on both sides of a block of
// rows of b and of one of columns. The last matrix is large: several threads add up its sums. Also with gaps between
// the rows of all matrices, and in a batch that shares one of them.
TEST(MatMul, FewRows) {
  const int64_t sizes[][2] = {{3, 1500}, {16, 300},  {17, 31},  {63, 100},  {80, 64},
                              {131, 65}, {1100, 33}, {4200, 7}, {1010, 301}};
  for (DType type : {DType::kFloat, DType::kBFloat16, DType::kHalf}) {
    for (const auto& s : sizes) {
      for (int64_t rows : {1, 2, 3, 4, 5}) {
        for (int flags = 0; flags < 8; ++flags) {
          const bool one_column = rows == 5;
          const int64_t gap = flags & 4 ? 3 : 0;
          CompareWithGaps(Dense(type, one_column ? s[0] : rows, one_column ? 1 : s[0], s[1], {2}), flags, gap,
                          gap == 0);
        }
      }
    }
  }
}

// A value that is not finite shows in its column, though it be multiplied with 0, and in no other.
TEST(MatMul, FewRowsKeepWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (DType type : {DType::kFloat, DType::kBFloat16, DType::kHalf}) {
    for (const bool transpose_b : {false, true}) {
      MatMulDesc d = Dense(type, 2, 101, 67);
      d.transpose_b = transpose_b;
      std::vector<double> a(d.m * d.k, 1), b(d.k * d.n, 1), c(d.m * d.n, 67);
      const auto in_b = [&](int64_t l, int64_t j) -> double& { return b[transpose_b ? j * d.k + l : l * d.n + j]; };
      a[66] = 0;  // of the first row
      in_b(66, 100) = in_b(66, 5) = inf;
      in_b(3, 64) = -inf;
      in_b(40, 99) = nan;
      for (int64_t j = 0; j < d.n; ++j) c[j] = 66;
      c[100] = c[5] = c[99] = c[101 + 99] = nan;
      c[101 + 100] = c[101 + 5] = inf;
      c[64] = c[101 + 64] = -inf;
      ExpectByHand(d, {Values(type, a), Values(type, b)}, {{type, d.m * d.n}}, {{Values(type, c)}}, "not finite");
    }
  }
}

// On both sides of one and of two vectors' width, and of a block of rows.
TEST(MatMul, FewColumns) {
  const int64_t sizes[][3] = {{64, 10, 300}, {9, 16, 33}, {13, 17, 40}, {100, 32, 50}, {8, 2, 700}, {300, 9, 3}};
  for (DType type : {DType::kFloat, DType::kBFloat16}) {
    for (const auto& s : sizes) {
      for (int flags = 0; flags < 4; ++flags) {
        MatMulDesc d = Dense(type, s[0], s[1], s[2], {2});
        d.transpose_a = flags & 1;
        d.transpose_b = flags & 2;
        Compare(d, 2, 2);
      }
    }
  }
}

TEST(MatMul, Batches) {
  for (DType type : {DType::kFloat, DType::kBFloat16, DType::kHalf, DType::kDouble, DType::kComplex64, DType::kInt32}) {
    for (int64_t size : {3, 20, 37}) {
      Compare(Dense(type, size, size + 1, size + 2, {2, 3}), 6, 6);
      MatMulDesc d = Dense(type, size, size + 1, size + 2, {2, 3});
      d.b_batch_strides = {0, 0};  // folds into the rows
      Compare(d, 6, 1);
      d.transpose_a = true;  // does not
      Compare(d, 6, 1);
      d = Dense(type, size, size + 1, size + 2, {3});
      d.b_batch_strides = {0};
      d.a_batch_strides = {2 * d.m * d.k};  // every other one: nor does this
      Compare(d, 5, 1);
      d.a_batch_strides = {0};
      Compare(d, 1, 1);
      d = Dense(type, size, size + 1, size + 2, {4, 2, 3});
      d.a_batch_strides = {3 * d.m * d.k, 0, d.m * d.k};
      d.b_batch_strides = {0, d.k * d.n, 0};
      Compare(d, 12, 2);
    }
  }
}

// Attention's layout: [batch, row, head, depth] seen as one matrix per batch and head. The output is the same way, with
// and without a gap after each row.
TEST(MatMul, StridedRowsAndOutputBatches) {
  const int64_t batch = 2, heads = 3;
  for (DType type : kTypes) {
    for (int64_t rows : {5, 40}) {
      for (int option = 0; option < 4; ++option) {
        const bool transpose_b = option & 1;
        const int64_t gap = option >> 1;
        MatMulDesc d;
        d.type = type;
        d.batch = {batch, heads};
        d.m = rows;
        d.k = 16;
        d.n = transpose_b ? rows : 16;
        const int64_t b_rows = transpose_b ? d.n : d.k, b_cols = transpose_b ? d.k : d.n;
        d.transpose_b = transpose_b;
        d.lda = heads * d.k;
        d.ldb = heads * b_cols;
        d.ldc = heads * d.n + gap;
        d.a_batch_strides = {d.m * d.lda, d.k};
        d.b_batch_strides = {b_rows * d.ldb, b_cols};
        d.c_batch_strides = {d.m * d.ldc, d.n};
        const Array a = Random(type, batch * d.m * d.lda, 1), b = Random(type, batch * b_rows * d.ldb, 2);
        const int64_t size = batch * d.m * d.ldc;
        // The gaps between the rows keep what was there.
        const Array before = Random(type, size, 3);
        MatMulDesc wide = d;
        wide.type = Wide(type);
        ExpectSums(d, wide, {a, b}, {type, size, &before}, static_cast<double>(d.k), "strided rows");
      }
    }
  }
}

// A token of attention: for each head one row or one column, whose keys or values lie beside those of other heads.
TEST(MatMul, OneRowOfEachHead) {
  const int64_t batch = 2;
  for (DType type : kTypes) {
    for (const auto& [tokens, heads, depth] :
         {std::array<int64_t, 3>{1, 2, 16}, {5, 3, 48}, {37, 2, 20}, {192, 8, 64}, {700, 6, 64}}) {
      for (int option = 0; option < 8; ++option) {
        const bool is_keys = option & 1, by_column = option & 2, shares_row = option & 4;
        const int64_t terms = is_keys ? depth : tokens, results = is_keys ? tokens : depth;
        MatMulDesc d;
        d.type = type;
        d.batch = {batch, heads};
        d.k = terms;
        d.m = by_column ? results : 1;
        d.n = by_column ? 1 : results;
        // [batch, token, head, depth], and one row for each head.
        const Dims of_matrix = {tokens * heads * depth, depth}, of_row = {heads * terms, shares_row ? 0 : terms};
        (by_column ? d.transpose_a : d.transpose_b) = is_keys != by_column;
        (by_column ? d.lda : d.ldb) = heads * depth;
        d.a_batch_strides = by_column ? of_matrix : of_row;
        d.b_batch_strides = by_column ? of_row : of_matrix;
        const int64_t size = batch * heads * results;
        const Array matrix = Random(type, batch * tokens * heads * depth, 1),
                    row = Random(type, size / results * terms, 2);
        MatMulDesc wide = d;
        wide.type = Wide(type);
        ExpectSums(d, wide, by_column ? std::vector<Array>{matrix, row} : std::vector<Array>{row, matrix},
                   {type, size, nullptr}, static_cast<double>(terms),
                   errors::Concat(tokens, " tokens, ", heads, " heads, depth ", depth, ", option ", option));
      }
    }
  }
}

TEST(MatMul, EmptyExtents) {
  for (DType type : kTypes) {
    Compare(Dense(type, 0, 3, 2), 1, 1);
    Compare(Dense(type, 3, 0, 2), 1, 1);
    Compare(Dense(type, 3, 2, 2, {0}), 0, 0);
    ExpectByHand(Dense(type, 3, 2, 0), {Array(type, 0), Array(type, 0)}, {{type, 6}},
                 {{Values(type, {0, 0, 0, 0, 0, 0})}}, "no terms");
  }
}

// Large enough for blocks, and for their remainders.
TEST(MatMul, Sizes) {
  for (DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16, DType::kInt32, DType::kComplex64}) {
    for (int64_t size : {2, 9, 15, 40, 129, 300}) {
      MatMulDesc d = Dense(type, size, size / 2 + 1, size + 3);
      Compare(d, 1, 1);
      d.transpose_a = d.transpose_b = true;
      Compare(d, 1, 1);
    }
  }
}

// Large enough for several threads: in parts of rows, of columns, of both, of products, and of rows in each of a few
// products. None of these divides the whole.
TEST(MatMul, SharedOut) {
  const int64_t sizes[][3] = {{530, 35, 61}, {35, 530, 61}, {130, 150, 61}, {150, 130, 61}};
  for (DType type : {DType::kFloat, DType::kBFloat16}) {
    for (const Dims& batch : {Dims{}, Dims{3}, Dims{2, 3}}) {
      for (const auto& s : sizes) {
        for (int flags = 0; flags < 4; ++flags) {
          CompareWithGaps(Dense(type, s[0], s[1], s[2], batch), flags, flags == 1 ? 5 : 0, flags >= 2);
        }
      }
    }
  }
}

// A small matrix of sums that several threads add up, and then those of each other; a part of the last is left over.
TEST(MatMul, LongSums) {
  const int64_t sizes[][3] = {{17, 9, 20001}, {30, 33, 3001}, {6, 40, 5000}};
  for (const auto& s : sizes) {
    for (int flags = 0; flags < 4; ++flags) {
      CompareWithGaps(Dense(DType::kFloat, s[0], s[1], s[2]), flags, flags == 1 ? 5 : 0, false);
    }
  }
}

// A part of a sum that is off, or one product, is wrong: with few rows, few columns, and neither.
TEST(MatMul, LongSumsOfWholeNumbersAreExact) {
  const int64_t sizes[][3] = {{17, 9, 20001}, {1, 64, 30000}, {64, 1, 30000}, {4, 90, 9001}, {50, 60, 9001}};
  for (DType type : {DType::kFloat, DType::kBFloat16}) {
    for (const auto& s : sizes) {
      for (int flags = 0; flags < 4; ++flags) {
        MatMulDesc d = Dense(type, s[0], s[1], s[2]);
        d.transpose_a = flags & 1;
        d.transpose_b = flags & 2;
        MatMulDesc wide = d;
        wide.type = Wide(type);
        ExpectExactSums(d, wide, {Whole(type, d.m * d.k, 1, 3), Whole(type, d.k * d.n, 2, 3)}, {type, d.m * d.n},
                        errors::Concat(Name(type), " ", d.m, "x", d.k, "x", d.n, " flags ", flags));
      }
    }
  }
}

// (c + x) * y, and whether c is x, of a product's element c and two more inputs.
const Program* TwoOutputs(DType type) {
  ProgramBuilder builder;
  const auto c = builder.Input(type), x = builder.Input(type), y = builder.Input(type);
  builder.Output(builder.Apply(Opcode::kMul, builder.Apply(Opcode::kAdd, c, x), y));
  builder.Output(builder.Apply(Opcode::kEqual, c, x));
  return builder.Build();
}

const DType kBytes[] = {DType::kInt8, DType::kUint8};

MatMulDesc OfBytes(MatMulDesc d, DType b_type) {
  d.b_type = b_type;
  d.c_type = DType::kInt32;
  return d;
}

// Products of bytes as CompareWithGaps has them, against sums in 64 bits.
void CompareBytes(const MatMulDesc& dense, int flags, int64_t gap, bool share_b) {
  const auto [d, a_size, b_size, c_size, what] = WithGaps(dense, flags, gap, share_b);
  const Array a = Random(d.type, a_size, 1, -128.9, 255.9), b = Random(d.b_type, b_size, 2, -128.9, 255.9);
  const Array before = Random(DType::kInt32, c_size, 3);
  MatMulDesc wide = d;
  wide.type = wide.b_type = wide.c_type = DType::kInt64;
  const auto widened = [](const Array& bytes) {
    std::vector<double> values(bytes.size());
    for (int64_t i = 0; i < bytes.size(); ++i) values[i] = RealAt(bytes, i);
    return Values(DType::kInt64, values);
  };
  const Array initial = widened(before);
  const Array sums = AsTheReference(wide, {widened(a), widened(b)}, {{DType::kInt64, c_size, &initial}}).out[0];
  std::vector<double> want(c_size);
  for (int64_t i = 0; i < c_size; ++i) want[i] = RealAt(sums, i);
  Expect(d, {a, b}, {{DType::kInt32, c_size, &before}}, {{Values(DType::kInt32, want)}}, "bytes, " + what);
}

TEST(MatMul, BytesByHand) {
  for (DType a : kBytes) {
    for (DType b : kBytes) {
      const std::vector<Array> in = {Values(a, {1, 2, 3, 100, 5, 6}), Values(b, {5, 4, 3, 2, 100, 0})};
      const Want want{{Values(DType::kInt32, {311, 8, 1115, 410})}};
      ExpectByHand(OfBytes(Dense(a, 2, 2, 3), b), in, {{DType::kInt32, 4}}, want, "bytes by hand");
    }
  }
}

// On both sides of a register tile, and of the rows for which b is read as it lies. Also on both sides of a group of
// columns and of a block of terms.
TEST(MatMul, Bytes) {
  const int64_t sizes[][3] = {{1, 1, 1},    {1, 64, 64},   {2, 129, 70}, {4, 1100, 33},  {5, 63, 31},
                              {6, 200, 65}, {33, 65, 130}, {70, 40, 7},  {13, 31, 2051}, {1, 5, 4099}};
  for (DType a : kBytes) {
    for (DType b : kBytes) {
      for (const auto& s : sizes) {
        for (int flags = 0; flags < 4; ++flags) {
          const int64_t gap = s[0] % 2 == 1 ? 3 : 0;
          CompareBytes(OfBytes(Dense(a, s[0], s[1], s[2], {2}), b), flags, gap, gap == 0);
        }
      }
    }
  }
}

// Large enough to be shared out, by columns and by rows.
TEST(MatMul, LargeProductsOfBytes) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{200, 300, 520}, {520, 64, 300}, {3, 5000, 300}}) {
    CompareBytes(OfBytes(Dense(DType::kInt8, m, n, k), DType::kInt8), 0, 0, false);
    CompareBytes(OfBytes(Dense(DType::kUint8, m, n, k), DType::kInt8), 2, 1, false);
  }
}

// Sums of extremes are beyond what 16 bits hold, and float; those that leave 32 bits wrap.
TEST(MatMul, ExtremesOfBytes) {
  const auto extremes = [](DType type) {
    return type == DType::kInt8 ? std::vector<double>{-128, 127} : std::vector<double>{255, 0};
  };
  for (DType a_type : kBytes) {
    for (DType b_type : kBytes) {
      for (int64_t k : {2, 1029}) {
        for (int64_t m : {1, 7}) {
          for (const double a : extremes(a_type)) {
            for (const double b : extremes(b_type)) {
              const MatMulDesc d = OfBytes(Dense(a_type, m, 70, k), b_type);
              const std::vector<double> all_a(m * k, a), all_b(70 * k, b), sums(m * 70, a * b * static_cast<double>(k));
              ExpectByHand(d, {Values(a_type, all_a), Values(b_type, all_b)}, {{DType::kInt32, m * 70}},
                           {{Values(DType::kInt32, sums)}}, errors::Concat("extremes ", a, " and ", b, ", k ", k));
            }
          }
        }
      }
    }
  }
  const int64_t k = 140'000;
  const MatMulDesc d = OfBytes(Dense(DType::kInt8, 1, 1, k), DType::kInt8);
  const Array low = Values(DType::kInt8, std::vector<double>(k, -128));
  ExpectByHand(d, {low, low}, {{DType::kInt32, 1}}, {{Values(DType::kInt32, std::vector<double>{-2001207296.0})}},
               "a sum that wraps");
}

// The epilogue makes float numbers of the integers, in their place. It has a number of each column, row and element.
// Threads run it for their parts. These are rows, columns, and columns that are read as they lie.
TEST(MatMul, EpilogueOfBytes) {
  ProgramBuilder builder;
  const auto element = builder.Input(DType::kInt32), scale = builder.Input(DType::kFloat);
  const auto of_row = builder.Input(DType::kFloat), x = builder.Input(DType::kFloat);
  const auto scaled = builder.Apply(Opcode::kMul, builder.Cast(element, DType::kFloat), scale);
  builder.Output(builder.Apply(Opcode::kAdd, builder.Apply(Opcode::kDiv, scaled, of_row), x));
  const Program* const program = builder.Build();
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{2, 3, 5},
                                {300, 130, 200},
                                {1, 3000, 513},
                                {3, 1100, 700},
                                {700, 37, 300},
                                {40, 600, 2100}}) {
    for (bool turned : {false, true}) {
      MatMulDesc d = OfBytes(Dense(DType::kInt8, m, n, k), DType::kInt8);
      d.transpose_b = turned;
      d.epilogue.program = program;
      d.epilogue.shape = {m, n};
      d.epilogue.in_strides[1] = {0, 1};
      d.epilogue.in_strides[2] = {1, 0};
      d.epilogue.in_strides[3] = {n, 1};
      ExpectAsTheReference(
          d,
          {Random(DType::kInt8, m * k, 1, -128, 127), Random(DType::kInt8, k * n, 2, -128, 127),
           Random(DType::kFloat, n, 3), Random(DType::kFloat, m, 4, 1, 2), Random(DType::kFloat, m * n, 5)},
          {{DType::kFloat, m * n}}, errors::Concat("epilogue of bytes ", m, "x", n, turned ? " turned" : ""));
    }
  }
}

TEST(MatMul, EpilogueByHand) {
  for (DType type : kTypes) {
    MatMulDesc d = Dense(type, 2, 2, 3);
    d.epilogue.program = TwoOutputs(type);
    d.epilogue.shape = {2, 2};
    d.epilogue.in_strides[1] = {0, 1};  // a row for all rows
    d.epilogue.in_strides[2] = {1, 0};  // a column for all columns
    const std::vector<Array> in = {Values(type, {1, 2, 3, 4, 5, 6}), Values(type, {5, 4, 3, 2, 1, 0}),
                                   Values(type, {1, 8}), Values(type, {2, 1})};
    const Want want{{Values(type, {30, 32, 42, 34}), Values(DType::kBool, {0, 1, 0, 0})}};
    ExpectByHand(d, in, {{type, 4}, {DType::kBool, 4}}, want, "epilogue");
  }
}

// Numbers -1, 0 and 1, whose sums are exact in every type.
Array Signs(DType type, int64_t n, uint32_t seed) {
  const Array random = Random(DType::kInt32, n, seed, -1.9, 1.9);
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = RealAt(random, i);
  return Values(type, values);
}

// In every way that a product is computed, and shared out: by rows, by columns, by batches.
TEST(MatMul, Epilogues) {
  const int64_t sizes[][3] = {{1, 1, 1},     {3, 40, 20},   {70, 5, 20},   {33, 65, 17}, {130, 140, 60},
                              {520, 34, 60}, {34, 520, 60}, {6, 40, 5000}, {3, 2, 0}};
  for (DType type : kTypes) {
    for (const Dims& batch : {Dims{}, Dims{2}, Dims{2, 3}}) {
      for (const auto& s : sizes) {
        MatMulDesc d = Dense(type, s[0], s[1], s[2], batch);
        d.transpose_b = s[0] == 33;
        const int64_t batches = batch.num_elements(), elements = batches * d.m * d.n;
        if (elements * d.k > 3'000'000) continue;
        d.epilogue.program = TwoOutputs(type);
        const bool flat = s[0] % 2 == 1;
        d.epilogue.shape = flat ? Dims{elements} : Dims{batches, d.m, d.n};
        d.epilogue.in_strides[1] = flat ? Dims{1} : Dims{0, 0, 1};
        d.epilogue.in_strides[2] = flat ? Dims{0} : Dims{d.m * d.n, d.n, 1};
        ExpectAsTheReference(d,
                             {Signs(type, batches * d.m * d.k, 1), Signs(type, batches * d.k * d.n, 2),
                              Signs(type, flat ? elements : d.n, 3), Signs(type, flat ? 1 : elements, 4)},
                             {{type, elements}, {DType::kBool, elements}},
                             errors::Concat("epilogue, batch ", batch.ToString(), " ", d.m, "x", d.k, "x", d.n));
      }
    }
  }
}

// Epilogues that a kernel may apply to its sums: a scale and an offset for each column, and an element. Columns fill
// vectors and panels or do not, rows fill tiles or do not. Both matrices have gaps between rows or none.
TEST(MatMul, EpiloguesOfColumns) {
  const int64_t sizes[][3] = {{32, 17, 4},   {33, 16, 5},    {50, 40, 16},  {97, 24, 88},   {131, 300, 129},
                              {49, 576, 96}, {40, 1000, 33}, {64, 12, 240}, {3000, 16, 72}, {35, 100, 2000},
                              {29, 20, 200}, {30, 70, 19},   {24, 50, 30},  {28, 33, 600},  {127, 9, 40},
                              {1, 33, 40},   {1, 3, 1},      {2, 64, 31},   {3, 16, 7},     {7, 70, 19},
                              {9, 17, 3},    {12, 100, 50},  {13, 40, 90},  {19, 4, 300},   {23, 130, 21}};
  ProgramBuilder builder;
  const auto c = builder.Input(DType::kFloat), x = builder.Input(DType::kFloat), y = builder.Input(DType::kFloat);
  const auto z = builder.Input(DType::kFloat);
  const auto scaled = builder.Apply(Opcode::kAdd, builder.Apply(Opcode::kMul, c, x), y);
  const auto sum = builder.Apply(Opcode::kAdd, z, scaled);
  builder.Output(builder.Apply(Opcode::kMaximum, sum, builder.Const(DType::kFloat, -100)));
  const Program* const program = builder.Build();
  for (const auto& s : sizes) {
    for (int64_t gap : {0, 3}) {
      MatMulDesc d = Dense(DType::kFloat, s[0], s[1], s[2]);
      d.lda = d.k + gap;
      d.ldb = d.n + gap;
      const int64_t elements = d.m * d.n;
      d.epilogue.program = program;
      d.epilogue.shape = {d.m, d.n};
      d.epilogue.in_strides[0] = d.epilogue.in_strides[3] = {d.n, 1};
      d.epilogue.in_strides[1] = d.epilogue.in_strides[2] = {0, 1};
      ExpectAsTheReference(
          d,
          {Whole(DType::kFloat, d.m * d.lda, 1, 3), Whole(DType::kFloat, d.k * d.ldb, 2, 3),
           Whole(DType::kFloat, d.n, 3, 3), Whole(DType::kFloat, d.n, 4, 3), Whole(DType::kFloat, elements, 5, 3)},
          {{DType::kFloat, elements}}, errors::Concat("columns of ", d.m, "x", d.k, "x", d.n, ", gap ", gap));
    }
  }
}

// Epilogues that a vendor's library may have: a bias, a matrix that is added, Relu, which keeps NaN.
TEST(MatMul, BiasAndRelu) {
  const int64_t sizes[][3] = {{2, 3, 5}, {64, 64, 64}, {33, 72, 40}, {130, 256, 128}, {16, 500, 24}};
  for (DType type : {DType::kFloat, DType::kBFloat16, DType::kHalf}) {
    for (const auto& s : sizes) {
      for (int flags = 1; flags < 8; ++flags) {
        const bool has_bias = flags & 1, has_added = flags & 2, has_relu = flags & 4;
        MatMulDesc d = Dense(type, s[0], s[1], s[2], s[0] == 33 ? Dims{2} : Dims{});
        const int64_t batches = d.batch.num_elements(), elements = batches * d.m * d.n;
        const Array signs = Signs(type, batches * d.m * d.k, 1);
        std::vector<double> a(signs.size());
        for (int64_t i = 0; i < signs.size(); ++i) a[i] = RealAt(signs, i);
        a[d.k + 1] = std::numeric_limits<double>::quiet_NaN();  // in the second row
        std::vector<Array> in = {Values(type, a), Signs(type, batches * d.k * d.n, 2)};
        ProgramBuilder builder;
        auto value = builder.Input(type);
        const auto add = [&](const Array& numbers, const Dims& strides) {
          d.epilogue.in_strides[in.size() - 1] = strides;
          in.push_back(numbers);
          value = builder.Round(builder.Apply(Opcode::kAdd, value, builder.Input(type)));
        };
        d.epilogue.shape = {batches * d.m, d.n};
        d.epilogue.in_strides[0] = {d.n, 1};
        if (has_bias) add(Whole(type, d.n, 3, 3), {0, 1});
        if (has_added) add(Whole(type, elements, 4, 3), {d.n, 1});
        if (has_relu) value = builder.Apply(Opcode::kMaximum, value, builder.Const(type, 0));
        builder.Output(value);
        d.epilogue.program = builder.Build();
        ExpectAsTheReference(d, in, {{type, elements}},
                             errors::Concat("bias and relu ", flags, " of ", d.m, "x", d.k, "x", d.n));
      }
    }
  }
}

// Parts of rows that share a large matrix, whose columns and rows fill no blocks.
TEST(MatMul, PartsOfRowsShareALargeMatrix) {
  const int64_t sizes[][3] = {{530, 200, 333}, {261, 70, 1000}, {1003, 64, 1040}};
  for (const auto& s : sizes) {
    for (int flags : {0, 1}) CompareWithGaps(Dense(DType::kFloat, s[0], s[1], s[2]), flags, 5 * flags, false);
    MatMulDesc d = Dense(DType::kFloat, s[0], s[1], s[2]);
    const int64_t elements = d.m * d.n;
    d.epilogue.program = TwoOutputs(DType::kFloat);
    d.epilogue.shape = {d.m, d.n};
    d.epilogue.in_strides[1] = {0, 1};
    d.epilogue.in_strides[2] = {d.n, 1};
    ExpectAsTheReference(d,
                         {Whole(DType::kFloat, d.m * d.k, 1, 3), Whole(DType::kFloat, d.k * d.n, 2, 3),
                          Whole(DType::kFloat, d.n, 3, 3), Whole(DType::kFloat, elements, 4, 3)},
                         {{DType::kFloat, elements}, {DType::kBool, elements}},
                         errors::Concat("epilogue of ", d.m, "x", d.k, "x", d.n));
  }
}

}  // namespace
}  // namespace xpu::testing
