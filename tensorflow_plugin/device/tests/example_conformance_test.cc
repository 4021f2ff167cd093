// The example backend, under the device layer as TensorFlow would have it, passes every check of conformance but
// those that it need not offer.
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/harness.h"

namespace xpu::conformance {
namespace {

// It has one device, whose streams share one queue, and it is registered once.
const std::set<std::string> kNotOffered = {
    "callbacks.blocking", "devices.apart",   "devices.copy_between",           "memory.unified",
    "registration.again", "streams.overlap", "streams.dependency_on_the_past",
};

TEST(Example, PassesWhatItOffers) {
  Limits limits;
  limits.timeout = Milliseconds(20000);
  limits.jobs = 4;
  std::set<std::string> not_offered;
  const Subject subject{"tensorflow_plugin/device/tests/libexample_plugin.so"};
  RunChecks(AllChecks(), subject, limits, [&](const Result& result) {
    EXPECT_NE(result.outcome, Outcome::kFail) << result.check->name << ": " << result.reason << " " << result.output;
    if (result.outcome == Outcome::kNotOffered) not_offered.insert(result.check->name);
  });
  EXPECT_EQ(not_offered, kNotOffered);
}

}  // namespace
}  // namespace xpu::conformance
