// The parts of the OpenCL backend. A test that needs a device is left out, loudly, where there is none.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/gpu/binary_cache.h"
#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/opencl/backend.h"
#include "tensorflow_plugin/backends/opencl/compiler.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"
#include "tensorflow_plugin/backends/opencl/machine.h"
#include "tensorflow_plugin/backends/opencl/queue.h"

namespace xpu::opencl {
namespace {

std::string NewFolder() {
  std::string name = ::testing::TempDir() + "/opencl_XXXXXX";
  return mkdtemp(name.data()) == nullptr ? "" : name;
}

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A row of a test's table.
Hardware Named(const char* name, const char* platform, const char* lacks = "") {
  Hardware hardware;
  hardware.name = name;
  hardware.platform_name = platform;
  hardware.lacks = lacks;
  return hardware;
}

std::string Chosen(const std::string& value, std::string* warning) {
  static const auto* const all = new std::vector<Hardware>{
      Named("Arc A770", "Intel OpenCL"), Named("Old GPU", "Clover", "it has OpenCL 1.1, and 1.2 is needed"),
      Named("pthread-Xeon", "Portable Computing Language"), Named("H100", "NVIDIA CUDA")};
  std::string names;
  for (const Hardware* hardware : Choose(*all, value, warning)) names += hardware->name + ";";
  return names;
}

TEST(Hardware, IsChosenByAPartOfItsNameOrByNumber) {
  std::string warning;
  EXPECT_EQ(Chosen("", &warning), "Arc A770;pthread-Xeon;H100;");
  EXPECT_EQ(Chosen("h1", &warning), "H100;");
  EXPECT_EQ(Chosen("portable", &warning), "pthread-Xeon;");
  EXPECT_EQ(Chosen("2", &warning), "pthread-Xeon;");
  EXPECT_EQ(Chosen("0", &warning), "Arc A770;");
  EXPECT_EQ(warning, "");
}

TEST(Hardware, ThatThereIsNotGivesOneMessageThatListsWhatThereIs) {
  for (const char* value : {"4", "1", "TPU", "99999999999999999999", "old"}) {
    std::string warning;
    EXPECT_EQ(Chosen(value, &warning), "Arc A770;pthread-Xeon;H100;") << value;
    EXPECT_EQ(warning.find(std::string("TF_XPU_OPENCL_DEVICE=") + value + " is ignored: expected a part of the name "),
              0u);
    EXPECT_NE(warning.find("0: Arc A770 (Intel OpenCL); 1: Old GPU (Clover), which cannot be used: it has OpenCL 1.1"),
              std::string::npos)
        << warning;
  }
}

TEST(Errors, HaveTheirNames) {
  EXPECT_EQ(ErrorName(CL_INVALID_KERNEL_ARGS), "CL_INVALID_KERNEL_ARGS");
  EXPECT_EQ(ErrorName(-9999), "OpenCL error -9999");
  EXPECT_EQ(ToStatus(CL_OUT_OF_RESOURCES, "a kernel").code(), Code::kResourceExhausted);
  EXPECT_EQ(ToStatus(CL_OUT_OF_RESOURCES, "a kernel").message(), "a kernel failed with CL_OUT_OF_RESOURCES");
  EXPECT_EQ(ToStatus(CL_INVALID_EVENT, "a kernel").code(), Code::kInternal);
  EXPECT_TRUE(ToStatus(CL_SUCCESS, "a kernel").ok());
}

TEST(Walk, ReciprocalsDivideEveryPosition) {
  constexpr uint64_t kLast = (uint64_t{1} << 31) - 1;
  std::vector<uint64_t> extents;
  for (uint64_t extent = 1; extent < 300; ++extent) extents.push_back(extent);
  for (int bit = 9; bit < 32; ++bit) {
    for (int64_t near : {-3, -1, 0, 1, 5}) extents.push_back(std::min((uint64_t{1} << bit) + near, kLast));
  }
  for (uint64_t extent : extents) {
    const auto reciprocal = static_cast<uint64_t>(gpu::ReciprocalOf(static_cast<int64_t>(extent)));
    const auto check = [&](uint64_t position) {
      const uint64_t quotient = position * (reciprocal & UINT32_MAX) >> (reciprocal >> 32);
      ASSERT_EQ(quotient, position / extent) << position << " / " << extent;
    };
    // Where a quotient begins and before that, at both ends of the range.
    for (uint64_t i = 0; i < 2000; ++i) {
      for (uint64_t at : {i * extent, (kLast / extent - std::min(i, kLast / extent)) * extent}) {
        if (at <= kLast) check(at);
        if (at > 0 && at <= kLast) check(at - 1);
      }
    }
    check(kLast);
  }
}

TEST(Cache, KeepsWhatWasStoredForAKeyAndNothingElse) {
  const std::string folder = NewFolder();
  const gpu::BinaryCache cache(folder + "/made/when/needed");
  EXPECT_EQ(cache.Load("key"), "");
  const std::string binary("a\0b\n\xff", 5);
  cache.Store("key", binary);
  EXPECT_EQ(gpu::BinaryCache(folder + "/made/when/needed").Load("key"), binary);
  EXPECT_EQ(cache.Load("kez"), "");
}

TEST(Cache, DamagedFilesAreAsIfTheyWereNotThere) {
  const std::string folder = NewFolder();
  const gpu::BinaryCache cache(folder);
  cache.Store("the key", "the binary");
  const std::string path = folder + "/" + gpu::HashOf("the key"), good = ContentsOf(path);
  ASSERT_EQ(cache.Load("the key"), "the binary");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_EQ(cache.Load("the key"), "") << "byte " << i;
    std::ofstream(path, std::ios::binary) << good.substr(0, i);
    EXPECT_EQ(cache.Load("the key"), "") << "only " << i << " bytes";
  }
  // The program of another key whose file has this name.
  std::ofstream(folder + "/" + gpu::HashOf("other"), std::ios::binary) << good;
  EXPECT_EQ(cache.Load("other"), "");
  cache.Store("the key", "the binary");
  EXPECT_EQ(cache.Load("the key"), "the binary");
}

TEST(Cache, ThatCannotBeWrittenKeepsNothing) {
  const std::string folder = NewFolder();
  std::ofstream(folder + "/file") << "not a folder";
  for (const std::string& where : {folder + "/file/below", std::string("/proc/nothing"), std::string()}) {
    const gpu::BinaryCache cache(where);
    cache.Store("key", "binary");
    EXPECT_EQ(cache.Load("key"), "") << where;
  }
}

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(UsedHardware().empty()) << WhyNone();
    options_.limit = 64 << 20;
    options_.device = "XPU:0";
    ASSERT_TRUE(Machine::Create(*UsedHardware().front(), options_, &machine_).ok());
    ASSERT_TRUE(Queue::Create(machine_->hardware(), machine_->context(), machine_->memory(), nullptr, &queue_).ok());
  }

  Memory::Options options_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Queue> queue_;
};

