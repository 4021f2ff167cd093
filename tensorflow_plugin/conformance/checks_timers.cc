// Timers, against real durations.
#include <chrono>
#include <string>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

using Clock = std::chrono::steady_clock;

void RequireTimers(const Device& d) {
  const SP_StreamExecutor& se = d.platform.executor;
  if (!se.create_timer || !se.destroy_timer || !se.start_timer || !se.stop_timer || !d.platform.timer_fns.nanoseconds) {
    NotOffered("no timers: one of create_timer, destroy_timer, start_timer, stop_timer, nanoseconds is not set");
  }
}

uint64_t Nanoseconds(Device& d, SP_Timer timer) {
  Entering("nanoseconds");
  return d.platform.timer_fns.nanoseconds(timer);
}

// Times a callback that takes `time`; fails unless the timer says no less, and no more than the host saw.
void TimeOne(Device& d, SP_Timer timer, Milliseconds time) {
  const auto start = Clock::now();
  d.Do(&SE::start_timer, d.compute, timer);
  d.Callback(d.compute, [time] {
    Sleep(time);
    return TF_OK;
  });
  d.Do(&SE::stop_timer, d.compute, timer);
  d.Finish(d.compute);
  const double seen = static_cast<double>(Nanoseconds(d, timer)) * 1e-6;
  const std::chrono::duration<double, std::milli> host = Clock::now() - start;
  if (seen < time.count() * 0.9 || seen > host.count() * 1.1) {
    Fail("a timer says ", seen, " ms for work of ", time.count(), " ms, which took the host ", host.count(), " ms");
  }
}

void Durations(const Subject& subject) {
  Device d(subject);
  RequireTimers(d);
  for (int ms : {5, 20, 60}) {
    SP_Timer timer = nullptr;
    d.Do(&SE::create_timer, &timer);
    TimeOne(d, timer, Milliseconds(ms));
    d.Ask(&SE::destroy_timer, timer);
  }
}

void Restarted(const Subject& subject) {
  Device d(subject);
  RequireTimers(d);
  SP_Timer timer = nullptr;
  d.Do(&SE::create_timer, &timer);
  for (int ms : {40, 10}) TimeOne(d, timer, Milliseconds(ms));
}

// The time before the work begins does not count.
void QueuedTime(const Subject& subject) {
  Device d(subject);
  RequireTimers(d);
  SP_Timer timer = nullptr;
  d.Do(&SE::create_timer, &timer);
  Gate& gate = d.Close(d.compute);
  d.Do(&SE::start_timer, d.compute, timer);
  d.Do(&SE::stop_timer, d.compute, timer);
  constexpr Milliseconds kHeld{100};
  Sleep(kHeld);
  gate.Open();
  d.Finish(d.compute);
  const double seen = static_cast<double>(Nanoseconds(d, timer)) * 1e-6;
  if (seen > kHeld.count() * 0.8) {
    Fail("a timer says ", seen, " ms for nothing: it counts the ", kHeld.count(), " ms before its stream got there");
  }
}

}  // namespace

std::vector<Check> TimerChecks() {
  return {
      {"timers.durations", "Timers say how long work took, compared with the host's clock.", Durations},
      {"timers.restarted", "A timer that is started again measures anew.", Restarted},
      {"timers.on_the_stream", "A timer measures on its stream: the time that its start waited in the queue is not in.",
       QueuedTime},
  };
}

}  // namespace xpu::conformance
