// Devices on host memory: streams, events, timers, launches and failures.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/host_runtime/tests/runtime_testing.h"

namespace xpu::host_runtime {
namespace {

TEST(Stream, EventsFollowTheirPointInTheOrder) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  auto event = device->CreateEvent();
  EXPECT_TRUE(event->Done());
  stream->HostCallback([] {
    Sleep(30);
    return OkStatus();
  });
  stream->Record(*event);
  EXPECT_FALSE(event->Done());
  std::atomic<bool> go{false};
  stream->HostCallback([&] {
    while (!go) Sleep(1);
    return OkStatus();
  });
  event->Wait();
  EXPECT_TRUE(event->Done());
  EXPECT_FALSE(stream->Idle());
  go = true;
  stream->Wait();
}

TEST(Stream, CopiesWithTheHostAreDoneAtOnceWhenIdle) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  std::vector<char> host(8 << 20, 1), back(host.size());  // far more than what is cheap
  void* memory = device->Allocate(host.size());
  EXPECT_TRUE(stream->CopyHostToDevice(memory, host.data(), host.size()).ok());
  EXPECT_TRUE(stream->Idle());
  EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), memory, host.size()).ok());
  EXPECT_TRUE(stream->Idle());
  EXPECT_EQ(back, host);
  // Behind queued work they are queued.
  std::atomic<bool> go{false};
  stream->HostCallback([&] {
    while (!go) Sleep(1);
    host[0] = 2;
    return OkStatus();
  });
  EXPECT_TRUE(stream->CopyHostToDevice(memory, host.data(), host.size()).ok());
  EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), memory, host.size()).ok());
  EXPECT_FALSE(stream->Idle());
  go = true;
  stream->Wait();
  EXPECT_EQ(back[0], 2);
}

TEST(Stream, WaitForEventOfADestroyedStream) {
  auto device = NewDevice();
  auto event = device->CreateEvent();
  auto stream = device->CreateStream();
  stream->HostCallback([] { return OkStatus(); });
  stream->Record(*event);
  stream.reset();
  EXPECT_TRUE(event->Done());
  auto other = device->CreateStream();
  other->WaitFor(*event);
  other->Wait();
}

TEST(Stream, HostCallbacksNeverRunOnTheSubmittingThread) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  std::mutex held;
  std::lock_guard<std::mutex> lock(held);
  std::thread::id ran_on;
  stream->HostCallback([&] {
    ran_on = std::this_thread::get_id();
    return errors::Unimplemented("from a callback");
  });
  stream->Wait();
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_EQ(stream->TakeStatus().message(), "from a callback");
}

TEST(Stream, TimerMeasuresWhatRanBetween) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  auto timer = device->CreateTimer();
  EXPECT_EQ(timer->Nanoseconds(), 0u);
  timer->Stop(*stream);
  EXPECT_EQ(timer->Nanoseconds(), 0u);
  auto sleep = [](int ms) {
    return [ms] {
      Sleep(ms);
      return OkStatus();
    };
  };
  stream->HostCallback(sleep(50));  // before Start: does not count
  timer->Start(*stream);
  stream->HostCallback(sleep(20));
  timer->Stop(*stream);
  stream->HostCallback(sleep(50));  // after Stop: neither
  const double ms = static_cast<double>(timer->Nanoseconds()) * 1e-6;
  EXPECT_GE(ms, 20);
  EXPECT_LT(ms, 45);
  timer->Start(*stream);
  EXPECT_EQ(timer->Nanoseconds(), 0u);  // stopped no longer
  timer.reset();                        // the command outlives it
}

