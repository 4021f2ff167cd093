#include "tensorflow_plugin/backends/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "tensorflow_plugin/backends/cuda/event.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"

namespace xpu::cuda {
namespace {

constexpr int kMemoryType = 2;       // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned kTypeIsHost = 1;  // CU_MEMORYTYPE_HOST

// One thread copies ordinary memory more slowly than the bus takes it. All streams share the others.
void CopyOnHost(void* to, const void* from, size_t size) {
  constexpr int kMostThreads = 4;
  constexpr int64_t kGrain = int64_t{1} << 19;
  static const auto* const team =
      new host_runtime::ThreadTeam(std::clamp(host_runtime::UsableProcessors() / 2, 1, kMostThreads));
  team->ParallelFor(static_cast<int64_t>(size), kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace

bool IsPinned(const void* address) {
  unsigned type = 0;
  return Cu().PointerGetAttribute(&type, kMemoryType, AddressOf(address)) == kSuccess && type == kTypeIsHost;
}

Staging::Staging(ContextHandle context) : context_(context), blocks_(kBlocks) {}

Staging::~Staging() {
  if (Cu().CtxSetCurrent(context_) != kSuccess) return;
  for (const Block& block : blocks_) {
    if (block.memory != nullptr) (void)Cu().MemFreeHost(block.memory);
  }
}

Status Staging::Next(Block** found) {
  Block& block = blocks_[next_++ % kBlocks];
  if (block.memory == nullptr) {
    XPU_RETURN_IF_CUDA_ERROR(Cu().MemHostAlloc(&block.memory, kBlockBytes, kHostPortable), "pinned memory for copies");
    block.used = std::make_unique<EventObject>(context_, kEventDisableTiming);
  } else {
    XPU_RETURN_IF_CUDA_ERROR(Cu().EventSynchronize(block.used->get()), "a copy through pinned memory");
  }
  *found = &block;
  return OkStatus();
}

Status Staging::ToDevice(void* to, const void* from, size_t size, StreamHandle stream) {
  for (size_t done = 0; done < size; done += kBlockBytes) {
    const size_t bytes = std::min(kBlockBytes, size - done);
    Block* block = nullptr;
    XPU_RETURN_IF_ERROR(Next(&block));
    CopyOnHost(block->memory, static_cast<const char*>(from) + done, bytes);
    XPU_RETURN_IF_CUDA_ERROR(Cu().MemcpyHtoDAsync(AddressOf(to) + done, block->memory, bytes, stream),
                             errors::Concat("a copy of ", size, " bytes to the device"));
    XPU_RETURN_IF_CUDA_ERROR(Cu().EventRecord(block->used->get(), stream), "recording an event");
  }
  return OkStatus();
}

Status Staging::ToHost(void* to, const void* from, size_t size, StreamHandle stream) {
  // Blocks are copied on while later ones arrive.
  const size_t count = (size + kBlockBytes - 1) / kBlockBytes;
  std::vector<Block*> taken(count);
  const auto bytes_of = [&](size_t i) { return std::min(kBlockBytes, size - i * kBlockBytes); };
  for (size_t i = 0, copied = 0; copied < count;) {
    for (; i < count && i < copied + kBlocks; ++i) {
      XPU_RETURN_IF_ERROR(Next(&taken[i]));
      XPU_RETURN_IF_CUDA_ERROR(
          Cu().MemcpyDtoHAsync(taken[i]->memory, AddressOf(from) + i * kBlockBytes, bytes_of(i), stream),
          errors::Concat("a copy of ", size, " bytes to the host"));
      XPU_RETURN_IF_CUDA_ERROR(Cu().EventRecord(taken[i]->used->get(), stream), "recording an event");
    }
    XPU_RETURN_IF_CUDA_ERROR(Cu().EventSynchronize(taken[copied]->used->get()), "a copy to the host");
    CopyOnHost(static_cast<char*>(to) + copied * kBlockBytes, taken[copied]->memory, bytes_of(copied));
    ++copied;
  }
  return OkStatus();
}

}  // namespace xpu::cuda
