// Facts about ops that passes over graphs need (op traits). Each is said once: where the op's kernels are registered
// (registry.h), or, if they are all TensorFlow's own, in tensorflow_ops.cc. An op has the trait whatever its device is.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_OP_TRAITS_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_OP_TRAITS_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace xpu {

// V(Name, what the op is or does). docs/architecture.md says who sets them and what tests them.
#define XPU_OP_TRAITS(V)                                                                                            \
  /* Ops that wait for other ops of the same step, though no edge says so (graph/may_wait.h). */                    \
  V(CannotWait, "waits for no other op, though TensorFlow calls it stateful; nor does an op with a kernel of ours") \
  V(MayWait, "may wait for another op, though TensorFlow calls it stateless")                                       \
  V(OnlyCalls, "runs functions and does nothing else: it waits if they do")                                         \
  V(Lowered, "is a branch or a loop that TensorFlow can replace by nodes of the graph around it")                   \
  /* Ops and clusters (graph/node_traits.h). */                                                                     \
  V(WaitsForDevice, "its kernel waits for values that commands compute: no capture has them")                       \
  V(ReadsNewNumbers, "its commands depend on numbers in host memory that differ from step to step")                 \
  V(DrawsFromStart, "its commands depend on a start of random numbers, which differs from step to step")            \
  V(UsesTensorArray, "works on a TensorArray, which other ops change while the graph runs")                         \
  V(PassesOn, "its kernel, the same on any device, passes device memory on and never looks into it")                \
  V(GivesShapes, "gives shapes of its inputs, whatever their elements are")                                         \
  V(WritesInput, "writes into the memory of its first argument, which others may read: no copy of it will do")      \
  V(OnlyReads, "leaves the variables among its arguments as they are")                                              \
  V(Counts, "is arithmetic that cannot fail, by which loops count: the host may count along")                       \
  V(FollowsOperands, "has kernels for host memory (labels::kOnHost), for operands that are all there")              \
  V(FollowsReaders, "has them only for results that are read there, too")                                           \
  /* Direct calls (graph/direct_call_plan.h). */                                                                    \
  V(KeepsNothing, "its kernel keeps nothing from call to call, though TensorFlow calls the op stateful")            \
  V(ServesDirectCalls, "may run on the CPU in a direct call: it brings data, says its shape or hands it on")        \
  /* TensorLists. */                                                                                                \
  V(OfTensorLists, "works on TensorLists, by TensorFlow's kernel, which is the same on any device")                 \
  V(CopiesElements, "copies or fills elements of lists on the device's stream")                                     \
  V(MakesTensorList, "its first output is a TensorList of the elements that attribute element_dtype says")          \
  V(AddsTensorLists, "gives a TensorList where it gets TensorLists, and numbers where it gets numbers")             \
  V(Accumulates, "pushes to, pops from or begins a list in which a loop keeps values for its gradient")

enum class OpTrait : uint32_t {
#define XPU_TRAIT(name, meaning) k##name,
  XPU_OP_TRAITS(XPU_TRAIT)
#undef XPU_TRAIT
};

class OpTraits {
 public:
  constexpr OpTraits() = default;
  constexpr OpTraits(OpTrait trait) : bits_(uint32_t{1} << static_cast<uint32_t>(trait)) {}

  constexpr bool Has(OpTrait trait) const { return (bits_ & OpTraits(trait).bits_) != 0; }
  constexpr bool HasAnyOf(OpTraits traits) const { return (bits_ & traits.bits_) != 0; }
  friend constexpr OpTraits operator|(OpTraits a, OpTraits b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(OpTraits a, OpTraits b) { return a.bits_ == b.bits_; }

  std::vector<const char*> Names() const;

 private:
  uint32_t bits_ = 0;
};
constexpr OpTraits operator|(OpTrait a, OpTrait b) { return OpTraits(a) | OpTraits(b); }

// Adds to the traits of an op. While the core loads: nobody asks meanwhile.
void AddTraits(const std::string& op, OpTraits traits);

// None of an op that nobody has said anything about.
OpTraits TraitsOf(const std::string& op);

// All ops that have traits, as JSON: `{"Cast": ["CannotWait", "Counts"], ...}`.
std::string DescribeTraits();

// A row of the table of TensorFlow's own ops.
struct TensorflowOps {
  OpTraits traits;
  std::vector<const char*> names;
};
const std::vector<TensorflowOps>& TableOfTensorflowOps();

// Acts of our kernels, noted by op once somebody asks: tests compare them with traits (tests/sweep).
enum class Observed : uint8_t {
  kWaited,         // for the device
  kLockedToWrite,  // a variable
};
extern std::atomic<bool> observes_kernels;
void NoteObserved(const std::string& op, Observed what);
// Those since the last call, as JSON: `{"waited": ["Where"], "locked_to_write": []}`. The first call gives nothing.
std::string TakeObserved();

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_OP_TRAITS_H_
