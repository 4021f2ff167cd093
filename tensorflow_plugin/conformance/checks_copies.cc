// Copies between host and device and on the device: every byte, no other byte, in the right order.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

constexpr uint64_t kGuard = 64;  // bytes before and after that must stay as they are

// Sizes and, for each, where source and target begin.
struct CopySpan {
  uint64_t size, from, to;
};
std::vector<CopySpan> Spans() {
  std::vector<CopySpan> spans;
  for (uint64_t size = 0; size <= 33; ++size) spans.push_back({size, size % 5, size % 7});
  for (uint64_t size : {63, 64, 65, 127, 255, 256, 257, 1000, 4095, 4096, 4097, 65537}) {
    for (uint64_t offset : {0, 1, 8, 31}) spans.push_back({size, offset, 31 - offset});
  }
  for (uint64_t size : {(1 << 20) - 1, (5 << 20) + 13}) spans.push_back({size, 3, 1});
  return spans;
}

// Where a copy begins or ends: one of the two is used. The host memory is the plugin's.
struct CopyEnd {
  SP_DeviceMemoryBase device;
  uint8_t* host;
};

// Copies all spans, one by one, with `copy(to, from, size)`.
template <bool kFromDevice, bool kToDevice, typename Copy>
void ExamineCopy(const char* call, Device& d, Copy&& copy) {
  const std::vector<CopySpan> spans = Spans();
  const uint64_t most = spans.back().size + 2 * kGuard;
  CopyEnd source{d.Allocate(most), d.AllocateHost(most)}, target{d.Allocate(most), d.AllocateHost(most)};
  uint32_t seed = 1;
  for (const CopySpan& span : spans) {
    const uint64_t all = span.size + 2 * kGuard;
    const Bytes bytes = Pattern(all, seed++), before(all, 0xee);
    if (kFromDevice) {
      d.Write(source.device, bytes);
    } else {
      std::copy(bytes.begin(), bytes.end(), source.host);
    }
    if (kToDevice) {
      d.Write(target.device, before);
    } else {
      std::copy(before.begin(), before.end(), target.host);
    }
    const CopyEnd from{At(source.device, span.from, span.size), source.host + span.from};
    CopyEnd to{At(target.device, kGuard + span.to, span.size), target.host + kGuard + span.to};
    copy(to, from, span.size);
    Bytes expected = before;
    std::copy_n(bytes.begin() + span.from, span.size, expected.begin() + kGuard + span.to);
    RequireSame(Text(call, " of ", span.size, " bytes from offset ", span.from, " to offset ", kGuard + span.to),
                kToDevice ? d.Read(target.device, all) : Copied(target.host, all), expected);
  }
}

void HostToDevice(const Subject& subject) {
  Device d(subject);
  ExamineCopy<false, true>("memcpy_htod", d, [&d](CopyEnd& to, const CopyEnd& from, uint64_t size) {
    d.Do(&SE::memcpy_htod, d.h2d, &to.device, static_cast<const void*>(from.host), size);
    d.Finish(d.h2d);
  });
}

void DeviceToHost(const Subject& subject) {
  Device d(subject);
  ExamineCopy<true, false>("memcpy_dtoh", d, [&d](CopyEnd& to, const CopyEnd& from, uint64_t size) {
    d.Do(&SE::memcpy_dtoh, d.d2h, static_cast<void*>(to.host), &from.device, size);
    d.Finish(d.d2h);
  });
}

void DeviceToDevice(const Subject& subject) {
  Device d(subject);
  ExamineCopy<true, true>("memcpy_dtod", d, [&d](CopyEnd& to, const CopyEnd& from, uint64_t size) {
    d.Do(&SE::memcpy_dtod, d.compute, &to.device, &from.device, size);
    d.Finish(d.compute);
  });
}

// The blocking ones take any host memory.
void BlockingHostToDevice(const Subject& subject) {
  Device d(subject);
  ExamineCopy<false, true>("sync_memcpy_htod", d, [&d](CopyEnd& to, const CopyEnd& from, uint64_t size) {
    Bytes bytes(from.host, from.host + size + 1);  // one more: no null address for an empty copy
    d.Do(&SE::sync_memcpy_htod, &to.device, static_cast<const void*>(bytes.data()), size);
    std::fill(bytes.begin(), bytes.end(), 0xdd);  // it has been read
  });
}

void BlockingDeviceToHost(const Subject& subject) {
  Device d(subject);
  ExamineCopy<true, false>("sync_memcpy_dtoh", d, [&d](CopyEnd& to, const CopyEnd& from, uint64_t size) {
    Bytes bytes(size + 1);
    d.Do(&SE::sync_memcpy_dtoh, static_cast<void*>(bytes.data()), &from.device, size);
    std::copy_n(bytes.begin(), size, to.host);
  });
}

void BlockingDeviceToDevice(const Subject& subject) {
  Device d(subject);
  ExamineCopy<true, true>("sync_memcpy_dtod", d, [&d](CopyEnd& to, const CopyEnd& from, uint64_t size) {
    d.Do(&SE::sync_memcpy_dtod, &to.device, &from.device, size);
  });
}

