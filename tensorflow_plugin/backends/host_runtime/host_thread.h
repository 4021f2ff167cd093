// A thread of the host's that runs what streams ask it to, in order: the driver's own threads must not be held up.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_THREAD_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_THREAD_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace xpu::host_runtime {

class HostThread {
 public:
  HostThread() = default;
  HostThread(const HostThread&) = delete;
  HostThread& operator=(const HostThread&) = delete;
  // Runs first what is left.
  ~HostThread() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // The thread is made when there is something to do for the first time.
  void Run(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
    if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
    changed_.notify_all();
  }

 private:
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !work_.empty(); });
      if (work_.empty()) return;
      std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      work = nullptr;  // what it holds goes before the next one runs
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_THREAD_H_
