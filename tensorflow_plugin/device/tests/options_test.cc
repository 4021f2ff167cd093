#include "tensorflow_plugin/device/options.h"

#include <cstdlib>

#include "gtest/gtest.h"
#include "tensorflow_plugin/device/describe.h"

namespace xpu {
namespace {

const std::vector<std::string> kSubdevices = {"XPU_HOST", "XPU_REFERENCE"};
const std::vector<std::string> kPasses = {"First", "Second", "Third"};

int64_t TotalMemory(const std::string&) { return int64_t{8} << 30; }

class OptionsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"TF_XPU_SUBDEVICE", "TF_XPU_DEVICE_COUNT", "TF_XPU_MEMORY_LIMIT", "TF_XPU_ISOLATE_MEMORY", "TF_XPU_ALLOCATOR",
          "TF_XPU_LARGE_PAGES", "TF_XPU_THREADS", "TF_XPU_FAULT", "TF_XPU_DEVICE_TYPE", "TF_XPU_FUSION_WITHOUT"}) {
      unsetenv(name);
    }
  }
  // Reads the options with one variable set.
  Options Read(const char* name, const char* value) {
    setenv(name, value, 1);
    warnings_.clear();
    const Options options = ReadOptions(kSubdevices, kPasses, TotalMemory, &warnings_);
    unsetenv(name);
    return options;
  }
  std::vector<std::string> warnings_;
};

