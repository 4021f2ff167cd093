// The contract of Deallocate and HostCallback in backend.h, through Device. Conformance sees the C API alone, and
// cannot tell of primitives and of the contents of a callback.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/tests/device_under_test.h"

namespace xpu::testing {
namespace {

constexpr int64_t kElements = 1 << 16;
constexpr size_t kBytes = kElements * sizeof(float);

class Contract : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(BackendUnderTest().CreateDevice(0, OptionsUnderTest(1), &device_).ok());
    stream_ = device_->CreateStream();
  }
  void TearDown() override {
    open_.set_value();
    stream_->Wait();
    stream_.reset();
    for (void* memory : memory_) device_->Deallocate(memory);
  }

  void* Allocate() {
    memory_.push_back(device_->Allocate(kBytes));
    EXPECT_NE(memory_.back(), nullptr);
    return memory_.back();
  }
  // Holds the stream back until the gate is opened.
  void Close() {
    stream_->HostCallback([open = open_.get_future().share()] {
      open.wait();
      return OkStatus();
    });
  }
  void Open() {
    open_.set_value();
    open_ = {};
  }
  void Copy(void* to, const void* from) {
    CopyStridedDesc desc;
    desc.element_size = sizeof(float);
    desc.shape = {kElements};
    desc.src_strides = desc.dst_strides = {1};
    Args args{};
    args.in[0] = from;
    args.out[0] = to;
    EXPECT_TRUE(device_->Launch(*stream_, desc, args).ok());
  }
  void Write(void* to, const std::vector<float>& values) {
    EXPECT_TRUE(stream_->CopyHostToDevice(to, values.data(), kBytes).ok());
    stream_->Wait();
  }
  std::vector<float> Read(const void* from) {
    std::vector<float> values(kElements, -1);
    EXPECT_TRUE(stream_->CopyDeviceToHost(values.data(), from, kBytes).ok());
    stream_->Wait();
    return values;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<void*> memory_;
  std::promise<void> open_;
};

std::vector<float> Numbers() {
  std::vector<float> numbers(kElements);
  for (int64_t i = 0; i < kElements; ++i) numbers[i] = static_cast<float>(i + 1);
  return numbers;
}

TEST_F(Contract, QueuedCommandsFindMemoryThatWasGivenBack) {
  void* const to = Allocate();
  void* const from = device_->Allocate(kBytes);
  Write(from, Numbers());
  Close();
  Copy(to, from);
  void* next = nullptr;
  std::thread gives_back([&] {  // a device may wait for the stream here
    device_->Deallocate(from);
    next = Allocate();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Open();
  gives_back.join();
  EXPECT_TRUE(stream_->Memset(next, 0xff, kBytes).ok());  // its next owner's command
  EXPECT_EQ(Read(to), Numbers());
}

TEST_F(Contract, WhatACallbackHoldsIsGoneBeforeLaterCommandsRun) {
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = held;
  std::atomic<bool> ran{false}, gone{false};
  Close();
  stream_->HostCallback([held = std::move(held), &ran] {
    ran = true;
    return OkStatus();
  });
  stream_->HostCallback([&] {
    gone = watched.expired();
    return OkStatus();
  });
  Open();
  stream_->Wait();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(gone);
}

TEST_F(Contract, ACallbackRunsOnAnotherThreadAndMayEnqueue) {
  void* const from = Allocate();
  void* const to = Allocate();
  Write(from, Numbers());
  Write(to, std::vector<float>(kElements));
  std::promise<std::thread::id> thread;
  stream_->HostCallback([&] {
    Copy(to, from);
    thread.set_value(std::this_thread::get_id());
    return OkStatus();
  });
  EXPECT_NE(thread.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ(Read(to), Numbers());
}

TEST_F(Contract, TheFailureOfACallbackIsTheStreamsAndLaterCommandsRun) {
  void* const from = Allocate();
  void* const to = Allocate();
  Write(from, Numbers());
  stream_->HostCallback([] { return errors::NotFound("nothing there"); });
  stream_->HostCallback([] { return errors::Internal("not the first"); });
  Copy(to, from);
  EXPECT_EQ(Read(to), Numbers());
  EXPECT_EQ(stream_->PeekStatus().code(), Code::kNotFound);
  const Status status = stream_->TakeStatus();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("nothing there"), std::string::npos) << status.message();
  EXPECT_TRUE(stream_->TakeStatus().ok());
}

}  // namespace
}  // namespace xpu::testing
