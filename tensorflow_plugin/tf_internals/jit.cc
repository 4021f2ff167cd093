#include "tensorflow_plugin/tf_internals/jit.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/function.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_plugin/tf_internals/checks.h"
#include "tensorflow_plugin/tf_internals/copies.h"
#include "tensorflow_plugin/tf_internals/table.h"
#include "tensorflow_plugin/tf_internals/virtual_tables.h"

namespace xpu {
namespace {

namespace tf = tensorflow;
using Properties = std::shared_ptr<const tf::NodeProperties>;

// Set by tf.function on each call of a function with jit_compile=True.
constexpr char kMustCompile[] = "_XlaMustCompile";
constexpr char kConfig[] = "config_proto";
constexpr char kExecutor[] = "executor_type";

// For a NodeDef or FunctionDef.
template <typename Def>
bool HasMustCompile(const Def& def) {
  const auto found = def.attr().find(kMustCompile);
  return found != def.attr().end() && found->second.b();
}

bool NamesFunction(const tf::NodeDef& node) {
  const auto& attrs = node.attr();
  return std::any_of(attrs.begin(), attrs.end(),
                     [](const auto& attr) { return attr.second.has_func() || attr.second.list().func_size() > 0; });
}

// True once a function for XLA has been called, on any device.
std::atomic<bool> xla_was_asked_for{false};

// The node as a StatefulPartitionedCall of the function that it names as its op.
tf::NodeDef OrdinaryCall(const tf::NodeProperties& props) {
  const tf::NodeDef& node = props.node_def;
  tf::NodeDef call;
  call.set_name(node.name());
  call.set_op("StatefulPartitionedCall");
  call.set_device(node.device());
  *call.mutable_input() = node.input();
  tf::NameAttrList function;
  function.set_name(node.op());
  *function.mutable_attr() = node.attr();
  for (const char* of_the_call : {kMustCompile, kConfig, kExecutor}) function.mutable_attr()->erase(of_the_call);

  tf::AddNodeAttr("f", function, &call);
  tf::AddNodeAttr("Tin", props.input_types, &call);
  tf::AddNodeAttr("Tout", props.output_types, &call);
  tf::AddNodeAttr("config", "", &call);
  for (const char* name : {kConfig, kExecutor}) {
    const auto found = node.attr().find(name);
    tf::AddNodeAttr(name, found != node.attr().end() ? found->second.s() : "", &call);
  }
  return call;
}

// XLA's two functions, which TensorFlow's creator has in its table. TensorFlow deletes a creator that is replaced, so
// that object cannot be kept. It has no members: all that the functions get of it is where its table is.
class XlaFunctions {
 public:
  XlaFunctions() = default;  // none
  explicit XlaFunctions(const tf::CustomKernelCreator& creator) : table_(tf_internals::TableOf(&creator)) {}

  bool there() const { return table_ != nullptr; }
  bool CanCreateKernel(const tf::FunctionLibraryRuntime& runtime, const Properties& props) const {
    using Function = bool (*)(const void*, const tf::FunctionLibraryRuntime&, const Properties&);
    return At<Function>(kCanCreate)(&table_, runtime, props);
  }
  absl::Status CreateKernel(tf::FunctionLibraryRuntime* runtime, const Properties& props,
                            std::unique_ptr<tf::OpKernel>* kernel) const {
    using Function =
        absl::Status (*)(const void*, tf::FunctionLibraryRuntime*, const Properties&, std::unique_ptr<tf::OpKernel>*);
    return At<Function>(kCreate)(&table_, runtime, props, kernel);
  }

