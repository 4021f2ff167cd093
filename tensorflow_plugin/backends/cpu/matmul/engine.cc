#include "tensorflow_plugin/backends/cpu/matmul/engine.h"

#include "tensorflow_plugin/backends/cpu/matmul/few_rows.h"
#include "tensorflow_plugin/backends/cpu/matmul/integer_matmul.h"
#include "tensorflow_plugin/primitives/canonical.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::cpu {
namespace {

using Engine = MatMulEngine;

// Below this many multiplications a call of oneDNN, or packing blocks, costs more than the product.
constexpr int64_t kSmall = 4096;
// From so many terms of a sum, and so many multiplications, vectors of terms are worth it.
constexpr int64_t kFewestTerms = 16, kFewestDots = 256;
// From so many multiplications threads share a product of oneDNN's, or its long sums.
constexpr int64_t kShared = 1 << 20;
// The most elements of a product whose long sums are divided among threads.
constexpr int64_t kFewElements = 1 << 14;
constexpr int64_t kFewestWideColumns = 64;
// For fewer rows, packing the other operand does not pay where there are few columns.
constexpr int64_t kNarrowRows = 8;
// Weights of 4 bits become floats for each few rows of at most so many.
constexpr int64_t kFewRowsOfWeights = 16;
// Shorter sums are more exact in floats than in integers of 24 bits.
constexpr int64_t kFewestTermsOfDigits = 128;

// b as it lies: elements, the terms of a sum, rows that read it, and columns for a single row.
bool ReadsUnpacked(const MatMulDesc& d) {
  constexpr int64_t kMostOfB = 1 << 16, kLongestSum = 512, kMostRows = 23, kMostColumnsOfRow = 512;
  return d.type == DType::kFloat && d.batch.empty() && !d.transpose_a && !d.transpose_b && d.m > 0 &&
         d.m <= kMostRows && d.n > 0 && d.k > 0 && d.k <= kLongestSum && d.k * d.n <= kMostOfB &&
         (d.m > 1 || d.n <= kMostColumnsOfRow);
}

// With fewer rows copying `b` costs too much. There are also too few parts for all threads. Neither is so if the
// epilogue is a chain and `b` small. oneDNN splits longer sums better, and a larger `b` of many rows.
bool PanelsPay(const MatMulDesc& d, EpilogueForm epilogue, const Machine& machine) {
  constexpr int64_t kFewestRows = 128, kFewestRowsOfSmall = 24, kLongestSum = 2048;
  constexpr int64_t kSmallB = 1 << 16;                                                 // elements
  constexpr int64_t kMostOfB = 1 << 18, kMostOfBForFewRows = 1 << 20, kFewRows = 256;  // elements
  const bool is_small = epilogue == EpilogueForm::kChain && d.k * d.n <= kSmallB;
  return d.type == DType::kFloat && d.batch.empty() && !d.transpose_a && !d.transpose_b &&
         d.m >= (is_small ? kFewestRowsOfSmall : kFewestRows) && d.n >= 4 && d.k <= kLongestSum &&
         d.k * d.n <= (d.m <= kFewRows ? kMostOfBForFewRows : kMostOfB) && machine.isa != Isa::kBaseline;
}

Engine ForBytes(const MatMulDesc& d, const Machine& machine) {
  const int64_t row_stride = d.transpose_b ? 1 : d.ldb, column_stride = d.transpose_b ? d.ldb : 1;
  if (row_stride == 1 && (column_stride != 1 || d.n == 1)) return Engine::kBytesByColumns;
  return d.m <= MostRowsOfBytesAsTheyLie(machine.vector_bytes()) ? Engine::kBytesAsTheyLie : Engine::kBytesPacked;
}

// For float, half and bfloat16.
void ChooseFloating(const MatMulDesc& d, EpilogueForm epilogue, const Machine& machine, MatMulChoice* choice) {
  const bool is_float = d.type == DType::kFloat;
  const int64_t of_one = d.m * d.n * d.k, work = d.batch.num_elements() * of_one;  // multiplications
  const auto choose = [choice](Engine engine) { choice->engine = engine; };
  if (is_float) {
    if (ReadsUnpacked(d)) return choose(Engine::kUnpacked);
    // A column of b that is a row in memory is multiplied by vectors, and so is a row of a. The keys that a decoder's
    // token meets are such.
    const bool is_dots = ((d.m <= kMaxFewRows && d.transpose_b) || (d.n == 1 && !d.transpose_a)) &&
                         d.k >= kFewestTerms && of_one >= kFewestDots;
    if (of_one <= kSmall && !is_dots) return choose(Engine::kSmall);
    // Few rows of many columns are divided so, too, whatever the threads.
    const bool has_wide_rows = d.m <= kMaxFewRows && !d.transpose_b && d.n >= kFewestWideColumns;
    if (d.batch.empty() && machine.threads > 1 && work >= kShared && d.m * d.n <= kFewElements && d.k >= d.m * d.n &&
        !has_wide_rows) {
      return choose(Engine::kPartialSums);
    }
    if (PanelsPay(d, epilogue, machine)) return choose(Engine::kPanels);
  }
  // oneDNN is slow at these.
  if (d.m <= kMaxFewRows) return choose(Engine::kFewRows);
  if (d.n == 1) return choose(Engine::kOneColumn);
  if (is_float) {
    if (d.n <= 2 * machine.float_lanes() && d.m >= kNarrowRows) return choose(Engine::kFewColumns);
  } else if (!machine.HasNative(d.type) || of_one <= kSmall) {
    return choose(Engine::kInFloat);
  }
  choice->alone = work < kShared || (machine.threads == 1 && epilogue == EpilogueForm::kNone);
  choose(choice->alone ? Engine::kOnednn : Engine::kOnednnInParts);
}

}  // namespace

