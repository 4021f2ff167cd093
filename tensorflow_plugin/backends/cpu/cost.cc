#include "tensorflow_plugin/backends/cpu/cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

constexpr double kCommandNs = 100;
constexpr double kBytesPerNs = 8;  // one thread, out of the outer caches

int64_t Total(double ns) { return static_cast<int64_t>(std::min(ns + kCommandNs, 1e18)); }

double Product(const int64_t* v, int n) {
  double product = 1;
  for (int i = 0; i < n; ++i) product *= static_cast<double>(v[i]);
  return product;
}
double Product(const Dims& dims) { return Product(dims.begin(), dims.rank()); }

// Nanoseconds per element on one thread, by the type of the operands; integers and floats are those of 4 bytes.
struct Price {
  double of_float, of_double, of_integer, of_complex;
};

// For instructions that are not in the table: arithmetic, comparisons, selections, casts between numbers.
constexpr Price kCheap = {0.1, 0.2, 0.1, 1.5};

// Measured with this backend's loops on tiles of 1024 elements (AVX-512 at 2.5 GHz); 0 where there is no such
// instruction. They choose a command's thread. Passes use commands/cost.h, since their lists run on any device.
constexpr struct {
  Opcode op;
  Price price;
} kPrices[] = {
    {Opcode::kAbs, {0.1, 0.2, 0.1, 1.3}},
    {Opcode::kSign, {0.15, 0.3, 0.1, 4}},
    {Opcode::kReciprocal, {0.4, 0.8, 0, 1.2}},
    {Opcode::kSqrt, {0.3, 1.3, 0, 2.3}},
    {Opcode::kRsqrt, {0.5, 1.9, 0, 2.8}},
    {Opcode::kExp, {0.6, 1.8, 0, 3.5}},
    {Opcode::kExpm1, {0.6, 1.6, 0, 3.8}},
    {Opcode::kLog, {1, 2.8, 0, 5.2}},
    {Opcode::kLog1p, {1, 2.6, 0, 5.5}},
    {Opcode::kSin, {1.3, 1.9, 0, 4}},
    {Opcode::kCos, {1.3, 1.8, 0, 4}},
    {Opcode::kTan, {38, 22, 0, 4.3}},
    {Opcode::kAsin, {1.7, 1.7, 0, 140}},
    {Opcode::kAcos, {0.8, 1.7, 0, 135}},
    {Opcode::kAtan, {1, 2.6, 0, 83}},
    {Opcode::kSinh, {45, 38, 0, 4}},
    {Opcode::kCosh, {14, 16, 0, 4}},
    {Opcode::kTanh, {0.5, 2.8, 0, 4.3}},
    {Opcode::kAsinh, {27, 26, 0, 150}},
    {Opcode::kAcosh, {25, 21, 0, 150}},
    {Opcode::kAtanh, {1.3, 4, 0, 70}},
    {Opcode::kSigmoid, {0.8, 2.2, 0, 4.2}},
    {Opcode::kErf, {0.5, 20, 0, 0}},
    {Opcode::kErfc, {0.7, 20, 0, 0}},
    {Opcode::kErfinv, {2.5, 4, 0, 0}},
    {Opcode::kNdtri, {2.5, 4, 0, 0}},
    {Opcode::kLgamma, {26, 26, 0, 0}},
    {Opcode::kDigamma, {2.5, 3.5, 0, 0}},
    {Opcode::kAngle, {0, 0, 0, 3}},
    {Opcode::kMul, {0.1, 0.2, 0.1, 4}},
    {Opcode::kDiv, {0.3, 0.8, 0, 1.8}},
    {Opcode::kTruncateDiv, {0, 0, 1.2, 0}},
    {Opcode::kFloorDiv, {0.25, 0.8, 1.3, 0}},
    {Opcode::kFloorMod, {20, 22, 1.2, 0}},
    {Opcode::kTruncateMod, {16, 12, 1.1, 0}},
    {Opcode::kPow, {19, 31, 8, 10}},
    {Opcode::kAtan2, {1, 2.8, 0, 0}},
    {Opcode::kBesselI0, {3.5, 4.5, 0, 0}},
    {Opcode::kBesselI0e, {2.5, 3.5, 0, 0}},
    {Opcode::kBesselI1, {3.5, 4.5, 0, 0}},
    {Opcode::kBesselI1e, {2.5, 3.5, 0, 0}},
    {Opcode::kBesselJ0, {2.5, 4, 0, 0}},
    {Opcode::kBesselJ1, {2.5, 4, 0, 0}},
    {Opcode::kBesselK0, {3.5, 4.5, 0, 0}},
    {Opcode::kBesselK0e, {2.5, 3.5, 0, 0}},
    {Opcode::kBesselK1, {3.5, 4.5, 0, 0}},
    {Opcode::kBesselK1e, {2.5, 3.5, 0, 0}},
    {Opcode::kBesselY0, {2.5, 4, 0, 0}},
    {Opcode::kBesselY1, {2.5, 4, 0, 0}},
    {Opcode::kDawsn, {2.5, 3.5, 0, 0}},
    {Opcode::kExpint, {3.5, 4.5, 0, 0}},
    {Opcode::kFresnelCos, {3, 4, 0, 0}},
    {Opcode::kFresnelSin, {3, 4, 0, 0}},
    {Opcode::kSpence, {2.5, 3.5, 0, 0}},
    {Opcode::kIgamma, {65, 65, 0, 0}},
    {Opcode::kIgammac, {65, 65, 0, 0}},
    {Opcode::kIgammaGradA, {115, 115, 0, 0}},
    {Opcode::kGammaSampleGrad, {115, 115, 0, 0}},
    {Opcode::kZeta, {190, 190, 0, 0}},
    {Opcode::kPolygamma, {190, 190, 0, 0}},
    {Opcode::kBetainc, {115, 115, 0, 0}},
    {Opcode::kNextAfter, {3, 3, 0, 0}},
    {Opcode::kPopulationCount, {0, 0, 0.5, 0}},
};

