#include "tensorflow_plugin/backends/backends.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace xpu {
namespace {

TEST(Backends, AreFoundByTheirSubdeviceType) {
  std::set<std::string> names;
  for (const Backend* backend : Backends()) {
    EXPECT_TRUE(names.insert(backend->subdevice_type()).second)
        << backend->subdevice_type() << " is in the table twice";
    EXPECT_EQ(FindBackend(backend->subdevice_type()), backend);
  }
  EXPECT_STREQ(Backends().front()->subdevice_type(), "XPU_HOST");  // the default
  EXPECT_NE(FindBackend("XPU_REFERENCE"), nullptr);
}

TEST(Backends, OfOtherNamesThereAreNone) {
  for (const char* name : {"", "XPU", "xpu_host", "XPU_HOST "}) EXPECT_EQ(FindBackend(name), nullptr) << name;
}

}  // namespace
}  // namespace xpu
