// Questions to the process, and how the loader writes what it has to say.
#include "tensorflow_plugin/loader/process.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/loader/json.h"
#include "tensorflow_plugin/loader/tests/files.h"

namespace xpu::loader {
namespace {

TEST(Process, FindsObjectsAndTheirSymbols) {
  const std::string libc = ObjectOf(reinterpret_cast<const void*>(&gnu_get_libc_version));
  ASSERT_NE(libc, "");
  const std::vector<std::string> loaded = LoadedObjects();
  EXPECT_EQ(std::count(loaded.begin(), loaded.end(), libc), 1) << libc;
  EXPECT_EQ(SymbolOfObject(libc, "gnu_get_libc_version"), dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  EXPECT_EQ(SymbolOfObject(libc, "no_such_function"), nullptr);
  EXPECT_EQ(SymbolOfObject("/no/such/library.so", "gnu_get_libc_version"), nullptr);
  EXPECT_EQ(TensorFlowSymbol("TF_Version"), nullptr) << "there is no TensorFlow in this process";
  EXPECT_EQ(ObjectOf(nullptr), "");
}

TEST(Process, NamesFolders) {
  EXPECT_EQ(DirName("/a/b/c"), "/a/b");
  EXPECT_EQ(DirName("/c"), "/");
  EXPECT_EQ(DirName("c"), ".");
  const std::string folder = NewFolder();
  WriteFile(folder + "/x", "");
  std::vector<std::string> names = ListFolder(folder);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{".", "..", "x"}));
  EXPECT_TRUE(ListFolder(folder + "/none").empty());
}

// The end of the last segment that is loaded decides; symbols behind it may be missing.
TEST(Process, ALibraryThatWasCutShortIsNotWhole) {
  EXPECT_TRUE(IsWholeLibrary(ObjectOf(reinterpret_cast<const void*>(&gnu_get_libc_version))));
  struct {
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[2];
    char code[100];
  } library = {};
  std::memcpy(library.header.e_ident, ELFMAG, SELFMAG);
  library.header.e_phoff = sizeof(library.header);
  library.header.e_phentsize = sizeof(library.segments[0]);
  library.header.e_phnum = 2;
  library.segments[0].p_type = PT_NOTE;  // is not loaded
  library.segments[0].p_filesz = 1 << 20;
  library.segments[1].p_type = PT_LOAD;
  library.segments[1].p_offset = offsetof(decltype(library), code);
  library.segments[1].p_filesz = 90;
  const std::string bytes(reinterpret_cast<const char*>(&library), sizeof(library)), path = NewFolder() + "/some.so";
  const size_t end = library.segments[1].p_offset + 90;
  EXPECT_TRUE(IsWholeLibrary(WriteFile(path, bytes)));
  EXPECT_TRUE(IsWholeLibrary(WriteFile(path, bytes.substr(0, end))));
  for (const size_t size : {end - 1, end - 90, sizeof(library.header) + 1, size_t{10}, size_t{0}}) {
    EXPECT_FALSE(IsWholeLibrary(WriteFile(path, bytes.substr(0, size)))) << size;
  }
  EXPECT_FALSE(IsWholeLibrary(WriteFile(path, std::string(1000, 'x'))));
  EXPECT_FALSE(IsWholeLibrary(path + ".none"));
}

TEST(Process, AWarningIsOneLine) {
  ::testing::internal::CaptureStderr();
  Warn("first\nsecond\r\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tensorflow_xpu: first second  \n");
}

TEST(Json, StringsAreEscaped) {
  EXPECT_EQ(JsonString("a\"b\\c\n\x01é"), R"("a\"b\\c\u000a\u0001é")");
  EXPECT_EQ(JsonStrings(std::vector<std::string>{}), "[]");
  EXPECT_EQ(JsonStrings(std::vector<std::string>{"a", ""}), R"(["a", ""])");
}

}  // namespace
}  // namespace xpu::loader