  static void Check(const tf::CustomKernelCreator& creator, tf_internals::Check& check) {
    const tf_internals::VirtualTable table = tf_internals::TableOf(&creator);
    const auto is_at = [](const void* address, const char* symbol) {
      return tf_internals::IsAt(address, "libtensorflow_cc.so.2", symbol);
    };
    const auto* const type = dynamic_cast<const abi::__si_class_type_info*>(&typeid(creator));
    // A class with another base or another table has other members, too.
    if (!check.Is("the class that compiles functions of jit_compile=True", typeid(creator).name(),
                  "N10tensorflow16XlaKernelCreatorE") ||
        !check.Is("whether it has one base", type != nullptr, true) ||
        !check.Is("its base", type->__base_type->name(), "N10tensorflow19CustomKernelCreatorE") ||
        !check.Is("whether its table is that of the class",
                  is_at(table - tf_internals::kBeforeFunctions, "_ZTVN10tensorflow16XlaKernelCreatorE"), true) ||
        !check.Is("the place of CanCreateKernel", tf_internals::PlaceOf(&tf::CustomKernelCreator::CanCreateKernel),
                  kCanCreate) ||
        !check.Is("the place of CreateKernel", tf_internals::PlaceOf(&tf::CustomKernelCreator::CreateKernel),
                  kCreate) ||
        !check.Is(
            "whether CanCreateKernel is there",
            is_at(table[kCanCreate],
                  "_ZNK10tensorflow16XlaKernelCreator15CanCreateKernelERKNS_22FunctionLibraryRuntimeERKSt10shared_"
                  "ptrIKNS_14NodePropertiesEE"),
            true)) {
      return;
    }
    check.Is("whether CreateKernel is there",
             is_at(table[kCreate],
                   "_ZNK10tensorflow16XlaKernelCreator12CreateKernelEPNS_22FunctionLibraryRuntimeERKSt10shared_ptrIKNS_"
                   "14NodePropertiesEEPSt10unique_ptrINS_8OpKernelESt14default_deleteISA_EE"),
             true);
  }

 private:
  // Behind two destructors.
  static constexpr int kCanCreate = 2, kCreate = 3;

  template <typename Function>
  Function At(int place) const {
    return reinterpret_cast<Function>(table_[place]);
  }

  tf_internals::VirtualTable table_ = nullptr;
};

// TensorFlow asks its one creator of custom kernels before it makes any kernel. XLA's makes a kernel that compiles out
// of every call of a function that must be compiled, whatever the device; this one stands before it. Without XLA's
// functions it treats other devices as it treats ours.
class KernelCreator : public tf::CustomKernelCreator {
 public:
  KernelCreator(std::string device_type, XlaFunctions xla, bool had_xla)
      : device_type_(std::move(device_type)), xla_(xla), had_xla_(had_xla) {}

  // A call in a graph is a PartitionedCall, a kernel like others once XLA's creator has no say. An eager call has the
  // function's name for its op. TensorFlow would run that on this device alone, without its graph optimizers and
  // without soft placement: it must become a call of the other kind.
  bool CanCreateKernel(const tf::FunctionLibraryRuntime& runtime, const Properties& props) const override {
    if (HasMustCompile(props->node_def)) xla_was_asked_for = true;
    const bool ours = Ours(runtime);
    if (!ours && xla_.there()) return xla_.CanCreateKernel(runtime, props);
    if (!ours && !had_xla_) return false;
    if (ours) TakeOverCopies(const_cast<tf::Device*>(runtime.device()));  // before any kernel runs there
    if (!HasMustCompile(props->node_def)) return false;
    if (ours) SayOnce();
    return runtime.GetFunctionLibraryDefinition()->Find(props->node_def.op()) != nullptr;
  }

  absl::Status CreateKernel(tf::FunctionLibraryRuntime* runtime, const Properties& props,
                            std::unique_ptr<tf::OpKernel>* kernel) const override {
    if (!Ours(*runtime) && xla_.there()) return xla_.CreateKernel(runtime, props, kernel);
    Properties call;
    absl::Status status = tf::NodeProperties::CreateFromNodeDef(OrdinaryCall(*props), tf::OpRegistry::Global(), &call);
    if (!status.ok()) return status;
    tf::Device* device = runtime->device();
    tf::OpKernel* created = nullptr;
    status = tf::CreateOpKernel(tf::DeviceType(device->device_type()), device,
                                device->GetAllocator(tf::AllocatorAttributes()), runtime, device->resource_manager(),
                                call, runtime->graph_def_version(), &created);
    kernel->reset(created);
    return status;
  }

 private:
  bool Ours(const tf::FunctionLibraryRuntime& runtime) const {
    const tf::Device* device = runtime.device();
    return device != nullptr && device->device_type() == device_type_;
  }

