// Device memory and host memory: what is given, where, how much, and that it comes back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

constexpr uint64_t kMiB = 1 << 20;

struct Usage {
  int64_t free = -1, total = -1;
};

Usage UsageOf(Device& d) {
  Usage usage;
  if (!d.Ask(&SE::device_memory_usage, &usage.free, &usage.total)) {
    Fail("device_memory_usage returns false: TensorFlow then cannot use the device");
  }
  return usage;
}

// A size that is large for the device and does not strain the machine.
uint64_t LargeSize(const Usage& usage) {
  return std::clamp<uint64_t>(static_cast<uint64_t>(std::max<int64_t>(usage.free, 0)) / 8, 4096, 64 * kMiB);
}

// One that may fail.
SP_DeviceMemoryBase TryAllocate(Device& d, uint64_t size) {
  SP_DeviceMemoryBase memory{SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, nullptr, nullptr, 0, 0};
  d.Ask(&SE::allocate, size, int64_t{0}, &memory);
  return memory;
}

void Allocations(const Subject& subject) {
  Device d(subject);
  std::vector<SP_DeviceMemoryBase> all;
  const std::vector<uint64_t> sizes = {1, 2, 3, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097, 100000, kMiB, kMiB + 1};
  for (size_t i = 0; i < sizes.size(); ++i) {
    all.push_back(d.Allocate(sizes[i]));
    if (all[i].size < sizes[i]) Fail("allocate(", sizes[i], ") says size ", all[i].size);
    d.Write(all[i], Pattern(sizes[i], i));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    RequireSame(Text("one of several allocations, of ", sizes[i], " bytes"), d.Read(all[i], sizes[i]),
                Pattern(sizes[i], i));
  }
}

void Alignment(const Subject& subject) {
  Device d(subject);
  const auto examine = [](const char* call, uint64_t size, const void* address) {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(address);
    const uintptr_t alignment = bits & (~bits + 1);
    if (alignment < 256) {
      Fail(call, "(", size, ") gives an address aligned to ", alignment, " bytes; TensorFlow needs 64, and its ",
           "allocator from 2.22 on ends the process below 256");
    }
  };
  for (uint64_t size : {uint64_t{1}, uint64_t{100}, uint64_t{256}, uint64_t{1000}, uint64_t{5000}, kMiB + 100}) {
    examine("allocate", size, d.Allocate(size).opaque);
    examine("host_memory_allocate", size, d.AllocateHost(size));
  }
}

void DeallocateNull(const Subject& subject) {
  Device d(subject);
  SP_DeviceMemoryBase none{SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, nullptr, nullptr, 0, 0};
  d.Ask(&SE::deallocate, &none);
}

void GivenBack(const Subject& subject) {
  Device d(subject);
  const Usage usage = UsageOf(d);
  const uint64_t size = std::max<uint64_t>(usage.free / 16, 4096);
  const auto end = std::chrono::steady_clock::now() + Patience() / 2;
  // One and a half times what there is.
  for (int i = 0; i < 24 && std::chrono::steady_clock::now() < end; ++i) {
    SP_DeviceMemoryBase memory = TryAllocate(d, size);
    if (memory.opaque == nullptr) {
      Fail("allocate gives no ", size, " bytes after ", i, " times as much was given back: deallocate keeps memory");
    }
    d.Ask(&SE::deallocate, &memory);
  }
}

void Exhaustion(const Subject& subject) {
  Device d(subject);
  const uint64_t total = static_cast<uint64_t>(std::max<int64_t>(UsageOf(d).total, 0));
  if (total == 0) NotOffered("see memory.usage");
  if (SP_DeviceMemoryBase memory = TryAllocate(d, uint64_t{1} << 60); memory.opaque != nullptr) {
    Fail("allocate(2^60) gives memory");
  }
  if (SP_DeviceMemoryBase memory = TryAllocate(d, total + total / 2); memory.opaque != nullptr) {
    Fail("allocate(", total + total / 2, ") gives memory; device_memory_usage says that there are ", total, " in all");
  }
  // In pieces, until there is no more, and all back again.
  std::vector<SP_DeviceMemoryBase> pieces;
  for (;;) {
    SP_DeviceMemoryBase memory = TryAllocate(d, total / 8);
    if (memory.opaque == nullptr) break;
    pieces.push_back(memory);
    if (pieces.size() > 12) Fail("more than 12 eighths of the ", total, " bytes of the device are allocated");
  }
  if (pieces.size() < 2) Fail("no quarter of the ", total, " bytes of the device can be allocated");
  for (SP_DeviceMemoryBase& memory : pieces) d.Ask(&SE::deallocate, &memory);
  const Bytes bytes = Pattern(1000, 1);
  const SP_DeviceMemoryBase memory = d.Allocate(total / 8);
  d.Write(memory, bytes);
  RequireSame("memory after exhaustion", d.Read(memory, bytes.size()), bytes);
}

