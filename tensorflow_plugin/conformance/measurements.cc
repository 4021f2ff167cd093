// How long the callbacks take on an idle device, with the calls that TensorFlow makes around them. The time that
// TensorFlow adds (it polls events from a thread of its own, every 10 microseconds or more) is not in it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr Microseconds kLong{300000}, kBatch{50};
constexpr int kLeastRounds = 5;

template <typename F>
Microseconds Time(F& f, int64_t times) {
  const auto start = Clock::now();
  for (int64_t i = 0; i < times; ++i) f();
  return Clock::now() - start;
}

// So many calls of `f` in a row that the clock does not count.
template <typename F>
int64_t BatchOf(F& f) {
  int64_t times = 1;
  while (Time(f, times) < kBatch) times *= 2;
  return times;
}

// The least time of one call of each, which alternate, so that a slow spell of the machine meets both.
template <typename F, typename G>
std::pair<Microseconds, Microseconds> Least(F f, G g) {
  const int64_t fs = BatchOf(f), gs = BatchOf(g);
  Microseconds least_f = Microseconds::max(), least_g = Microseconds::max();
  const auto start = Clock::now();
  for (int round = 0; round < kLeastRounds || Clock::now() - start < kLong; ++round) {
    least_f = std::min(least_f, Time(f, fs) / fs);
    least_g = std::min(least_g, Time(g, gs) / gs);
  }
  return {least_f, least_g};
}

std::string InWords(Microseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f us", time.count());
  return text;
}

template <typename F>
[[noreturn]] void Measure(F f) {
  End(Outcome::kPass, InWords(Least(f, [] {}).first));
}

void AwaitEvent(Device& d, SP_Stream stream, SP_Event event) {
  d.Do(&SE::record_event, stream, event);
  // A device made of the machine's processors needs this one, too.
  while (!d.Complete(event)) std::this_thread::yield();
}

void Event(const Subject& subject) {
  Device d(subject);
  const SP_Event event = d.NewEvent();
  Measure([&] { AwaitEvent(d, d.compute, event); });
}

void Dependency(const Subject& subject) {
  Device d(subject);
  const SP_Event event = d.NewEvent();
  Measure([&] {
    d.Do(&SE::create_stream_dependency, d.h2d, d.compute);
    AwaitEvent(d, d.h2d, event);
  });
}

void Block(const Subject& subject) {
  Device d(subject);
  Measure([&] { d.Do(&SE::block_host_until_done, d.compute); });
}

void Fill(const Subject& subject) {
  constexpr uint64_t kSize = 4096;
  Device d(subject);
  const SP_Event event = d.NewEvent();
  SP_DeviceMemoryBase memory = d.Allocate(kSize);
  Measure([&] {
    d.Do(&SE::mem_zero, d.compute, &memory, kSize);
    AwaitEvent(d, d.compute, event);
  });
}

void Allocation(const Subject& subject) {
  Device d(subject);
  Measure([&] {
    SP_DeviceMemoryBase memory = d.Allocate(1 << 20);
    d.Ask(&SE::deallocate, &memory);
  });
}

void HostCallback(const Subject& subject) {
  Device d(subject);
  static std::atomic<int> ran{0};
  const SE_StatusCallbackFn call = [](void*, TF_Status*) { ++ran; };
  int asked = ran;
  Measure([&] {
    if (!d.Ask(&SE::host_callback, d.compute, call, static_cast<void*>(nullptr))) NotOffered("it returns false");
    ++asked;
    while (ran != asked) {
    }
  });
}

// A copy as TensorFlow makes it: behind the compute stream, and an event that is polled.
template <uint64_t kSize, bool kToDevice>
void Copy(const Subject& subject) {
  Device d(subject);
  const SP_Event event = d.NewEvent();
  SP_DeviceMemoryBase memory = d.Allocate(kSize);
  void* const host = d.AllocateHost(kSize, 1);
  const SP_Stream stream = kToDevice ? d.h2d : d.d2h;
  d.Write(memory, Bytes(kSize, 2));
  const auto copy = [&] {
    d.Do(&SE::create_stream_dependency, stream, d.compute);
    if constexpr (kToDevice) {
      d.Do(&SE::memcpy_htod, stream, &memory, static_cast<const void*>(host), kSize);
    } else {
      d.Do(&SE::memcpy_dtoh, stream, host, &memory, kSize);
    }
    AwaitEvent(d, stream, event);
  };
  Bytes from(kSize, 3), to(kSize, 4);
  const auto plain = [&] {
    std::memcpy(to.data(), from.data(), kSize);
    asm volatile("" : : "r"(to.data()) : "memory");  // it is not left out
  };
  const auto [ours, memcpy] = Least(copy, plain);
  End(Outcome::kPass, InWords(ours) + "; memcpy " + InWords(memcpy));
}

}  // namespace

const std::vector<Check>& Measurements() {
  static const std::vector<Check> all = {
      {"measure.event", "record an event, poll it until it is complete", Event},
      {"measure.dependency", "make one stream wait for another, then an event on it", Dependency},
      {"measure.block", "block_host_until_done", Block},
      {"measure.fill", "fill 4 KiB, then an event", Fill},
      {"measure.allocation", "allocate and deallocate 1 MiB", Allocation},
      {"measure.host_callback", "from host_callback to the function it runs", HostCallback},
      {"measure.to_device_4KiB", "a dependency, memcpy_htod, an event", Copy<4 << 10, true>},
      {"measure.from_device_4KiB", "a dependency, memcpy_dtoh, an event", Copy<4 << 10, false>},
      {"measure.to_device_1MiB", "the same", Copy<1 << 20, true>},
      {"measure.from_device_1MiB", "the same", Copy<1 << 20, false>},
      {"measure.to_device_16MiB", "the same", Copy<16 << 20, true>},
      {"measure.from_device_16MiB", "the same", Copy<16 << 20, false>},
      {"measure.to_device_64MiB", "the same", Copy<64 << 20, true>},
      {"measure.from_device_64MiB", "the same", Copy<64 << 20, false>},
  };
  return all;
}

}  // namespace xpu::conformance
