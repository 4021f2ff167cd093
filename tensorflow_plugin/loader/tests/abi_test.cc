// Which TensorFlow a core was built for, and whether another one has the same headers.
#include "tensorflow_plugin/loader/abi.h"

#include <string>

#include "gtest/gtest.h"
#include "tensorflow_plugin/loader/tests/files.h"

namespace xpu::loader {
namespace {

TEST(Abi, TheListOfHeadersIsComparedWithTheFiles) {
  const std::string folder = NewFolder(), core = folder + "/libtensorflow_xpu_core_2_22.so";
  EXPECT_EQ(BuiltFor(core), "");
  // The checksum of "123456789" is the test value of this CRC, 0xcbf43926.
  WriteFile(folder + "/libtensorflow_xpu_core_2_22.abi",
            "tensorflow 2.22.0-rc0\ncbf43926 9 core/one.h\n00000000 0 core/two.h\n");
  EXPECT_EQ(BuiltFor(core), "2.22.0-rc0");
  const std::string include = MakeFolder(MakeFolder(folder + "/include") + "/core");
  WriteFile(include + "/one.h", "123456789");
  WriteFile(include + "/two.h", "");
  EXPECT_EQ(DifferingHeader(core, folder), "");
  WriteFile(include + "/two.h", "\n");  // another size
  EXPECT_EQ(DifferingHeader(core, folder), "core/two.h");
  WriteFile(include + "/two.h", "");
  WriteFile(include + "/one.h", "123456780");  // the same size
  EXPECT_EQ(DifferingHeader(core, folder), "core/one.h");
  EXPECT_EQ(DifferingHeader(core, folder + "/nowhere"), "core/one.h");
}

TEST(Abi, AFileThatSaysNothingIsForNoTensorflow) {
  const std::string folder = NewFolder();
  WriteFile(folder + "/core.abi", "pytorch 2.22.0\n");
  EXPECT_EQ(BuiltFor(folder + "/core.so"), "");
}

TEST(Abi, PrereleasesHaveLetters) {
  EXPECT_FALSE(IsPrerelease("2.21.0"));
  EXPECT_TRUE(IsPrerelease("2.22.0-rc0"));
  EXPECT_TRUE(IsPrerelease("2.22.0-dev20260905"));
}

}  // namespace
}  // namespace xpu::loader
