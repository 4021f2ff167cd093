#include "tensorflow_plugin/faults/rules.h"

#include <algorithm>
#include <regex>

namespace xpu {
namespace {

constexpr const char* kCallNames[FaultRule::kNumCalls] = {"alloc", "copy", "command"};

bool ParseRule(const std::string& text, FaultRule* rule) {
  // Nine digits at most: no number can overflow.
  static const std::regex form(
      "(?:xpu:([0-9]{1,3})/)?(alloc|copy|command):(?:fail|delay=([0-9]{1,9})(us|ms|s))"
      "(?:@([0-9]{1,9})(-([0-9]{1,9})?)?)?");
  std::smatch match;
  if (!std::regex_match(text, match, form)) return false;
  const auto number = [&match](int group) { return std::stoull(match[group]); };
  rule->text = text;
  if (match[1].matched) rule->device = static_cast<int>(number(1));
  while (match[2] != kCallNames[rule->call]) rule->call = static_cast<FaultRule::Call>(rule->call + 1);
  rule->fail = !match[3].matched;
  if (!rule->fail) {
    const int64_t unit_us = match[4] == "us" ? 1 : match[4] == "ms" ? 1000 : 1000000;
    rule->delay = std::chrono::microseconds(static_cast<int64_t>(number(3)) * unit_us);
  }
  if (match[5].matched) {
    rule->first = number(5);
    if (match[7].matched) {
      rule->last = number(7);
    } else if (!match[6].matched) {
      rule->last = rule->first;
    }
  }
  return rule->first >= 1 && rule->first <= rule->last;
}

}  // namespace

const char kFaultGrammar[] =
    "rules separated by commas, each [xpu:N/](alloc|copy|command):(fail|delay=N(us|ms|s))[@N|@N-|@N-M], where @ "
    "chooses "
    "among the calls counted from 1";

bool ParseFaultRules(const std::string& text, std::vector<FaultRule>* rules) {
  rules->clear();
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    FaultRule rule;
    if (!ParseRule(text.substr(begin, end - begin), &rule)) {
      rules->clear();
      return false;
    }
    rules->push_back(rule);
    begin = end + 1;
  }
  return true;
}

}  // namespace xpu
