// Registration with TensorFlow's own registry, which looks at a kernel no closer than this before an op wants one.
#include "tensorflow_plugin/framework/registry.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/backends.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

struct Nothing final : OpKernel {
  explicit Nothing(Construction&) {}
  Status Compute(Context&) override { return OkStatus(); }
};

TEST(Registry, TakesTheOpsOfEveryBackend) {
  for (const Backend* backend : Backends()) {
    const int before = Registry::num_entries();
    Registry registry(*backend, backend->subdevice_type());
    RegisterAllOps(registry);
    EXPECT_EQ(registry.problems(), std::vector<std::string>());
    EXPECT_GT(registry.num_registered(), 2000);
    const int entries = Registry::num_entries() - before;
    std::cout << backend->subdevice_type() << ": " << registry.num_registered() << " kernels, " << entries << " of "
              << Registry::kMaxEntries << " entries\n";
    // Before there are too many: make kMaxEntries larger.
    EXPECT_LE(entries, Registry::kMaxEntries - 256);
  }
}

TEST(Registry, SaysThatATypeIsNone) {
  Registry registry(*Backends()[0], "NONE");
  registry.Op("XpuTestNoType").Types("T", {DType::kInvalid}).OnHost().Kernel<Nothing>();
  ASSERT_EQ(registry.problems().size(), 1u);
  EXPECT_EQ(registry.problems()[0].find("XpuTestNoType: "), 0u);
  EXPECT_EQ(registry.num_registered(), 0);
}

// The last test: it leaves no entry to others.
TEST(Registry, SaysWhichOpsNoLongerFit) {
  Registry registry(*Backends()[0], "MANY");
  while (Registry::num_entries() < Registry::kMaxEntries) registry.Op("XpuTestFits").Kernel<Nothing>();
  EXPECT_EQ(registry.problems(), std::vector<std::string>());
  const int registered = registry.num_registered();
  registry.Op("XpuTestDoesNot").Kernel<Nothing>();
  EXPECT_EQ(registry.problems(), std::vector<std::string>{"XpuTestDoesNot: all 4096 entries are taken"});
  EXPECT_EQ(registry.num_registered(), registered);
}

}  // namespace
}  // namespace xpu
