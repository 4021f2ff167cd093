#include "tensorflow_plugin/tf_internals/table.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

#include "tensorflow_plugin/loader/json.h"

namespace xpu::tf_internals {
namespace {

constexpr char kOn[] = "on";
constexpr char kNotUsed[] = "not in use yet";
constexpr char kOff[] = "off: ";
constexpr char kByOption[] = "off by option (";
constexpr char kNeeds[] = "it needs ";

bool StartsWith(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

struct States {
  std::mutex mutex;
  std::map<std::string, std::string> all;
  std::map<std::string, std::vector<std::string>> lies;  // that the checks which passed would have noticed
};
States& TheStates() {
  static auto* const states = new States;
  return *states;
}

// Returns what it was before.
std::string SetState(const std::string& name, const std::string& state) {
  States& states = TheStates();
  const std::lock_guard<std::mutex> lock(states.mutex);
  std::string& known = states.all[name];
  const std::string before = known;
  known = state;
  return before;
}

void KeepLies(const std::string& name, const std::vector<std::string>& lies) {
  States& states = TheStates();
  const std::lock_guard<std::mutex> lock(states.mutex);
  states.lies[name] = lies;
}

const Internal& Named(const std::string& name) {
  for (const Internal& internal : Internals()) {
    if (internal.name == name) return internal;
  }
  std::abort();  // a mistake in this library
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> Names(const std::string& text) {
  std::vector<std::string> names;
  std::stringstream all(text);
  for (std::string name; std::getline(all, name, ',');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

bool MayBeLeftOut(const std::string& name) {
  for (const Internal& internal : Internals()) {
    if (internal.name == name) return internal.kind != Kind::kRequired;
  }
  return false;
}

// Why an option leaves the hook out; empty if none does.
std::string LeftOut(const Internal& internal) {
  const std::vector<std::string> without = Names(Environment("TF_XPU_HOOKS_WITHOUT"));
  const std::vector<std::string>& in_python = HooksInPython();
  const bool all_known = std::all_of(without.begin(), without.end(), [&](const std::string& name) {
    return MayBeLeftOut(name) || std::find(in_python.begin(), in_python.end(), name) != in_python.end();
  });
  if (all_known && std::find(without.begin(), without.end(), internal.name) != without.end()) {
    return "TF_XPU_HOOKS_WITHOUT";
  }
  return internal.is_small && Environment("TF_XPU_HOOKS") == "0" ? "TF_XPU_HOOKS=0" : "";
}

// True if an option leaves the hook out, whose check has not run then.
bool IsLeftOut(const std::string& name) { return StartsWith(StateOf(name), kByOption); }

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kRequired:
      return "required";
    case Kind::kCorrectness:
      return "correctness";
    case Kind::kSpeed:
      return "speed";
  }
  return "";
}

}  // namespace

std::string StateOf(const std::string& name) {
  States& states = TheStates();
  const std::lock_guard<std::mutex> lock(states.mutex);
  const auto found = states.all.find(name);
  return found == states.all.end() ? kNotUsed : found->second;
}

std::string WhyOff(const std::string& name, const std::function<void(Check&)>& examine) {
  if (IsLeftOut(name)) return StateOf(name);
  const std::string option = LeftOut(Named(name));
  if (!option.empty()) {
    LeaveOut(name, option);
    return StateOf(name);
  }
  Check check(LieAbout(name));
  examine(check);
  if (check.why().empty()) KeepLies(name, check.lies());
  SetState(name, check.why().empty() ? kOn : kOff + check.why());
  return check.why();
}

bool TurnOn(const std::string& name, const std::function<void(Check&)>& examine) {
  const std::string why = WhyOff(name, examine);
  if (StartsWith(StateOf(name), kOff)) {
    SetState(name, kNotUsed);
    TurnOff(name, why);
  }
  return why.empty();
}

void TurnOff(const std::string& name, const std::string& why, bool quietly) {
  const std::string before = SetState(name, kOff + why);
  if (quietly || StartsWith(before, kOff)) return;
  const std::string line = "tensorflow_xpu: the hook " + name + " is off: " + why + ". " + Named(name).without + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void TurnOffWithout(const std::string& needed, const std::string& name) {
  if (IsOn(needed) || StartsWith(StateOf(name), kOff) || IsLeftOut(name)) return;
  TurnOff(name, kNeeds + needed + ", which is " + StateOf(needed), /*quietly=*/true);
}

void LeaveOut(const std::string& name, const std::string& option) { SetState(name, kByOption + option + ")"); }

void Take(const std::string& name, const std::string& state) {
  if (!StartsWith(state, kOff)) {
    SetState(name, state);
    return;
  }
  const std::string why = state.substr(sizeof(kOff) - 1);
  TurnOff(name, why, /*quietly=*/StartsWith(why, kNeeds));
}

bool IsOn(const std::string& name) { return StateOf(name) == kOn; }

int LieAbout(const std::string& name) {
  for (const std::string& rule : Names(Environment("TF_XPU_FAULT"))) {
    const std::string start = "internal=" + name + ":lie";
    if (rule == start) return Check::kAllLies;
    if (rule.rfind(start + "@", 0) == 0) return std::atoi(rule.c_str() + start.size() + 1);
  }
  return Check::kNoLie;
}

std::string Describe() {
  std::string json;
  for (const Internal& internal : Internals()) {
    std::string parts;
    for (const PrivatePart& part : internal.parts) {
      parts += (parts.empty() ? "" : ", ") + JsonStrings(std::vector<std::string>{part.name, part.guard});
    }
    json += (json.empty() ? "" : ", ") + ("{\"name\": " + JsonString(internal.name)) +
            ", \"kind\": " + JsonString(NameOf(internal.kind)) + ", \"state\": " + JsonString(StateOf(internal.name)) +
            ", \"purpose\": " + JsonString(internal.purpose) + ", \"without\": " + JsonString(internal.without) +
            ", \"instead\": " + JsonString(internal.instead) + ", \"source\": " + JsonString(internal.source) +
            ", \"parts\": [" + parts + "]}";
  }
  return "[" + json + "]";
}

std::string DescribeLies() {
  States& states = TheStates();
  const std::lock_guard<std::mutex> lock(states.mutex);
  std::string json;
  for (const auto& [name, lies] : states.lies) {
    json += (json.empty() ? "" : ", ") + JsonString(name) + ": " + JsonStrings(lies);
  }
  return "{" + json + "}";
}

}  // namespace xpu::tf_internals
