// Copies and fills: their bytes, and the order in which they see memory.
#include <cstdint>
#include <vector>

#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

// Copies there and back as TensorFlow chains them: dependency, copy, event, poll.
TEST(Copies, ThereAndBack) {
  for (bool isolate : {false, true}) {
    BackendOptions options = OneThread();
    options.isolate_memory = isolate;
    Core core(options);
    for (uint64_t size : {uint64_t{16}, uint64_t{3} << 20}) {
      std::vector<uint8_t> from(size), to(size);
      for (uint64_t i = 0; i < size; ++i) from[i] = static_cast<uint8_t>(i * 7);
      SP_DeviceMemoryBase a = core.Allocate(size), b = core.Allocate(size);
      SP_Event event = nullptr;
      core.se.create_event(&core.device, &event, Checked());
      EXPECT_EQ(core.se.get_event_status(&core.device, event), SE_EVENT_COMPLETE);
      core.se.create_stream_dependency(&core.device, core.h2d, core.compute, Checked());
      core.se.memcpy_htod(&core.device, core.h2d, &a, from.data(), size, Checked());
      core.se.record_event(&core.device, core.h2d, event, Checked());
      core.se.wait_for_event(&core.device, core.compute, event, Checked());
      core.se.memcpy_dtod(&core.device, core.compute, &b, &a, size, Checked());
      core.se.create_stream_dependency(&core.device, core.d2h, core.compute, Checked());
      core.se.memcpy_dtoh(&core.device, core.d2h, to.data(), &b, size, Checked());
      core.se.record_event(&core.device, core.d2h, event, Checked());
      while (core.se.get_event_status(&core.device, event) == SE_EVENT_PENDING) Sleep(0);
      EXPECT_EQ(core.se.get_event_status(&core.device, event), SE_EVENT_COMPLETE);
      EXPECT_EQ(to, from);

      core.se.mem_zero(&core.device, core.compute, &a, size, Checked());
      core.se.memset32(&core.device, core.compute, &b, 0x01010101, size, Checked());
      core.se.synchronize_all_activity(&core.device, Checked());
      core.se.sync_memcpy_dtoh(&core.device, to.data(), &a, size, Checked());
      EXPECT_EQ(to, std::vector<uint8_t>(size, 0));
      core.se.sync_memcpy_dtoh(&core.device, to.data(), &b, size, Checked());
      EXPECT_EQ(to, std::vector<uint8_t>(size, 1));
      core.se.memset(&core.device, core.compute, &a, 9, size, Checked());
      core.se.sync_memcpy_dtod(&core.device, &b, &a, size, Checked());
      core.se.sync_memcpy_dtoh(&core.device, to.data(), &b, size, Checked());
      EXPECT_EQ(to, std::vector<uint8_t>(size, 9));
      core.se.sync_memcpy_htod(&core.device, &a, from.data(), size, Checked());
      core.se.sync_memcpy_dtoh(&core.device, to.data(), &a, size, Checked());
      EXPECT_EQ(to, from);
      core.se.destroy_event(&core.device, event);
      core.se.deallocate(&core.device, &a);
      core.se.deallocate(&core.device, &b);
    }
  }
}

