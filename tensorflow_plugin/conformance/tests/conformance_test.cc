// The checks pass on a correct library, and each finds the defect it is there for. The library of sample_plugin.cc is
// correct and can be made defective in eighty ways.
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/harness.h"

namespace xpu::conformance {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr char kFolder[] = "tensorflow_plugin/conformance/";

std::string Sample() { return std::string(kFolder) + "tests/libsample_plugin.so"; }

std::vector<Result> Examine(const std::string& library, Milliseconds timeout = Milliseconds(10000)) {
  std::vector<Result> results;
  Limits limits;
  limits.timeout = timeout * (kSanitized ? 3 : 1);
  limits.jobs = 8;
  RunChecks(AllChecks(), {library}, limits, [&](const Result& result) { results.push_back(result); });
  return results;
}

std::vector<Result> RunSample(const char* defect, Milliseconds timeout = Milliseconds(10000)) {
  setenv("SAMPLE_DEFECT", defect, 1);
  auto results = Examine(Sample(), timeout);
  unsetenv("SAMPLE_DEFECT");
  return results;
}

TEST(Conformance, ACorrectLibraryPasses) {
  for (const Result& result : RunSample("")) {
    // The address sanitizer keeps freed memory for a while.
    if (kSanitized && result.check->name == std::string("events.given_back")) continue;
    EXPECT_EQ(result.outcome, Outcome::kPass) << result.check->name << ": " << result.reason << " " << result.output;
  }
}

TEST(Conformance, NamesAreUnique) {
  std::set<std::string> names;
  for (const Check& check : AllChecks()) {
    EXPECT_TRUE(names.insert(check.name).second) << check.name;
    EXPECT_NE(std::string(check.name).find('.'), std::string::npos) << check.name;
    EXPECT_EQ(std::string(check.meaning).back(), '.') << check.name;
  }
}

// A check that must fail, and what its reason must hold.
struct Finding {
  const char* check;
  const char* reason;
};

struct Defect {
  const char* name;
  std::vector<Finding> found;
  // Checks that fail too where the race that the defect makes is lost.
  std::set<std::string> perhaps = {};
  Milliseconds timeout{10000};
};

void PrintTo(const Defect& defect, std::ostream* out) { *out << defect.name; }

class Defects : public testing::TestWithParam<Defect> {};

TEST_P(Defects, AreFound) {
  const Defect& defect = GetParam();
  if (kSanitized) GTEST_SKIP() << "a sanitizer has its own way with defects, and takes long";
  std::map<std::string, std::string> expected;
  for (const Finding& finding : defect.found) expected[finding.check] = finding.reason;
  for (const Result& result : RunSample(defect.name, defect.timeout)) {
    const auto it = expected.find(result.check->name);
    if (it == expected.end()) {
      const bool excused = result.outcome != Outcome::kFail || defect.perhaps.count(result.check->name);
      EXPECT_TRUE(excused) << result.check->name << ": " << result.reason;
    } else {
      EXPECT_EQ(result.outcome, Outcome::kFail) << result.check->name;
      EXPECT_NE(result.reason.find(it->second), std::string::npos) << result.check->name << ": " << result.reason;
    }
  }
}

const Defect kDefects[] = {
    // Registration
    {"refuses",
     {{"registration.succeeds", "SE_InitPlugin failed with code 13: the driver is too old"},
      {"registration.older_structs", "the driver is too old"},
      {"registration.future_structs", "the driver is too old"}}},
    {"bad_name", {{"registration.names", "name is \"Sample1\""}}},
    {"type_is_cpu", {{"registration.names", "SP_Platform::type is \"CPU\""}}},
    {"type_is_null", {{"registration.names", "SP_Platform::type is null"}}},
    {"struct_size_zero",
     {{"registration.succeeds", "a struct_size is 0 after SE_InitPlugin"},
      {"registration.older_structs", "SP_Platform: struct_size is left at 0"},
      {"registration.future_structs", "SP_Platform: struct_size is left at 0"},
      {"devices.create", "struct_size of device 0 is 0"}}},
    {"destroy_platform_missing", {{"registration.platform_callbacks", "not set: destroy_platform"}}},
    {"destroy_device_missing", {{"registration.platform_callbacks", "not set: destroy_device"}}},
    {"memset32_missing", {{"registration.executor_callbacks", "not set: memset32"}}},
    {"struct_overflow",
     {{"registration.older_structs", "SP_StreamExecutor: wrote 8 bytes beyond the 280 of its struct_size"}}},
    {"fills_future_fields", {{"registration.future_structs", "SP_StreamExecutor: filled a field at byte 288"}}},
    // Devices
    {"no_devices", {{"devices.count", "there are no devices"}}},
    {"count_negative", {{"devices.count", "get_device_count gives -1"}}},
    {"count_changes", {{"devices.count", "get_device_count gives 2, then 3"}}},
    {"count_slow", {{"devices.count", " ms; TensorFlow calls it very often"}}},
    {"wrong_ordinal", {{"devices.create", "the ordinal of device 0 is 7"}}},
    {"gflops_zero", {{"devices.describe", "get_gflops gives 0"}}},
    {"bandwidth_absurd", {{"devices.describe", "get_memory_bandwidth gives 1.15292e+18, more than any device has"}}},
    {"devices_do_not_wait", {{"devices.copy_between", "what device 1 had before a copy from device 0 came"}}},
    // Memory
    {"misaligned", {{"memory.alignment", "allocate(1) gives an address aligned to 32 bytes"}}},
    {"host_misaligned", {{"memory.alignment", "host_memory_allocate(1) gives an address aligned to 128 bytes"}}},
    {"allocations_without_size", {{"memory.allocate", "allocate(1) says size 0"}}},
    {"devices_share_memory", {{"devices.apart", "memory of device 0: byte 0"}}, {"devices.copy_between"}},
    {"small_ones_overlap", {{"memory.allocate", "one of several allocations, of 1 bytes"}}},
    {"null_is_an_error", {{"memory.deallocate_null", "crashed with signal 6 (Aborted); the last call was deallocate"}}},
    {"host_memory_overlaps", {{"memory.host", "host memory: byte 0 of 64 is 3, not 2"}}},
    {"no_unified_memory_after_all", {{"memory.unified", "unified_memory_allocate gives no 100000 bytes"}}},
    {"unified_memory_is_read_elsewhere", {{"memory.unified", "what the host wrote into unified memory"}}},
    {"unified_memory_is_written_elsewhere", {{"memory.unified", "what the device wrote into unified memory"}}},
    {"double_free",
     {{"devices.destroy", "the last call was deallocate"},
      {"memory.given_back", "crashed with signal"},
      {"memory.deallocate_in_use", "crashed with signal"},
      {"memory.deallocate_while_read", "crashed with signal"},
      {"memory.exhaustion", "crashed with signal"},
      {"memory.statistics", "crashed with signal"},
      {"threads.memory", "crashed with signal"}}},
    {"keeps_memory",
     {{"memory.given_back", "after 16 times as much was given back: deallocate keeps memory"},
      {"memory.exhaustion", "allocate gives no"},
      {"memory.statistics", "after all was given back"}}},
    {"freed_in_use",
     {{"memory.deallocate_in_use", "crashed with signal 11"},
      {"memory.deallocate_while_read", "crashed with signal 11"}}},
    {"allocates_without_looking", {{"memory.exhaustion", "allocate(2^60) gives memory"}}},
    {"no_limit", {{"memory.exhaustion", "device_memory_usage says that there are 268435456 in all"}}},
    {"usage_zero", {{"memory.usage", "device_memory_usage says 0 bytes in total"}}},
    {"usage_fails",
     {{"memory.usage", "device_memory_usage returns false"},
      {"memory.given_back", "device_memory_usage returns false"},
      {"memory.exhaustion", "device_memory_usage returns false"},
      {"memory.statistics", "device_memory_usage returns false"}}},
    {"usage_more_than_all", {{"memory.usage", "bytes free of 268435456"}}, {"memory.given_back"}},
    {"usage_inflated", {{"memory.exhaustion", "no quarter of the 4294967296 bytes of the device can be allocated"}}},
    {"usage_constant", {{"memory.usage", "and the same with"}}},
    {"statistics_constant", {{"memory.statistics", "bytes_in_use went from 0 to 0"}}},
    {"statistics_peak_late", {{"memory.statistics", "less than bytes_in_use"}}},
    {"statistics_forget_the_peak", {{"memory.statistics", "peak_bytes_in_use forgets the peak"}}},
    {"statistics_without_largest", {{"memory.statistics", "largest_alloc_size is 0 with"}}},
    {"statistics_leak", {{"memory.statistics", "bytes_in_use was 0 and is 67108864 after all was given back"}}},
    // Copies and fills
    {"dtoh_by_pairs",
     {{"copies.memcpy_dtoh", "memcpy_dtoh of 1 bytes"}, {"copies.chain", "copies chained over three streams"}}},
    {"htod_long", {{"copies.memcpy_htod", "memcpy_htod of 0 bytes"}}},
    {"dtod_by_words",
     {{"copies.memcpy_dtod", "memcpy_dtod of 1 bytes"},
      {"copies.chain", "copies chained"},
      {"devices.copy_between", "byte 70000 of 70001"}}},
    {"sync_htod_long", {{"copies.sync_memcpy_htod", "sync_memcpy_htod of 0 bytes"}}},
    {"sync_dtoh_aligns", {{"copies.sync_memcpy_dtoh", "sync_memcpy_dtoh of 1 bytes from offset 1"}}},
    {"sync_dtod_by_words", {{"copies.sync_memcpy_dtod", "sync_memcpy_dtod of 1 bytes"}}},
    {"htod_overtakes",
     {{"copies.after_compute", "memcpy_htod overtook work queued before it on the compute stream"}},
     {"copies.after_long_compute"}},
    {"htod_overtakes_long_work",
     {{"copies.after_compute", "memcpy_htod overtook work queued before it on the compute stream"},
      {"copies.after_long_compute", "memcpy_htod overtook work queued before it on the compute stream"}}},
    {"zero_long", {{"fills.mem_zero", "mem_zero of 0 bytes at offset 64: byte 64 of 128 is 0, not 238"}}},
    {"memset_aligns", {{"fills.memset", "memset of 0x5a of 1 bytes at offset 65"}, {"fills.mem_zero", "at offset 65"}}},
    {"memset32_writes_bytes", {{"fills.memset32", "byte 65 of 132 is 1, not 2"}}},
    // Streams
    {"few_streams", {{"streams.many", "create_stream failed with code 8: no more than 20 streams"}}},
    {"stream_leak", {{"streams.given_back", "100 streams created and destroyed leave 100 threads"}}},
    {"large_copies_late",
     {{"streams.order_under_load", "what step 1 of 8 saw: byte 0 of 1048576"},
      {"copies.memcpy_dtoh", "memcpy_dtoh of 5242893 bytes"},
      {"callbacks.after_work", "a host callback ran before the copy enqueued before it"}}},
    {"dependencies_run_out", {{"streams.back_and_forth", "what step 5"}}, {"copies.chain"}},
    {"copies_overtake",
     {{"streams.order", "a stream ran its commands out of order; what step 1 of 8 saw"}},
     {"copies.chain", "streams.order_under_load", "streams.dependency", "streams.back_and_forth",
      "callbacks.after_work", "threads.own_streams", "events.wait_for_event"}},
    {"dependency_ignored",
     {{"streams.dependency", "a stream did not wait for the one it was made to depend on"},
      {"devices.copy_between", "the copy from device 0 to device 1"}},
     {"copies.chain", "streams.back_and_forth"}},
    {"status_blocks", {{"streams.status", "get_stream_status waits for the stream's work"}}},
    {"block_returns_early", {{"streams.block_host_until_done", "returned while work was queued"}}},
    {"synchronize_returns_early", {{"streams.synchronize_all_activity", "returned while work was queued"}}},
    {"crashes_at_exit", {{"streams.exit", "at exit with work queued: crashed with signal 6"}}},
    // Events
    {"event_complete_early",
     {{"events.recorded", "an event recorded once is complete before its work"},
      {"events.recorded_again", "an event recorded again is complete before its work"}},
     {"threads.own_streams"}},
    {"event_recorded_once", {{"events.recorded_again", "an event recorded again is complete before its work"}}},
    {"wait_for_event_ignored", {{"events.wait_for_event", "did not wait for the event that wait_for_event named"}}},
    {"event_flickers",
     {{"events.recorded", "an event that was complete is pending again"},
      {"events.recorded_again", "an event that was complete is pending again"}}},
    {"block_for_event_returns_early",
     {{"events.block_host_for_event", "block_host_for_event returned before the event's work was done"}}},
    {"block_for_event_hangs",
     {{"events.block_host_for_event", "did not end within 4 s; the last call was block_host_for_event"}},
     {},
     Milliseconds(4000)},
    {"event_needs_work",
     {{"events.idle", "an event recorded on an idle stream did not complete within 1 s"},
      {"events.recorded_again", "an event recorded on an idle stream did not complete"},
      {"events.given_back", "the event behind the enqueued work did not complete"},
      {"streams.given_back", "an event recorded on a new stream did not complete"},
      {"devices.apart", "an event of device 1 did not complete"}},
     {},
     Milliseconds(2000)},
    {"event_wears_out", {{"events.pooled", "within 2 s"}}, {}, Milliseconds(4000)},
    {"event_leak",
     {{"events.given_back", "50000 events created, recorded and destroyed leave "},
      {"streams.given_back", "leave 100 threads"}}},
    // Host callbacks
    {"stops_after_failure",
     {{"callbacks.later_work", "work enqueued behind a callback that failed did not run within 2 s"}},
     {},
     Milliseconds(4000)},
    {"callback_twice",
     {{"callbacks.once", "a host callback was called 2 times"},
      {"callbacks.order", "host callback 0 ran in the place of 1"},
      {"threads.one_stream", "ran after its command 0"}}},
    {"callbacks_cannot_enqueue", {{"callbacks.enqueue", "what a host callback enqueued did not run within"}}},
    {"callback_status_dropped", {{"callbacks.status", "the status of a host callback is dropped"}}},
    {"event_in_error", {{"callbacks.events", "SE_EVENT_ERROR for a recorded event"}}},
    // Timers
    {"timer_constant",
     {{"timers.durations", "a timer says 1 ms for work of 5 ms"}, {"timers.restarted", "for work of 40 ms"}}},
    {"timer_in_picoseconds",
     {{"timers.durations", "ms for work of 5 ms"}, {"timers.restarted", "ms for work of 40 ms"}},
     {"timers.on_the_stream"}},
    {"timer_starts_early", {{"timers.on_the_stream", "before its stream got there"}}},
    // Threads
    {"not_thread_safe", {{"threads.one_stream", "of 800 commands that 8 threads enqueued on one stream, "}}},
    {"one_staging_buffer", {{"threads.own_streams", "copies while other threads worked"}}},
    {"allocator_races",
     {{"threads.memory", "memory allocated while other threads allocated"}},
     {"threads.own_streams"}},
};

INSTANTIATE_TEST_SUITE_P(All, Defects, testing::ValuesIn(kDefects),
                         [](const auto& info) { return std::string(info.param.name); });

struct Lack {
  const char* name;
  const char* check;
  const char* reason;
};
const Lack kLacks[] = {
    {"same_names_again", "registration.again", "registers the same names"},
    {"no_timers", "timers.durations", "no timers"},
    {"no_host_callback", "streams.order", "host_callback returns false"},
    {"synchronous", "streams.order", "runs its commands on the calling thread"},
    {"synchronous", "events.recorded", "runs its commands on the calling thread"},
    {"callbacks_share_a_thread", "callbacks.blocking", "holds back those of other streams"},
    {"one_queue", "streams.overlap", "one stream's work holds back another's"},
    {"one_queue", "streams.dependency_on_the_past", "a stream waits for later work of another too"},
};

// An optional part that a library lacks is not held against it; a check that needs the part says so.
TEST(Conformance, WhatIsNotOffered) {
  if (kSanitized) GTEST_SKIP() << "takes long";
  std::map<std::string, std::vector<Result>> runs;
  for (const Lack& lack : kLacks) {
    auto& results = runs[lack.name];
    if (results.empty()) results = RunSample(lack.name);
    for (const Result& result : results) {
      EXPECT_NE(result.outcome, Outcome::kFail) << lack.name << " " << result.check->name << ": " << result.reason;
      if (std::string(result.check->name) != lack.check) continue;
      EXPECT_EQ(result.outcome, Outcome::kNotOffered);
      EXPECT_NE(result.reason.find(lack.reason), std::string::npos) << result.reason;
    }
  }
}

// A check that nothing fails is worth nothing.
TEST(Conformance, EveryCheckHasADefect) {
  std::set<std::string> seen = {"library.loads"};  // WhatDoesNotLoad
  for (const Defect& defect : kDefects) {
    for (const Finding& finding : defect.found) seen.insert(finding.check);
  }
  for (const Lack& lack : kLacks) seen.insert(lack.check);
  for (const Check& check : AllChecks()) {
    EXPECT_TRUE(seen.count(check.name)) << check.name;
  }
}

// Not a library at all, and one that is no plugin.
TEST(Conformance, WhatDoesNotLoad) {
  const std::pair<const char*, const char*> kCases[] = {
      {"/nowhere/at_all.so", "cannot open shared object file"},
      {"libm.so.6", "cannot open shared object file"},  // not looked for in the system
      {"/proc/self/status", ""},
      {"/lib/x86_64-linux-gnu/libm.so.6", "it has no SE_InitPlugin"},
  };
  for (const auto& [path, reason] : kCases) {
    for (const Result& result : Examine(path)) {
      if (result.check->name == std::string("library.loads")) {
        EXPECT_EQ(result.outcome, Outcome::kFail);
        EXPECT_NE(result.reason.find(reason), std::string::npos) << result.reason;
      } else {
        EXPECT_EQ(result.outcome, Outcome::kNotOffered) << result.check->name;
        EXPECT_EQ(result.reason, "see library.loads");
      }
    }
  }
}

// Parts of TensorFlow that a library asks for and does not use are not needed: sample_plugin.cc, linked against two
// libraries that are nowhere.
TEST(Conformance, AbsentLibrariesOfTensorFlow) {
  if (kSanitized) GTEST_SKIP() << "as the one that passes";
  for (const Result& result : Examine(std::string(kFolder) + "tests/libneedy_plugin.so")) {
    EXPECT_EQ(result.outcome, Outcome::kPass) << result.check->name << ": " << result.reason << " " << result.output;
  }
}

// The program itself.
struct Output {
  int exit_code;
  std::string text;
};
Output Command(const std::string& arguments) {
  FILE* pipe = popen((kFolder + std::string("conformance ") + arguments + " 2>&1").c_str(), "r");
  Output output;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) output.text.append(buffer, n);
  output.exit_code = WEXITSTATUS(pclose(pipe));
  return output;
}