cl_kernel Of(gpu::Kernel* kernel) { return static_cast<Kernel*>(kernel)->kernel.get(); }

constexpr char kGood[] = "kernel void run(global int *x) { x[get_global_id(0)] = 7; }";

TEST_F(OnDevice, SourcesThatDoNotCompileAreInTheFileThatTheMessageNames) {
  Compiler compiler(machine_->hardware(), machine_->context(), "");
  gpu::Kernel* kernel = nullptr;
  int asked = 0;
  const auto source = [&] {
    ++asked;
    return "kernel void run(global int *x) { no_such_thing(x); }";
  };
  const Status status = compiler.Get("bad", source, &kernel);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("CL_BUILD_PROGRAM_FAILURE"), std::string::npos) << status.message();
  const size_t begin = status.message().find("is in /") + 6, end = status.message().find(".cl", begin) + 3;
  ASSERT_LT(begin, end) << status.message();
  const std::string path = status.message().substr(begin, end - begin);
  const std::string contents = ContentsOf(path);
  EXPECT_NE(contents.find("{ no_such_thing(x); }"), std::string::npos) << path;
  EXPECT_NE(contents.find("The compiler said:"), std::string::npos) << contents;
  std::remove(path.c_str());
  EXPECT_EQ(compiler.Get("bad", source, &kernel).message(), status.message());
  EXPECT_EQ(asked, 1);
}