// TensorFlow copies between devices on a stream of the sender, which waits for the compute streams of both. The copy
// comes after the work that makes its source, and after earlier uses of its target.
TEST(Copies, FromDeviceToDeviceBehindQueuedWork) {
  for (bool isolate : {false, true}) {
    BackendOptions options = OneThread();
    options.isolate_memory = isolate;
    Core sender(options), receiver(options, 1);
    constexpr uint64_t kBytes = 1 << 20;
    SP_DeviceMemoryBase from = sender.Allocate(kBytes), to = receiver.Allocate(kBytes);
    for (uint32_t round = 1; round <= 3; ++round) {
      sender.Enqueue(sender.compute, [] { Sleep(10); });
      sender.se.memset32(&sender.device, sender.compute, &from, round, kBytes, Checked());
      receiver.Enqueue(receiver.compute, [] { Sleep(20); });
      receiver.se.memset32(&receiver.device, receiver.compute, &to, 99, kBytes, Checked());
      sender.se.create_stream_dependency(&sender.device, sender.d2h, sender.compute, Checked());
      sender.se.create_stream_dependency(&sender.device, sender.d2h, receiver.compute, Checked());
      sender.se.memcpy_dtod(&sender.device, sender.d2h, &to, &from, kBytes, Checked());
      sender.se.block_host_until_done(&sender.device, sender.d2h, Checked());
      std::vector<uint32_t> seen(kBytes / sizeof(uint32_t));
      receiver.se.sync_memcpy_dtoh(&receiver.device, seen.data(), &to, kBytes, Checked());
      EXPECT_EQ(seen, std::vector<uint32_t>(seen.size(), round));
    }
  }
}

// Fills touch what they are told to and nothing beside, at any size and, for bytes, any address.
TEST(Fills, OfEverySizeAndNothingBeside) {
  constexpr uint64_t kSize = 4096;
  Core core;
  SP_DeviceMemoryBase memory = core.Allocate(kSize);
  for (uint64_t offset : {0, 1, 3, 4, 64, 255}) {
    for (uint64_t size : {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 63, 64, 65, 255, 256, 257, 1000, 2048}) {
      SP_DeviceMemoryBase part = memory;
      part.opaque = static_cast<char*>(memory.opaque) + offset;
      part.size = size;
      const auto expect = [&](std::vector<uint8_t> pattern, auto fill) {
        core.se.memset(&core.device, core.compute, &memory, 0xa5, kSize, Checked());
        fill();
        std::vector<uint8_t> expected(kSize, 0xa5);
        for (uint64_t i = 0; i < size; ++i) expected[offset + i] = pattern[i % pattern.size()];
        EXPECT_EQ(core.Read(memory), expected) << size << " bytes at " << offset;
      };
      expect({7}, [&] { core.se.memset(&core.device, core.compute, &part, 7, size, Checked()); });
      expect({0}, [&] { core.se.mem_zero(&core.device, core.compute, &part, size, Checked()); });
      if (size % 4 != 0 || offset % 4 != 0) continue;
      expect({1, 2, 3, 4}, [&] { core.se.memset32(&core.device, core.compute, &part, 0x04030201, size, Checked()); });
    }
  }
}

TEST(Fills, AndCopiesThatMakeNoSenseAreErrorsAtOnce) {
  Core core;
  SP_DeviceMemoryBase memory = core.Allocate(64), odd = memory, null{SP_DEVICE_MEMORY_BASE_STRUCT_SIZE};
  odd.opaque = static_cast<char*>(memory.opaque) + 2;
  char host[64];
  const auto message = [&](auto call) {
    const Failure failure = StatusOf(call);
    EXPECT_EQ(failure.code, TF_INVALID_ARGUMENT);
    return failure.message;
  };
  const SP_Device* d = &core.device;
  SP_Stream s = core.compute;
  EXPECT_EQ(message([&](TF_Status* t) { core.se.memset32(d, s, &memory, 0, 6, t); }),
            "memset32 of 6 bytes, which is no multiple of 4");
  EXPECT_NE(message([&](TF_Status* t) { core.se.memset32(d, s, &odd, 0, 8, t); }).find("not aligned to 4 bytes"),
            std::string::npos);
  EXPECT_EQ(message([&](TF_Status* t) { core.se.memset(d, s, &null, 0, 9, t); }),
            "memset of 9 bytes at a null address");
  EXPECT_EQ(message([&](TF_Status* t) { core.se.memcpy_htod(d, s, &null, host, 9, t); }),
            "copy to of 9 bytes at a null address");
  EXPECT_EQ(message([&](TF_Status* t) { core.se.memcpy_dtoh(d, s, nullptr, &memory, 9, t); }),
            "copy to of 9 bytes at a null address");
  EXPECT_EQ(message([&](TF_Status* t) { core.se.sync_memcpy_dtod(d, &memory, &null, 9, t); }),
            "copy from of 9 bytes at a null address");
  // Copies of nothing work at any address: tensors without elements have none.
  core.se.memcpy_htod(d, s, &null, nullptr, 0, Checked());
  core.se.memcpy_dtoh(d, s, nullptr, &null, 0, Checked());
  core.se.memcpy_dtod(d, s, &null, &null, 0, Checked());
  core.se.sync_memcpy_dtoh(d, nullptr, &null, 0, Checked());
  core.se.mem_zero(d, s, &null, 0, Checked());
  core.se.memset(d, s, &null, 1, 0, Checked());
  core.se.memset32(d, s, &null, 1, 0, Checked());
  core.se.block_host_until_done(d, s, Checked());
}

