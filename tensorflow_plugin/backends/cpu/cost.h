// The rough cost of programs on one thread of this backend: good enough to tell if a second thread is worth it.
// CpuKernels::EstimateNs says the cost of commands.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_COST_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_COST_H_

#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/program.h"

namespace xpu::cpu {

// Nanoseconds that one element of a program takes, with reading and writing it.
double NsPerElement(const Program& program);

// How many parts of so many there are in all, the last one perhaps smaller.
inline int64_t Count(int64_t all, int64_t of) { return (all + of - 1) / of; }

// By how much the largest of so many shares of some parts exceeds their mean.
inline double Unevenness(int64_t parts, int64_t shares) {
  return static_cast<double>(Count(parts, shares) * shares) / static_cast<double>(parts) - 1;
}

// The smallest multiple of the unit that is not below n.
inline int64_t RoundUp(int64_t n, int64_t unit) { return Count(n, unit) * unit; }

// The items in a grain that ThreadTeam::ParallelFor wants, for items that take `ns` each.
inline int64_t GrainFor(double ns) {
  return std::max<int64_t>(1, static_cast<int64_t>(host_runtime::kGrainNs / std::max(ns, 1e-3)));
}

// The same for `items` that take `ns` together.
inline int64_t Grain(int64_t ns, int64_t items) {
  return GrainFor(std::max(static_cast<double>(ns) / static_cast<double>(std::max<int64_t>(items, 1)), 1.0));
}

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_COST_H_