void UsageIsReal(const Subject& subject) {
  Device d(subject);
  const Usage before = UsageOf(d);
  if (before.total <= 0) Fail("device_memory_usage says ", before.total, " bytes in total");
  if (before.free <= 0 || before.free > before.total) {
    Fail("device_memory_usage says ", before.free, " bytes free of ", before.total);
  }
  // Memory may be shared with others and backed when it is written to, by pages that the system had not counted as
  // free. So the effect of free is not known, but memory does not stay.
  uint64_t more = 0;
  uint64_t size = LargeSize(before);
  do {
    SP_DeviceMemoryBase memory = d.Allocate(size);
    d.Do(&SE::memset, d.compute, &memory, uint8_t{1}, size);
    d.Finish(d.compute);
    if (UsageOf(d).free != before.free) return;
    more += size;
    size *= 4;
  } while (size <= static_cast<uint64_t>(before.free) / 8);
  Fail("device_memory_usage says ", before.free, " bytes free, and the same with ", more, " more allocated and used");
}

SP_AllocatorStats StatsOf(Device& d) {
  SP_AllocatorStats stats{};
  stats.struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  if (!d.Ask(&SE::get_allocator_stats, &stats)) NotOffered("get_allocator_stats returns false");
  return stats;
}

void Statistics(const Subject& subject) {
  Device d(subject);
  const int64_t size = static_cast<int64_t>(LargeSize(UsageOf(d)));
  const SP_AllocatorStats before = StatsOf(d);
  SP_DeviceMemoryBase a = d.Allocate(size), b = d.Allocate(size);
  const SP_AllocatorStats with = StatsOf(d);
  d.Ask(&SE::deallocate, &a);
  d.Ask(&SE::deallocate, &b);
  const SP_AllocatorStats after = StatsOf(d);
  const auto grew = [&](const char* name, int64_t from, int64_t to, int64_t least) {
    if (to - from < least) {
      Fail(name, " went from ", from, " to ", to, " when two times ", size, " bytes were allocated");
    }
  };
  grew("bytes_in_use", before.bytes_in_use, with.bytes_in_use, 2 * size);
  grew("num_allocs", before.num_allocs, with.num_allocs, 2);
  if (with.peak_bytes_in_use < with.bytes_in_use) {
    Fail("peak_bytes_in_use is ", with.peak_bytes_in_use, ", less than bytes_in_use ", with.bytes_in_use);
  }
  if (with.largest_alloc_size < size) {
    Fail("largest_alloc_size is ", with.largest_alloc_size, " with ", size, " bytes allocated at once");
  }
  if (after.bytes_in_use != before.bytes_in_use) {
    Fail("bytes_in_use was ", before.bytes_in_use, " and is ", after.bytes_in_use, " after all was given back");
  }
  if (after.peak_bytes_in_use < with.bytes_in_use) Fail("peak_bytes_in_use forgets the peak");
}

void HostMemory(const Subject& subject) {
  Device d(subject);
  std::vector<uint8_t*> all;
  const std::vector<uint64_t> sizes = {1, 64, 100, 4096, 100001, 8 * kMiB};
  for (size_t i = 0; i < sizes.size(); ++i) all.push_back(d.AllocateHost(sizes[i], static_cast<uint8_t>(i + 1)));
  for (size_t i = 0; i < sizes.size(); ++i) {
    RequireSame("host memory", Copied(all[i], sizes[i]), Bytes(sizes[i], static_cast<uint8_t>(i + 1)));
    d.Ask(&SE::host_memory_deallocate, static_cast<void*>(all[i]));
  }
}

void UnifiedMemory(const Subject& subject) {
  Device d(subject);
  if (!d.platform.platform.supports_unified_memory) NotOffered("the platform says that it has none");
  const Bytes bytes = Pattern(100000, 1);
  auto* unified = static_cast<uint8_t*>(d.Ask(&SE::unified_memory_allocate, uint64_t{bytes.size()}));
  if (!unified) Fail("unified_memory_allocate gives no ", bytes.size(), " bytes");
  std::copy(bytes.begin(), bytes.end(), unified);
  SP_DeviceMemoryBase memory{SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, nullptr, unified, bytes.size(), 0};
  RequireSame("what the host wrote into unified memory", d.Read(memory, bytes.size()), bytes);
  const Bytes others = Pattern(bytes.size(), 2);
  d.Write(memory, others);
  RequireSame("what the device wrote into unified memory", Copied(unified, others.size()), others);
  d.Ask(&SE::unified_memory_deallocate, static_cast<void*>(unified));
}