// A copy that blocks the host comes without a stream: it sees all work enqueued before it, and is done on return.
TEST(Copies, ThatBlockWaitForQueuedWork) {
  Core core;
  SP_DeviceMemoryBase a = core.Allocate(64), b = core.Allocate(64);
  core.se.memset(&core.device, core.compute, &a, 1, 64, Checked());
  core.Enqueue(core.compute, [] { Sleep(20); });
  core.se.memset(&core.device, core.compute, &a, 2, 64, Checked());
  core.se.sync_memcpy_dtod(&core.device, &b, &a, 64, Checked());
  EXPECT_TRUE(core.compute->stream->Idle());
  core.se.memset(&core.device, core.compute, &a, 3, 64, Checked());
  EXPECT_EQ(core.Read(b), std::vector<uint8_t>(64, 2));
  core.Enqueue(core.d2h, [] { Sleep(20); });
  core.se.memset(&core.device, core.d2h, &a, 4, 64, Checked());
  EXPECT_EQ(core.Read(a), std::vector<uint8_t>(64, 4));
}

// Rule 4 of stream_executor.cc, for each way to copy to the device. A delayed command on any stream reads memory that
// TensorFlow has freed meanwhile and filled anew for a constant. TensorFlow asks for no dependency.
class CopyToDevice : public ::testing::TestWithParam<bool> {};
TEST_P(CopyToDevice, WaitsForQueuedWorkThatUsesTheMemory) {
  const bool blocking = GetParam();
  Core core;
  SP_Stream last = nullptr;
  core.se.create_stream(&core.device, &last, Checked());
  SP_DeviceMemoryBase memory = core.Allocate(4), result = core.Allocate(4);
  for (SP_Stream busy : {core.compute, core.d2h, last}) {
    const int32_t old_value = 10, new_value = 777;
    int32_t seen = 0;
    core.se.sync_memcpy_htod(&core.device, &memory, &old_value, 4, Checked());
    core.Enqueue(busy, [] { Sleep(30); });
    core.se.memcpy_dtod(&core.device, busy, &result, &memory, 4, Checked());
    if (blocking) {
      core.se.sync_memcpy_htod(&core.device, &memory, &new_value, 4, Checked());
    } else {
      core.se.memcpy_htod(&core.device, core.h2d, &memory, &new_value, 4, Checked());
    }
    core.se.synchronize_all_activity(&core.device, Checked());
    core.se.sync_memcpy_dtoh(&core.device, &seen, &result, 4, Checked());
    EXPECT_EQ(seen, old_value);
    core.se.sync_memcpy_dtoh(&core.device, &seen, &memory, 4, Checked());
    EXPECT_EQ(seen, new_value);
  }
  core.se.destroy_stream(&core.device, last);
}
INSTANTIATE_TEST_SUITE_P(Order, CopyToDevice, ::testing::Bool());

}  // namespace
}  // namespace xpu
