// Runs checks, each in a process of its own, so that a library that crashes or hangs in one fails that one alone.
#ifndef TENSORFLOW_PLUGIN_CONFORMANCE_HARNESS_H_
#define TENSORFLOW_PLUGIN_CONFORMANCE_HARNESS_H_

#include <chrono>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace xpu::conformance {

using Milliseconds = std::chrono::milliseconds;

// The library that is examined.
struct Subject {
  std::string library;
};

struct Check {
  const char* name;     // theme.what
  const char* meaning;  // what must hold, as a sentence
  // Returns if it does. Runs in a process that has not loaded the library yet and ends afterwards: whatever it takes
  // from the library it need not give back.
  void (*run)(const Subject& subject);
};

enum class Outcome { kPass, kFail, kNotOffered };
const char* Name(Outcome outcome);

struct Result {
  const Check* check;
  Outcome outcome;
  std::string reason;  // one line; empty if it passed and there is nothing to say
  std::string output;  // the last line that the library wrote to stdout or stderr
  double seconds;
};

struct Limits {
  Milliseconds timeout{10000};  // of one check
  int jobs = 1;                 // checks that run at the same time
};

// Runs the checks and calls `done` with each result, in the order of the table. The calling process must have one
// thread.
void RunChecks(const std::vector<Check>& checks, const Subject& subject, const Limits& limits,
               const std::function<void(const Result&)>& done);

// ---- For checks

template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// Ends the process of the check at once, from any of its threads. Destructors do not run, since the library may not be
// fit for it.
[[noreturn]] void End(Outcome outcome, const std::string& reason);
template <typename... Parts>
[[noreturn]] void Fail(const Parts&... parts) {
  End(Outcome::kFail, Text(parts...));
}
template <typename... Parts>
[[noreturn]] void NotOffered(const Parts&... parts) {
  End(Outcome::kNotOffered, Text(parts...));
}
// Passes if the process now ends by itself, cleanly and in time.
[[noreturn]] void PassByExit();

// Notes what the library is asked next (a literal), for the report of a crash or a hang.
void Entering(const char* call);

// How long a check waits for what should come soon, before it says what did not come.
Milliseconds Patience();

// Waits until `done`; fails with "<what> did not ... within" otherwise.
void Await(const std::string& what, const std::function<bool()>& done);

}  // namespace xpu::conformance

#endif  // TENSORFLOW_PLUGIN_CONFORMANCE_HARNESS_H_
