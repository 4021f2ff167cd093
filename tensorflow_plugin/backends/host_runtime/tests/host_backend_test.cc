// How a backend on host memory makes its devices: how many, with what, and how they share the machine.
#include "tensorflow_plugin/backends/host_runtime/host_backend.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"

namespace xpu::host_runtime {
namespace {

// Random notes the size of the team that runs it. There is nothing else.
class NotingKernels : public KernelSet {
 public:
  bool Supports(const RandomDesc&) const override { return true; }
  Status Run(const RandomDesc&, const Args&, const ThreadTeam& team) const override {
    team_size = team.size();
    return OkStatus();
  }

  mutable std::atomic<int> team_size{0};
};
const NotingKernels kKernels;

BackendOptions Options(int device_count) {
  BackendOptions options;
  options.device_count = device_count;
  options.memory_limit = 1 << 20;
  return options;
}

// How many threads run a queued command of this device.
int TeamOf(Device& device) {
  const std::unique_ptr<Stream> stream = device.CreateStream();
  RandomDesc desc;
  desc.n = 1 << 20;  // not so little that the submitting thread would do it
  void* const out = device.Allocate(16);
  Args args{};
  args.out[0] = out;
  EXPECT_TRUE(device.Launch(*stream, desc, args).ok());
  stream->Wait();
  device.Deallocate(out);
  return kKernels.team_size;
}

TEST(HostBackend, DevicesAsAskedFor) {
  const HostBackend backend("XPU_TEST", kKernels);
  BackendOptions options = Options(3);
  EXPECT_EQ(backend.DeviceCount(options), 3);
  std::unique_ptr<Device> device;
  EXPECT_EQ(backend.CreateDevice(3, options, &device).code(), Code::kInvalidArgument);
  EXPECT_EQ(backend.CreateDevice(-1, options, &device).code(), Code::kInvalidArgument);
  ASSERT_TRUE(backend.CreateDevice(2, options, &device).ok());
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.memory_bytes, 1 << 20);
  EXPECT_FALSE(info.hardware_name.empty());
  EXPECT_FALSE(info.vendor.empty());
  EXPECT_EQ(info.numa_node, NumaNode());
  EXPECT_GT(info.bandwidth_bytes_per_s, int64_t{100} << 20);
  EXPECT_EQ(info.gflops, -1);  // these kernels have no product to measure
  options.memory_limit = -1;
  EXPECT_EQ(backend.CreateDevice(0, options, &device).code(), Code::kInvalidArgument);
  options.memory_limit = 0;
  ASSERT_TRUE(backend.CreateDevice(0, options, &device).ok());
  EXPECT_GT(device->info().memory_bytes, int64_t{16} << 20);
}

// A matrix product takes five milliseconds.
class SlowProduct final : public NotingKernels {
 public:
  using NotingKernels::Run;
  bool Supports(const MatMulDesc&) const override { return true; }
  Status Run(const MatMulDesc& desc, const Args&, const ThreadTeam& team) const override {
    team_size = team.size();
    operations = 2 * desc.m * desc.n * desc.k;
    ++products;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return OkStatus();
  }
  mutable int64_t operations = 0;
  mutable int products = 0;
};

TEST(HostBackend, SpeedIsMeasuredOnceWithTheThreadsOfADevice) {
  const SlowProduct kernels;
  const HostBackend backend("XPU_TEST", kernels);
  BackendOptions options = Options(2);
  options.threads = 3;
  std::unique_ptr<Device> devices[2];
  ASSERT_TRUE(backend.CreateDevice(0, options, &devices[0]).ok());
  const int products = kernels.products;
  EXPECT_GT(products, 0);
  EXPECT_EQ(kernels.team_size, 3);
  ASSERT_TRUE(backend.CreateDevice(1, options, &devices[1]).ok());
  EXPECT_EQ(kernels.products, products);
  std::unique_ptr<Device> another;
  options.threads = 1;  // is another speed, and no two measurements are the same to the byte
  ASSERT_TRUE(backend.CreateDevice(1, options, &another).ok());
  EXPECT_EQ(kernels.products, 2 * products);
  EXPECT_NE(another->info().bandwidth_bytes_per_s, devices[0]->info().bandwidth_bytes_per_s);
  const double possible = static_cast<double>(kernels.operations) / 5e-3 * 1e-9;
  for (const auto& device : devices) {
    EXPECT_LE(device->info().gflops, possible);
    EXPECT_GE(device->info().gflops, possible / 4);  // a busy machine sleeps longer
    EXPECT_EQ(device->info().bandwidth_bytes_per_s, devices[0]->info().bandwidth_bytes_per_s);
  }
}

TEST(HostBackend, DevicesShareTheMachinesMemory) {
  const HostBackend backend("XPU_TEST", kKernels);
  for (int devices : {1, 3}) {
    BackendOptions options = Options(devices);
    options.memory_limit = 0;
    std::unique_ptr<Device> device;
    ASSERT_TRUE(backend.CreateDevice(devices - 1, options, &device).ok());
    EXPECT_EQ(device->info().memory_bytes, TotalMachineMemory() / devices);
  }
}

TEST(HostBackend, BusIdsTellDevicesApart) {
  const HostBackend backend("XPU_TEST", kKernels);
  const std::regex form("[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7]");
  std::set<std::string> ids;
  for (int i = 0; i < 64; ++i) {
    std::unique_ptr<Device> device;
    ASSERT_TRUE(backend.CreateDevice(i, Options(64), &device).ok());
    EXPECT_TRUE(std::regex_match(device->info().pci_bus_id, form)) << device->info().pci_bus_id;
    ids.insert(device->info().pci_bus_id);
  }
  EXPECT_EQ(ids.size(), 64u);
  EXPECT_EQ(*ids.rbegin(), "ffff:3f:00.0");
}

TEST(TeamSize, DealsOutTheProcessors) {
  for (int processors : {1, 2, 3, 7, 8, 96}) {
    for (int devices : {1, 2, 3, 8, 64}) {
      int sum = 0, least = processors, most = 0;
      for (int i = 0; i < devices; ++i) {
        const int size = TeamSize(i, devices, processors);
        sum += size;
        least = std::min(least, size);
        most = std::max(most, size);
      }
      EXPECT_EQ(sum, std::max(processors, devices)) << processors << " " << devices;
      EXPECT_GE(least, 1);
      EXPECT_LE(most, least + 1);
    }
  }
}

TEST(HostBackend, DevicesShareTheProcessors) {
  const HostBackend backend("XPU_TEST", kKernels);
  for (int devices : {1, 2, 5}) {
    int sum = 0;
    for (int i = 0; i < devices; ++i) {
      std::unique_ptr<Device> device;
      ASSERT_TRUE(backend.CreateDevice(i, Options(devices), &device).ok());
      sum += TeamOf(*device);
    }
    EXPECT_EQ(sum, std::max(UsableProcessors(), devices));
  }
  BackendOptions options = Options(2);
  options.threads = 3;
  std::unique_ptr<Device> device;
  ASSERT_TRUE(backend.CreateDevice(1, options, &device).ok());
  EXPECT_EQ(TeamOf(*device), 3);
}

// Commands of two devices run at the same time: each waits for a sign of the other.
TEST(HostBackend, DevicesWorkAtTheSameTime) {
  const HostBackend backend("XPU_TEST", kKernels);
  std::unique_ptr<Device> devices[2];
  std::unique_ptr<Stream> streams[2];
  std::atomic<int> arrived{0};
  std::atomic<int> met{0};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(backend.CreateDevice(i, Options(2), &devices[i]).ok());
    streams[i] = devices[i]->CreateStream();
    streams[i]->HostCallback([&] {
      ++arrived;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      met += arrived == 2;
      return OkStatus();
    });
  }
  for (const auto& stream : streams) stream->Wait();
  EXPECT_EQ(met, 2);
}

