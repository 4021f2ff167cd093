// host_callback: once, in order, what its function may do, and what becomes of its status.
#include <atomic>
#include <string>
#include <vector>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

void Once(const Subject& subject) {
  Device d(subject);
  auto& calls = *new std::atomic<int>(0);
  d.Callback(d.compute, [&calls] {
    ++calls;
    return TF_OK;
  });
  d.Finish(d.compute);
  Await("a host callback was not called", [&] { return calls > 0; });
  Sleep(kWhile);
  if (calls != 1) Fail("a host callback was called ", calls, " times");
}

void Order(const Subject& subject) {
  Device d(subject);
  constexpr int kTimes = 500;
  auto& order = *new std::vector<int>;
  Gate& gate = d.Close(d.compute);
  for (int i = 0; i < kTimes; ++i) {
    d.Callback(d.compute, [&order, i] {
      order.push_back(i);
      return TF_OK;
    });
  }
  gate.Open();
  d.Finish(d.compute);
  for (int i = 0; i < kTimes; ++i) {
    if (static_cast<int>(order.size()) <= i) Fail(order.size(), " of ", kTimes, " callbacks were called");
    if (order[i] != i) Fail("host callback ", order[i], " ran in the place of ", i);
  }
}

void AfterWork(const Subject& subject) {
  Device d(subject);
  constexpr uint64_t kSize = 4 << 20;
  SP_DeviceMemoryBase memory = d.Allocate(kSize);
  d.Write(memory, Bytes(kSize, 1));
  uint8_t* seen = d.AllocateHost(kSize);
  for (int i = 0; i < 8; ++i) d.Do(&SE::memset, d.compute, &memory, uint8_t{2}, kSize);
  d.Do(&SE::memcpy_dtoh, d.compute, static_cast<void*>(seen), &memory, kSize);
  auto& last = *new std::atomic<int>(-1);
  d.Callback(d.compute, [&last, seen] {
    last = seen[kSize - 1];
    return TF_OK;
  });
  Await("a host callback was not called", [&] { return last >= 0; });
  if (last != 2) Fail("a host callback ran before the copy enqueued before it");
}

void BlocksAlone(const Subject& subject) {
  Device d(subject);
  Gate& gate = d.Close(d.compute);
  Await("a host callback was not called", [&] { return gate.reached(); });
  d.Callback(d.d2h, [] { return TF_OK; });
  OfferedIfItGetsOn(d, d.d2h, gate, "a host callback that blocks holds back those of other streams");
}

void MayEnqueue(const Subject& subject) {
  Device d(subject);
  constexpr uint64_t kSize = 4096;
  SP_DeviceMemoryBase own = d.Allocate(kSize), others = d.Allocate(kSize);
  d.Write(own, Bytes(kSize, 1));
  d.Write(others, Bytes(kSize, 1));
  auto& ran = *new std::atomic<int>(0);
  const auto enqueue = [&](SP_Stream stream, SP_DeviceMemoryBase& memory) {
    d.Do(&SE::memset, stream, &memory, uint8_t{2}, kSize);
    d.Callback(stream, [&ran] {
      ++ran;
      return TF_OK;
    });
  };
  Gate& gate = d.Close(d.compute);  // not offered where callbacks run on the calling thread
  d.Callback(d.compute, [&] {
    enqueue(d.compute, own);
    enqueue(d.d2d, others);
    return TF_OK;
  });
  gate.Open();
  Await("what a host callback enqueued did not run", [&] { return ran >= 2; });
  RequireSame("what a host callback enqueued on its own stream", d.Read(own, kSize), Bytes(kSize, 2));
  RequireSame("what a host callback enqueued on another stream", d.Read(others, kSize), Bytes(kSize, 2));
}

// Enqueues a callback that fails.
void FailOn(Device& d, SP_Stream stream) {
  d.Callback(stream, [] { return TF_DATA_LOSS; });
}

void StatusArrives(const Subject& subject) {
  Device d(subject);
  FailOn(d, d.compute);
  Status wait, look, all;
  if (d.platform.executor.block_host_until_done) d.Ask(&SE::block_host_until_done, d.compute, wait.get());
  FailOn(d, d.compute);
  d.Ask(&SE::synchronize_all_activity, all.get());
  FailOn(d, d.compute);
  const SP_Event event = d.Record(d.compute);
  Await("the event behind a callback that failed did not complete",
        [&] { return d.Ask(&SE::get_event_status, event) != SE_EVENT_PENDING; });
  d.Ask(&SE::get_stream_status, d.compute, look.get());
  if (wait.ok() && look.ok() && all.ok()) {
    Fail(
        "the status of a host callback is dropped: get_stream_status, block_host_until_done and "
        "synchronize_all_activity are all OK");
  }
}

void EventsStay(const Subject& subject) {
  Device d(subject);
  FailOn(d, d.compute);
  const SP_Event event = d.Record(d.compute);
  Await("the event behind a callback that failed did not complete", [&] { return d.Complete(event); });
}

void LaterWorkRuns(const Subject& subject) {
  Device d(subject);
  FailOn(d, d.compute);
  auto& ran = *new std::atomic<bool>(false);
  d.Callback(d.compute, [&ran] {
    ran = true;
    return TF_OK;
  });
  Await("work enqueued behind a callback that failed did not run", [&] { return ran.load(); });
}

}  // namespace

std::vector<Check> CallbackChecks() {
  return {
      {"callbacks.once", "host_callback returns true and runs its function once.", Once},
      {"callbacks.order", "500 host callbacks on a stream run in order.", Order},
      {"callbacks.after_work", "A host callback runs after the copies enqueued before it.", AfterWork},
      {"callbacks.blocking", "While a host callback blocks, those of other streams run.", BlocksAlone},
      {"callbacks.enqueue", "A host callback may enqueue work, on its own stream too.", MayEnqueue},
      {"callbacks.status",
       "The status that a host callback sets arrives in one of get_stream_status, block_host_until_done and "
       "synchronize_all_activity.",
       StatusArrives},
      {"callbacks.events", "It does not arrive in an event: TensorFlow ends the process over an event in error.",
       EventsStay},
      {"callbacks.later_work", "Work behind a host callback that failed still runs.", LaterWorkRuns},
  };
}

}  // namespace xpu::conformance