const char* Name(MatMulEngine engine) {
  switch (engine) {
    case Engine::kPlain:
      return "plain loops";
    case Engine::kUnpacked:
      return "unpacked";
    case Engine::kSmall:
      return "small";
    case Engine::kPartialSums:
      return "partial sums";
    case Engine::kPanels:
      return "panels";
    case Engine::kFewRows:
      return "few rows";
    case Engine::kOneColumn:
      return "one column";
    case Engine::kFewColumns:
      return "few columns";
    case Engine::kOnednn:
      return "oneDNN";
    case Engine::kOnednnInParts:
      return "oneDNN in parts";
    case Engine::kGemm:
      return "GEMM";
    case Engine::kComplexGemm:
      return "complex GEMM";
    case Engine::kBytesAsTheyLie:
      return "bytes as they lie";
    case Engine::kBytesByColumns:
      return "bytes by columns";
    case Engine::kBytesPacked:
      return "packed bytes";
    case Engine::kInFloat:
      return "in float";
  }
  return "";
}

MatMulChoice ChooseEngine(const MatMulDesc& desc, EpilogueForm epilogue, const Machine& machine) {
  MatMulChoice choice;
  // First, because to look at more takes longer than a small product.
  if (ReadsUnpacked(desc)) {
    choice.engine = Engine::kUnpacked;
    return choice;
  }
  // The plain loops do nothing, or write zeros, quickly.
  if (desc.m == 0 || desc.n == 0 || desc.k == 0 || desc.batch.num_elements() == 0) return choice;
  const MatMulDesc* d = &desc;
  const bool is_canonical = desc.batch.empty() && desc.lda != 0 && desc.ldb != 0 && desc.ldc != 0;
  if (!is_canonical) {
    Canonicalize(&choice.canonical.emplace(desc));
    d = &*choice.canonical;
  }
  if (IsMixed(desc)) {
    choice.engine = ForBytes(*d, machine);
    return choice;
  }
  const bool is_small = d->m * d->n * d->k <= kSmall;
  switch (desc.type) {
    case DType::kHalf:
    case DType::kBFloat16:
    case DType::kFloat:
      ChooseFloating(*d, epilogue, machine, &choice);
      break;
    case DType::kDouble:
    case DType::kInt32:
    case DType::kUint32:
    case DType::kInt64:
    case DType::kUint64:
      choice.engine = is_small ? Engine::kSmall : Engine::kGemm;
      break;
    case DType::kComplex64:
    case DType::kComplex128:
      choice.engine = is_small ? Engine::kSmall : Engine::kComplexGemm;
      break;
    default:
      break;
  }
  return choice;
}

const char* Name(WeightMatMulEngine engine) {
  switch (engine) {
    case WeightMatMulEngine::kPlain:
      return "plain loops";
    case WeightMatMulEngine::kInDigits:
      return "weights as integers";
    case WeightMatMulEngine::kInRegisters:
      return "weights in registers";
    case WeightMatMulEngine::kInPanels:
      return "panels of weights";
  }
  return "";
}

WeightMatMulEngine ChooseEngine(const WeightMatMulDesc& desc, bool digits_fit, const Machine& machine) {
  if (desc.m == 0 || desc.n == 0 || desc.k == 0) return WeightMatMulEngine::kPlain;
  // A dot product of bytes that is three instructions pays for one row only.
  const bool pays = desc.k >= kFewestTermsOfDigits && (machine.isa >= Isa::kAvx512Vnni || desc.m == 1);
  if (digits_fit && pays) return WeightMatMulEngine::kInDigits;
  return desc.m <= kFewRowsOfWeights ? WeightMatMulEngine::kInRegisters : WeightMatMulEngine::kInPanels;
}

}  // namespace xpu::cpu
