#include "tensorflow_plugin/backends/cpu/onednn.h"

#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <unordered_map>

#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/primitives/fork.h"

#ifdef __SANITIZE_THREAD__
// oneDNN is built without the sanitizer, which therefore sees what its locks guard and not them. The sanitizer's
// library looks this up by name.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:dnnl::impl::\n";
}
#endif

namespace xpu::cpu {
namespace {

using host_runtime::ScopedOmpThreads;

constexpr size_t kMaxPlans = 1024;

// A least-recently-used table. Plans in use outlive their eviction by their shared pointers.
class PlanTable {
 public:
  std::shared_ptr<OnednnPlan> Find(const PlanKey& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->second;
  }
  // Keeps the first of two plans that were made at the same time.
  std::shared_ptr<OnednnPlan> Insert(const PlanKey& key, std::shared_ptr<OnednnPlan> plan) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = index_.find(key);
    if (it != index_.end()) return it->second->second;
    order_.emplace_front(key, plan);
    index_[key] = order_.begin();
    if (order_.size() > kMaxPlans) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return plan;
  }

 private:
  struct Hash {
    size_t operator()(const PlanKey& key) const { return key.Hash(); }
  };
  using Order = std::list<std::pair<PlanKey, std::shared_ptr<OnednnPlan>>>;
  Mutex mutex_;
  Order order_;
  std::unordered_map<PlanKey, Order::iterator, Hash> index_;
};

// Neither the table nor the engine is ever destroyed: streams may still run when static objects go.
PlanTable& Table() {
  static PlanTable& table = *new PlanTable;
  return table;
}

const dnnl::stream& ThreadStream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

Status FromError(const dnnl::error& e) {
  switch (e.status) {
    case dnnl_out_of_memory:
      return errors::ResourceExhausted("oneDNN is out of memory: ", e.what());
    case dnnl_unimplemented:
      return errors::Unimplemented("oneDNN: ", e.what());
    default:
      return errors::Internal("oneDNN: ", e.what());
  }
}

}  // namespace

const dnnl::engine& Engine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