TEST(Stream, CopiesAndFills) {
  for (bool isolate : {false, true}) {
    auto device = NewDevice(isolate);
    auto stream = device->CreateStream();
    for (size_t n : {1u, 4u, 1000u, 9u << 20}) {
      std::vector<uint8_t> host(n), back(n);
      for (size_t i = 0; i < n; ++i) host[i] = static_cast<uint8_t>(i * 31);
      void* a = device->Allocate(n);
      void* b = device->Allocate(n);
      ASSERT_NE(a, nullptr);
      ASSERT_NE(b, nullptr);
      EXPECT_TRUE(stream->CopyHostToDevice(a, host.data(), n).ok());
      EXPECT_TRUE(stream->CopyDeviceToDevice(b, a, n).ok());
      EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), b, n).ok());
      stream->Wait();
      EXPECT_EQ(back, host);
      EXPECT_TRUE(stream->Memset(b, 0x5a, n).ok());
      EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), b, n).ok());
      stream->Wait();
      EXPECT_EQ(back, std::vector<uint8_t>(n, 0x5a));
      if (n % 4 == 0) {
        EXPECT_TRUE(stream->MemsetU32(b, 0x01020304, n).ok());
        EXPECT_TRUE(stream->CopyDeviceToHost(back.data(), b, n).ok());
        stream->Wait();
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(back[i], 4 - i % 4) << i;
      } else {
        EXPECT_EQ(stream->MemsetU32(b, 1, n).code(), Code::kInvalidArgument);
      }
      device->Deallocate(a);
      device->Deallocate(b);
    }
    EXPECT_TRUE(stream->CopyHostToDevice(nullptr, nullptr, 0).ok());
    EXPECT_EQ(stream->CopyHostToDevice(nullptr, "x", 1).code(), Code::kInvalidArgument);
  }
}

TEST(Device, LaunchesAreOrderedWithCopies) {
  auto device = NewDevice(true);
  auto stream = device->CreateStream();
  auto* memory = static_cast<float*>(device->Allocate(kQueued * 4));
  Args args{};
  args.out[0] = memory;
  EXPECT_TRUE(stream->Memset(memory, 0, kQueued * 4).ok());
  EXPECT_TRUE(device->Launch(*stream, FillOnes(kQueued, 20), args).ok());
  float value = -1;
  EXPECT_TRUE(stream->CopyDeviceToHost(&value, memory + kQueued - 1, 4).ok());
  stream->Wait();
  EXPECT_EQ(value, 1.0f);
}

TEST(Device, LaunchCopiesItsDescriptor) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  const int64_t n = 1 << 20;
  auto* memory = static_cast<char*>(device->Allocate(2 * n));
  stream->HostCallback([] {
    Sleep(20);
    return OkStatus();
  });
  EXPECT_TRUE(stream->Memset(memory, 3, n).ok());
  CopyStridedDesc desc;
  desc.element_size = 1;
  desc.shape = {n};
  desc.src_strides = desc.dst_strides = {1};
  Args args{};
  args.in[0] = memory;
  args.out[0] = memory + n;
  EXPECT_TRUE(device->Launch(*stream, desc, args).ok());
  desc.shape = {0};
  args.out[0] = nullptr;
  char value = 0;
  EXPECT_TRUE(stream->CopyDeviceToHost(&value, memory + 2 * n - 1, 1).ok());
  stream->Wait();
  EXPECT_EQ(value, 3);
  EXPECT_EQ(desc.shape[0], 0);  // the compiler may not forget it before
}

TEST(Device, FailuresGoWhereTheyWereAskedFor) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  void* memory = device->Allocate(1024);
  GatherDesc desc;
  desc.element_size = 4;
  desc.dims = {3};
  Args args{};
  args.in[0] = args.in[1] = args.out[0] = memory;
  for (int64_t num_indices : {1, 1 << 20}) {  // without a status at once, and queued
    desc.num_indices = num_indices;
    Status status;
    args.status = &status;
    EXPECT_TRUE(device->Launch(*stream, desc, args).ok());
    EXPECT_TRUE(stream->Idle());
    EXPECT_EQ(status.message(), "index 7 is out of range");
    EXPECT_TRUE(stream->PeekStatus().ok());
    args.status = nullptr;
    EXPECT_TRUE(device->Launch(*stream, desc, args).ok());
    stream->Wait();
    EXPECT_EQ(stream->TakeStatus().message(), "index 7 is out of range");
  }
  SoftmaxDesc softmax;
  softmax.rows = softmax.cols = 1;
  Status status;
  args.status = &status;
  EXPECT_TRUE(device->Launch(*stream, softmax, args).ok());
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
}

