// The configuration file: where it is, what it may say, and that the environment comes first.
#include "tensorflow_plugin/loader/settings.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "tensorflow_plugin/loader/tests/files.h"

namespace xpu::loader {
namespace {

using Values = std::map<std::string, std::string>;

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    for (const char* name : {"TF_XPU_CONFIG", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "TF_XPU_ISA", "TF_XPU_THREADS"}) {
      unsetenv(name);
    }
    setenv("HOME", folder_.c_str(), 1);
  }
  Settings Read(const std::string& text) { return ReadSettings(WriteFile(folder_ + "/config", text)); }
  // tensorflow_xpu/config in this folder of the test's.
  std::string WriteConfig(const std::string& folder, const std::string& text) {
    return WriteFile(MakeFolder(MakeFolder(folder_ + folder) + "/tensorflow_xpu") + "/config", text);
  }

  const std::string folder_ = NewFolder();
};

TEST_F(SettingsTest, AreLinesOfNameAndValue) {
  const Settings settings =
      Read("# a comment\n\n  TF_XPU_ISA = avx2 \r\nTF_XPU_FAULT=alloc:fail@3,copy:delay=20ms\nTF_XPU_THREADS=\n");
  EXPECT_EQ(settings.error, "");
  EXPECT_EQ(settings.values,
            (Values{{"TF_XPU_ISA", "avx2"}, {"TF_XPU_FAULT", "alloc:fail@3,copy:delay=20ms"}, {"TF_XPU_THREADS", ""}}));
}

TEST_F(SettingsTest, AFileWithAMistakeSaysNothing) {
  for (const char* line : {"TF_XPU_ISA", "PATH=/bin", "TF_XPU_=1", "TF_XPU_CONFIG=/x", "TF_XPU_isa=avx2", "=1",
                           "TF_XPU_THREADS=2"}) {  // the last is there twice
    const Settings settings = Read(std::string("TF_XPU_THREADS=1\n") + line + "\n");
    EXPECT_TRUE(settings.values.empty()) << line;
    EXPECT_NE(settings.error.find("/config:2 has \"" + std::string(line) + "\""), std::string::npos) << settings.error;
  }
}

TEST_F(SettingsTest, AFileThatCannotBeReadIsAnError) {
  EXPECT_EQ(ReadSettings(folder_ + "/none").error, folder_ + "/none cannot be read");
  EXPECT_EQ(ReadSettings(folder_).error, folder_ + " cannot be read");
}

TEST_F(SettingsTest, TheFileIsTheFirstOfTheFolders) {
  EXPECT_EQ(SettingsPath(), "");
  const std::string second = WriteConfig("/second", ""), first = WriteConfig("/first", "");
  // A folder without a file, and one that is not absolute, are passed over.
  ASSERT_EQ(chdir(folder_.c_str()), 0);
  setenv("XDG_CONFIG_DIRS", ("/nowhere:second:" + folder_ + "/first:" + folder_ + "/second").c_str(), 1);
  EXPECT_EQ(SettingsPath(), first);
  const std::string of_home = WriteConfig("/.config", "");
  EXPECT_EQ(SettingsPath(), of_home);
  const std::string of_user = WriteConfig("/user", "");
  setenv("XDG_CONFIG_HOME", (folder_ + "/user").c_str(), 1);
  EXPECT_EQ(SettingsPath(), of_user);
  setenv("XDG_CONFIG_HOME", "user", 1);
  EXPECT_EQ(SettingsPath(), of_home);
  setenv("TF_XPU_CONFIG", "/another", 1);
  EXPECT_EQ(SettingsPath(), "/another");
  setenv("TF_XPU_CONFIG", "none", 1);
  EXPECT_EQ(SettingsPath(), "");
}

TEST_F(SettingsTest, TheEnvironmentComesFirst) {
  setenv("TF_XPU_CONFIG", WriteFile(folder_ + "/chosen", "TF_XPU_ISA=avx2\nTF_XPU_THREADS=3\n").c_str(), 1);
  setenv("TF_XPU_ISA", "", 1);  // an empty value is one, too
  const Settings settings = ApplySettings();
  EXPECT_EQ(settings.values, (Values{{"TF_XPU_THREADS", "3"}}));
  EXPECT_STREQ(std::getenv("TF_XPU_ISA"), "");
  EXPECT_STREQ(std::getenv("TF_XPU_THREADS"), "3");
  setenv("TF_XPU_CONFIG", "none", 1);
  EXPECT_TRUE(ApplySettings().path.empty());
}

}  // namespace
}  // namespace xpu::loader
