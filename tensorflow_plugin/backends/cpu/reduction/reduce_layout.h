// How a reduction walks its source: what Reduce and the arg reductions share.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_REDUCTION_REDUCE_LAYOUT_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_REDUCTION_REDUCE_LAYOUT_H_

#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cpu {

// The source's axes in the order [outer kept, reduced, inner kept]: the source is never stored, so its axes may be
// walked in any order. Element (k, r, i) is number (k * reduced + r) * inner + i of the walk, and belongs to output k *
// inner + i. A column reduction has inner > 1: the fastest axes of the source are kept. Otherwise it is a row
// reduction.
struct ReduceLayout {
  ElementwiseDesc source;  // merged
  int64_t outer = 1, reduced = 1, inner = 1;

  explicit ReduceLayout(const ReduceDesc& desc) {
    const Dims& shape = desc.source.shape;
    const int rank = shape.rank();
    auto is_reduced = [&](int d) { return ((desc.axes >> d) & 1) != 0; };
    int trailing = rank;  // axes from here on are kept, or have one element
    while (trailing > 0 && (!is_reduced(trailing - 1) || shape[trailing - 1] == 1)) --trailing;
    ElementwiseDesc walk;
    walk.program = desc.source.program;
    auto append = [&](int d) {
      walk.shape.push_back(shape[d]);
      for (int i = 0; i < walk.program->num_inputs(); ++i) walk.in_strides[i].push_back(desc.source.in_strides[i][d]);
    };
    for (int d = 0; d < trailing; ++d) {
      if (is_reduced(d)) continue;
      append(d);
      outer *= shape[d];
    }
    for (int d = 0; d < trailing; ++d) {
      if (!is_reduced(d)) continue;
      append(d);
      reduced *= shape[d];
    }
    for (int d = trailing; d < rank; ++d) {
      append(d);
      inner *= shape[d];
    }
    source = Merged(walk);
  }
};

// ArgMax and ArgMin, `reduced` > 0.
Status RunArgReduce(const ReduceDesc& desc, const ReduceLayout& layout, const Args& args,
                    const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_REDUCTION_REDUCE_LAYOUT_H_
