#include "tensorflow_plugin/framework/op_traits.h"

#include <map>

#include "tensorflow_plugin/framework/bookkeeping.h"
#include "tensorflow_plugin/loader/json.h"

namespace xpu {
namespace {

constexpr const char* kNames[] = {
#define XPU_NAME(name, meaning) #name,
    XPU_OP_TRAITS(XPU_NAME)
#undef XPU_NAME
};
constexpr size_t kNumTraits = sizeof(kNames) / sizeof(*kNames);
static_assert(kNumTraits <= 32, "OpTraits has 32 bits");

constexpr int kNumDeeds = 2;
constexpr const char* kDeedNames[kNumDeeds] = {"waited", "locked_to_write"};

struct Known {
  OpTraits traits;
  std::atomic<bool> deeds[kNumDeeds] = {};
};

// Written while the core loads, then only read.
std::map<std::string, Known>& All() {
  static auto* const all = [] {
    auto* made = new std::map<std::string, Known>;
    for (const TensorflowOps& row : TableOfTensorflowOps()) {
      for (const char* name : row.names) {
        OpTraits& traits = (*made)[name].traits;
        traits = traits | row.traits;
      }
    }
    return made;
  }();
  return *all;
}

}  // namespace

std::vector<const char*> OpTraits::Names() const {
  std::vector<const char*> names;
  for (size_t i = 0; i < kNumTraits; ++i) {
    if (Has(static_cast<OpTrait>(i))) names.push_back(kNames[i]);
  }
  return names;
}

void AddTraits(const std::string& op, OpTraits traits) {
  OpTraits& known = All()[op].traits;
  known = known | traits;
}

OpTraits TraitsOf(const std::string& op) {
  const auto found = All().find(op);
  return found == All().end() ? OpTraits() : found->second.traits;
}

std::string DescribeTraits() {
  std::string json = "{";
  for (const auto& [op, known] : All()) {
    json += std::string(json.size() > 1 ? ", " : "") + "\"" + op + "\": " + JsonStrings(known.traits.Names());
  }
  return json + "}";
}

std::set<std::string> BookkeepingOps() {
  // Values from elsewhere, a function's arguments and results, handles.
  std::set<std::string> found = {"Const", "DestroyResourceOp", "Placeholder",   "VarHandleOp", "VarIsInitializedOp",
                                 "_Arg",  "_DeviceArg",        "_DeviceRetval", "_HostRecv",   "_HostSend",
                                 "_Recv", "_Retval",           "_Send"};
  // The steps of loops and branches; messages, and shapes that gradients need.
  for (const char* op : {"Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch", "Assert",
                         "BroadcastGradientArgs", "PrintV2", "StringFormat"}) {
    found.insert(op);
  }
  for (const auto& [op, known] : All()) {
    if (known.traits.HasAnyOf(OpTrait::kPassesOn | OpTrait::kGivesShapes | OpTrait::kOnlyCalls)) found.insert(op);
  }
  return found;
}

std::atomic<bool> deeds_are_noted{false};

void NoteDeed(const std::string& op, OpDeed deed) {
  const auto found = All().find(op);
  if (found != All().end()) found->second.deeds[static_cast<int>(deed)].store(true, std::memory_order_relaxed);
}

std::string TakeDeeds() {
  deeds_are_noted = true;
  std::string json = "{";
  for (int deed = 0; deed < kNumDeeds; ++deed) {
    std::vector<std::string> ops;
    for (auto& [op, known] : All()) {
      if (known.deeds[deed].exchange(false, std::memory_order_relaxed)) ops.push_back(op);
    }
    json += std::string(deed > 0 ? ", " : "") + "\"" + kDeedNames[deed] + "\": " + JsonStrings(ops);
  }
  return json + "}";
}

}  // namespace xpu
