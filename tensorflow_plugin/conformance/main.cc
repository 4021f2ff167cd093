// The command line; docs/conformance.md.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"
#include "tensorflow_plugin/conformance/library.h"

namespace xpu::conformance {
namespace {

constexpr char kUsage[] =
    "usage: conformance [OPTION]... LIBRARY\n"
    "Examines a PluggableDevice library for TensorFlow. Each check runs in a process of its own.\n"
    "\n"
    "  --tensorflow FOLDER  load TensorFlow's libraries from this folder first, for a LIBRARY that needs them\n"
    "  --only NAME          only this check, or the checks whose names begin with NAME and a dot; may be repeated\n"
    "  --timeout SECONDS    for one check (default 10)\n"
    "  --jobs N             checks that run at the same time (default 1)\n"
    "  --measure            measure how long callbacks take, one after the other, instead of checking them\n"
    "  --json               print JSON\n"
    "  --list               print the checks and what they mean, and examine nothing\n"
    "\n"
    "Exit code: 0 if no check fails, 1 if one does, 2 for a command line or folder that makes no sense.\n";

struct Arguments {
  Subject subject;
  std::string tensorflow;
  std::vector<std::string> only;
  Limits limits;
  bool measure = false, json = false, list = false;
};

[[noreturn]] void Refuse(const std::string& why) {
  std::fprintf(stderr, "conformance: %s\n%s", why.c_str(), kUsage);
  std::exit(2);
}

double Number(const std::string& option, const char* text, double most) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0 && value <= most)) {
    Refuse(Text(option, " ", text, ": expected a number above 0 and up to ", most));
  }
  return value;
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&] {
      if (i + 1 == argc) Refuse(argument + " needs a value");
      return argv[++i];
    };
    if (argument == "--json") {
      arguments.json = true;
    } else if (argument == "--measure") {
      arguments.measure = true;
    } else if (argument == "--list") {
      arguments.list = true;
    } else if (argument == "--only") {
      arguments.only.push_back(value());
    } else if (argument == "--tensorflow") {
      arguments.tensorflow = value();
    } else if (argument == "--timeout") {
      arguments.limits.timeout = Milliseconds(static_cast<int64_t>(1000 * Number(argument, value(), 3600)));
    } else if (argument == "--jobs") {
      arguments.limits.jobs = static_cast<int>(Number(argument, value(), 256));
    } else if (argument == "--help" || argument == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else if (argument.rfind("--", 0) == 0) {
      Refuse("there is no option " + argument);
    } else if (arguments.subject.library.empty()) {
      arguments.subject.library = argument;
    } else {
      Refuse("one library, not also " + argument);
    }
  }
  if (arguments.subject.library.empty() && !arguments.list) Refuse("which library?");
  if (arguments.measure && arguments.limits.jobs != 1) Refuse("--measure needs the machine for itself, not --jobs");
  return arguments;
}

std::vector<Check> Chosen(const Arguments& arguments) {
  const std::vector<Check>& all = arguments.measure ? Measurements() : AllChecks();
  const std::vector<std::string>& only = arguments.only;
  if (only.empty()) return all;
  std::vector<Check> chosen;
  std::vector<bool> used(only.size());
  for (const Check& check : all) {
    bool wanted = false;
    for (size_t i = 0; i < only.size(); ++i) {
      if (check.name != only[i] && std::string(check.name).rfind(only[i] + ".", 0) != 0) continue;
      used[i] = wanted = true;
    }
    if (wanted) chosen.push_back(check);
  }
  for (size_t i = 0; i < only.size(); ++i) {
    if (!used[i]) Refuse("there is no check " + only[i] + "; --list shows them");
  }
  return chosen;
}

std::string Quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return json + '"';
}

void List(const std::vector<Check>& checks, bool json) {
  if (json) std::printf("[");
  for (const Check& check : checks) {
    if (json) {
      std::printf("%s\n  {\"name\": %s, \"meaning\": %s}", &check == &checks.front() ? "" : ",",
                  Quoted(check.name).c_str(), Quoted(check.meaning).c_str());
    } else {
      std::printf("%-32s %s\n", check.name, check.meaning);
    }
  }
  if (json) std::printf("\n]\n");
}

