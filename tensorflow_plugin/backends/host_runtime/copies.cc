#include "tensorflow_plugin/backends/host_runtime/copies.h"

#include <algorithm>
#include <cstring>

namespace xpu::host_runtime {
namespace {

// The bytes that one thread copies at a time when a team shares a copy. That takes 25 microseconds from the caches,
// twice that from memory. How much of the memory's bandwidth one thread gets differs: on some machines nearly all, on
// others half of what two get.
constexpr int64_t kGrain = 256 << 10;

}  // namespace

void Copy(char* to, const char* from, int64_t bytes, const ThreadTeam& team) {
  team.ParallelFor(bytes, kGrain, [to, from](int64_t begin, int64_t end) {
    std::memmove(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

void Fill(char* to, uint8_t value, int64_t bytes, const ThreadTeam& team) {
  team.ParallelFor(bytes, kGrain, [to, value](int64_t begin, int64_t end) {
    std::memset(to + begin, value, static_cast<size_t>(end - begin));
  });
}

void FillWords(char* to, uint32_t value, int64_t bytes, const ThreadTeam& team) {
  uint32_t* const words = reinterpret_cast<uint32_t*>(to);
  team.ParallelFor(bytes / 4, kGrain / 4,
                   [words, value](int64_t begin, int64_t end) { std::fill(words + begin, words + end, value); });
}

}  // namespace xpu::host_runtime
