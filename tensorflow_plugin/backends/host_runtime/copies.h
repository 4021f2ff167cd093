// Copies and fills on host memory, shared out to a team, and what they cost.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_COPIES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_COPIES_H_

#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"

namespace xpu::host_runtime {

// Nanoseconds on one thread, roughly: what a command costs at least, and the outer caches.
inline int64_t EstimateCopyNs(int64_t bytes) { return 100 + bytes / 8; }

void Copy(char* to, const char* from, int64_t bytes, const ThreadTeam& team);
void Fill(char* to, uint8_t value, int64_t bytes, const ThreadTeam& team);
// `to` is aligned to a word.
void FillWords(char* to, uint32_t value, int64_t bytes, const ThreadTeam& team);

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_COPIES_H_
