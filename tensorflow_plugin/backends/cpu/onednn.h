// oneDNN behind a table. A primitive with its reorders is made once per descriptor and thread count and kept as a Plan.
// A run needs nothing but buffer addresses.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ONEDNN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ONEDNN_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "dnnl.hpp"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/dims.h"
#include "tensorflow_plugin/primitives/fork.h"
#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {

const dnnl::engine& Engine();

// True where oneDNN computes this type at the speed of float or faster on this machine.
bool HasNative(DType type);
// The oneDNN name of float, half or bfloat16, or of bytes and their sums.
dnnl::memory::data_type DnnlType(DType type);

// The key that tells one plan from another.
class PlanKey {
 public:
  static constexpr int kMax = 40;
  PlanKey(std::initializer_list<int64_t> values) : PlanKey() { Add(values); }
  PlanKey() : size_(0) {}
  void Add(int64_t v) {
    if (size_ < kMax) values_[size_] = v;
    ++size_;
  }
  void Add(std::initializer_list<int64_t> values) {
    for (int64_t v : values) Add(v);
  }
  void Add(const Dims& dims) {
    Add(dims.rank());
    for (int64_t v : dims) Add(v);
  }
  template <int n>
  void Add(const int64_t (&values)[n]) {
    for (int64_t v : values) Add(v);
  }
  bool fits() const { return size_ <= kMax; }
  uint64_t Hash() const;
  bool operator==(const PlanKey& o) const;

 private:
  int size_;
  int64_t values_[kMax];
};

// A few primitives in a row over numbered memories: the caller's buffers first, then temporaries.
class OnednnPlan {
 public:
  // A buffer of the caller, in the order Run gets them.
  int Buffer(const dnnl::memory::desc& desc);
  int Temporary(const dnnl::memory::desc& desc);
  // Adds a reorder if `memory` is not laid out like `desc`; the memory that is.
  int Reordered(int memory, const dnnl::memory::desc& desc);
  // Where a primitive that writes like `desc` shall write: `memory`, or a temporary to be given to CopyBack.
  int WriteLike(int memory, const dnnl::memory::desc& desc);
  // Adds the reorder from what WriteLike gave to the memory it was asked for.
  void CopyBack(int written, int memory);
  // Adds a primitive created with a user scratchpad.
  void Add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
           std::initializer_list<std::pair<int, int>> arguments);

  // False: oneDNN has nothing good for this descriptor, or there is nothing to do.
  bool usable() const { return !steps_.empty(); }
  // A plan without memories could not be made.
  int num_memories() const { return static_cast<int>(slots_.size()); }
  const dnnl::memory::desc& desc(int memory) const { return slots_[memory].desc; }
  Status Run(std::initializer_list<const void*> buffers, const host_runtime::ThreadTeam& team);

 private:
  struct PlannedPrimitive {
    dnnl::primitive primitive;
    std::vector<std::pair<int, int>> arguments;  // oneDNN's argument, memory
  };
  struct MemorySlot {
    dnnl::memory::desc desc;
    int64_t offset;  // of a temporary in scratch memory; -1: the caller's buffer
  };
  // oneDNN memory objects, made once and given new addresses at each run.
  struct MemoryObjects {
    std::vector<dnnl::memory> memories;
    std::vector<std::vector<dnnl_exec_arg_t>> arguments;
  };
  std::unique_ptr<MemoryObjects> MakeState() const;
  void Execute(MemoryObjects* state, std::initializer_list<const void*> buffers) const;

  std::vector<PlannedPrimitive> steps_;
  std::vector<MemorySlot> slots_;
  size_t temporary_bytes_ = 0;
  // As many as ever ran this plan at once.
  Mutex mutex_;
  std::vector<std::unique_ptr<MemoryObjects>> idle_;
};

// The plan for `key`, built by `build` (with OpenMP set to the team) if it is not in the table. `build` leaves the
// plan empty, or lets dnnl::error escape as Unimplemented, to say that oneDNN has nothing for it: that is kept too.
Status GetPlan(PlanKey key, const host_runtime::ThreadTeam& team, host_runtime::FunctionRef<void(OnednnPlan*)> build,
               std::shared_ptr<OnednnPlan>* plan);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ONEDNN_H_
