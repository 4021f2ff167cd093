// How long rows are worked on in parts, an item each, where there are too few rows to keep a device busy.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_PARTS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_PARTS_H_

#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/backends/gpu/hardware.h"

namespace xpu::gpu {

struct Parts {
  int64_t count = 1;  // of each row

  // Depends on the shape alone, so that scratch memory is known early.
  static Parts Of(int64_t rows, int64_t n) {
    constexpr int64_t kItems = 16384, kMost = 512, kShortest = 256;
    if (rows <= 0 || n <= kShortest) return {};
    return {std::clamp<int64_t>(kItems / rows, 1, std::min(kMost, n / kShortest))};
  }

  // Part p has the elements of [first p, first p + span) that are `step` apart.
  struct PartWalk {
    int64_t first, step, span;
  };
  // A processor's items each read on in memory; those of all else read neighbours at the same time.
  PartWalk WalkOn(const Hardware& hardware, int64_t n) const {
    const int64_t length = std::max<int64_t>(1, (n + count - 1) / count);
    return hardware.is_processor ? PartWalk{length, 1, length} : PartWalk{1, count, std::max<int64_t>(1, n)};
  }
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_PARTS_H_
