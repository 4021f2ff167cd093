#include "tensorflow_plugin/backends/cpu/scratch.h"

#include <algorithm>
#include <new>
#include <vector>

namespace xpu::cpu {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kSmallestChunk = size_t{1} << 20;
constexpr size_t kMostKept = size_t{256} << 20;  // an idle thread holds no more than this

struct ScratchArena {
  struct ScratchChunk {
    char* data;
    size_t size;
  };
  std::vector<ScratchChunk> chunks;
  size_t chunk = 0;  // the one in use
  size_t used = 0;   // of that one
  int frames = 0;
  size_t next_chunk = kSmallestChunk;

  ~ScratchArena() { Clear(); }
  void Clear() {
    for (const ScratchChunk& c : chunks) ::operator delete(c.data, std::align_val_t(kAlign));
    chunks.clear();
  }
  void* Bytes(size_t size) {
    size = (size + kAlign - 1) / kAlign * kAlign;
    if (chunks.empty() || used + size > chunks[chunk].size) {
      while (chunk + 1 < chunks.size()) {  // left over from an inner frame, and too small to be worth a search
        ::operator delete(chunks.back().data, std::align_val_t(kAlign));
        chunks.pop_back();
      }
      const size_t chunk_size = std::max(size, next_chunk);
      chunks.push_back({static_cast<char*>(::operator new(chunk_size, std::align_val_t(kAlign))), chunk_size});
      chunk = chunks.size() - 1;
      used = 0;
    }
    void* p = chunks[chunk].data + used;
    used += size;
    return p;
  }
  // With all frames gone, several chunks become one of their size at the next use.
  void Settle() {
    size_t total = 0;
    for (const ScratchChunk& c : chunks) total += c.size;
    if (chunks.size() > 1 || total > kMostKept) {
      Clear();
      next_chunk = std::clamp(total, kSmallestChunk, kMostKept);
    }
    chunk = used = 0;
  }
};

ScratchArena& ThreadArena() {
  thread_local ScratchArena arena;
  return arena;
}

}  // namespace

ScratchFrame::ScratchFrame() {
  ScratchArena& arena = ThreadArena();
  chunk_ = arena.chunk;
  used_ = arena.used;
  ++arena.frames;
}

ScratchFrame::~ScratchFrame() {
  ScratchArena& arena = ThreadArena();
  arena.chunk = chunk_;
  arena.used = used_;
  if (--arena.frames == 0) arena.Settle();
}

void* ScratchFrame::Bytes(size_t size) { return ThreadArena().Bytes(size); }

}  // namespace xpu::cpu