TEST(Program, SaysWhatItFound) {
  const Output good = Command("--only fills --only library.loads --jobs 2 " + Sample());
  EXPECT_EQ(good.exit_code, 0) << good.text;
  EXPECT_NE(good.text.find("platform SAMPLE of type SAMPLE, 2 devices"), std::string::npos) << good.text;
  EXPECT_NE(good.text.find("4 passed, 0 failed, 0 not offered"), std::string::npos) << good.text;
  setenv("SAMPLE_DEFECT", "memset32_writes_bytes", 1);
  const Output bad = Command("--json --timeout 5 --only fills.memset32 " + Sample());
  unsetenv("SAMPLE_DEFECT");
  EXPECT_EQ(bad.exit_code, 1) << bad.text;
  EXPECT_NE(bad.text.find("{\"name\": \"fills.memset32\", \"outcome\": \"fail\", \"reason\": \"memset32 of 0x04030201"),
            std::string::npos)
      << bad.text;
  EXPECT_NE(bad.text.find("\"passed\": 0, \"failed\": 1, \"not_offered\": 0}"), std::string::npos) << bad.text;
}

// Each check would end in the same way, and where the library hangs take its whole time for it.
TEST(Program, EndsSoonWhereTheLibraryDoesNotGetThroughRegistration) {
  const std::pair<const char*, const char*> kCases[] = {
      {"crashes_at_registration", "crashed with signal 6 (Aborted); the last call was SE_InitPlugin"},
      {"hangs_at_registration", "did not end within 1 s; the last call was SE_InitPlugin"},
  };
  for (const auto& [defect, reason] : kCases) {
    setenv("SAMPLE_DEFECT", defect, 1);
    const auto start = std::chrono::steady_clock::now();
    const Output output = Command("--timeout 1 " + Sample());
    unsetenv("SAMPLE_DEFECT");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_NE(output.text.find(Sample() + ": the library " + reason), std::string::npos) << output.text;
    EXPECT_NE(output.text.find("registration.succeeds            " + std::string(reason)), std::string::npos)
        << output.text;
    EXPECT_NE(output.text.find("1 passed, 1 failed, "), std::string::npos) << output.text;
  }
}

TEST(Program, ListsEveryCheck) {
  const Output list = Command("--list");
  EXPECT_EQ(list.exit_code, 0);
  for (const Check& check : AllChecks()) {
    EXPECT_NE(list.text.find(check.name), std::string::npos);
    EXPECT_NE(list.text.find(check.meaning), std::string::npos);
  }
}

TEST(Program, RefusesWhatMakesNoSense) {
  const std::pair<std::string, const char*> kCases[] = {
      {"", "which library?"},
      {"a.so b.so", "one library, not also b.so"},
      {"--frob a.so", "there is no option --frob"},
      {"--only nothing a.so", "there is no check nothing"},
      {"--timeout soon a.so", "--timeout soon: expected a number"},
      {"--timeout 0 a.so", "--timeout 0: expected a number"},
      {"--jobs", "--jobs needs a value"},
      {"--tensorflow /nowhere a.so", "/nowhere/libtensorflow_framework.so.2"},
  };
  for (const auto& [arguments, reason] : kCases) {
    const Output output = Command(arguments);
    EXPECT_EQ(output.exit_code, 2) << arguments;
    EXPECT_NE(output.text.find(reason), std::string::npos) << output.text;
  }
}

}  // namespace
}  // namespace xpu::conformance
