// Files that tests write.
#ifndef TENSORFLOW_PLUGIN_LOADER_TESTS_FILES_H_
#define TENSORFLOW_PLUGIN_LOADER_TESTS_FILES_H_

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace xpu::loader {

// A new folder of this test's.
inline std::string NewFolder() {
  std::string path = ::testing::TempDir() + "/loader_XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

inline std::string MakeFolder(const std::string& path) {
  EXPECT_EQ(mkdir(path.c_str(), 0700), 0) << path;
  return path;
}

inline std::string WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace xpu::loader

#endif  // TENSORFLOW_PLUGIN_LOADER_TESTS_FILES_H_
