#include "tensorflow_plugin/conformance/harness.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <thread>

namespace xpu::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// The result of a check's process, in memory that the parent sees.
struct Verdict {
  std::atomic<bool> taken{false};  // some thread has the word
  std::atomic<bool> complete{false};
  std::atomic<bool> exits{false};  // the process is to end by itself
  Outcome outcome = Outcome::kFail;
  char reason[2048] = "";
  // The last call into the library. The processes are copies of each other, so a literal has one address in both.
  std::atomic<const char*> call{nullptr};
};

// In the process of a check.
Verdict* verdict = nullptr;
Milliseconds patience{0};

void Give(Outcome outcome, const std::string& reason) {
  if (verdict->taken.exchange(true)) return;
  verdict->outcome = outcome;
  std::snprintf(verdict->reason, sizeof verdict->reason, "%s", reason.c_str());
  verdict->complete.store(true, std::memory_order_release);
}

// A check that runs.
struct Running {
  const Check* check;
  pid_t process;
  Verdict* verdict;
  int output;  // what it writes
  Clock::time_point start;
  bool timed_out = false;
};

[[noreturn]] void RunHere(const Check& check, const Subject& subject, const Running& running, Milliseconds timeout) {
  verdict = running.verdict;
  patience = timeout / 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(running.output, STDOUT_FILENO);
  dup2(running.output, STDERR_FILENO);
  check.run(subject);
  End(Outcome::kPass, "");
}

Running Start(const Check& check, const Subject& subject, Milliseconds timeout) {
  Running running{&check, 0, nullptr, memfd_create("output", 0), Clock::now()};
  void* shared = mmap(nullptr, sizeof(Verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (running.output < 0 || shared == MAP_FAILED) {
    std::perror("conformance: cannot start a check");
    std::exit(2);
  }
  running.verdict = new (shared) Verdict;
  std::fflush(nullptr);  // what is buffered is the parent's to write
  running.process = fork();
  if (running.process < 0) {
    std::perror("conformance: cannot start a check");
    std::exit(2);
  }
  if (running.process == 0) RunHere(check, subject, running, timeout);
  return running;
}

std::string LastLine(int file) {
  std::string text(4096, '\0');
  const off_t end = lseek(file, 0, SEEK_END);
  const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(text.size()));
  text.resize(std::max<ssize_t>(0, pread(file, text.data(), end - begin, begin)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// The end of the process, as a reason; empty if it ended as it should.
std::string Ending(const Running& running, int status, Milliseconds timeout) {
  const char* call = running.verdict->call.load();
  const std::string where = call ? Text("; the last call was ", call) : "";
  if (running.timed_out) return Text("did not end within ", timeout.count() / 1000.0, " s", where);
  if (WIFSIGNALED(status)) {
    return Text("crashed with signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")", where);
  }
  if (!running.verdict->complete || WEXITSTATUS(status) != 0) {
    return Text("the process ended with exit code ", WEXITSTATUS(status), where);
  }
  return "";
}

Result Conclude(const Running& running, int status, Milliseconds timeout) {
  const std::chrono::duration<double> took = Clock::now() - running.start;
  Result result{running.check, Outcome::kFail, "", LastLine(running.output), took.count()};
  const bool complete = running.verdict->complete.load(std::memory_order_acquire);
  const std::string ending = Ending(running, status, timeout);
  if (complete) {
    result.outcome = running.verdict->outcome;
    result.reason = running.verdict->reason;
  }
  // A verdict stands, whatever happened while the process went away, unless going away is what was examined.
  if (!ending.empty() && (!complete || running.verdict->exits)) {
    result.outcome = Outcome::kFail;
    result.reason = running.verdict->exits ? Text("at exit with work queued: ", ending) : ending;
  }
  for (std::string* line : {&result.reason, &result.output}) {
    std::replace_if(line->begin(), line->end(), [](unsigned char c) { return c < ' '; }, ' ');
  }
  close(running.output);
  munmap(running.verdict, sizeof(Verdict));
  return result;
}

}  // namespace

const char* Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "pass";
    case Outcome::kFail:
      return "FAIL";
    case Outcome::kNotOffered:
      return "not offered";
  }
  return "";
}

void RunChecks(const std::vector<Check>& checks, const Subject& subject, const Limits& limits,
               const std::function<void(const Result&)>& done) {
  std::deque<Running> running;
  std::vector<std::optional<Result>> results(checks.size());
  size_t next = 0, reported = 0;
  while (reported < checks.size()) {
    while (next < checks.size() && running.size() < static_cast<size_t>(limits.jobs)) {
      running.push_back(Start(checks[next++], subject, limits.timeout));
    }
    for (auto it = running.begin(); it != running.end();) {
      if (!it->timed_out && Clock::now() - it->start > limits.timeout) {
        it->timed_out = true;
        kill(-it->process, SIGKILL);
        kill(it->process, SIGKILL);
      }
      int status = 0;
      if (waitpid(it->process, &status, WNOHANG) == 0) {
        ++it;
        continue;
      }
      results[it->check - checks.data()] = Conclude(*it, status, limits.timeout);
      it = running.erase(it);
    }
    for (; reported < checks.size() && results[reported]; ++reported) done(*results[reported]);
    std::this_thread::sleep_for(Milliseconds(1));
  }
}

void End(Outcome outcome, const std::string& reason) {
  Give(outcome, reason);
  // If another thread has the word: it ends the process.
  while (!verdict->complete) std::this_thread::sleep_for(Milliseconds(1));
  _exit(0);
}

void PassByExit() {
  verdict->exits = true;
  Give(Outcome::kPass, "");
  std::exit(0);
}

void Entering(const char* call) { verdict->call.store(call, std::memory_order_relaxed); }

Milliseconds Patience() { return patience; }

void Await(const std::string& what, const std::function<bool()>& done) {
  const Clock::time_point end = Clock::now() + patience;
  while (!done()) {
    if (Clock::now() > end) Fail(what, " within ", patience.count() / 1000.0, " s");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace xpu::conformance
