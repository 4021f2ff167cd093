// Which faults to inject: what TF_XPU_FAULT says.
#ifndef TENSORFLOW_PLUGIN_FAULTS_RULES_H_
#define TENSORFLOW_PLUGIN_FAULTS_RULES_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu {

struct FaultRule {
  enum Call { kAllocation, kCopy, kCommand };
  static constexpr int kNumCalls = 3;
  // The fault in a command's result. It is all zero, or 5% too large (whole numbers and truth values: the next one). Or
  // one element, in the middle, is wrong, or the last one, or all, are left as they were before.
  enum Result { kRight, kZeros, kScale, kOne, kLast, kStale };

  Call call = kAllocation;
  int primitive = -1;  // only commands of this Primitive; -1: all, and fills
  bool fail = false;
  Result result = kRight;
  std::chrono::microseconds delay{0};
  int64_t workspace = 0;  // bytes of scratch memory that a command asks for: always, not chosen by first and last
  uint64_t first = 1;     // of the calls of this kind on a device, counted from 1
  uint64_t last = std::numeric_limits<uint64_t>::max();
  int device = -1;   // ordinal; -1: each
  std::string text;  // as it was written
};

// For people: the form of a value that ParseFaultRules understands.
extern const char kFaultGrammar[];

// Rules separated by commas, such as "alloc:fail@3", "copy:delay=20ms", "xpu:1/command:fail@10-12",
// "command=MatMul:result=zeros". False, and no rules, if any of them is not of that form. "internal=jit:lie@2" is none
// of a device: tf_internals/table.h reads it.
bool ParseFaultRules(const std::string& text, std::vector<FaultRule>* rules);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FAULTS_RULES_H_
