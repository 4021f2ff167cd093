#include "tensorflow_plugin/backends/gpu/codegen/walk.h"

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::gpu {

// With 2^bits / 2 < extent <= 2^bits, the multiplier is the next integer above 2^(31 + bits) / extent, which has 32
// bits. That is too large by at most 1, and the quotient by less than 2^31 / 2^(31 + bits) <= 1 / extent.
int64_t ReciprocalOf(int64_t extent) {
  if (extent < 1 || extent >= int64_t{1} << 31) return 0;
  int shift = 31;
  while (int64_t{1} << (shift - 31) < extent) ++shift;
  return ((int64_t{1} << shift) / extent + 1) | int64_t{shift} << 32;
}

std::string WalkText(int rank, int operands, const std::string& position, const std::string& index_type, int first) {
  std::string text;
  for (int k = 0; k < operands; ++k) text += errors::Concat("  long o", k, " = 0;\n");
  text += errors::Concat("  {\n    ", index_type, " rest = ", position, ";\n");
  for (int d = rank - 1; d >= 0; --d) {
    if (d > 0) {
      const int reciprocal = first + (operands + 1) * rank + d;
      text += errors::Concat("    const ", index_type, " q", d, " = ");
      text += index_type == "uint" ? errors::Concat("(uint)((ulong)rest * (uint)table[", reciprocal,
                                                    "] >> (int)(table[", reciprocal, "] >> 32));\n")
                                   : errors::Concat("rest / (", index_type, ")table[", first + d, "];\n");
      text += errors::Concat("    const long p", d, " = rest - q", d, " * (", index_type, ")table[", first + d,
                             "];\n    rest = q", d, ";\n");
    } else {
      text += "    const long p0 = rest;\n";
    }
    for (int k = 0; k < operands; ++k) {
      text += errors::Concat("    o", k, " += p", d, " * table[", first + (k + 1) * rank + d, "];\n");
    }
  }
  return text + "  }\n";
}

std::string WalkFunction(const std::string& name, int rank, int operands, const std::string& index_type, int first) {
  constexpr int kMostHeld = 24;  // what an item has registers for
  const int numbers = (2 + operands) * rank;
  const bool held = numbers <= kMostHeld;
  std::string text = errors::Concat("void ", name, "(const ", index_type, " i, ", held ? "const" : "CONSTANT",
                                    " long *table, long *places) {\n", WalkText(rank, operands, "i", index_type));
  for (int k = 0; k < operands; ++k) text += errors::Concat("  places[", k, "] = o", k, ";\n");
  text += errors::Concat("}\n#define ", name, "_TABLE(name) ");
  if (!held) return text + errors::Concat("CONSTANT long *name = table + ", first, "\n");
  return text + errors::Concat("long name[", numbers, "]; for (int k = 0; k < ", numbers, "; ++k) name[k] = table[",
                               first, " + k]\n");
}

}  // namespace xpu::gpu