TEST_F(OnDevice, KernelsAreKeptOnDiskAndCompiledAgainWhereThatIsDamaged) {
  const std::string folder = NewFolder();
  std::string path;
  for (int round = 0; round < 3; ++round) {
    Compiler compiler(machine_->hardware(), machine_->context(), folder);
    gpu::Kernel* kernel = nullptr;
    const Status status = compiler.Get("good", [] { return kGood; }, &kernel);
    ASSERT_TRUE(status.ok()) << status.message();
    void* const memory = machine_->memory().Allocate(4 * 16);
    MemorySlice place;
    ASSERT_TRUE(machine_->memory().Find(memory, 64, &place));
    ASSERT_TRUE(queue_->Memset(memory, 0, 64).ok());
    ASSERT_EQ(Cl().SetKernelArg(Of(kernel), 0, sizeof(cl_mem), &place.buffer), CL_SUCCESS);
    const size_t items = 16;
    ASSERT_TRUE(queue_
                    ->Submit("it",
                             [&](cl_command_queue queue, cl_event* event) {
                               return Cl().EnqueueNDRangeKernel(queue, Of(kernel), 1, nullptr, &items, &items, 0,
                                                                nullptr, event);
                             })
                    .ok());
    int32_t values[16] = {};
    ASSERT_TRUE(queue_->CopyDeviceToHost(values, memory, 64).ok());
    queue_->Wait();
    for (int32_t value : values) EXPECT_EQ(value, 7) << "round " << round;
    machine_->memory().Deallocate(memory);
    if (round == 0) {
      std::FILE* const list = popen(("ls " + folder).c_str(), "r");
      char name[64] = {};
      ASSERT_NE(std::fgets(name, sizeof(name), list), nullptr) << "nothing is in " << folder;
      pclose(list);
      path = folder + "/" + std::string(name, std::strcspn(name, "\n"));
      // A file in use is left alone: its time does not change.
      const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
      ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
    } else if (round == 1) {
      struct stat found;
      ASSERT_EQ(stat(path.c_str(), &found), 0);
      EXPECT_EQ(found.st_mtime, 1000);
      std::ofstream(path, std::ios::binary) << ContentsOf(path).substr(0, 100);
    }
  }
  EXPECT_GT(ContentsOf(path).size(), 100u);
}

TEST_F(OnDevice, MemoryHasALimitAndAddressesThatTheHostCannotTouch) {
  Memory& memory = machine_->memory();
  EXPECT_EQ(memory.Allocate(0), nullptr);
  EXPECT_EQ(memory.Allocate((64 << 20) + 1), nullptr);
  char* const a = static_cast<char*>(memory.Allocate(40 << 20));
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
  EXPECT_EQ(memory.Allocate(40 << 20), nullptr);
  char* const b = static_cast<char*>(memory.Allocate(1));
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(memory.Stats().bytes_in_use, (40 << 20) + 1);
  EXPECT_EQ(memory.Stats().num_allocs, 2);
  EXPECT_EQ(Memory::Owner(a + 100), &memory);
  int on_host = 0;
  EXPECT_EQ(Memory::Owner(&on_host), nullptr);
  EXPECT_FALSE(TheBackend().HostCanAddress(a, {}));
  EXPECT_TRUE(TheBackend().HostCanAddress(&on_host, {}));
  MemorySlice place;
  EXPECT_TRUE(memory.Find(a + 3, (40 << 20) - 3, &place));
  EXPECT_EQ(place.offset, 3u);
  EXPECT_FALSE(memory.Find(a + 3, (40 << 20) - 2, &place));  // beyond its end
  EXPECT_EQ(queue_->Memset(a, 1, (40 << 20) + 1).code(), Code::kInvalidArgument);
  EXPECT_EXIT(*const_cast<volatile char*>(a) = 1, ::testing::KilledBySignal(SIGSEGV), "");
  memory.Deallocate(a);
  EXPECT_FALSE(memory.Find(a, 1, &place));
  EXPECT_NE(memory.Allocate(40 << 20), nullptr);
  EXPECT_EQ(memory.Stats().peak_bytes_in_use, (40 << 20) + 1);
}