using PriceList = std::array<Price, kNumOpcodes>;
constexpr PriceList MakePriceList() {
  PriceList list{};
  for (Price& price : list) price = kCheap;
  for (const auto& row : kPrices) list[static_cast<size_t>(row.op)] = row.price;
  return list;
}
constexpr PriceList kPriceList = MakePriceList();

double InstrNs(const Instr& instr) {
  const Price& price = kPriceList[static_cast<size_t>(instr.op)];
  if (IsComplex(instr.type)) return price.of_complex;
  if (instr.type == DType::kDouble) return price.of_double;
  if (instr.type == DType::kFloat || IsReducedFloat(instr.type)) return price.of_float;
  return price.of_integer * std::max(1.0, static_cast<double>(SizeOf(instr.type)) / 4);
}

double ProgramNs(const ElementwiseDesc& desc) { return Product(desc.shape) * NsPerElement(*desc.program); }

// Nanoseconds per multiply-add in a blocked product.
double MultiplyAddNs(DType type) {
  if (type == DType::kFloat || type == DType::kBFloat16) return 0.04;
  if (type == DType::kDouble || type == DType::kHalf) return 0.1;
  return IsComplex(type) ? 1 : 0.5;
}

// The same for a product or a convolution, whose bytes are four to a lane.
template <typename Desc>
double MultiplyAddNs(const Desc& desc) {
  return IsMixed(desc) ? 0.01 : MultiplyAddNs(desc.type);
}

// Matrices are read faster than copied, and packed filters faster than those.
double ReadingNs(double elements, DType type, bool is_packed) {
  return elements * static_cast<double>(SizeOf(type)) / ((is_packed ? 4 : 2) * kBytesPerNs);
}

template <typename Desc>
double EpilogueNs(const Desc& desc) {
  return HasEpilogue(desc) ? ProgramNs(desc.epilogue) : 0;
}

// Eigen's time for a matrix, with `work` multiply-adds per element.
double MatrixNs(double rows, double cols, double work, DType type) {
  const double parts = IsComplex(type) ? 4 : 1, size = RealTypeOf(type) == DType::kDouble ? 2 : 1;
  return 500 + (rows + cols) * 50 + rows * cols * (3 + work * parts * size * 0.05);
}

}  // namespace

double NsPerElement(const Program& program) {
  double ns = 0, bytes = 0;
  for (const Instr& instr : program.instrs()) ns += InstrNs(instr);
  for (DType type : program.inputs()) bytes += static_cast<double>(SizeOf(type));
  for (int i = 0; i < program.num_outputs(); ++i) bytes += static_cast<double>(SizeOf(program.output_type(i)));
  return ns + bytes / kBytesPerNs / 4;  // within the caches
}

