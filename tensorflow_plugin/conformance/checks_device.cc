// Platforms and devices: how many there are, what they say of themselves, and that they are apart.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

void Count(const Subject& subject) {
  Platform p(subject);
  const int count = p.DeviceCount();
  if (count < 0) Fail("get_device_count gives ", count);
  if (count == 0) Fail("there are no devices, so most cannot be examined");
  // TensorFlow asks anew for every listing, session and graph.
  constexpr int kTimes = 100;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) {
    if (const int now = p.DeviceCount(); now != count) Fail("get_device_count gives ", count, ", then ", now);
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (took.count() / kTimes > 10) {
    Fail("get_device_count takes ", took.count() / kTimes, " ms; TensorFlow calls it very often");
  }
}

void Create(const Subject& subject) {
  Platform& p = *new Platform(subject);
  const int count = p.DeviceCount();
  for (int i = 0; i < count; ++i) {
    Device d(p, i);
    if (d.sp.struct_size == 0) Fail("struct_size of device ", i, " is 0");
    if (d.sp.ordinal != i) Fail("the ordinal of device ", i, " is ", d.sp.ordinal);
    for (const char* text : {d.sp.hardware_name, d.sp.device_vendor, d.sp.pci_bus_id}) {
      if (text && std::strlen(text) > 4096) Fail("a name of device ", i, " does not end");
    }
  }
  if (count == 0) NotOffered("there is no device");
}

void Describe(const Subject& subject) {
  Device d(subject);
  const SP_DeviceFns& f = d.platform.device_fns;
  if (!f.get_numa_node && !f.get_memory_bandwidth && !f.get_gflops) NotOffered("none of the three is set");
  const auto ask = [&d](const char* name, auto function, double most) {
    if (!function) return;
    Entering(name);
    const double value = static_cast<double>(function(&d.sp));
    if (!std::isfinite(value) || value > most) Fail(name, " gives ", value, ", more than any device has");
    if (value == 0 && std::strcmp(name, "get_numa_node") != 0) Fail(name, " gives 0; unknown is negative");
  };
  ask("get_numa_node", f.get_numa_node, 4096);
  ask("get_memory_bandwidth", f.get_memory_bandwidth, 1e15);  // bytes/s
  ask("get_gflops", f.get_gflops, 1e9);                       // an exaflop
}

void Destroy(const Subject& subject) {
  Platform& p = *new Platform(subject);
  const Bytes bytes = Pattern(1000, 1);
  for (int round = 0; round < 2; ++round) {
    Device d(p, 0);
    const SP_DeviceMemoryBase memory = d.Allocate(bytes.size());
    d.Write(memory, bytes);
    RequireSame("after create_device", d.Read(memory, bytes.size()), bytes);
    SP_DeviceMemoryBase gone = memory;
    d.Ask(&SE::deallocate, &gone);
    for (SP_Stream stream : {d.compute, d.h2d, d.d2h, d.d2d}) d.Ask(&SE::destroy_stream, stream);
    CallPlatform("destroy_device", p.fns.destroy_device, &p.platform, &d.sp);
  }
}

struct Pair {
  explicit Pair(const Subject& subject) : platform(*new Platform(subject)), a(platform, 0), b(platform, 1) {}
  Platform& platform;
  Device a, b;
};

void Apart(const Subject& subject) {
  Pair two(subject);
  const Bytes ones = Pattern(100000, 1), twos = Pattern(100000, 2);
  const SP_DeviceMemoryBase on_a = two.a.Allocate(ones.size()), on_b = two.b.Allocate(twos.size());
  two.a.Write(on_a, ones);
  two.b.Write(on_b, twos);
  RequireSame("memory of device 0", two.a.Read(on_a, ones.size()), ones);
  RequireSame("memory of device 1", two.b.Read(on_b, twos.size()), twos);
  // Work that is held back on one device holds back nothing on the other.
  Gate& gate = two.a.Close(two.a.compute);
  const SP_Event event = two.b.Record(two.b.compute);
  Await("with work held back on device 0, an event of device 1 did not complete",
        [&] { return two.b.Complete(event); });
  two.b.Do(&SE::synchronize_all_activity);
  gate.Open();
}

// As TensorFlow copies from device to device: the sender's stream waits for both compute streams.
void CopyBetween(const Subject& subject) {
  Pair two(subject);
  const Bytes old_bytes(70001, 7), bytes = Pattern(old_bytes.size(), 3);
  SP_DeviceMemoryBase source = two.a.Allocate(bytes.size());
  SP_DeviceMemoryBase target = two.b.Allocate(bytes.size());
  two.a.Write(source, old_bytes);
  two.b.Write(target, old_bytes);
  const SP_DeviceMemoryBase seen = two.b.Allocate(bytes.size());
  uint8_t* host = two.a.AllocateHost(bytes.size());
  std::memcpy(host, bytes.data(), bytes.size());
  // On the sender the source is about to be written, on the receiver the target is about to be read.
  Gate& sender = two.a.Close(two.a.compute);
  two.a.Do(&SE::memcpy_htod, two.a.compute, &source, static_cast<const void*>(host), uint64_t{bytes.size()});
  Gate& receiver = two.b.Close(two.b.compute);
  SP_DeviceMemoryBase copy = seen;
  two.b.Do(&SE::memcpy_dtod, two.b.compute, &copy, &target, uint64_t{bytes.size()});
  two.a.Do(&SE::create_stream_dependency, two.a.d2d, two.a.compute);
  two.a.Do(&SE::create_stream_dependency, two.a.d2d, two.b.compute);
  two.a.Do(&SE::memcpy_dtod, two.a.d2d, &target, &source, uint64_t{bytes.size()});
  const SP_Event event = two.a.Record(two.a.d2d);
  Sleep(kWhile);
  sender.Open();
  Sleep(kWhile);
  receiver.Open();
  Await("the copy from device 0 to device 1 did not complete", [&] { return two.a.Complete(event); });
  two.a.Do(&SE::synchronize_all_activity);
  two.b.Do(&SE::synchronize_all_activity);
  RequireSame("what device 1 had before a copy from device 0 came", two.b.Read(seen, bytes.size()), old_bytes);
  RequireSame("the copy from device 0 to device 1", two.b.Read(target, bytes.size()), bytes);
}

}  // namespace

std::vector<Check> DeviceChecks() {
  return {
      {"devices.count", "get_device_count succeeds, is at least 1, stays the same and is quick.", Count},
      {"devices.create", "create_device succeeds for every ordinal and fills SP_Device.", Create},
      {"devices.describe",
       "get_numa_node, get_memory_bandwidth and get_gflops, where set, give possible values, negative for unknown.",
       Describe},
      {"devices.destroy", "A device can be destroyed and created again, and works.", Destroy},
      {"devices.apart", "Two devices have memory of their own, and work held back on one holds back none on the other.",
       Apart},
      {"devices.copy_between",
       "memcpy_dtod copies to another device, after the work of both that its stream was made to wait for.",
       CopyBetween},
  };
}

}  // namespace xpu::conformance