TEST_F(OptionsTest, Defaults) {
  const Options options = ReadOptions(kSubdevices, kPasses, TotalMemory, &warnings_);
  EXPECT_EQ(options.subdevice, "XPU_HOST");
  EXPECT_EQ(options.backend.device_count, 1);
  EXPECT_EQ(options.backend.memory_limit, 0);
  EXPECT_EQ(options.backend.threads, 0);
  EXPECT_FALSE(options.backend.isolate_memory);
  EXPECT_EQ(options.device_type, "XPU");
  EXPECT_FALSE(options.backend.pool_memory);
  EXPECT_TRUE(options.backend.large_pages);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(OptionsTest, GoodValues) {
  EXPECT_EQ(Read("TF_XPU_SUBDEVICE", "XPU_REFERENCE").subdevice, "XPU_REFERENCE");
  EXPECT_EQ(Read("TF_XPU_DEVICE_COUNT", "4").backend.device_count, 4);
  EXPECT_EQ(Read("TF_XPU_DEVICE_COUNT", "64").backend.device_count, 64);
  EXPECT_EQ(Read("TF_XPU_MEMORY_LIMIT", "2GiB").backend.memory_limit, int64_t{2} << 30);
  EXPECT_EQ(Read("TF_XPU_MEMORY_LIMIT", "512MB").backend.memory_limit, 512000000);
  EXPECT_EQ(Read("TF_XPU_MEMORY_LIMIT", "1073741824").backend.memory_limit, int64_t{1} << 30);
  EXPECT_EQ(Read("TF_XPU_THREADS", "3").backend.threads, 3);
  EXPECT_EQ(Read("TF_XPU_THREADS", "1024").backend.threads, 1024);
  EXPECT_EQ(Read("TF_XPU_FAULT", "alloc:fail@3,copy:delay=20ms").faults.size(), 2u);
  EXPECT_EQ(Read("TF_XPU_MEMORY_LIMIT", "1MiB").backend.memory_limit, 1 << 20);
  EXPECT_GT(Read("TF_XPU_MEMORY_LIMIT", "50%").backend.memory_limit, 0);
  EXPECT_TRUE(Read("TF_XPU_ISOLATE_MEMORY", "1").backend.isolate_memory);
  EXPECT_EQ(Read("TF_XPU_FUSION_WITHOUT", "Third,First").without_passes, (std::vector<std::string>{"Third", "First"}));
  EXPECT_FALSE(Read("TF_XPU_DIRECT_CALLS", "0").direct_calls);
  EXPECT_TRUE(Read("TF_XPU_DIRECT_CALLS", "1").direct_calls);
  EXPECT_TRUE(Read("TF_XPU_FUSION_WITHOUT", "").without_passes.empty());
  EXPECT_FALSE(Read("TF_XPU_ISOLATE_MEMORY", "0").backend.isolate_memory);
  EXPECT_EQ(Read("TF_XPU_DEVICE_TYPE", "GPU").device_type, "GPU");
  EXPECT_EQ(Read("TF_XPU_DEVICE_TYPE", "XPU").device_type, "XPU");
  EXPECT_TRUE(Read("TF_XPU_ALLOCATOR", "pool").backend.pool_memory);
  EXPECT_FALSE(Read("TF_XPU_ALLOCATOR", "bfc").backend.pool_memory);
  EXPECT_FALSE(Read("TF_XPU_LARGE_PAGES", "0").backend.large_pages);
  EXPECT_TRUE(Read("TF_XPU_LARGE_PAGES", "1").backend.large_pages);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(OptionsTest, BadValuesAreNamedAndTheDefaultIsUsed) {
  const struct {
    const char* name;
    const char* value;
  } cases[] = {
      {"TF_XPU_SUBDEVICE", "XPU_BANANA"},
      {"TF_XPU_SUBDEVICE", "xpu_host"},
      {"TF_XPU_DEVICE_COUNT", "abc"},
      {"TF_XPU_DEVICE_COUNT", "-1"},
      {"TF_XPU_DEVICE_COUNT", "0"},
      {"TF_XPU_DEVICE_COUNT", "65"},
      {"TF_XPU_DEVICE_COUNT", "2.5"},
      {"TF_XPU_DEVICE_COUNT", " 2"},
      {"TF_XPU_DEVICE_COUNT", "99999999999999999999"},
      {"TF_XPU_DIRECT_CALLS", "no"},
      {"TF_XPU_FUSION_WITHOUT", "Fourth"},
      {"TF_XPU_FUSION_WITHOUT", "First, Second"},
      {"TF_XPU_MEMORY_LIMIT", "lots"},
      {"TF_XPU_MEMORY_LIMIT", "-1GiB"},
      {"TF_XPU_MEMORY_LIMIT", "101%"},
      {"TF_XPU_MEMORY_LIMIT", "1"},
      {"TF_XPU_MEMORY_LIMIT", "4 GiB"},
      {"TF_XPU_MEMORY_LIMIT", "9999999999GiB"},
      {"TF_XPU_MEMORY_LIMIT", "512mb"},
      {"TF_XPU_MEMORY_LIMIT", "80 %"},
      {"TF_XPU_MEMORY_LIMIT", "1.5GiB"},
      {"TF_XPU_ALLOCATOR", "cuda_malloc_async"},
      {"TF_XPU_ALLOCATOR", "Pool"},
      {"TF_XPU_DEVICE_TYPE", "gpu"},
      {"TF_XPU_DEVICE_TYPE", "CPU"},
      {"TF_XPU_LARGE_PAGES", "yes"},
      {"TF_XPU_THREADS", "0"},
      {"TF_XPU_THREADS", "many"},
      {"TF_XPU_THREADS", "1025"},
      {"TF_XPU_FAULT", "alloc:fail@3,copy"},
      {"TF_XPU_MEMORY_LIMIT", "0%"},
      {"TF_XPU_MEMORY_LIMIT", "0"},
      {"TF_XPU_ISOLATE_MEMORY", "maybe"},
  };
  for (const auto& c : cases) {
    const Options options = Read(c.name, c.value);
    ASSERT_EQ(warnings_.size(), 1u) << c.name << "=" << c.value;
    EXPECT_NE(warnings_[0].find(std::string(c.name) + "=" + c.value + " is ignored: expected "), std::string::npos)
        << warnings_[0];
    EXPECT_EQ(options.subdevice, "XPU_HOST");
    EXPECT_EQ(options.backend.device_count, 1);
    EXPECT_EQ(options.backend.memory_limit, 0);
    EXPECT_EQ(options.backend.threads, 0);
    EXPECT_TRUE(options.faults.empty());
    EXPECT_FALSE(options.backend.isolate_memory);
    EXPECT_FALSE(options.backend.pool_memory);
    EXPECT_TRUE(options.backend.large_pages);
  }
}

TEST(ParseMemorySizeTest, Units) {
  EXPECT_EQ(ParseMemorySize("1048576", 0), 1 << 20);
  EXPECT_EQ(ParseMemorySize("1048575", 0), 0);
  EXPECT_EQ(ParseMemorySize("1024KiB", 0), 1 << 20);
  EXPECT_EQ(ParseMemorySize("3MiB", 0), 3 << 20);
  EXPECT_EQ(ParseMemorySize("1TiB", 0), int64_t{1} << 40);
  EXPECT_EQ(ParseMemorySize("1048KB", 0), 0);
  EXPECT_EQ(ParseMemorySize("1049KB", 0), 1049000);
  EXPECT_EQ(ParseMemorySize("3MB", 0), 3000000);
  EXPECT_EQ(ParseMemorySize("2GB", 0), 2000000000);
  EXPECT_EQ(ParseMemorySize("1TB", 0), 1000000000000);
  EXPECT_EQ(ParseMemorySize("9999999TB", 0), 0);
  EXPECT_EQ(ParseMemorySize("16777217TiB", 0), 0);  // one more than 2^64 bytes hold: 1TiB, if that went unseen
  EXPECT_EQ(ParseMemorySize("25%", int64_t{4} << 30), (int64_t{4} << 30) / 100 * 25);
  EXPECT_EQ(ParseMemorySize("100%", int64_t{4} << 30), (int64_t{4} << 30) / 100 * 100);
  EXPECT_EQ(ParseMemorySize("1%", 1 << 20), 1 << 20);  // no less than can be asked for
  EXPECT_EQ(ParseMemorySize("", 1 << 30), 0);
  EXPECT_EQ(ParseMemorySize("MiB", 1 << 30), 0);
}

TEST(DescribeTest, Json) {
  Options options;
  options.subdevice = "XPU_HOST";
  options.backend.device_count = 2;
  options.backend.memory_limit = 99;
  options.backend.isolate_memory = true;
  DeviceInfo known, unknown;
  known.hardware_name = "a \"quoted\"\nname";
  known.vendor = "somebody";
  known.pci_bus_id = "ffff:00:00.0";
  known.numa_node = 3;
  known.memory_bytes = 42;
  known.bandwidth_bytes_per_s = 7;
  known.gflops = 1.5;
  known.instruction_set = "avx2";
  options.device_type = "XPU";
  const std::string json = DescribeDevices(kSubdevices, options, {options.subdevice, {known, unknown}, ""});
  for (const char* part : {
           "{\"subdevice_type\": \"XPU_HOST\", \"instruction_set\": \"avx2\", \"subdevice_types\": [\"XPU_HOST\", "
           "\"XPU_REFERENCE\"], \"options\": {\"device_count\": 2, \"memory_limit\": 99, \"isolate\": true}, "
           "\"devices\": [{\"ordinal\": 0, \"device_type\": \"XPU\", \"subdevice_type\": \"XPU_HOST\", "
           "\"hardware_name\": "
           "\"a \\\"quoted\\\"\\u000aname\", \"vendor\": \"somebody\", \"pci_bus_id\": \"ffff:00:00.0\", "
           "\"numa_node\": 3, "
           "\"memory_bytes\": 42, \"instruction_set\": \"avx2\", \"bandwidth_bytes_per_s\": 7, \"gflops\": 1.5}, "
           "{\"ordinal\": 1, ",
           "\"numa_node\": null, \"memory_bytes\": 0, \"instruction_set\": \"\", \"bandwidth_bytes_per_s\": null, "
           "\"gflops\": null}], \"why_none\": \"\"}",
       }) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
  const std::string none = DescribeDevices(kSubdevices, options, {"XPU_HOST", {}, "no driver"});
  EXPECT_NE(none.find("\"devices\": [], \"why_none\": \"no driver\"}"), std::string::npos) << none;
  const std::string others =
      DescribeDevices(options, {{"XPU_A", {}, ""}, {"XPU_B", {known}, ""}, {"XPU_C", {unknown, known}, ""}});
  EXPECT_EQ(others.rfind("[{\"ordinal\": 0, \"device_type\": \"XPU\", \"subdevice_type\": \"XPU_B\"", 0), 0u) << others;
  EXPECT_NE(others.find("}, {\"ordinal\": 1, \"device_type\": \"XPU\", \"subdevice_type\": \"XPU_C\""),
            std::string::npos);
}

TEST_F(OptionsTest, AWarningNamesTheFileThatAValueIsFrom) {
  SettingCameFrom("TF_XPU_THREADS", "/some/file");
  Read("TF_XPU_THREADS", "0");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0].rfind("TF_XPU_THREADS=0 (in /some/file) is ignored: ", 0), 0u) << warnings_[0];
}

}  // namespace
}  // namespace xpu
