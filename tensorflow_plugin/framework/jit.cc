#include "tensorflow_plugin/framework/jit.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/function.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_plugin/framework/direct_copies.h"
#include "tensorflow_plugin/framework/op_traits.h"

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
bool MustCompile(const Def& def) {
  const auto found = def.attr().find(kMustCompile);
  return found != def.attr().end() && found->second.b();
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

// TensorFlow asks its one creator of custom kernels before it makes any kernel. XLA's makes a kernel that compiles out
// of every call of a function that must be compiled, whatever the device; this one stands before it.
class KernelCreator : public tf::CustomKernelCreator {
 public:
  KernelCreator(std::string device_type, const tf::CustomKernelCreator* xla)
      : device_type_(std::move(device_type)), xla_(xla) {}

  // A call in a graph is a PartitionedCall, a kernel like others once XLA's creator has no say. An eager call has the
  // function's name for its op. TensorFlow would run that on this device alone, without its graph optimizers and
  // without soft placement: it must become a call of the other kind.
  bool CanCreateKernel(const tf::FunctionLibraryRuntime& runtime, const Properties& props) const override {
    if (MustCompile(props->node_def)) xla_was_asked_for = true;
    if (!Ours(runtime)) return xla_ != nullptr && xla_->CanCreateKernel(runtime, props);
    CopyDirectly(const_cast<tf::Device*>(runtime.device()));  // before any kernel runs there
    if (!MustCompile(props->node_def)) return false;
    SayOnce();
    return runtime.GetFunctionLibraryDefinition()->Find(props->node_def.op()) != nullptr;
  }

  absl::Status CreateKernel(tf::FunctionLibraryRuntime* runtime, const Properties& props,
                            std::unique_ptr<tf::OpKernel>* kernel) const override {
    if (!Ours(*runtime)) return xla_->CreateKernel(runtime, props, kernel);
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
  const tf::CustomKernelCreator* const xla_;
};

// Loops and branches that are traced for XLA lack the mark by which TensorFlow turns them into nodes of the graph
// around them. Without it each body runs on one device, without soft placement. This pass runs before TensorFlow's and
// sets the mark in the functions that run here without XLA. Once there are any, it sets it in others, too: a function
// that both kinds call is traced once.
class MarkControlFlow : public tf::GraphOptimizationPass {
 public:
  explicit MarkControlFlow(std::string device_type) : device_type_(std::move(device_type)) {}

  absl::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    const tf::Device* device = options.default_function_device;
    if (options.graph == nullptr || options.flib_def == nullptr || options.function_def == nullptr ||
        device == nullptr || device->device_type() != device_type_ ||
        !(MustCompile(*options.function_def) || xla_was_asked_for)) {
      return absl::OkStatus();
    }
    std::vector<std::string> called;
    for (tf::Node* node : (*options.graph)->op_nodes()) {
      if (LacksMark(node->def())) node->AddAttr(kMark, true);
      AddCalled(node->def(), &called);
    }
    // The library is this function's own copy.
    std::set<std::string> seen;
    while (!called.empty()) {
      const std::string name = called.back();
      called.pop_back();
      const tf::FunctionDef* found = seen.insert(name).second ? options.flib_def->Find(name) : nullptr;
      if (found == nullptr) continue;
      bool lacking = false;
      for (const tf::NodeDef& node : found->node_def()) {
        AddCalled(node, &called);
        lacking = lacking || LacksMark(node);
      }
      if (!lacking) continue;
      tf::FunctionDef function = *found;
      for (tf::NodeDef& node : *function.mutable_node_def()) {
        if (LacksMark(node)) (*node.mutable_attr())[kMark].set_b(true);
      }
      const absl::Status status = options.flib_def->ReplaceFunction(name, function);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  static constexpr char kMark[] = "_lower_using_switch_merge";

  static bool LacksMark(const tf::NodeDef& node) {
    return node.attr().find(kMark) == node.attr().end() && TraitsOf(node.op()).Has(OpTrait::kInlined);
  }

  // Adds the functions that a node names, unless they are functions for XLA: each of those passes by here by itself.
  static void AddCalled(const tf::NodeDef& node, std::vector<std::string>* called) {
    if (MustCompile(node)) return;
    for (const auto& attr : node.attr()) {
      if (attr.second.has_func()) called->push_back(attr.second.func().name());
      for (const tf::NameAttrList& function : attr.second.list().func()) called->push_back(function.name());
    }
  }

  const std::string device_type_;
};

// A node of a graph that calls a function for XLA has all its arguments and results in device memory. An ordinary
// function has its integers of 32 bits in host memory. So the calls that were placed here become calls of that kind;
// Grappler may then inline them, too.
class MakeCallsOrdinary : public tf::GraphOptimizationPass {
 public:
  explicit MakeCallsOrdinary(std::string device_type) : device_type_(std::move(device_type)) {}

  absl::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr) return absl::OkStatus();
    for (tf::Node* node : (*options.graph)->op_nodes()) {
      tf::DeviceNameUtils::ParsedName device;
      if (MustCompile(node->def()) && tf::DeviceNameUtils::ParseFullName(node->assigned_device_name(), &device) &&
          device.type == device_type_) {
        node->ClearAttr(kMustCompile);
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::string device_type_;
};

// TensorFlow's own pass that looks for the mark is in phase 10.
constexpr int kBeforeLowering = 9;

// TensorFlow deletes a creator that is replaced, so that XLA's cannot be kept. It has no state: an object with the same
// virtual functions does the same.
const tf::CustomKernelCreator* Copy(const tf::CustomKernelCreator& xla) {
  struct alignas(void*) Bytes {
    unsigned char bytes[sizeof(tf::CustomKernelCreator)];
  };
  auto* copy = new Bytes;
  std::memcpy(copy->bytes, static_cast<const void*>(&xla), sizeof(copy->bytes));
  return reinterpret_cast<const tf::CustomKernelCreator*>(copy->bytes);
}

}  // namespace

std::string RunJitFunctionsWithoutXla(const std::string& device_type) {
  const tf::CustomKernelCreator* xla = tf::GetDefaultCustomKernelCreator();
  if (xla != nullptr) {
    const char* name = typeid(*xla).name();
    if (std::strcmp(name, "N10tensorflow16XlaKernelCreatorE") != 0) {
      return std::string("the functions of jit_compile=True are compiled by an unknown class, ") + name;
    }
    xla = Copy(*xla);
  }
  tf::RegisterDefaultCustomKernelCreator(new KernelCreator(device_type, xla));
  tf::OptimizationPassRegistry::Global()->Register(tf::OptimizationPassRegistry::PRE_PLACEMENT, kBeforeLowering,
                                                   std::make_unique<MarkControlFlow>(device_type));
  tf::OptimizationPassRegistry::Global()->Register(tf::OptimizationPassRegistry::POST_PLACEMENT, 0,
                                                   std::make_unique<MakeCallsOrdinary>(device_type));
  return "";
}

}  // namespace xpu
