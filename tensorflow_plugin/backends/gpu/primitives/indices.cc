#include "tensorflow_plugin/backends/gpu/primitives/indices.h"

#include <vector>

#include "tensorflow_plugin/backends/gpu/codegen/sources.h"
#include "tensorflow_plugin/backends/host_runtime/indices.h"

namespace xpu::gpu {

bool FitsReport(int64_t a, int64_t b) {
  if (a <= 0 || b <= 0) return true;  // nothing, or open
  return a < int64_t{UINT32_MAX} / b;
}

std::string RowOfText(DType index_type) {
  // As unsigned, a negative coordinate is too large, and so is one beyond int64's range.
  return errors::Concat(
      "long row_of(ulong j, MEMORY(indices), int depth, CONSTANT long *dims, int *any_negative) {\n  long row = 0;\n"
      "  *any_negative = 0;\n  int outside = 0;\n  for (int d = 0; d < depth; ++d) {\n    const ",
      StorageOf(index_type), " coordinate = AT(", StorageOf(index_type),
      ", indices)[j * depth + d];\n    *any_negative |= coordinate < 0;\n"
      "    outside |= (ulong)coordinate >= (ulong)dims[d];\n    row = row * dims[d] + (long)coordinate;\n  }\n"
      "  return outside ? -1 : row;\n}\n");
}

Status IndexFailure(Machine& machine, DType index_type, const Dims& dims, const void* indices, uint32_t number,
                    const std::string& position) {
  const size_t size = static_cast<size_t>(dims.rank()) * SizeOf(index_type);
  std::vector<uint64_t> index(size / sizeof(uint64_t) + 1);
  XPU_RETURN_IF_ERROR(machine.Read(index.data(), static_cast<const char*>(indices) + number * size, size));
  return host_runtime::VisitIndexType(index_type, [&](auto tag) {
    using I = typename decltype(tag)::type;
    return host_runtime::IndexError(position, reinterpret_cast<const I*>(index.data()), dims);
  });
}

}  // namespace xpu::gpu
