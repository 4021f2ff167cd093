// Matrices and their diagonals: MatrixDiag, MatrixDiagPart, MatrixSetDiag (V1 to V3), Diag and DiagPart. Every
// diagonal is one strided copy for the whole batch.
#include <algorithm>
#include <cstring>
#include <string>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// How diagonals shorter than the longest are set in their compact rows (V3's "align"; V2 packs to the left).
struct Align {
  bool super_left = true, sub_left = true;
};

Align ReadAlign(Construction& c, int version) {
  if (version < 3) return {};
  const std::string align = c.Attr<std::string>("align");
  return {align == "LEFT_RIGHT" || align == "LEFT_LEFT", align == "RIGHT_LEFT" || align == "LEFT_LEFT"};
}

// The diagonals lower..upper of [rows, cols] matrices; their compact form is [upper - lower + 1, longest].
struct Band {
  int64_t lower = 0, upper = 0;
  int64_t rows = 0, cols = 0;

  int64_t count() const { return upper - lower + 1; }
  int64_t Length(int64_t d) const {
    return std::max<int64_t>(0, std::min(rows + std::min<int64_t>(d, 0), cols - std::max<int64_t>(d, 0)));
  }
  // The longest diagonal is the one nearest to the main one.
  int64_t longest() const { return std::min(rows + std::min<int64_t>(upper, 0), cols - std::max<int64_t>(lower, 0)); }
};

// Reads host argument `k`: one diagonal, or the lowest and the highest of several.
Status ReadBand(const Tensor& k, Band* band) {
  XPU_REQUIRE(k.rank() <= 1,
              errors::InvalidArgument("diag_index must be a scalar or vector, received shape: ", k.ShapeString()));
  XPU_REQUIRE(k.num_elements() == 1 || k.num_elements() == 2,
              errors::InvalidArgument("diag_index must have only one or two elements, received ", k.num_elements(),
                                      " elements."));
  std::vector<int64_t> values;
  XPU_RETURN_IF_ERROR(HostIntegers(k, "k", &values));
  band->lower = values.front();
  band->upper = values.back();
  XPU_REQUIRE(band->lower <= band->upper,
              errors::InvalidArgument("lower_diag_index must not be larger than upper_diag_index: ", band->lower, " > ",
                                      band->upper));
  return OkStatus();
}

Status CheckBand(const Band& band) {
  // TensorFlow ends a sentence in the one message and not in the other.
  for (const auto& [name, d] : {std::pair("lower_diag_index is out of bound: ", band.lower),
                                std::pair("upper_diag_index is out of bound: ", band.upper)}) {
    XPU_REQUIRE((-band.rows < d && d < band.cols) || d == 0,
                errors::InvalidArgument(name, d, *name == 'l' ? ". " : " ", "It must be between ", -band.rows, " and ",
                                        band.cols));
  }
  return OkStatus();
}

// Copies all diagonals of `batch` matrices from (to_matrix: to) their compact form.
Status CopyDiagonals(Context& ctx, size_t size, int64_t batch, const Band& band, const Align& align, bool to_matrix,
                     const void* src, void* dst) {
  const int64_t longest = band.longest();
  for (int64_t d = band.upper; d >= band.lower; --d) {
    const int64_t length = band.Length(d);
    const bool left = (d >= 0 && align.super_left) || (d <= 0 && align.sub_left);
    const View matrix{{band.rows * band.cols, band.cols + 1}, d >= 0 ? d : -d * band.cols};
    const View compact{{band.count() * longest, 1}, (band.upper - d) * longest + (left ? 0 : longest - length)};
    XPU_RETURN_IF_ERROR(
        CopyView(ctx, size, {batch, length}, src, to_matrix ? compact : matrix, dst, to_matrix ? matrix : compact));
  }
  return OkStatus();
}

// Copies a host scalar's bytes to `value` (16 bytes of zeros before). MatrixDiagPart alone takes any shape of one
// element, as on the CPU.
Status ReadPaddingValue(const Tensor& t, bool any_rank, char* value) {
  XPU_REQUIRE(t.IsScalar() || (any_rank && t.num_elements() == 1),
              errors::InvalidArgument("padding_value must be a scalar, received shape: ", t.ShapeString()));
  std::memcpy(value, t.data(), SizeOf(t.dtype()));
  return OkStatus();
}

// diagonal [..., n] -> [..., n, n] (V1); diagonal [..., (diagonals,) longest], k, rows, cols, padding (V2, V3).
class MatrixDiagKernel : public OpKernel {
 public:
  MatrixDiagKernel(Construction& c, int version) : version_(version), align_(ReadAlign(c, version)) {}

