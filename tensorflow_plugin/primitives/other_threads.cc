#include "tensorflow_plugin/primitives/other_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

namespace xpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kThreads[] = "/proc/self/task";
constexpr std::chrono::microseconds kBetweenLooks{100};
// A thread that was seen asleep may be woken by one that falls asleep before it is looked at. Two looks at which all
// sleep are proof if none has run in between. Threads that wait for Python's lock run every 5 ms to ask for it, so
// there may be no such two looks. After this time several looks at which all sleep are enough.
constexpr std::chrono::milliseconds kForProof{100};
constexpr int kLooks = 3;

// The beginning of a thread's file; "" if the thread has ended.
struct Text {
  Text(const char* thread, const char* name) {
    char path[64];
    std::snprintf(path, sizeof(path), "%s/%s/%s", kThreads, thread, name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t bytes = read(file, text, sizeof(text) - 1);
    close(file);
    text[bytes > 0 ? bytes : 0] = '\0';
  }
  char text[512] = "";
};

// Runs, or waits for nothing but a processor or the system.
bool IsAwake(const char* thread) {
  const Text stat(thread, "stat");
  const char* const after_name = std::strrchr(stat.text, ')');  // a name may have spaces and parentheses
  if (after_name == nullptr || std::strlen(after_name) < 3) return false;
  return after_name[2] == 'R' || after_name[2] == 'D';
}

// How often a thread has begun to run.
long TimesItRan(const char* thread) {
  const Text schedstat(thread, "schedstat");
  long ran = 0, waited = 0, times = 0;
  return std::sscanf(schedstat.text, "%ld %ld %ld", &ran, &waited, &times) == 3 ? times : 0;
}

// True if all other threads sleep; says how often each has run.
bool AllSleep(std::map<long, long>* times_ran) {
  times_ran->clear();
  DIR* const threads = opendir(kThreads);
  if (threads == nullptr) return true;
  const long own = syscall(SYS_gettid);
  bool all = true;
  while (all) {
    const dirent* const entry = readdir(threads);
    if (entry == nullptr) break;
    const long thread = std::atol(entry->d_name);
    if (entry->d_name[0] == '.' || thread == own) continue;
    (*times_ran)[thread] = TimesItRan(entry->d_name);
    all = !IsAwake(entry->d_name);
  }
  closedir(threads);
  return all;
}

}  // namespace

bool AwaitOtherThreadsAsleep(Clock::duration at_most) {
  const auto begin = Clock::now();
  std::map<long, long> times_ran, before;
  for (int asleep = 0;;) {
    if (AllSleep(&times_ran)) {
      ++asleep;
      if (asleep > 1 && times_ran == before) return true;
      if (asleep >= kLooks && Clock::now() - begin >= kForProof) return true;
    } else {
      asleep = 0;
      if (Clock::now() - begin >= at_most) return false;
      std::this_thread::sleep_for(kBetweenLooks);
    }
    std::swap(before, times_ran);
  }
}

}  // namespace xpu
