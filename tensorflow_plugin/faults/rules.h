// Which faults to inject: what TF_XPU_FAULT says.
#ifndef TENSORFLOW_PLUGIN_FAULTS_RULES_H_
#define TENSORFLOW_PLUGIN_FAULTS_RULES_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace xpu {

struct FaultRule {
  enum Call { kAllocation, kCopy, kCommand };
  static constexpr int kNumCalls = 3;

  Call call = kAllocation;
  bool fail = false;  // else delayed
  std::chrono::microseconds delay{0};
  uint64_t first = 1;  // of the calls of this kind on a device, counted from 1
  uint64_t last = std::numeric_limits<uint64_t>::max();
  int device = -1;   // ordinal; -1: each
  std::string text;  // as it was written
};

// For people: the form of a value that ParseFaultRules understands.
extern const char kFaultGrammar[];

// Rules separated by commas, such as "alloc:fail@3", "copy:delay=20ms", "xpu:1/command:fail@10-12". False, and no
// rules, if any of them is not of that form.
bool ParseFaultRules(const std::string& text, std::vector<FaultRule>* rules);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FAULTS_RULES_H_
