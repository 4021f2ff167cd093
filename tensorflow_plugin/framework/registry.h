// The one form in which kernels are registered:
//
//   registry.Op("Sum")
//       .Types("T", kNumberTypes)                      // one registration per type that the backend supports
//       .Host({"reduction_indices"})                   // arguments in host memory
//       .AllHostFor(DType::kInt32, {"input", "output"}) // int32 lives in host memory: everything there for it
//       .Requires(needs::Reduce(ReduceKind::kSum, "T"))
//       .Traits(OpTrait::kWaitsForDevice)              // facts for passes over graphs (op_traits.h)
//       .Kernel<ReduceKernel>(ReduceKind::kSum);       // further arguments go to the kernel's constructor
//
// A type whose requirements the backend denies is not registered, so that TensorFlow places the op on the CPU.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_REGISTRY_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/framework/kernel.h"
#include "tensorflow_plugin/framework/needs.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/primitives/backend.h"

struct TF_OpKernelContext;

namespace xpu {

// TensorFlow's device type of GPUs.
inline constexpr char kGpu[] = "GPU";

using TypeList = std::vector<DType>;

// Type lists that many ops share. int32 is absent from all: it is a host type (see AllHostFor).
extern const TypeList kFloatTypes;    // half, bfloat16, float, double
extern const TypeList kComplexTypes;  // complex64, complex128
extern const TypeList kIntegerTypes;  // all integers but int32
extern const TypeList kRealTypes;     // floats and integers
extern const TypeList kNumberTypes;   // real and complex
extern const TypeList kAllTypes;      // numbers and bool
TypeList Union(const TypeList& a, const TypeList& b);

class Registry {
 public:
  Registry(const Backend& backend, std::string device_type) : backend_(backend), device_type_(std::move(device_type)) {}

  class Entry {
   public:
    // Constrains a type attribute; may be called for several attributes (all combinations are registered).
    Entry& Types(const char* attr, TypeList types);
    Entry& Host(std::vector<const char*> args);
    // When the first type attribute has this type, all of `args` are in host memory too, and commands run there; but
    // with the label kOnDevice.
    Entry& AllHostFor(DType type, std::vector<const char*> args);
    // The first type attribute may have this type, too, with the label kOnDevice: its arguments are where those of the
    // other types are. Without it, it is TensorFlow's own, in host memory.
    Entry& LabelledFor(DType type);
    // The kernel keeps to host memory for every type (all arguments are named in Host): commands run there.
    Entry& OnHost();
    // The backend must support this for a combination of types to be registered (needs.h).
    Entry& Requires(Need need);
    Entry& Requires(Opcode op);  // as a program on the type of the first attribute
    // Facts about the op, which hold on any device. No kernel of ours waits for another op (OpTrait::kCannotWait).
    Entry& Traits(OpTraits traits);
    Entry& Priority(int priority);
    Entry& Label(const char* label);

    template <typename K, typename... Args>
    void Kernel(Args... args) {
      Finish([args...](Construction& c) -> std::unique_ptr<OpKernel> { return std::make_unique<K>(c, args...); });
    }

   private:
    friend class Registry;
    using Factory = std::function<std::unique_ptr<OpKernel>(Construction&)>;
    struct Constraint {
      const char* attr;
      TypeList types;
    };
    Entry(Registry* registry, const char* op) : registry_(registry), op_(op) {}
    void Finish(Factory factory);
    void ForEachCombination(const std::function<void(const std::vector<TypeBinding>&)>& f) const;
    void RegisterOne(const std::vector<TypeBinding>& types, int slot, bool all_host, const char* label);
    bool Supported(const std::vector<TypeBinding>& types) const;

    Registry* registry_;
    const char* op_;
    std::vector<Constraint> constraints_;
    std::vector<const char*> host_args_;
    DType all_host_type_ = DType::kInvalid, labelled_type_ = DType::kInvalid;
    bool on_host_ = false;
    std::vector<const char*> all_host_args_;
    std::vector<Need> needs_;
    OpTraits traits_ = OpTrait::kCannotWait;
    int priority_ = 0;
    const char* label_ = nullptr;
  };

  Entry Op(const char* name) { return Entry(this, name); }
  // Registers for this device what TensorFlow has for GPUs, with the same types and arguments in host memory. Only for
  // ops whose kernels have nothing of a GPU in them, never touch device memory, and are in TensorFlow without CUDA.
  void Adopt(const std::vector<const char*>& ops, OpTraits traits = {});
  // Errors met so far, one line each; registration goes on after one.
  const std::vector<std::string>& problems() const { return problems_; }
  int num_registered() const { return num_registered_; }

  // Entries (Op(...).Kernel<K>()) that all registries of the process have made, and how many there can be: ops beyond
  // are a problem.
  static int num_entries();
  static constexpr int kMaxEntries = 4096;

 private:
  template <int I>
  struct Trampoline;
  template <int... I>
  static auto AllTrampolines(std::integer_sequence<int, I...>);
  static void* Create(int slot, TF_OpKernelConstruction* construction);
  static void Compute(void* kernel, TF_OpKernelContext* context);
  static void Delete(void* kernel);

  const Backend& backend_;
  std::string device_type_;
  std::vector<std::string> problems_;
  int num_registered_ = 0;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_REGISTRY_H_
