// Events and timers.
#include <cstdint>

#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

TEST(Timers, MeasureRealTime) {
  Core core;
  SP_Timer timer = nullptr;
  core.se.create_timer(&core.device, &timer, Checked());
  EXPECT_EQ(core.timer_fns.nanoseconds(timer), 0u);
  core.se.start_timer(&core.device, core.compute, timer, Checked());
  core.Enqueue(core.compute, [] { Sleep(20); });
  core.se.stop_timer(&core.device, core.compute, timer, Checked());
  const double ms = static_cast<double>(core.timer_fns.nanoseconds(timer)) * 1e-6;
  EXPECT_GE(ms, 20);
  EXPECT_LT(ms, 60);
  core.se.destroy_timer(&core.device, timer);
}

}  // namespace
}  // namespace xpu