TEST(Device, LaunchRefusesWhatWouldCrash) {
  auto device = NewDevice();
  auto stream = device->CreateStream();
  void* memory = device->Allocate(1024);
  Args args{};
  args.in[0] = args.out[0] = memory;
  ElementwiseDesc desc;
  EXPECT_EQ(device->Launch(*stream, desc, args).code(), Code::kInvalidArgument);  // no program
  desc.program = SingleOpProgram(Opcode::kNeg, DType::kFloat);
  desc.shape = {2, 2};
  desc.in_strides[0] = {1};
  EXPECT_EQ(device->Launch(*stream, desc, args).message(),
            "Elementwise: input strides [1] for the shape [2,2]: the ranks differ");
  desc.in_strides[0] = {2, 1};
  EXPECT_TRUE(device->Launch(*stream, desc, args).ok());
  args.in[0] = nullptr;
  EXPECT_EQ(device->Launch(*stream, desc, args).message(), "input 0 of a command has elements but a null address");
  desc.shape = {2, 0};
  EXPECT_TRUE(device->Launch(*stream, desc, args).ok());  // empty: nothing is touched
  desc.shape = {-2, 2};
  EXPECT_EQ(device->Launch(*stream, desc, args).message(), "Elementwise: an extent is -2, expected 0 or more");
  desc.shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(device->Launch(*stream, desc, args).code(), Code::kInvalidArgument);
  desc.shape = {2, 2};
  args.in[0] = memory;
  desc.program = SingleOpProgram(Opcode::kExp, DType::kFloat);
  EXPECT_EQ(device->Launch(*stream, desc, args).message(), "this XPU backend does not implement Exp of float");
  stream->Wait();
  EXPECT_TRUE(stream->TakeStatus().ok());
}

TEST(Device, SynchronizeAndDeallocateWaitForAllStreams) {
  auto device = NewDevice();
  auto a = device->CreateStream(), b = device->CreateStream();
  auto* memory = static_cast<float*>(device->Allocate(2 * kQueued * 4));
  Args args{};
  args.out[0] = memory;
  EXPECT_TRUE(device->Launch(*a, FillOnes(kQueued, 20), args).ok());
  args.out[0] = memory + kQueued;
  EXPECT_TRUE(device->Launch(*b, FillOnes(kQueued, 30), args).ok());
  device->Synchronize();
  EXPECT_TRUE(a->Idle());
  EXPECT_TRUE(b->Idle());
  EXPECT_TRUE(device->Launch(*b, FillOnes(kQueued, 30), args).ok());
  device->Deallocate(memory);  // the sleeping command has written before the memory went
  EXPECT_TRUE(b->Idle());
}

TEST(Device, SynchronousRunsOnTheCallingThreadOnHostAddresses) {
  auto device = HostBackend("XPU_TEST", kKernels).NewHostExecutor(2);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->Allocate(16), nullptr);
  auto stream = device->CreateStream();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        std::vector<float> out(kQueued / 64);
        Args args{};
        Status status;
        args.status = &status;
        args.out[0] = out.data();
        if (!device->Launch(*stream, FillOnes(kQueued / 64), args).ok()) return;
        good += out.back() == 1.0f && status.ok();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 800);
  EXPECT_TRUE(stream->Idle());
}

#if !defined(__SANITIZE_THREAD__)
// A process that ends with work queued and running ends: it neither hangs nor crashes.
TEST(ExitTest, QueuedWorkDoesNotHoldUpTheProcess) {
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      static Device* const device = NewDevice().release();  // none is destroyed, none is lost
      static Stream* const stream = device->CreateStream().release();
      static Stream* const other = device->CreateStream().release();
      void* memory = device->Allocate(1 << 20);
      stream->HostCallback([] {
        Sleep(5);
        return OkStatus();
      });
      other->WaitFor(*stream);
      for (int i = 0; i < 2000; ++i) {
        (void)stream->Memset(memory, 1, 1 << 20);
        (void)other->Memset(memory, 1, 1 << 20);
      }
      std::exit(0);
    }
    int status = -1;
    const auto deadline = steady_clock::now() + std::chrono::seconds(10);
    while (waitpid(child, &status, WNOHANG) == 0 && steady_clock::now() < deadline) Sleep(1);
    ASSERT_NE(status, -1) << "still running";
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}
#endif

}  // namespace
}  // namespace xpu::host_runtime