  Status Compute(Context& ctx) override {
    const Tensor diagonal = ctx.input(0);
    XPU_REQUIRE(diagonal.rank() >= 1,
                errors::InvalidArgument("diagonal must be at least 1-dim, received shape: ", diagonal.ShapeString()));
    const int64_t longest = diagonal.dim(diagonal.rank() - 1);
    Band band;
    char padding[16] = {};
    int64_t rows = -1, cols = -1;
    if (version_ > 1) {
      XPU_RETURN_IF_ERROR(ReadBand(ctx.input(1), &band));
      for (int i : {2, 3}) {
        XPU_REQUIRE(ctx.input(i).IsScalar(),
                    errors::InvalidArgument(i == 2 ? "num_rows" : "num_cols",
                                            " must be a scalar, received shape: ", ctx.input(i).ShapeString()));
      }
      XPU_RETURN_IF_ERROR(HostInteger(ctx.input(2), "num_rows", &rows));
      XPU_RETURN_IF_ERROR(HostInteger(ctx.input(3), "num_cols", &cols));
      XPU_RETURN_IF_ERROR(ReadPaddingValue(ctx.input(4), false, padding));
    }
    int batch_rank = diagonal.rank() - 1;
    if (band.count() > 1) {
      XPU_REQUIRE(--batch_rank >= 0 && diagonal.dim(batch_rank) == band.count(),
                  errors::InvalidArgument("The number of diagonals provided in the input does not match the "
                                          "lower_diag_index and upper_diag_index range. It takes ",
                                          band.count(), " diagonals, got shape ", diagonal.ShapeString()));
    }
    const int64_t min_rows = longest - std::min<int64_t>(band.upper, 0);
    const int64_t min_cols = longest + std::max<int64_t>(band.lower, 0);
    XPU_REQUIRE(rows == -1 || rows >= min_rows, errors::InvalidArgument("The number of rows is too small."));
    XPU_REQUIRE(cols == -1 || cols >= min_cols, errors::InvalidArgument("The number of columns is too small."));
    if (rows == -1 && cols == -1) {
      rows = cols = std::max(min_rows, min_cols);
    } else if (rows == -1) {
      rows = min_rows;
    } else if (cols == -1) {
      cols = min_cols;
    }
    XPU_REQUIRE(rows == min_rows || cols == min_cols,
                errors::InvalidArgument("The number of rows or columns is not consistent with the specified d_lower, "
                                        "d_upper, and diagonal."));
    band.rows = rows;
    band.cols = cols;
    // Diagonals may lie outside the matrix (where one of its extents is given, say): they hold nothing then.
    Dims shape;
    Append(diagonal.dims(), 0, batch_rank, &shape);
    shape.push_back(rows);
    shape.push_back(cols);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    if (y.num_elements() == 0) return OkStatus();
    XPU_RETURN_IF_ERROR(Fill(ctx, padding, y));
    if (longest == 0) return OkStatus();
    return CopyDiagonals(ctx, SizeOf(y.dtype()), Product(shape, 0, batch_rank), band, align_, true, diagonal.data(),
                         y.mutable_data());
  }

 private:
  const int version_;
  const Align align_;
};

// Checks that `matrix` is one or more matrices and reads the band's k from input `k_input` (V1: the main diagonal).
Status MatrixBand(Context& ctx, const Tensor& matrix, int version, int k_input, Band* band) {
  XPU_REQUIRE(matrix.rank() >= 2,
              errors::InvalidArgument("input must be at least 2-dim, received shape: ", matrix.ShapeString()));
  if (version > 1) XPU_RETURN_IF_ERROR(ReadBand(ctx.input(k_input), band));
  band->rows = matrix.dim(matrix.rank() - 2);
  band->cols = matrix.dim(matrix.rank() - 1);
  return version > 1 ? CheckBand(*band) : OkStatus();
}

// The shape of the band's compact form.
Dims CompactShape(const Tensor& matrix, const Band& band) {
  Dims shape;
  Append(matrix.dims(), 0, matrix.rank() - 2, &shape);
  if (band.count() > 1) shape.push_back(band.count());
  shape.push_back(band.longest());
  return shape;
}

class MatrixDiagPartKernel : public OpKernel {
 public:
  MatrixDiagPartKernel(Construction& c, int version) : version_(version), align_(ReadAlign(c, version)) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    Band band;
    char padding[16] = {};
    XPU_RETURN_IF_ERROR(MatrixBand(ctx, x, version_, 1, &band));
    if (version_ > 1) XPU_RETURN_IF_ERROR(ReadPaddingValue(ctx.input(2), true, padding));
    const Dims shape = CompactShape(x, band);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    if (y.num_elements() == 0) return OkStatus();
    // A single diagonal fills its row.
    if (band.count() > 1) XPU_RETURN_IF_ERROR(Fill(ctx, padding, y));
    return CopyDiagonals(ctx, SizeOf(x.dtype()), Product(x.dims(), 0, x.rank() - 2), band, align_, false, x.data(),
                         y.mutable_data());
  }

 private:
  const int version_;
  const Align align_;
};

