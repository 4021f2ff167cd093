// mem_zero, memset and memset32: every byte, no other byte.
#include <cstdint>
#include <string>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

// Fills with `fill(part, size)` at all sizes and offsets that are multiples of `unit`; byte i of the part is then
// value[i % 4].
template <typename Fill>
void ExamineFill(const char* call, Device& d, uint64_t unit, const uint8_t (&value)[4], Fill&& fill) {
  constexpr uint64_t kGuard = 64;
  for (uint64_t size :
       {0, 1, 2, 3, 4, 5, 8, 12, 31, 32, 60, 64, 100, 255, 256, 1000, 1001, 4096, 65540, (1 << 20) + 4}) {
    for (uint64_t offset : {0, 1, 3, 4, 20}) {
      if (size % unit != 0 || offset % unit != 0) continue;
      const uint64_t all = size + 2 * kGuard;
      const SP_DeviceMemoryBase memory = d.Allocate(all);
      d.Write(memory, Bytes(all, 0xee));
      SP_DeviceMemoryBase part = At(memory, kGuard + offset, size);
      fill(part, size);
      d.Finish(d.compute);
      Bytes expected(all, 0xee);
      for (uint64_t i = 0; i < size; ++i) expected[kGuard + offset + i] = value[i % 4];
      RequireSame(Text(call, " of ", size, " bytes at offset ", kGuard + offset), d.Read(memory, all), expected);
    }
  }
}

void Zero(const Subject& subject) {
  Device d(subject);
  ExamineFill("mem_zero", d, 1, {0, 0, 0, 0},
              [&d](SP_DeviceMemoryBase& part, uint64_t size) { d.Do(&SE::mem_zero, d.compute, &part, size); });
}

void Memset(const Subject& subject) {
  Device d(subject);
  ExamineFill("memset of 0x5a", d, 1, {0x5a, 0x5a, 0x5a, 0x5a}, [&d](SP_DeviceMemoryBase& part, uint64_t size) {
    d.Do(&SE::memset, d.compute, &part, uint8_t{0x5a}, size);
  });
}

void Memset32(const Subject& subject) {
  Device d(subject);
  ExamineFill("memset32 of 0x04030201", d, 4, {1, 2, 3, 4}, [&d](SP_DeviceMemoryBase& part, uint64_t size) {
    d.Do(&SE::memset32, d.compute, &part, uint32_t{0x04030201}, size);
  });
}

}  // namespace

std::vector<Check> FillChecks() {
  return {
      {"fills.mem_zero", "mem_zero sets every byte to 0 and no other byte, at all sizes and alignments.", Zero},
      {"fills.memset", "memset sets every byte and no other byte, at all sizes and alignments.", Memset},
      {"fills.memset32", "memset32 repeats its four bytes, over a size that is in bytes and a multiple of 4.",
       Memset32},
  };
}

}  // namespace xpu::conformance
