// Events: complete when the work before them is, again and again.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

// Records the event behind work that is held back, and looks.
void RecordAndLook(Device& d, SP_Event event, const char* which) {
  Gate& gate = d.Close(d.compute);
  d.Do(&SE::record_event, d.compute, event);
  for (int i = 0; i < 10; ++i) {
    if (d.Complete(event)) Fail("get_event_status says that an event ", which, " is complete before its work");
    Sleep(kWhile / 10);
  }
  gate.Open();
  Await(Text("an event ", which, " did not complete"), [&] { return d.Complete(event); });
  if (!d.Complete(event)) Fail("an event that was complete is pending again");
}

void Recorded(const Subject& subject) {
  Device d(subject);
  RecordAndLook(d, d.NewEvent(), "recorded once");
}

void RecordedAgain(const Subject& subject) {
  Device d(subject);
  const SP_Event event = d.NewEvent();
  d.Do(&SE::record_event, d.compute, event);
  Await("an event recorded on an idle stream did not complete", [&] { return d.Complete(event); });
  for (int i = 0; i < 3; ++i) RecordAndLook(d, event, "recorded again");
}

void Idle(const Subject& subject) {
  Device d(subject);
  for (int i = 0; i < 100; ++i) {
    const SP_Event event = d.Record(i % 2 ? d.compute : d.h2d);
    Await("an event recorded on an idle stream did not complete", [&] { return d.Complete(event); });
    d.Ask(&SE::destroy_event, event);
  }
}

void WaitForEvent(const Subject& subject) {
  Device d(subject);
  RequireHeldBack(d, "a stream did not wait for the event that wait_for_event named",
                  [&d] { d.Do(&SE::wait_for_event, d.d2h, d.Record(d.compute)); });
}

void BlockHostForEvent(const Subject& subject) {
  Device d(subject);
  auto& done = *new std::atomic<bool>(false);
  Gate& gate = d.Close(d.compute);
  d.Callback(d.compute, [&done] {
    done = true;
    return TF_OK;
  });
  const SP_Event event = d.Record(d.compute);
  gate.OpenAfter(kWhile);
  d.Do(&SE::block_host_for_event, event);
  if (!done) Fail("block_host_for_event returned before the event's work was done");
}

// As TensorFlow has it: a few events used over and over, recorded here and polled there.
void Pooled(const Subject& subject) {
  Device d(subject);
  std::vector<SP_Event> events;
  for (int i = 0; i < 8; ++i) events.push_back(d.NewEvent());
  std::atomic<int> recorded{0}, polled{0};
  constexpr int kTimes = 800;
  std::thread poller([&] {
    for (int i = 0; i < kTimes; ++i) {
      Await("an event was not recorded", [&] { return recorded > i; });
      const SP_Event event = events[i % events.size()];
      Await("an event that is used over and over did not complete", [&] { return d.Complete(event); });
      ++polled;
    }
  });
  SP_DeviceMemoryBase memory = d.Allocate(64);
  for (int i = 0; i < kTimes; ++i) {
    Await("an event did not come back", [&] { return polled + static_cast<int>(events.size()) > i; });
    d.Do(&SE::memset, d.compute, &memory, static_cast<uint8_t>(i), uint64_t{64});
    d.Do(&SE::record_event, d.compute, events[i % events.size()]);
    ++recorded;
  }
  poller.join();
  for (SP_Event event : events) d.Ask(&SE::destroy_event, event);
}

// The memory of the process, in bytes.
int64_t ResidentMemory() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void GivenBack(const Subject& subject) {
  Device d(subject);
  constexpr int kTimes = 50000, kQueued = 500;
  // An allocator keeps as much as was in use at the same time. So a stream that is slower than the host never has more
  // than kQueued records to make.
  const auto use = [&d](int times) {
    for (int i = 0; i < times; ++i) {
      const SP_Event event = d.Record(d.compute);
      d.Ask(&SE::destroy_event, event);
      if ((i + 1) % kQueued == 0) d.Finish(d.compute);
    }
    d.Finish(d.compute);
  };
  use(kTimes / 10);  // what is made once
  const int64_t before = ResidentMemory();
  use(kTimes);
  const int64_t kept = ResidentMemory() - before;
  if (kept > 16 * kTimes) Fail(kTimes, " events created, recorded and destroyed leave ", kept, " bytes");
}

}  // namespace

std::vector<Check> EventChecks() {
  return {
      {"events.recorded", "A recorded event is pending until the work before it is done, then complete.", Recorded},
      {"events.recorded_again", "An event that is recorded again is pending again.", RecordedAgain},
      {"events.idle", "An event recorded on an idle stream completes by itself.", Idle},
      {"events.wait_for_event", "After wait_for_event, what is enqueued on the stream waits for the event.",
       WaitForEvent},
      {"events.block_host_for_event", "block_host_for_event returns when the event is complete, not before.",
       BlockHostForEvent},
      {"events.pooled", "Eight events, recorded 800 times by one thread and polled by another, complete each time.",
       Pooled},
      {"events.given_back", "Events that were destroyed leave no memory.", GivenBack},
  };
}

}  // namespace xpu::conformance