bool HasNative(DType type) {
  static const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  // The instruction sets are bit sets, each of which contains what it extends.
  auto has = [](dnnl::cpu_isa wanted) {
    return (static_cast<unsigned>(isa) & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  switch (type) {
    case DType::kFloat:
      return true;
    case DType::kBFloat16:
      return has(dnnl::cpu_isa::avx512_core_bf16);
    case DType::kHalf:
      return has(dnnl::cpu_isa::avx512_core_fp16);
    default:
      return false;
  }
}

dnnl::memory::data_type DnnlType(DType type) {
  switch (type) {
    case DType::kFloat:
      return dnnl::memory::data_type::f32;
    case DType::kBFloat16:
      return dnnl::memory::data_type::bf16;
    case DType::kHalf:
      return dnnl::memory::data_type::f16;
    case DType::kUint8:
      return dnnl::memory::data_type::u8;
    case DType::kInt8:
      return dnnl::memory::data_type::s8;
    case DType::kInt32:
      return dnnl::memory::data_type::s32;
    default:
      return dnnl::memory::data_type::undef;
  }
}

uint64_t PlanKey::Hash() const {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < size_; ++i) {
    h = (h ^ static_cast<uint64_t>(values_[i])) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return h;
}

bool PlanKey::operator==(const PlanKey& o) const {
  return size_ == o.size_ && std::memcmp(values_, o.values_, sizeof(values_[0]) * size_) == 0;
}

int OnednnPlan::Buffer(const dnnl::memory::desc& desc) {
  slots_.push_back({desc, -1});
  return static_cast<int>(slots_.size()) - 1;
}

int OnednnPlan::Temporary(const dnnl::memory::desc& desc) {
  slots_.push_back({desc, static_cast<int64_t>(temporary_bytes_)});
  temporary_bytes_ += (desc.get_size() + 63) / 64 * 64;
  return static_cast<int>(slots_.size()) - 1;
}

int OnednnPlan::Reordered(int memory, const dnnl::memory::desc& desc) {
  const int to = WriteLike(memory, desc);
  CopyBack(memory, to);
  return to;
}

int OnednnPlan::WriteLike(int memory, const dnnl::memory::desc& desc) {
  return slots_[memory].desc == desc ? memory : Temporary(desc);
}

void OnednnPlan::CopyBack(int written, int memory) {
  if (written == memory) return;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc reorder(Engine(), slots_[written].desc, Engine(), slots_[memory].desc, attr);
  Add(dnnl::reorder(reorder), reorder.scratchpad_desc(), {{DNNL_ARG_FROM, written}, {DNNL_ARG_TO, memory}});
}

void OnednnPlan::Add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                     std::initializer_list<std::pair<int, int>> arguments) {
  PlannedPrimitive step{primitive, arguments};
  if (scratchpad.get_size() > 0) step.arguments.emplace_back(DNNL_ARG_SCRATCHPAD, Temporary(scratchpad));
  steps_.push_back(std::move(step));
}

std::unique_ptr<OnednnPlan::MemoryObjects> OnednnPlan::MakeState() const {
  auto state = std::make_unique<MemoryObjects>();
  for (const MemorySlot& slot : slots_) state->memories.emplace_back(slot.desc, Engine(), nullptr);
  for (const PlannedPrimitive& step : steps_) {
    std::vector<dnnl_exec_arg_t> arguments;
    for (const auto& [index, memory] : step.arguments) arguments.push_back({index, state->memories[memory].get()});
    state->arguments.push_back(std::move(arguments));
  }
  return state;
}

void OnednnPlan::Execute(MemoryObjects* state, std::initializer_list<const void*> buffers) const {
  ScratchFrame frame;
  char* temporary = temporary_bytes_ > 0 ? frame.Get<char>(temporary_bytes_) : nullptr;
  const void* const* buffer = buffers.begin();
  for (size_t i = 0; i < slots_.size(); ++i) {
    const int64_t offset = slots_[i].offset;
    state->memories[i].set_data_handle(offset < 0 ? const_cast<void*>(*buffer++) : temporary + offset);
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    const std::vector<dnnl_exec_arg_t>& arguments = state->arguments[i];
    dnnl::error::wrap_c_api(dnnl_primitive_execute(steps_[i].primitive.get(), ThreadStream().get(),
                                                   static_cast<int>(arguments.size()), arguments.data()),
                            "could not run a primitive");
  }
}

Status OnednnPlan::Run(std::initializer_list<const void*> buffers, const host_runtime::ThreadTeam& team) {
  ScopedOmpThreads threads(team.size());
  team.MakeRoom();
  std::unique_ptr<MemoryObjects> state;
  try {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!idle_.empty()) {
        state = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (state == nullptr) state = MakeState();
    Execute(state.get(), buffers);
    std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(state));
  } catch (const dnnl::error& e) {
    return FromError(e);
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for oneDNN's temporaries, ", temporary_bytes_, " bytes");
  }
  return OkStatus();
}

Status GetPlan(PlanKey key, const host_runtime::ThreadTeam& team, host_runtime::FunctionRef<void(OnednnPlan*)> build,
               std::shared_ptr<OnednnPlan>* plan) {
  key.Add(team.size());
  XPU_REQUIRE(key.fits(), errors::Internal("a oneDNN plan's key does not fit"));
  *plan = Table().Find(key);
  if (*plan != nullptr) return OkStatus();
  ScopedOmpThreads threads(team.size());
  auto made = std::make_shared<OnednnPlan>();
  try {
    build(made.get());
  } catch (const dnnl::error& e) {
    // oneDNN also calls invalid what it does not support. The plan is then not usable: there are other ways.
    if (e.status != dnnl_unimplemented && e.status != dnnl_invalid_arguments) return FromError(e);
    made = std::make_shared<OnednnPlan>();
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory to prepare a oneDNN primitive");
  }
  *plan = Table().Insert(key, std::move(made));
  return OkStatus();
}

}  // namespace xpu::cpu
