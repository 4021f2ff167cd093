#include "tensorflow_plugin/backends/opencl/product.h"

#include "tensorflow_plugin/backends/opencl/sources.h"

namespace xpu::opencl {
namespace {

const std::string kTiles =
#include "tensorflow_plugin/backends/opencl/product_tiles.cl.inc"
    ;
const std::string kProcessor =
#include "tensorflow_plugin/backends/opencl/product_processor.cl.inc"
    ;
const std::string kComplexProcessor =
#include "tensorflow_plugin/backends/opencl/product_complex.cl.inc"
    ;

// Elements of a tile's side that an item computes; a group has as many items as every device's may have.
constexpr int kEach = 4;
int SideOf(const Hardware& hardware) { return hardware.largest_group >= 256 ? 16 : 8; }

// Of a processor's item: rows, and columns by the size of what is added up, so that sums and what they are made of are
// in registers.
constexpr int kRows = 6;  // ROWS there
int WidthOf(DType type) { return SizeOf(RealTypeOf(type)) == 8 ? 4 : 8; }
// Columns are two vectors; of complex numbers the vectors are the parts of one column each.
int ColumnsOf(DType type) { return IsComplex(type) ? WidthOf(type) : 2 * WidthOf(type); }

// Integers wrap, which only unsigned ones do by themselves.
std::string SumOf(DType type) { return !IsInteger(type) ? RegisterOf(type) : SumSize(type) == 8 ? "ulong" : "uint"; }

}  // namespace

int64_t ItemRows(const Hardware& hardware) { return hardware.is_processor ? kRows : 1; }

size_t SumSize(DType type) { return SizeOf(type) < 8 ? 4 : SizeOf(type); }

std::string ProductElements(DType type) {
  const std::string real =
      IsComplex(type) ? errors::Concat("#define COMPLEX\n#define REAL ", RegisterOf(RealTypeOf(type)), "\n") : "";
  return ExtensionsFor(type) + real +
         errors::Concat("#define T ", RegisterOf(type), "\n#define SUM ", SumOf(type), "\n#define LOAD_A(i) ",
                        Load(type, "a", "i"), "\n#define LOAD_B(i) ", Load(type, "b", "i"), "\n#define STORE_C(i, x) ",
                        Store(type, "c", "i", "x"));
}

std::string Epilogue::Text() const {
  if (!walk_) return "#define EPILOGUE_PARAMETERS\n#define FINISH(at, value) STORE_C(at, value)\n";
  return errors::Concat(ExtensionsFor(*program_), "void finish(const T element, const ", walk_->index_type(), " i",
                        walk_->Parameters(), ") {\n", walk_->Statements("element"), "}\n#define EPILOGUE_PARAMETERS",
                        walk_->Parameters(), "\n#define FINISH(at, value) finish(", Cast(type_, type_, "value"), ", at",
                        walk_->Arguments(), ")\n");
}

void Epilogue::SetArguments(Call& call, const Args& args) const {
  if (walk_) walk_->SetArguments(call, args.in + 2, args.out);
}

std::string ProductSource(const Hardware& hardware, DType type, const std::string& epilogue,
                          const std::string& operands) {
  const std::string elements = ProductElements(type) + epilogue;
  if (!hardware.is_processor) {
    const std::string fused = IsInteger(type)   ? "((v) * (w) + (z))"
                              : IsComplex(type) ? "fma((v).yy, (T)(-(w).y, (w).x), fma((v).xx, w, z))"
                                                : "fma(v, w, z)";
    return elements + errors::Concat("#define SIDE ", SideOf(hardware), "\n#define EACH ", kEach,
                                     "\n#define ADD_PRODUCT(v, w, z) ", fused, "\n", operands, kTiles);
  }
  const int width = WidthOf(type);
  if (IsComplex(type)) {
    return elements +
           errors::Concat("#define WIDTH ", width, "\n#define PAIRS ", 2 * width, "\n", operands, kComplexProcessor);
  }
  const bool dense = SizeOf(type) == SumSize(type);
  return elements + errors::Concat("#define WIDTH ", width, "\n#define VECTOR ", SumOf(type), width,
                                   "\n#define LOAD_VECTOR vload", width, "\n#define STORE_VECTOR vstore", width,
                                   "\n#define DENSE ", dense ? 1 : 0, "\n", operands, kProcessor);
}

void SetExtents(Call& call, int64_t m, int64_t n, int64_t k) {
  for (int64_t extent : {m, n, k}) call.Value(static_cast<cl_ulong>(extent));
}

Status RunProducts(Call& call, const Hardware& hardware, DType type, int64_t m, int64_t n, int64_t batches) {
  const auto tiles = [](int64_t extent, int64_t tile) { return static_cast<size_t>((extent + tile - 1) / tile); };
  if (hardware.is_processor) {
    // Rows first: they read the same columns of b.
    const size_t groups[] = {tiles(m, kRows), tiles(n, ColumnsOf(type)), static_cast<size_t>(batches)};
    const size_t local[] = {1, 1, 1};
    return call.RunGroups(groups, local);
  }
  const int64_t side = SideOf(hardware);
  const size_t groups[] = {tiles(n, side * kEach), tiles(m, side * kEach), static_cast<size_t>(batches)};
  const size_t local[] = {static_cast<size_t>(side), static_cast<size_t>(side), 1};
  return call.RunGroups(groups, local);
}

}  // namespace xpu::opencl
