#include "tensorflow_plugin/backends/cuda/nan_trial.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tensorflow_plugin/backends/cuda/machine.h"

namespace xpu::cuda {
namespace {

// Elements of a floating type, little-endian: NaN has all bits of the exponent and one of the fraction.
bool IsAllNan(DType type, const std::vector<unsigned char>& bytes) {
  const size_t size = SizeOf(type);
  const uint32_t infinity = type == DType::kHalf ? 0x7c00 : type == DType::kBFloat16 ? 0x7f80 : 0x7f800000;
  const uint32_t sign = size == 2 ? 0x8000 : 0x80000000;
  for (size_t i = 0; i + size <= bytes.size(); i += size) {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i], size);
    if ((bits & ~sign) <= infinity) return false;
  }
  return true;
}

}  // namespace

bool KeepsNan(Machine& machine, DType type, size_t operand_bytes, size_t result_bytes, size_t scratch_bytes,
              const NanTrial& run) {
  Memory& memory = machine.memory();
  void* const nan = memory.AllocateUnused(operand_bytes);
  void* const out = memory.AllocateUnused(result_bytes);
  void* const scratch = memory.AllocateUnused(std::max<size_t>(scratch_bytes, 1));
  bool keeps = false;
  if (nan != nullptr && out != nullptr && scratch != nullptr) {
    // Remainders may have other code.
    std::vector<unsigned char> seen(std::min<size_t>(result_bytes, 8192));
    const size_t half = seen.size() / 2 / sizeof(double) * sizeof(double), rest = seen.size() - half;
    const Status status = machine.RunAside([&](StreamHandle stream) {
      // All bits set are NaN in each of the types.
      XPU_RETURN_IF_CUDA_ERROR(Cu().MemsetD8Async(AddressOf(nan), 0xff, operand_bytes, stream), "a fill of memory");
      XPU_RETURN_IF_CUDA_ERROR(Cu().MemsetD8Async(AddressOf(out), 0, result_bytes, stream), "a fill of memory");
      XPU_RETURN_IF_ERROR(run(nan, out, scratch, stream));
      XPU_RETURN_IF_CUDA_ERROR(Cu().MemcpyDtoHAsync(seen.data(), AddressOf(out), half, stream), "a copy");
      return ToStatus(Cu().MemcpyDtoHAsync(seen.data() + half, AddressOf(out) + result_bytes - rest, rest, stream),
                      "a copy");
    });
    keeps = status.ok() && IsAllNan(type, seen);
  }
  for (void* block : {nan, out, scratch}) memory.Deallocate(block);
  return keeps;
}

}  // namespace xpu::cuda
