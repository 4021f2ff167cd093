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

constexpr int kNumObserved = 2;
constexpr const char* kObservedNames[kNumObserved] = {"waited", "locked_to_write"};

struct Known {
  OpTraits traits;
  std::atomic<bool> observed[kNumObserved] = {};
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

std::atomic<bool> observes_kernels{false};

void NoteObserved(const std::string& op, Observed what) {
  const auto found = All().find(op);
  if (found != All().end()) found->second.observed[static_cast<int>(what)].store(true, std::memory_order_relaxed);
}

std::string TakeObserved() {
  observes_kernels = true;
  std::string json = "{";
  for (int i = 0; i < kNumObserved; ++i) {
    std::vector<std::string> ops;
    for (auto& [op, known] : All()) {
      if (known.observed[i].exchange(false, std::memory_order_relaxed)) ops.push_back(op);
    }
    json += std::string(i > 0 ? ", " : "") + "\"" + kObservedNames[i] + "\": " + JsonStrings(ops);
  }
  return json + "}";
}

}  // namespace xpu
