// Two GPUs of a stand-in for the driver: each has a context of its own, and copies go from one to the other.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cuda/device.h"
#include "tensorflow_plugin/backends/cuda/tests/lists.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_ins.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::cuda {
namespace {

class Peers : public OnStandIns {
 protected:
  static void SetUpTestSuite() {
    setenv("STAND_IN_DEVICES", "2", 1);
    OnStandIns::SetUpTestSuite();
  }
  void SetUp() override {
    OnStandIns::SetUp();
    const Status status = TheBackend().CreateDevice(1, BackendOptions(), &other_);
    ASSERT_TRUE(status.ok()) << status.message();
    other_stream_ = other_->CreateStream();
  }
  void TearDown() override {
    other_stream_ = nullptr;
    other_ = nullptr;
    OnStandIns::TearDown();
  }
  void ExpectNoFailure() {
    for (Stream* stream : {stream_.get(), other_stream_.get()}) {
      stream->Wait();
      const Status status = stream->TakeStatus();
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }

  std::unique_ptr<Device> other_;
  std::unique_ptr<Stream> other_stream_;
};

TEST_F(Peers, EachGpuIsADevice) {
  BackendOptions options;
  EXPECT_EQ(TheBackend().DeviceCount(options), 2);
  EXPECT_EQ(device_->info().pci_bus_id, "0000:3b:00.0");
  EXPECT_EQ(other_->info().pci_bus_id, "0000:3c:00.0");
  EXPECT_EQ(other_->info().memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(TheBackend().TotalMemory(), int64_t{2} << 30);
  options.device_count = 3;
  DeviceInfo info;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(TheBackend().Describe(i, options, &info).ok());
    EXPECT_EQ(info.memory_bytes, int64_t{1} << (i == 1 ? 30 : 29)) << i;
  }
}

TEST_F(Peers, EachMayAccessTheOthersMemory) {
  EXPECT_EQ(Calls("cuCtxEnablePeerAccess"), 2);
  BackendOptions options;
  options.device_count = 4;
  std::unique_ptr<Device> third;
  ASSERT_TRUE(TheBackend().CreateDevice(2, options, &third).ok());
  EXPECT_EQ(Calls("cuCtxEnablePeerAccess"), 2);  // it shares the first one's context
}

// As TensorFlow does it: on a stream of the source, behind all that uses the destination.
TEST_F(Peers, CopiesWaitForBothDevices) {
  constexpr size_t kBytes = 1 << 20;
  std::vector<char> numbers(kBytes), seen(kBytes), seen_before(kBytes);
  for (size_t i = 0; i < kBytes; ++i) numbers[i] = static_cast<char>(i * 7 + i / 1000);
  void* const from = device_->Allocate(kBytes);
  void* const to = other_->Allocate(kBytes);
  std::atomic<bool> open{false}, open_first{false};
  stream_->HostCallback([&] {
    while (!open_first) std::this_thread::yield();
    return OkStatus();
  });
  ASSERT_TRUE(stream_->CopyHostToDevice(from, numbers.data(), kBytes).ok());
  ASSERT_TRUE(other_stream_->Memset(to, 5, kBytes).ok());
  other_stream_->HostCallback([&] {
    while (!open) std::this_thread::yield();
    return OkStatus();
  });
  ASSERT_TRUE(other_stream_->CopyDeviceToHost(seen_before.data(), to, kBytes).ok());
  const std::unique_ptr<Stream> copies = device_->CreateStream();
  copies->WaitFor(*stream_);
  copies->WaitFor(*other_stream_);
  ASSERT_TRUE(copies->CopyDeviceToDevice(to, from, kBytes).ok());
  stream_->WaitFor(*copies);
  ASSERT_TRUE(stream_->Memset(from, 9, kBytes).ok());
  other_stream_->WaitFor(*copies);
  ASSERT_TRUE(other_stream_->CopyDeviceToHost(seen.data(), to, kBytes).ok());
  open = true;
  open_first = true;
  other_stream_->Wait();
  EXPECT_EQ(seen_before, std::vector<char>(kBytes, 5));
  EXPECT_EQ(seen, numbers);
  ExpectNoFailure();
  EXPECT_TRUE(copies->TakeStatus().ok());
}

// Each command goes to the context of its stream, whatever the thread did before.
TEST_F(Peers, ListsRunOnBoth) {
  const std::shared_ptr<const CommandList> list = Sums();
  struct One {
    Device& device;
    Stream& stream;
    std::unique_ptr<Executable> executable;
    char* addresses[2];
  };
  std::vector<One> both;
  both.push_back({*device_, *stream_, nullptr, {}});
  both.push_back({*other_, *other_stream_, nullptr, {}});
  for (One& one : both) {
    one.executable = one.device.Prepare(list, {});
    for (char*& address : one.addresses) address = static_cast<char*>(one.device.Allocate(64));
  }
  for (int run = 0; run < 3; ++run) {
    for (One& one : both) {
      int failed = -1;
      const Status status = one.executable->Run(one.stream, one.addresses, nullptr, &failed);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }
  ExpectNoFailure();
  EXPECT_EQ(Launches().size(), 18u);
  EXPECT_EQ(Calls("cuGraphInstantiateWithFlags"), 2);
  // A profiler asks for times on both, a copy reads each.
  ASSERT_TRUE(trace::Start());
  float numbers[16];
  for (One& one : both) {
    ASSERT_TRUE(one.stream.CopyDeviceToHost(numbers, one.addresses[1], sizeof(numbers)).ok());
    one.stream.Wait();
  }
  EXPECT_EQ(trace::Stop().events.size(), 2u);
  ExpectNoFailure();
}

TEST_F(Peers, ProductsRunOnBoth) {
  MatMulDesc desc;
  desc.m = desc.n = desc.k = 1;
  const float three = 3, four = 4;
  for (auto [device, stream] : {std::pair{device_.get(), stream_.get()}, {other_.get(), other_stream_.get()}}) {
    Args args{};
    void* blocks[3];
    for (void*& block : blocks) block = device->Allocate(sizeof(float));
    ASSERT_TRUE(stream->CopyHostToDevice(blocks[0], &three, sizeof(three)).ok());
    ASSERT_TRUE(stream->CopyHostToDevice(blocks[1], &four, sizeof(four)).ok());
    args.in[0] = blocks[0];
    args.in[1] = blocks[1];
    args.out[0] = blocks[2];
    ASSERT_TRUE(device->Launch(*stream, desc, args).ok());
    float product = 0;
    ASSERT_TRUE(stream->Read(&product, blocks[2], sizeof(product)).ok());
    EXPECT_EQ(product, 12);
  }
  ExpectNoFailure();
}

}  // namespace
}  // namespace xpu::cuda