  void SayOnce() const {
    static std::atomic<bool> said{false};
    if (said.exchange(true)) return;
    std::fprintf(
        stderr,
        "tensorflow_xpu: jit_compile=True: XLA has no compiler for the device type %s; such functions run there "
        "as ordinary ones\n",
        device_type_.c_str());
  }

  const std::string device_type_;
  const XlaFunctions xla_;
  const bool had_xla_;
};

// A node of a graph that calls a function for XLA has all its arguments and results in device memory. An ordinary
// function has its integers of 32 bits in host memory. So the calls that were placed here become calls of that kind.
// TensorFlow forbids to inline functions for XLA. The calls here are of copies that Grappler may inline, so that a
// layer that Keras compiles by itself does not divide its model.
class MakeCallsOrdinary : public tf::GraphOptimizationPass {
 public:
  explicit MakeCallsOrdinary(std::string device_type) : device_type_(std::move(device_type)) {}

  absl::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr) return absl::OkStatus();
    for (tf::Node* node : (*options.graph)->op_nodes()) {
      tf::DeviceNameUtils::ParsedName device;
      if (HasMustCompile(node->def()) && tf::DeviceNameUtils::ParseFullName(node->assigned_device_name(), &device) &&
          device.type == device_type_) {
        node->ClearAttr(kMustCompile);
        if (options.flib_def != nullptr) TF_RETURN_IF_ERROR(CallCopy(node, options.flib_def));
      }
    }
    return absl::OkStatus();
  }

 private:
  static constexpr char kNoInline[] = "_noinline";

  // Not the functions that call others: once it is inlined, such a call does not come here any more.
  static bool CallsNone(const tf::FunctionDef& function) {
    return std::none_of(function.node_def().begin(), function.node_def().end(), NamesFunction);
  }

  // Has the node call a copy of its function that may be inlined.
  static absl::Status CallCopy(tf::Node* node, tf::FunctionLibraryDefinition* library) {
    tf::NameAttrList function;
    if (!tf::GetNodeAttr(node->attrs(), "f", &function).ok()) return absl::OkStatus();
    const tf::FunctionDef* const found = library->Find(function.name());
    if (found == nullptr || !HasMustCompile(*found) || !CallsNone(*found)) return absl::OkStatus();
    tf::FunctionDef copy = *found;
    copy.mutable_signature()->set_name(function.name() + "_without_xla");
    for (const char* attribute : {kMustCompile, kNoInline}) copy.mutable_attr()->erase(attribute);
    if (!library->Contains(copy.signature().name())) {
      const tf::StackTracesMap* const traces = library->GetStackTraces(function.name());
      TF_RETURN_IF_ERROR(library->AddFunctionDef(copy, traces != nullptr ? *traces : tf::StackTracesMap()));
    }
    function.set_name(copy.signature().name());
    node->ClearAttr("f");
    node->AddAttr("f", function);
    return absl::OkStatus();
  }

  const std::string device_type_;
};

}  // namespace

namespace tf_internals {

void CheckJit(Check& check) {
  const tf::CustomKernelCreator* const xla = tf::GetDefaultCustomKernelCreator();
  if (xla != nullptr) XlaFunctions::Check(*xla, check);
}

}  // namespace tf_internals

bool MustCompile(const tf::NodeDef& call) { return HasMustCompile(call); }
bool MayLackMarks(const tf::FunctionDef& function) { return HasMustCompile(function) || xla_was_asked_for; }

void RunJitFunctionsWithoutXla(const std::string& device_type, bool knows_nodes) {
  const tf::CustomKernelCreator* const xla = tf::GetDefaultCustomKernelCreator();
  const bool known = tf_internals::TurnOn("jit", tf_internals::CheckJit);
  const XlaFunctions functions = xla != nullptr && known ? XlaFunctions(*xla) : XlaFunctions();
  tf::RegisterDefaultCustomKernelCreator(new KernelCreator(device_type, functions, xla != nullptr));
  if (!knows_nodes) return;
  tf::OptimizationPassRegistry::Global()->Register(tf::OptimizationPassRegistry::POST_PLACEMENT, 0,
                                                   std::make_unique<MakeCallsOrdinary>(device_type));
}

}  // namespace xpu