// Passes with a line on what the library registers.
void Describe(const Subject& subject) {
  Platform p(subject);
  const int count = p.DeviceCount();
  End(Outcome::kPass, Text("platform ", p.platform.name ? p.platform.name : "?", " of type ",
                           p.platform.type ? p.platform.type : "?", ", ", count, count == 1 ? " device" : " devices"));
}

// Fails if SE_InitPlugin does not return, whatever it reports.
void Start(const Subject& subject) {
  SP_Platform platform{};
  platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  SP_PlatformFns functions{};
  functions.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  Register(subject, &platform, &functions, Status());
}

int Examine(const Arguments& arguments) {
  const std::vector<Check> checks = Chosen(arguments);
  if (!arguments.tensorflow.empty()) {
    const std::string error = LoadTensorFlow(arguments.tensorflow);
    if (!error.empty()) Refuse("--tensorflow " + arguments.tensorflow + ": " + error);
  }
  // With a library that crashes or hangs at registration every check would, one after the other.
  bool starts = true;
  std::string description;
  RunChecks({{"start", "", Start}}, arguments.subject, arguments.limits, [&](const Result& result) {
    starts = result.outcome != Outcome::kFail;
    description = "the library " + result.reason;
  });
  if (starts) {
    RunChecks({{"platform", "", Describe}}, arguments.subject, arguments.limits, [&](const Result& result) {
      description = result.outcome == Outcome::kPass ? result.reason : "the library does not register";
    });
  }
  int counts[3] = {0, 0, 0};
  if (arguments.json) {
    std::printf("{\"library\": %s, \"description\": %s, \"tensorflow\": %s,\n \"checks\": [",
                Quoted(arguments.subject.library).c_str(), Quoted(description).c_str(),
                Quoted(arguments.tensorflow).c_str());
  } else {
    std::printf("%s: %s\n\n", arguments.subject.library.c_str(), description.c_str());
  }
  const auto report = [&](const Result& r) {
    const bool first = counts[0] + counts[1] + counts[2] == 0;
    ++counts[static_cast<int>(r.outcome)];
    if (arguments.json) {
      const char* const names[] = {"pass", "fail", "not offered"};
      std::printf("%s\n  {\"name\": %s, \"outcome\": \"%s\", \"reason\": %s, \"output\": %s, \"seconds\": %.3f}",
                  first ? "" : ",", Quoted(r.check->name).c_str(), names[static_cast<int>(r.outcome)],
                  Quoted(r.reason).c_str(), Quoted(r.output).c_str(), r.seconds);
    } else {
      std::printf("%-12s %-32s %s\n", Name(r.outcome), r.check->name, r.reason.c_str());
      if (r.outcome == Outcome::kFail && !r.output.empty()) std::printf("%46sit wrote: %s\n", "", r.output.c_str());
    }
    std::fflush(stdout);
  };
  if (starts) {
    RunChecks(checks, arguments.subject, arguments.limits, report);
  } else {
    for (const Check& check : checks) {
      if (check.name == std::string("library.loads") || check.name == std::string("registration.succeeds")) {
        RunChecks({check}, arguments.subject, arguments.limits, report);
      } else {
        report({&check, Outcome::kNotOffered, "see registration.succeeds", "", 0});
      }
    }
  }
  const int failed = counts[static_cast<int>(Outcome::kFail)];
  const int passed = counts[static_cast<int>(Outcome::kPass)];
  const int not_offered = counts[static_cast<int>(Outcome::kNotOffered)];
  if (arguments.json) {
    std::printf("\n ],\n \"passed\": %d, \"failed\": %d, \"not_offered\": %d}\n", passed, failed, not_offered);
  } else {
    std::printf("\n%d passed, %d failed, %d not offered\n", passed, failed, not_offered);
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace xpu::conformance

int main(int argc, char** argv) {
  using namespace xpu::conformance;
  const Arguments arguments = Parse(argc, argv);
  if (!arguments.list) return Examine(arguments);
  List(Chosen(arguments), arguments.json);
  return 0;
}
