// Large pages of the system, where it has them: touching fresh memory for the first time is far cheaper with them.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_LARGE_PAGES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_LARGE_PAGES_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace xpu::host_runtime {

constexpr size_t kLargePage = size_t{2} << 20;

// Asks for large pages (or against them: some machines give them unasked) where whole ones fit between `begin` and its
// end. A wish only: pages that are there already stay as they are, and contents are never touched.
inline void AdviseLargePages(void* begin, size_t size, bool wanted) {
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + kLargePage - 1) / kLargePage * kLargePage;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(begin) + size) / kLargePage * kLargePage;
  if (first >= end) return;
  (void)madvise(reinterpret_cast<void*>(first), end - first, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_LARGE_PAGES_H_
