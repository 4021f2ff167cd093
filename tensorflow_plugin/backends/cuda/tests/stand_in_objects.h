// The objects behind the handles of the stand-in for the driver (stand_in_driver.cc).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_IN_OBJECTS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_IN_OBJECTS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/cuda/driver.h"

namespace xpu::cuda {

struct CUctx_st {
  DeviceId device = 0;
};
using RunOnHost = void(const unsigned* grid, const unsigned* block, void** arguments);
struct CUfunc_st {
  RunOnHost* run = nullptr;  // null: it does nothing
  ContextHandle context = nullptr;
};
struct CUmod_st {
  std::string image;
  void* library = nullptr;  // of a kernel for the host
  CUfunc_st function;
};
struct CUgraph_st {
  std::vector<std::function<void()>> commands;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> commands;
  ContextHandle context = nullptr;
};

// STAND_IN_LATE: up to so many microseconds before one of four commands.
inline void BeLate() {
  static const char* const most = std::getenv("STAND_IN_LATE");
  if (most == nullptr) return;
  thread_local std::minstd_rand random(std::random_device{}());
  if (random() % 4 != 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<unsigned>(std::atoi(most) + 1)));
}

// Commands that reach or wait for it keep it.
struct CUevent_st : std::enable_shared_from_this<CUevent_st> {
  std::shared_ptr<CUevent_st> own;  // until it is destroyed
  std::mutex mutex;
  std::condition_variable changed;
  ContextHandle context = nullptr;
  bool has_time = true;
  uint64_t recorded = 0, reached = 0;
  std::chrono::steady_clock::time_point time;
};

struct CUstream_st {
  explicit CUstream_st(ContextHandle owner) : context(owner), thread([this] { Loop(); }) {}
  ~CUstream_st() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ending = true;
    }
    changed.notify_all();
    thread.join();
  }
  void Add(std::function<void()> command) {
    std::lock_guard<std::mutex> lock(mutex);
    if (captured != nullptr) return captured->commands.push_back(std::move(command));
    commands.push_back(std::move(command));
    ++pending;
    changed.notify_all();
  }
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ending || !commands.empty(); });
      if (commands.empty()) return;
      std::function<void()> command = std::move(commands.front());
      commands.pop_front();
      lock.unlock();
      BeLate();
      command();
      lock.lock();
      --pending;
      changed.notify_all();
    }
  }

  const ContextHandle context;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> commands;
  int pending = 0;
  bool ending = false;
  std::unique_ptr<CUgraph_st> captured;
  std::thread thread;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_IN_OBJECTS_H_
