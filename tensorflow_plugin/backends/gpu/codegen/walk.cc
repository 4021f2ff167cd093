#include "tensorflow_plugin/backends/gpu/codegen/walk.h"

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::gpu {

std::string WalkText(int rank, int operands, const std::string& position, const std::string& index_type, int first) {
  std::string text;
  for (int k = 0; k < operands; ++k) text += errors::Concat("  long o", k, " = 0;\n");
  text += errors::Concat("  {\n    ", index_type, " rest = ", position, ";\n");
  for (int d = rank - 1; d >= 0; --d) {
    if (d > 0) {
      text += errors::Concat("    const ", index_type, " q", d, " = rest / (", index_type, ")table[", first + d, "];\n",
                             "    const long p", d, " = rest - q", d, " * (", index_type, ")table[", first + d,
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

}  // namespace xpu::gpu
