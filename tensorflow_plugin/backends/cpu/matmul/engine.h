// Which engine computes a product. The choice depends on the descriptor, the machine and the form of the epilogue, not
// on data but for one engine (kInDigits). Profiles name it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_ENGINE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_ENGINE_H_

#include <cstdint>
#include <optional>

#include "tensorflow_plugin/backends/cpu/machine.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

enum class MatMulEngine : uint8_t {
  kPlain,           // loops of backends/plain: nothing to compute, or types that no other engine has
  kUnpacked,        // few rows, and a small b that is read as it lies (matmul/panels.h)
  kSmall,           // too little for a call of oneDNN, or for blocks
  kPartialSums,     // few elements of long sums: each thread adds up parts of the sums
  kPanels,          // many rows, and b in panels that stay in a core's cache (matmul/panels.h)
  kFewRows,         // b is read once, at the speed of memory (matmul/few_rows.h)
  kOneColumn,       // the same of a, for one column of b
  kFewColumns,      // c's rows stay in registers
  kOnednn,          // oneDNN, on the thread that runs the command
  kOnednnInParts,   // oneDNN on each thread of the team; an epilogue follows each part
  kGemm,            // blocks of our own, for what oneDNN does not do (matmul/gemm.h)
  kComplexGemm,     // four of these
  kBytesAsTheyLie,  // bytes: few rows (matmul/integer_matmul.h)
  kBytesByColumns,  // bytes: b's columns are without gaps
  kBytesPacked,     // bytes: all others
  kInFloat,         // half and bfloat16 become float, and another engine follows
};

// "few rows", as profiles have it.
const char* Name(MatMulEngine engine);

struct MatMulChoice {
  // Without this constructor the compiler fills the room for a descriptor with zeros.
  MatMulChoice() {}  // NOLINT

  MatMulEngine engine = MatMulEngine::kPlain;
  bool alone = false;  // on the thread that runs the command: sharing it out would cost more
  // The descriptor that the engine computes (primitives/canonical.h). None: the given one will do. To make it takes
  // longer than a small product.
  std::optional<MatMulDesc> canonical;
};

MatMulChoice ChooseEngine(const MatMulDesc& desc, EpilogueForm epilogue, const Machine& machine);

// Products of weights of 4 bits.
enum class WeightMatMulEngine : uint8_t {
  kPlain,        // nothing to compute
  kInDigits,     // weights stay integers, and elements of a become some (matmul/weight_digits.h)
  kInRegisters,  // few rows: weights become floats in registers
  kInPanels,     // some weights at a time become floats in memory, and another engine multiplies them
};
const char* Name(WeightMatMulEngine engine);
// `digits_fit`: the weights' form suits kInDigits, and so do the elements of a. This one choice depends on data:
// elements that are infinite, NaN or of extreme size remain floats.
WeightMatMulEngine ChooseEngine(const WeightMatMulDesc& desc, bool digits_fit, const Machine& machine);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_ENGINE_H_