TEST_F(OnDevice, FreedAddressesAreUsedAgain) {
  Memory& memory = machine_->memory();
  std::vector<void*> kept;
  for (int i = 0; i < 4000; ++i) {  // many times what there are addresses for
    void* const address = memory.Allocate(4 << 20);
    ASSERT_NE(address, nullptr) << i;
    if (i % 500 == 0 && kept.size() < 8) {
      kept.push_back(address);
    } else {
      memory.Deallocate(address);
    }
  }
  EXPECT_EQ(memory.Stats().bytes_in_use, static_cast<int64_t>(kept.size()) * (4 << 20));
}

// As what a list reads in the host's memory has to be, when its commands have run.
TEST_F(OnDevice, WhatACallbackHoldsIsGoneWhenTheStreamGoesOn) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> held{true};
    {
      const auto slowly = [&held](void*) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        held = false;
      };
      queue_->HostCallback([kept = std::shared_ptr<void>(&held, slowly)] { return OkStatus(); });
    }
    queue_->Wait();
    ASSERT_FALSE(held) << "round " << round;
  }
}

TEST_F(OnDevice, DevicesCopyToOneAnotherAndWaitForOneAnother) {
  std::unique_ptr<Machine> other;
  options_.device = "XPU:1";
  ASSERT_TRUE(Machine::Create(*UsedHardware().back(), options_, &other).ok());
  std::unique_ptr<Queue> queue;
  ASSERT_TRUE(Queue::Create(other->hardware(), other->context(), other->memory(), nullptr, &queue).ok());
  constexpr size_t kBytes = (20 << 20) + 4;  // more than one piece
  void* const here = machine_->memory().Allocate(kBytes);
  void* const there = other->memory().Allocate(kBytes);
  bool open = false;
  std::mutex mutex;
  queue_->HostCallback([&] {  // holds up what follows
    for (;;) {
      std::lock_guard<std::mutex> lock(mutex);
      if (open) return OkStatus();
      std::this_thread::yield();
    }
  });
  ASSERT_TRUE(queue_->MemsetU32(here, 0x01020304, kBytes).ok());
  ASSERT_TRUE(queue_->CopyDeviceToDevice(there, here, kBytes).ok());
  QueueEvent event;
  queue_->Record(event);
  queue->WaitFor(event);
  std::vector<uint32_t> values(kBytes / 4);
  ASSERT_TRUE(queue->CopyDeviceToHost(values.data(), there, kBytes).ok());
  EXPECT_FALSE(event.Done());
  EXPECT_FALSE(queue->Idle());
  {
    std::lock_guard<std::mutex> lock(mutex);
    open = true;
  }
  queue->Wait();
  EXPECT_TRUE(event.Done());
  for (size_t i = 0; i < values.size(); i += 1) ASSERT_EQ(values[i], 0x01020304u) << i;
  EXPECT_TRUE(queue->TakeStatus().ok());
  EXPECT_TRUE(queue_->TakeStatus().ok());
}

}  // namespace
}  // namespace xpu::opencl
