#include "tensorflow_plugin/backends/host_runtime/host_backend.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/device_memory.h"
#include "tensorflow_plugin/backends/host_runtime/host_device.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"
#include "tensorflow_plugin/primitives/device_name.h"

namespace xpu::host_runtime {
namespace {

// The shortest of a few runs, in seconds.
template <typename F>
double BestSeconds(int runs, F&& f) {
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

// Bytes read and written per second by a copy that the outer caches hardly help.
int64_t MeasureBandwidth(const ThreadTeam& team) {
  constexpr int64_t kBytes = 16 << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  const double seconds = BestSeconds(2, [&] {
    team.ParallelFor(kBytes, kBytes / 16, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(end - begin));
    });
  });
  return static_cast<int64_t>(2 * kBytes / seconds);
}

// The speed of a single-precision matrix product; -1 if the kernels have none.
double MeasureGflops(const KernelSet& kernels, const ThreadTeam& team) {
  constexpr int64_t kN = 160;
  MatMulDesc desc;
  desc.m = desc.n = desc.k = kN;
  if (!kernels.Supports(desc)) return -1;
  std::vector<float> a(kN * kN, 1.0f), b(kN * kN, 0.5f), c(kN * kN);
  Args args{};
  args.in[0] = a.data();
  args.in[1] = b.data();
  args.out[0] = c.data();
  bool ok = true;
  const double seconds = BestSeconds(3, [&] { ok = kernels.Run(desc, args, team).ok() && ok; });
  return ok ? 2.0 * kN * kN * kN / seconds * 1e-9 : -1;
}

}  // namespace

int HostBackend::DeviceCount(const BackendOptions& options) const { return std::max(options.device_count, 0); }

int TeamSize(int ordinal, int devices, int processors) {
  return std::max(processors / devices + (ordinal < processors % devices), 1);
}

HostBackend::Speed HostBackend::MeasuredSpeed(int threads) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [entry, first] = speeds_.try_emplace(threads);
  Speed& speed = entry->second;
  if (!first) return speed;
  try {
    // On a thread that ends: OpenMP keeps a pool of threads for each thread that ever led a team.
    std::thread([this, threads, &speed] {
      try {
        const ThreadTeam team(threads);
        speed.bandwidth_bytes_per_s = MeasureBandwidth(team);
        speed.gflops = MeasureGflops(kernels_, team);
      } catch (const std::bad_alloc&) {
        // Not measured, then.
      }
    }).join();
  } catch (const std::system_error&) {
    // No thread to be had: not measured either.
  }
  return speed;
}

Status HostBackend::Describe(int ordinal, const BackendOptions& options, DeviceInfo* info) const {
  const int count = DeviceCount(options);
  XPU_REQUIRE(ordinal >= 0 && ordinal < count,
              errors::InvalidArgument(name_, " has ", count, " devices, there is none of ordinal ", ordinal));
  XPU_REQUIRE(options.memory_limit >= 0,
              errors::InvalidArgument("a memory limit of ", options.memory_limit, " bytes, expected 0 or more"));
  XPU_REQUIRE(options.threads >= 0, errors::InvalidArgument(options.threads, " threads, expected 0 or more"));
  *info = DescribeProcessor();
  // There is no bus. The form is PCI's, and the bus number tells the devices apart. The domain is one in which no
  // machine has a device that could be taken for this one.
  char bus_id[32];
  std::snprintf(bus_id, sizeof(bus_id), "ffff:%02x:00.0", static_cast<unsigned>(ordinal) & 0xff);
  info->pci_bus_id = bus_id;
  info->memory_bytes = options.memory_limit != 0 ? options.memory_limit : TotalMachineMemory() / count;
  XPU_REQUIRE(info->memory_bytes > 0,
              errors::ResourceExhausted("cannot tell how much memory this machine has: set a memory limit"));
  const Speed speed = MeasuredSpeed(Threads(ordinal, options));
  info->bandwidth_bytes_per_s = speed.bandwidth_bytes_per_s;
  info->gflops = speed.gflops;
  return OkStatus();
}

int HostBackend::Threads(int ordinal, const BackendOptions& options) const {
  return options.threads != 0 ? options.threads : TeamSize(ordinal, DeviceCount(options), UsableProcessors());
}

DeviceInfo HostBackend::DescribeProcessor() const {
  DeviceInfo info;
  info.hardware_name = ProcessorName();
  info.vendor = ProcessorVendor();
  info.numa_node = NumaNode();
  info.instruction_set = kernels_.instruction_set();
  return info;
}

Status HostBackend::CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const {
  DeviceInfo info;
  XPU_RETURN_IF_ERROR(Describe(ordinal, options, &info));
  HostDeviceOptions device_options;
  device_options.queue.team = ThreadTeam(Threads(ordinal, options));
  device_options.name = DeviceName(ordinal);
  device_options.isolate_memory = options.isolate_memory;
  device_options.pool_memory = options.pool_memory;
  device_options.large_pages = options.large_pages;
  return HostDevice::Create(kernels_, std::move(info), device_options, device);
}

int64_t HostBackend::TotalMemory() const { return TotalMachineMemory(); }

bool HostBackend::HostCanAddress(const void* address, const BackendOptions& options) const {
  return SharesHostMemory(options) || DeviceMemory::TranslateAny(const_cast<void*>(address)) == address;
}

std::unique_ptr<Device> HostBackend::NewHostExecutor(int threads) const {
  HostDeviceOptions options;
  options.queue.synchronous = true;
  options.queue.team = ThreadTeam(threads != 0 ? threads : UsableProcessors());
  std::unique_ptr<Device> device;
  // Without memory to reserve there is nothing that could fail.
  (void)HostDevice::Create(kernels_, DescribeProcessor(), options, &device);
  return device;
}

}  // namespace xpu::host_runtime