// TensorFlow uploads a graph's constants on the stream for copies to the device, without making it wait for the compute
// stream. Work queued there may still read the memory.
void AfterCompute(const Subject& subject) {
  Device d(subject);
  constexpr uint64_t kSize = 4096;
  const Bytes old_bytes(kSize, 1);
  SP_DeviceMemoryBase source = d.Allocate(kSize), kept = d.Allocate(kSize);
  d.Write(source, old_bytes);
  d.Write(kept, Bytes(kSize, 9));
  uint8_t* host = d.AllocateHost(kSize, 2);
  Gate& gate = d.Close(d.compute);
  d.Do(&SE::memcpy_dtod, d.compute, &kept, &source, kSize);
  // A plugin may also block here until the compute stream is done.
  gate.OpenAfter(kWhile * 2);
  d.Do(&SE::memcpy_htod, d.h2d, &source, static_cast<const void*>(host), kSize);
  d.Finish(d.h2d);
  d.Finish(d.compute);
  RequireSame(
      "memcpy_htod overtook work queued before it on the compute stream, which TensorFlow counts on it not to; "
      "what that work read",
      d.Read(kept, kSize), old_bytes);
}

// The same with work that is long instead of held back, for devices that have no host_callback.
void AfterLongCompute(const Subject& subject) {
  Device d(subject);
  constexpr uint64_t kSize = 4 << 20;
  SP_DeviceMemoryBase scratch = d.Allocate(kSize), source = d.Allocate(kSize), kept = d.Allocate(kSize);
  uint8_t* host = d.AllocateHost(kSize);
  for (uint8_t round = 1; round <= 3; ++round) {
    d.Write(source, Bytes(kSize, round));
    std::memset(host, 0xf0 + round, kSize);
    for (int i = 0; i < 8; ++i) d.Do(&SE::memset, d.compute, &scratch, round, kSize);
    d.Do(&SE::memcpy_dtod, d.compute, &kept, &source, kSize);
    d.Do(&SE::memcpy_htod, d.h2d, &source, static_cast<const void*>(host), kSize);
    d.Finish(d.h2d);
    d.Finish(d.compute);
    RequireSame("memcpy_htod overtook work queued before it on the compute stream; what that work read",
                d.Read(kept, kSize), Bytes(kSize, round));
  }
}

// There and back in many pieces on the three streams, as TensorFlow chains them.
void Chain(const Subject& subject) {
  Device d(subject);
  constexpr uint64_t kSize = 10007;
  constexpr int kPieces = 40;
  SP_DeviceMemoryBase in = d.Allocate(kSize * kPieces), out = d.Allocate(kSize * kPieces);
  const Bytes bytes = Pattern(kSize * kPieces, 5);
  uint8_t* from = d.AllocateHost(kSize * kPieces);
  uint8_t* to = d.AllocateHost(kSize * kPieces);
  std::copy(bytes.begin(), bytes.end(), from);
  for (int i = 0; i < kPieces; ++i) {
    const uint64_t offset = i * kSize;
    SP_DeviceMemoryBase a = At(in, offset, kSize), b = At(out, offset, kSize);
    d.Do(&SE::create_stream_dependency, d.h2d, d.compute);
    d.Do(&SE::memcpy_htod, d.h2d, &a, static_cast<const void*>(from + offset), kSize);
    d.Do(&SE::create_stream_dependency, d.compute, d.h2d);
    d.Do(&SE::memcpy_dtod, d.compute, &b, &a, kSize);
    d.Do(&SE::create_stream_dependency, d.d2h, d.compute);
    d.Do(&SE::memcpy_dtoh, d.d2h, static_cast<void*>(to + offset), &b, kSize);
  }
  d.Finish(d.d2h);
  RequireSame("copies chained over three streams", Copied(to, bytes.size()), bytes);
}

}  // namespace

std::vector<Check> CopyChecks() {
  return {
      {"copies.memcpy_htod", "memcpy_htod copies every byte and no other, at all sizes and alignments.", HostToDevice},
      {"copies.memcpy_dtoh", "memcpy_dtoh copies every byte and no other, at all sizes and alignments.", DeviceToHost},
      {"copies.memcpy_dtod", "memcpy_dtod copies every byte and no other, at all sizes and alignments.",
       DeviceToDevice},
      {"copies.sync_memcpy_htod", "sync_memcpy_htod does so too, from any host memory, and has copied when it returns.",
       BlockingHostToDevice},
      {"copies.sync_memcpy_dtoh", "sync_memcpy_dtoh does so too, to any host memory, and has copied when it returns.",
       BlockingDeviceToHost},
      {"copies.sync_memcpy_dtod", "sync_memcpy_dtod does so too, and has copied when it returns.",
       BlockingDeviceToDevice},
      {"copies.after_compute",
       "memcpy_htod comes after all work queued before it on the first stream created, the compute stream, though "
       "nobody made its stream wait.",
       AfterCompute},
      {"copies.after_long_compute", "The same behind work that takes long.", AfterLongCompute},
      {"copies.chain", "Copies to the device, on it and back, chained over three streams by dependencies, are right.",
       Chain},
  };
}

}  // namespace xpu::conformance
