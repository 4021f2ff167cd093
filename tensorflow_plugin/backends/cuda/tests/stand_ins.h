// A device on the stand-ins for the driver, the compiler and cuBLASLt.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_INS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_INS_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cuda/backend.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_in.h"

namespace xpu::cuda {

// Opened by path, libraries are found by name afterwards.
inline void* Open(const std::string& name) {
  const std::string folder = "tensorflow_plugin/backends/cuda/tests/";
  void* const library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  return library;
}

template <typename F>
F* Function(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

class OnStandIns : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("XDG_CACHE_HOME", ::testing::TempDir().c_str(), 1);
    ASSERT_NE(Open("libcuda.so.1"), nullptr);
    ASSERT_NE(Open("libnvrtc.so.13"), nullptr);
    ASSERT_NE(Open("libcublasLt.so.13"), nullptr);
  }
  void SetUp() override {
    Function<void()>("StandInReset")();
    const Status status = TheBackend().CreateDevice(0, BackendOptions(), &device_);
    ASSERT_TRUE(status.ok()) << status.message();
    stream_ = device_->CreateStream();
  }
  void TearDown() override {
    stream_ = nullptr;
    device_ = nullptr;
    Function<void()>("StandInReset")();
  }

  void Fail(const char* symbol, int skipped, int error, bool for_ever = false) {
    Function<void(const char*, int, int, bool)>("StandInFail")(symbol, skipped, error, for_ever);
  }
  std::vector<StandInLaunch> Launches() {
    std::vector<StandInLaunch> launches(1000);
    launches.resize(static_cast<size_t>(
        Function<int(StandInLaunch*, int)>("StandInLaunches")(launches.data(), static_cast<int>(launches.size()))));
    return launches;
  }
  int Calls(const char* symbol) { return Function<int(const char*)>("StandInCalls")(symbol); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_INS_H_
