// Looking for news before going to sleep: waking a thread costs tens of microseconds on a virtual machine.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SPIN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SPIN_H_

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

namespace xpu::host_runtime {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls `done` for a while. It does not yield the core in between: Linux would let another process have it for a whole
// slice, some 4 ms. The thread that is waited for has another core, or comes when this one sleeps.
template <typename Done>
bool SpinUntil(std::chrono::microseconds limit, Done done) {
  static const bool alone = std::thread::hardware_concurrency() <= 1;
  if (done()) return true;
  if (alone) return false;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 128; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

// How long a thread looks for work before it sleeps. That is kLongLook if nearly all recent waits were shorter: all but
// one of kSoonForEachLate. Otherwise it is kBriefLook. A long look in vain takes the processor from other threads.
class Patience {
 public:
  static constexpr std::chrono::microseconds kBriefLook{30}, kLongLook{200};
  static constexpr int kSoonForEachLate = 32;

  std::chrono::microseconds look() const { return credit_ > 0 ? kLongLook : kBriefLook; }

  // After the thread has waited for work, looking and asleep. `others_worked` meanwhile: they need processors, too.
  void Note(std::chrono::nanoseconds waited, bool others_worked) {
    if (waited > kLongLook || others_worked) {
      credit_ = std::max(credit_ - kSoonForEachLate, -kSoonForEachLate);
    } else if (waited > kBriefLook) {
      credit_ = std::min(credit_ + 1, 4 * kSoonForEachLate);
    }
  }

 private:
  int credit_ = -kSoonForEachLate;
};

// Locks a mutex whose sections are tens of nanoseconds long: spinning for it is far cheaper than sleeping.
inline std::unique_lock<std::mutex> LockSoon(std::mutex& mutex) {
  for (int i = 0; i < 200; ++i) {
    if (mutex.try_lock()) return std::unique_lock<std::mutex>(mutex, std::adopt_lock);
    Pause();
  }
  return std::unique_lock<std::mutex>(mutex);
}

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SPIN_H_