TEST(Machine, ProcessorsAndNodeFollowTheAffinity) {
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    EXPECT_LE(UsableProcessors(), CPU_COUNT(&all));
    EXPECT_GE(UsableProcessors(), 1);
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(UsableProcessors(), 1);
    // One processor lies on one node, where the machine tells at all.
    const bool told = access("/sys/devices/system/node/online", R_OK) == 0;
    EXPECT_EQ(NumaNode() >= 0, told);
  }).join();
}

// A folder in the place of /proc and /sys.
class FakeMachine {
 public:
  explicit FakeMachine(const std::string& name = "machine")
      : root_(testing::TempDir() + name + std::to_string(getpid())) {
    Write("/proc/meminfo", "MemTotal:    4000 kB\nMemFree: 1 kB\nMemAvailable:    3000 kB\n");
  }
  ~FakeMachine() { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  const std::string& root() const { return root_; }

 private:
  const std::string root_;
};

// The limits of both versions hold: the stricter one counts.
TEST(Machine, TheControlGroupsLimitsHold) {
  constexpr int64_t kKiB = 1024;
  {
    FakeMachine machine;
    EXPECT_EQ(TotalMachineMemory(machine.root()), 4000 * kKiB);
    EXPECT_EQ(AvailableMachineMemory(machine.root()), 3000 * kKiB);
    const std::string group = "/sys/fs/cgroup/memory.";
    machine.Write(group + "max", "max\n");
    EXPECT_EQ(TotalMachineMemory(machine.root()), 4000 * kKiB);
    EXPECT_EQ(AvailableMachineMemory(machine.root()), 3000 * kKiB);
    machine.Write(group + "max", std::to_string(2000 * kKiB));
    machine.Write(group + "current", std::to_string(1500 * kKiB));
    EXPECT_EQ(TotalMachineMemory(machine.root()), 2000 * kKiB);
    EXPECT_EQ(AvailableMachineMemory(machine.root()), 500 * kKiB);
    // Memory that the system would take back first is available.
    machine.Write(group + "stat", "anon 5\ninactive_file " + std::to_string(100 * kKiB) + "\n");
    EXPECT_EQ(AvailableMachineMemory(machine.root()), 600 * kKiB);
    machine.Write(group + "current", std::to_string(9000 * kKiB));
    EXPECT_EQ(AvailableMachineMemory(machine.root()), 0);
  }
  FakeMachine machine;
  const std::string group = "/sys/fs/cgroup/memory/memory.";
  machine.Write(group + "limit_in_bytes", std::to_string(1000 * kKiB));
  machine.Write(group + "usage_in_bytes", std::to_string(400 * kKiB));
  machine.Write(group + "stat", "total_inactive_file " + std::to_string(50 * kKiB) + "\n");
  EXPECT_EQ(TotalMachineMemory(machine.root()), 1000 * kKiB);
  EXPECT_EQ(AvailableMachineMemory(machine.root()), 650 * kKiB);
}

TEST(Machine, TheControlGroupsTimeIsRoundedUp) {
  FakeMachine machine;
  const int allowed = UsableProcessors(machine.root());  // nothing limits it there
  machine.Write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableProcessors(machine.root()), allowed);
  for (int half_processors : {1, 2, 3, 1000}) {
    machine.Write("/sys/fs/cgroup/cpu.max", std::to_string(half_processors * 50000) + " 100000\n");
    EXPECT_EQ(UsableProcessors(machine.root()), std::min(allowed, (half_processors + 1) / 2));
  }
  FakeMachine older("older");
  older.Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  older.Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(UsableProcessors(older.root()), allowed);
  older.Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(UsableProcessors(older.root()), 1);
}

TEST(Machine, TheNodeIsTheOneOfAllProcessorsOrNone) {
  FakeMachine machine;
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  const auto place = [&](int processor, int node) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/";
    for (int n : {3, 4}) std::filesystem::remove(machine.root() + folder + "node" + std::to_string(n));
    machine.Write(folder + "node" + std::to_string(node), "");
    machine.Write(folder + "nodes", "");  // another entry
  };
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &allowed)) continue;
    place(i, 3);
    last = i;
  }
  EXPECT_EQ(NumaNode(machine.root()), 3);
  if (CPU_COUNT(&allowed) == 1) GTEST_SKIP() << "one processor spans no nodes";
  place(last, 4);
  EXPECT_EQ(NumaNode(machine.root()), -1);
}

}  // namespace
}  // namespace xpu::host_runtime
