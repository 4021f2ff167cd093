#include "tensorflow_plugin/faults/rules.h"

#include <algorithm>
#include <iterator>
#include <regex>

namespace xpu {
namespace {

constexpr const char* kCallNames[FaultRule::kNumCalls] = {"alloc", "copy", "command"};

#define XPU_NAME(name) #name,
constexpr const char* kPrimitiveNames[] = {XPU_PRIMITIVES(XPU_NAME)};
#undef XPU_NAME
constexpr const char* kResultNames[] = {"", "zeros", "scale", "one", "last", "stale"};

// The position of `name` among `names`; -1 if it is none of them.
template <size_t N>
int IndexOf(const char* const (&names)[N], const std::string& name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? -1 : static_cast<int>(found - std::begin(names));
}

bool ParseRule(const std::string& text, FaultRule* rule) {
  // Nine digits at most: no number can overflow.
  static const std::regex form(
      "(?:xpu:([0-9]{1,3})/)?(alloc|copy|command)(?:=([A-Za-z]+))?:(?:fail|delay=([0-9]{1,9})(us|ms|s)|result=([a-z]+)|"
      "workspace=([0-9]{1,9})(B|KiB|MiB))(?:@([0-9]{1,9})(-([0-9]{1,9})?)?)?");
  std::smatch match;
  if (!std::regex_match(text, match, form)) return false;
  const auto number = [&match](int group) { return std::stoull(match[group]); };
  rule->text = text;
  if (match[1].matched) rule->device = static_cast<int>(number(1));
  rule->call = static_cast<FaultRule::Call>(IndexOf(kCallNames, match[2]));
  if (match[3].matched) rule->primitive = IndexOf(kPrimitiveNames, match[3]);
  if (match[3].matched && (rule->call != FaultRule::kCommand || rule->primitive < 0)) return false;
  if (match[4].matched) {
    const int64_t unit_us = match[5] == "us" ? 1 : match[5] == "ms" ? 1000 : 1000000;
    rule->delay = std::chrono::microseconds(static_cast<int64_t>(number(4)) * unit_us);
  } else if (match[6].matched) {
    const int result = IndexOf(kResultNames, match[6]);
    if (rule->call != FaultRule::kCommand || result <= 0) return false;
    rule->result = static_cast<FaultRule::Result>(result);
  } else if (match[7].matched) {
    const int64_t unit = match[8] == "B" ? 1 : match[8] == "KiB" ? 1 << 10 : 1 << 20;
    rule->workspace = static_cast<int64_t>(number(7)) * unit;
    // The memory that a backend asks for does not change from command to command.
    if (rule->call != FaultRule::kCommand || rule->workspace == 0 || match[9].matched) return false;
  } else {
    rule->fail = true;
  }
  if (match[9].matched) {
    rule->first = number(9);
    if (match[11].matched) {
      rule->last = number(11);
    } else if (!match[10].matched) {
      rule->last = rule->first;
    }
  }
  return rule->first >= 1 && rule->first <= rule->last;
}

// A lie to the check of a hook (tf_internals/table.h) is no affair of devices.
bool IsOfHook(const std::string& text) {
  static const std::regex form("internal=[a-z0-9_]+:lie(?:@[1-9][0-9]{0,2})?");
  return std::regex_match(text, form);
}

}  // namespace

const char kFaultGrammar[] =
    "rules separated by commas, each [xpu:N/](alloc|copy|command[=PRIMITIVE]):"
    "(fail|delay=N(us|ms|s)|result=(zeros|scale|one|last|stale)|workspace=N(B|KiB|MiB))[@N|@N-|@N-M], where results "
    "and "
    "workspaces are those of commands and @ chooses among the calls counted from 1, except for workspaces; or "
    "internal=HOOK:lie[@N]";

bool ParseFaultRules(const std::string& text, std::vector<FaultRule>* rules) {
  rules->clear();
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    begin = end + 1;
    if (IsOfHook(one)) continue;
    FaultRule rule;
    if (!ParseRule(one, &rule)) {
      rules->clear();
      return false;
    }
    rules->push_back(rule);
  }
  return true;
}

}  // namespace xpu