// Without TensorFlow's own allocator in between, memory is given back when the host is done with it, while work that
// uses it may be queued. The next owner of the memory uses it on the compute stream or copies into it. Nothing else
// makes its work come after the queued work there.
void DeallocateInUse(const Subject& subject) {
  Device d(subject);
  constexpr uint64_t kSize = 1 << 20;
  SP_DeviceMemoryBase memory = d.Allocate(kSize);
  uint8_t* host = d.AllocateHost(kSize, 2);
  Gate& gate = d.Close(d.compute);
  d.Do(&SE::memset, d.compute, &memory, uint8_t{1}, kSize);
  std::atomic<bool> done{false};
  Bytes found;
  // May wait for the queued work, so it gets a thread of its own.
  std::thread other([&] {
    d.Ask(&SE::deallocate, &memory);
    SP_DeviceMemoryBase next = d.Allocate(kSize);
    d.Do(&SE::memcpy_htod, d.h2d, &next, static_cast<const void*>(host), kSize);
    while (!gate.open()) Sleep(Milliseconds(1));
    d.Do(&SE::synchronize_all_activity);
    found = d.Read(next, kSize);
    done = true;
  });
  Sleep(kWhile);
  gate.Open();
  Await("deallocate of memory with work queued, and what follows, did not end", [&] { return done.load(); });
  other.join();
  RequireSame("work queued on memory that was given back wrote into its next owner's", found, Bytes(kSize, 2));
}

void DeallocateWhileRead(const Subject& subject) {
  Device d(subject);
  constexpr uint64_t kSize = 1 << 18;
  const Bytes bytes = Pattern(kSize, 1);
  SP_DeviceMemoryBase memory = d.Allocate(kSize), copy = d.Allocate(kSize);
  uint8_t* host = d.AllocateHost(kSize);
  d.Write(memory, bytes);
  Gate& gate = d.Close(d.compute);
  d.Do(&SE::memcpy_dtod, d.compute, &copy, &memory, kSize);
  d.Do(&SE::memcpy_dtoh, d.compute, static_cast<void*>(host), &memory, kSize);
  std::atomic<bool> done{false};
  std::thread other([&] {
    d.Ask(&SE::deallocate, &memory);
    done = true;
  });
  Sleep(kWhile);
  gate.Open();
  Await("deallocate of memory with work queued did not end", [&] { return done.load(); });
  other.join();
  d.Finish(d.compute);
  RequireSame("what a queued memcpy_dtoh read after deallocate", Copied(host, kSize), bytes);
  RequireSame("what a queued memcpy_dtod read after deallocate", d.Read(copy, kSize), bytes);
}

}  // namespace

std::vector<Check> MemoryChecks() {
  return {
      {"memory.allocate", "allocate gives device memory of all sizes, each apart from the others.", Allocations},
      {"memory.alignment", "Device and host memory are aligned to 256 bytes.", Alignment},
      {"memory.deallocate_null", "deallocate takes an allocation that is null.", DeallocateNull},
      {"memory.given_back", "Memory that was given back can be allocated again, more often than there is memory.",
       GivenBack},
      {"memory.deallocate_in_use",
       "deallocate while work on the memory is queued is safe: what its next owner copies into it stays.",
       DeallocateInUse},
      {"memory.deallocate_while_read", "Copies that are queued when their source is given back find its data.",
       DeallocateWhileRead},
      {"memory.exhaustion",
       "allocate gives null when there is not enough, about where device_memory_usage says, and works again after.",
       Exhaustion},
      {"memory.usage",
       "device_memory_usage succeeds, total is above 0, free no more than that, and not the same whatever is in use.",
       UsageIsReal},
      {"memory.statistics", "get_allocator_stats, where it returns true, counts what is allocated and given back.",
       Statistics},
      {"memory.host", "host_memory_allocate gives memory that the host can use, of all sizes.", HostMemory},
      {"memory.unified", "Unified memory, where the platform says so, is one for host and device.", UnifiedMemory},
  };
}

}  // namespace xpu::conformance