namespace {

// A primitive that is not priced.
template <typename Desc>
int64_t Estimate(const Desc&) {
  return host_runtime::KernelSet::kNoEstimate;
}

int64_t Estimate(const ElementwiseDesc& desc) { return Total(ProgramNs(desc)); }

int64_t Estimate(const ReduceDesc& desc) { return Total(ProgramNs(desc.source) + Product(desc.source.shape) * 0.3); }

int64_t Estimate(const MatMulDesc& desc) {
  const double rows = Product(desc.batch) * static_cast<double>(desc.m), n = static_cast<double>(desc.n);
  const double k = static_cast<double>(desc.k), batches = Product(desc.batch);
  // With few rows or columns it is reading that takes the time.
  const double reading = ReadingNs(rows * k + batches * k * n, desc.type, /*is_packed=*/false);
  return Total(std::max(rows * n * k * MultiplyAddNs(desc), reading) + EpilogueNs(desc));
}

int64_t Estimate(const FindWeightsDesc& desc) {
  return Total(3 * static_cast<double>(desc.k) * static_cast<double>(desc.n));
}

int64_t Estimate(const WeightMatMulDesc& desc) {
  const double m = static_cast<double>(desc.m), weights = static_cast<double>(desc.k) * static_cast<double>(desc.n);
  // Weights become floats again for every few rows, or once. Or they remain integers.
  const double few = std::ceil(m / 4) * weights * 0.04, many = weights * 0.15 + m * weights * 0.04;
  const double as_integers = (0.01 + m * 0.015) * weights;
  return Total((ActiveIsa() >= Isa::kAvx512Vnni ? as_integers : std::min(few, many)) + EpilogueNs(desc));
}

int64_t Estimate(const QuantizeRowsDesc& desc) {
  return Total(0.25 * static_cast<double>(desc.rows) * static_cast<double>(desc.cols));
}

int64_t Estimate(const ConvolutionDesc& desc) {
  if (desc.direction == Direction::kPackFilter)
    return Total(static_cast<double>(desc.packed_filter_bytes) / kBytesPerNs);
  const double filter = Product(desc.filter, desc.spatial_rank) * static_cast<double>(desc.in_channels) /
                        static_cast<double>(desc.groups) * static_cast<double>(desc.out_channels);
  const double work = static_cast<double>(desc.batch) * Product(desc.output, desc.spatial_rank) * filter;
  return Total(std::max(work * MultiplyAddNs(desc), ReadingNs(filter, desc.type, /*is_packed=*/true)) +
               EpilogueNs(desc));
}

int64_t Estimate(const PoolDesc& desc) {
  const double planes = static_cast<double>(desc.batch) * static_cast<double>(desc.channels);
  return Total(planes * (Product(desc.output, desc.spatial_rank) * Product(desc.window, desc.spatial_rank) * 0.3 +
                         (desc.gradient ? Product(desc.input, desc.spatial_rank) * 0.3 : 0)));
}

int64_t Estimate(const NormalizeDesc& desc) {
  const int64_t extents[] = {desc.batch, desc.spatial, desc.channels};
  return Total(Product(extents, 3) * (desc.training || desc.gradient ? 1.2 : 0.4));
}

int64_t Estimate(const SoftmaxDesc& desc) {
  return Total(static_cast<double>(desc.rows) * static_cast<double>(desc.cols) * 2.5);
}

int64_t Estimate(const CopyStridedDesc& desc) {
  return Total(Product(desc.shape) * (0.4 + static_cast<double>(desc.element_size) / kBytesPerNs));
}

int64_t Estimate(const GatherDesc& desc) {
  const double slices =
      static_cast<double>(desc.batch) * static_cast<double>(desc.outer) * static_cast<double>(desc.num_indices);
  return Total(slices * (5 + static_cast<double>(desc.inner) * static_cast<double>(desc.element_size) / kBytesPerNs));
}

int64_t Estimate(const ScatterDesc& desc) {
  return Total(static_cast<double>(desc.num_indices) * (5 + static_cast<double>(desc.inner) * 0.6));
}

int64_t Estimate(const RandomDesc& desc) {
  const bool normal = desc.kind == RandomKind::kNormal || desc.kind == RandomKind::kTruncatedNormal;
  const double ns = ParameterInputs(desc.kind) > 0 ? 100 : normal ? 12 : 2.5;
  return Total(static_cast<double>(desc.n) * ns);
}

int64_t Estimate(const CompactDesc& desc) {
  return Total(Product(desc.shape) * 1.5 + static_cast<double>(desc.count) * desc.shape.rank());
}

int64_t Estimate(const ScanDesc& desc) {
  const int64_t extents[] = {desc.outer, desc.n, desc.inner};
  return Total(Product(extents, 3) * (desc.kind == ScanKind::kLogSumExp ? 25 : IsComplex(desc.type) ? 4 : 1.2));
}

int64_t Estimate(const SortDesc& desc) {
  const double n = static_cast<double>(desc.n), k = static_cast<double>(desc.k);
  const double row = desc.k * 8 > desc.n ? n * std::min(2 + 2 * std::log2(n + 1), 20.0) : n + k * 20;
  return Total(static_cast<double>(desc.rows) * row);
}

int64_t Estimate(const SearchDesc& desc) {
  const double steps = 1 + std::log2(static_cast<double>(desc.n) + 1);
  return Total(static_cast<double>(desc.rows) * static_cast<double>(desc.m) * steps * 1.5);
}

int64_t Estimate(const UniqueDesc& desc) {
  return Total(static_cast<double>(desc.n) * (10 + 2 * static_cast<double>(desc.inner)));
}

int64_t Estimate(const SampleDesc& desc) {
  const double points =
                   static_cast<double>(desc.batch) * static_cast<double>(desc.out_h) * static_cast<double>(desc.out_w),
               channels = static_cast<double>(desc.channels);
  return Total(points * (10 + 2 * channels));
}

int64_t Estimate(const ResampleDesc& desc) {
  const double rows = static_cast<double>(desc.batch) * static_cast<double>(desc.out_h);
  const double columns = static_cast<double>(desc.width) * static_cast<double>(desc.y_taps) * 0.2 +
                         static_cast<double>(desc.out_w) * static_cast<double>(desc.x_taps);
  return Total(rows * columns * static_cast<double>(desc.channels));
}

int64_t Estimate(const SuppressDesc& desc) {
  return Total(static_cast<double>(desc.n) * static_cast<double>(std::min(desc.n, desc.most)) * 3);
}

int64_t Estimate(const SelectBoxesDesc& desc) {
  const double classes = static_cast<double>(desc.batch) * static_cast<double>(desc.classes);
  const double kept = static_cast<double>(std::min({desc.n, desc.most_of_class, desc.rows}));
  return Total(classes * (static_cast<double>(desc.n) * 2 + kept * 200));
}

int64_t Estimate(const FftDesc& desc) {
  const double n = Product(desc.shape);
  const double half = desc.kind == FftKind::kComplex ? 1 : 0.6;
  return Total(static_cast<double>(desc.batch) *
               (200 + half * n * (3 + std::log2(std::max(n, 1.0))) * (desc.type == DType::kComplex64 ? 0.4 : 0.8)));
}

int64_t Estimate(const FactorizeDesc& desc) {
  // Multiply-adds in units of rows * cols * min(rows, cols), and what the steps of each row and column take.
  double work = 0;
  switch (desc.kind) {
    case FactorizeKind::kCholesky:
      work = 0.2;
      break;
    case FactorizeKind::kLu:
      work = 0.35;
      break;
    case FactorizeKind::kQr:
      work = desc.full ? 3 : 2;
      break;
    case FactorizeKind::kEigen:
      work = desc.vectors ? 6 : 1.5;
      break;
    case FactorizeKind::kSvd:
      work = desc.vectors ? 12 : 4;
      break;
  }
  const double rows = static_cast<double>(desc.rows), cols = static_cast<double>(desc.cols);
  return Total(static_cast<double>(desc.batch) * MatrixNs(rows, cols, std::min(rows, cols) * work, desc.type));
}

int64_t Estimate(const SolveDesc& desc) {
  const double n = static_cast<double>(desc.n), columns = static_cast<double>(desc.columns);
  const double batch = static_cast<double>(desc.batch);
  if (desc.kind == SolveKind::kTridiagonal) return Total(batch * (100 + n * (20 + columns * 2)));
  return Total(batch * MatrixNs(n, n, desc.kind == SolveKind::kGeneral ? n / 3 + columns : columns / 2, desc.type));
}

}  // namespace

#define XPU_ESTIMATE(name) \
  int64_t CpuKernels::EstimateNs(const name##Desc& desc) const { return Estimate(desc); }
XPU_PRIMITIVES(XPU_ESTIMATE)
#undef XPU_ESTIMATE

}  // namespace xpu::cpu
