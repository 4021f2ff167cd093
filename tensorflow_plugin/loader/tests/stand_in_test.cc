// The registrations of a plugin that has nothing to offer.
#include "tensorflow_plugin/loader/stand_in.h"

#include <cctype>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace xpu::loader {
namespace {

// As TensorFlow does, for ever: the names are never freed.
void Keep(const char* name) {
  static std::vector<const char*>* const kept = new std::vector<const char*>;
  kept->push_back(name);
}

struct Platform {
  SP_Platform platform = {SP_PLATFORM_STRUCT_SIZE};
  SP_PlatformFns fns = {SP_PLATFORM_FNS_STRUCT_SIZE};
  SE_PlatformRegistrationParams params = {SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE};
  Platform() {
    params.platform = &platform;
    params.platform_fns = &fns;
    StandInPlatform(&params);
    Keep(platform.name);
  }
};

TEST(StandIn, APlatformHasNoDevices) {
  const Platform one;
  int count = 7;
  one.fns.get_device_count(&one.platform, &count, nullptr);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(one.params.major_version, SE_MAJOR);
  one.params.destroy_platform(const_cast<SP_Platform*>(&one.platform));
  one.params.destroy_platform_fns(const_cast<SP_PlatformFns*>(&one.fns));
}

// Two plugins of one name end the process.
TEST(StandIn, NamesAreLettersAndDiffer) {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(names.insert(Platform().platform.name).second);
  for (const std::string& name : names) {
    EXPECT_EQ(name.rfind("XPU_NONE_", 0), 0u) << name;
    for (const char c : name) EXPECT_TRUE(std::isupper(c) || c == '_') << name;
  }
}

TEST(StandIn, CallbacksBeyondTheStructOfTensorflowAreNotWritten) {
  SP_StreamExecutor executor = {};
  executor.struct_size = offsetof(SP_StreamExecutor, host_callback);  // one that has no host_callback yet
  SE_CreateStreamExecutorParams params = {SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE};
  params.stream_executor = &executor;
  const Platform platform;
  platform.fns.create_stream_executor(&platform.platform, &params, nullptr);
  EXPECT_NE(executor.memset32, nullptr);
  EXPECT_EQ(executor.host_callback, nullptr);
}

TEST(StandIn, AnOptimizerHandsTheGraphBack) {
  TP_Optimizer optimizer = {TP_OPTIMIZER_STRUCT_SIZE};
  TP_OptimizerConfigs configs = {TP_OPTIMIZER_CONFIGS_STRUCT_SIZE};
  TP_OptimizerRegistrationParams params = {TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE};
  params.optimizer = &optimizer;
  params.optimizer_configs = &configs;
  StandInOptimizer(&params);
  Keep(params.device_type);
  char bytes[] = "graph";
  const TF_Buffer graph{bytes, sizeof(bytes), nullptr};
  TF_Buffer result{};
  optimizer.optimize_func(nullptr, &graph, nullptr, &result, nullptr);
  ASSERT_EQ(result.length, sizeof(bytes));
  EXPECT_NE(result.data, graph.data);
  EXPECT_EQ(std::memcmp(result.data, bytes, sizeof(bytes)), 0);
  result.data_deallocator(const_cast<void*>(result.data), result.length);
}

TEST(StandIn, AProfilerHasNothingToTell) {
  TP_Profiler profiler = {TP_PROFILER_STRUCT_SIZE};
  TP_ProfilerFns fns = {TP_PROFILER_FNS_STRUCT_SIZE};
  TF_ProfilerRegistrationParams params = {TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE};
  params.profiler = &profiler;
  params.profiler_fns = &fns;
  StandInProfiler(&params);
  Keep(profiler.device_type);
  size_t size = 7;
  fns.collect_data_xspace(&profiler, nullptr, &size, nullptr);
  EXPECT_EQ(size, 0u);
  fns.start(&profiler, nullptr);
  fns.stop(&profiler, nullptr);
}

}  // namespace
}  // namespace xpu::loader