class MatrixSetDiagKernel : public OpKernel {
 public:
  MatrixSetDiagKernel(Construction& c, int version) : version_(version), align_(ReadAlign(c, version)) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), diagonal = ctx.input(1);
    Band band;
    XPU_RETURN_IF_ERROR(MatrixBand(ctx, x, version_, 2, &band));
    XPU_REQUIRE(diagonal.rank() >= 1,
                errors::InvalidArgument("diagonal must be at least 1-dim, received shape: ", diagonal.ShapeString()));
    const Dims expected = CompactShape(x, band);
    XPU_REQUIRE(band.count() == 1 || (diagonal.rank() >= 2 && diagonal.dim(diagonal.rank() - 2) == band.count()),
                errors::InvalidArgument("The number of diagonals provided in `diag` is not consistent with "
                                        "`lower_diag_index` and `upper_diag_index`: it takes ",
                                        band.count(), ", got shape ", diagonal.ShapeString()));
    XPU_REQUIRE(diagonal.dims() == expected,
                errors::InvalidArgument("Either first dimensions of diagonal don't match input.shape[:-2], or "
                                        "diagonal.shape[:-1] is not equal to the longests diagonal in range "
                                        "[lower_diag_index:upper_diag_index].\nInput shape: ",
                                        x.ShapeString(), "\nDiagonal shape: ", diagonal.ShapeString(),
                                        "\nExpected diagonal shape: ", expected.ToString()));
    Tensor y;
    XPU_RETURN_IF_ERROR(ForwardOrCopy(ctx, 0, &y));
    if (y.num_elements() == 0) return OkStatus();
    return CopyDiagonals(ctx, SizeOf(x.dtype()), Product(x.dims(), 0, x.rank() - 2), band, align_, true,
                         diagonal.data(), y.mutable_data());
  }

 private:
  const int version_;
  const Align align_;
};

// Diag: [d...] -> [d..., d...]; DiagPart is its inverse.
class TensorDiagKernel : public OpKernel {
 public:
  TensorDiagKernel(Construction&, bool part) : part_(part) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    Dims half = x.dims(), whole;
    if (part_) {
      XPU_REQUIRE(
          x.rank() % 2 == 0,
          errors::InvalidArgument("The rank of the tensor should be even and positive, got shape ", x.ShapeString()));
      half.resize(x.rank() / 2);
      for (int i = 0; i < half.rank(); ++i) {
        XPU_REQUIRE(half[i] == x.dim(i + half.rank()),
                    errors::InvalidArgument("Invalid shape ", x.ShapeString(), ": dimensions ", i, " and ",
                                            i + half.rank(), " do not match."));
      }
    } else {
      XPU_REQUIRE(x.rank() > 0, errors::InvalidArgument("Input must be at least rank 1, got 0"));
      whole = x.dims();
      Append(x.dims(), 0, x.rank(), &whole);
    }
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, part_ ? half : whole, &y));
    if (y.num_elements() == 0) return OkStatus();
    if (!part_) XPU_RETURN_IF_ERROR(FillZero(ctx, y));
    const int64_t n = half.num_elements();
    return CopyDiagonals(ctx, SizeOf(x.dtype()), 1, Band{0, 0, n, n}, {}, !part_, x.data(), y.mutable_data());
  }

 private:
  const bool part_;
};

}  // namespace

void RegisterArrayDiag(Registry& registry) {
  static const char* const kDiag[] = {"MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"};
  static const char* const kPart[] = {"MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"};
  static const char* const kSet[] = {"MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"};
  using Names = std::vector<const char*>;
  for (int version = 1; version <= 3; ++version) {
    const bool v1 = version == 1;
    registry.Op(kDiag[version - 1])
        .Types("T", kAllTypes)
        .Host(v1 ? Names{} : Names{"k", "num_rows", "num_cols", "padding_value"})
        .AllHostFor(DType::kInt32, {"diagonal", "output"})
        .Requires(needs::Copy("T"))
        .Kernel<MatrixDiagKernel>(version);
    registry.Op(kPart[version - 1])
        .Types("T", kAllTypes)
        .Host(v1 ? Names{} : Names{"k", "padding_value"})
        .AllHostFor(DType::kInt32, {"input", "diagonal"})
        .Requires(needs::Copy("T"))
        .Kernel<MatrixDiagPartKernel>(version);
    registry.Op(kSet[version - 1])
        .Types("T", kAllTypes)
        .Host(v1 ? Names{} : Names{"k"})
        .AllHostFor(DType::kInt32, {"input", "diagonal", "output"})
        .Requires(needs::Copy("T"))
        .Kernel<MatrixSetDiagKernel>(version);
  }
  for (bool part : {false, true}) {
    registry.Op(part ? "DiagPart" : "Diag")
        .Types("T", Union({DType::kHalf, DType::kFloat, DType::kDouble, DType::kInt64}, kComplexTypes))
        .AllHostFor(DType::kInt32, part ? Names{"input", "diagonal"} : Names{"diagonal", "output"})
        .Requires(needs::Copy("T"))
        .Kernel<TensorDiagKernel>(part);
  }
}

}  // namespace xpu
