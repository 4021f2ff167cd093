#include "tensorflow_plugin/cluster/capture.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/optimize_capture.h"
#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/stream_capture.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/framework/context.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;
using commands::StreamCapture;

// Gives addresses at which there is nothing.
class VirtualAllocator final : public tf::Allocator {
 public:
  explicit VirtualAllocator(StreamCapture& capture) : capture_(capture) {}
  std::string Name() override { return "xpu_capture"; }
  void* AllocateRaw(size_t, size_t bytes) override { return capture_.NewBuffer(static_cast<int64_t>(bytes), kind); }
  void DeallocateRaw(void*) override {}
  bool AllocatesOpaqueHandle() const override { return true; }  // nobody fills it

  Buffer::Kind kind = Buffer::Kind::kComputed;

 private:
  StreamCapture& capture_;
};

// The cluster's device, but for its memory.
class CapturingDevice final : public tf::DeviceBase {
 public:
  CapturingDevice(tf::DeviceBase& real, tf::Allocator& memory) : DeviceBase(real.env()), real_(real), memory_(memory) {}

  tf::Allocator* GetAllocator(tf::AllocatorAttributes attributes) override {
    return attributes.on_host() ? real_.GetAllocator(attributes) : &memory_;
  }
  const CpuWorkerThreads* tensorflow_cpu_worker_threads() const override {
    return real_.tensorflow_cpu_worker_threads();
  }
  const AcceleratorDeviceInfo* tensorflow_accelerator_device_info() const override {
    return real_.tensorflow_accelerator_device_info();
  }
  tsl::thread::ThreadPool* tensorflow_device_thread_pool() override { return real_.tensorflow_device_thread_pool(); }
  bool has_eigen_cpu_device() const override { return real_.has_eigen_cpu_device(); }
  const Eigen::ThreadPoolDevice* eigen_cpu_device() override { return real_.eigen_cpu_device(); }
  const tf::DeviceAttributes& attributes() const override { return real_.attributes(); }
  const std::string& name() const override { return real_.name(); }
  const tf::DeviceNameUtils::ParsedName& parsed_name() const override { return real_.parsed_name(); }
  const std::string& device_type() const override { return real_.device_type(); }

 private:
  tf::DeviceBase& real_;
  tf::Allocator& memory_;
};

class Capturer {
 public:
  // `iterations`: null if the members run once.
  Capturer(const Members& members, tf::OpKernelContext* outer, Device& real, const Invocation& invocation,
           Capturing how, const Iterations* iterations, int64_t max_iterations)
      : how_(how),
        of_loop_(iterations),
        max_iterations_(max_iterations),
        iterations_left_(max_iterations),
        members_(members),
        outer_(outer),
        real_(real),
        invocation_(invocation),
        capture_(real),
        memory_(capture_),
        device_(*outer->device(), memory_),
        captured_(std::make_unique<Captured>()) {}

  // The tensors of this capture go before its memory does.
  ~Capturer() {
    held_.clear();
    resources_.Clear();
  }

  std::unique_ptr<Captured> Run(Obstacle* obstacle) {
    std::vector<tf::Tensor> results;
    absl::Status status = RunMembers(&results);
    if (status.ok()) status = CompleteCapture(results);
    if (status.ok()) return std::move(captured_);
    obstacle->why = capture_.why_uncapturable().empty()
                        ? std::string(status.message())
                        : capture_.why_uncapturable() + " (" + std::string(status.message()) + ")";
    if (expected_iterations_ > 0) {
      obstacle->why = absl::StrCat("the commands of ", expected_iterations_, " iterations would be too many");
    }
    obstacle->has_many_iterations = has_many_iterations_;
    obstacle->iterations = iterations_;
    obstacle->has_many_commands = expected_iterations_ > 0 || capture_.is_full();
    return nullptr;
  }

 private:
  tf::Tensor NewInput(tf::DataType dtype, const tf::TensorShape& shape, int* buffer) {
    memory_.kind = Buffer::Kind::kInput;
    tf::Tensor tensor(&memory_, dtype, shape);
    memory_.kind = Buffer::Kind::kComputed;
    *buffer = capture_.Resolve(tensor.data()).buffer;
    return tensor;
  }

  // Memory of the host that there is when the list runs.
  void* NewOnHost(int64_t bytes, int* buffer) {
    void* address = capture_.NewBuffer(bytes, Buffer::Kind::kOnHost);
    *buffer = capture_.Resolve(address).buffer;
    return address;
  }

  absl::Status Upload(const tf::Tensor& argument, tf::Tensor* on_device) {
    int& buffer = captured_->uploaded.emplace_back(BufferSlice::kNowhere);
    *on_device = tf::Tensor(&memory_, argument.dtype(), argument.shape());
    const int64_t bytes = static_cast<int64_t>(argument.TotalBytes());
    if (bytes == 0) return absl::OkStatus();
    return ToAbsl(capture_.stream().CopyHostToDevice(on_device->data(), NewOnHost(bytes, &buffer), bytes));
  }

  // Fetches the value that `tensor` has once the list has run, to the host.
  absl::Status Fetch(const tf::Tensor& tensor, ResultValue* value) {
    value->dtype = tensor.dtype();
    value->shape = tensor.shape();
    value->kind = ResultValue::Kind::kEmpty;
    const int64_t bytes = static_cast<int64_t>(tensor.TotalBytes());
    if (bytes == 0) return absl::OkStatus();
    value->kind = ResultValue::Kind::kBuffer;
    return ToAbsl(capture_.stream().CopyDeviceToHost(NewOnHost(bytes, &value->index), tensor.data(), bytes));
  }

  int OriginOf(const tf::OpKernel& member) {
    const auto [it, added] = origins_.emplace(&member, static_cast<int>(captured_->origins.size()));
    if (added) captured_->origins.push_back(&member.def());
    return it->second;
  }

  // Notes which op the next commands are of. An op in a loop may come after an update of a variable.
  void BeginMember(const tf::OpKernel& member) {
    const int origin = OriginOf(member);
    const bool is_member = origin < static_cast<int>(members_.members().size());
    member_ = is_member ? &members_.members()[origin] : nullptr;
    if (of_loop_ != nullptr) BeginInLoop(member_);
    const bool of_cluster = of_loop_ == nullptr && is_member;
    capture_.set_origin(origin, !of_cluster || member.def().attr().count(attr::kFollowsNoUpdate) == 0);
  }

  // Holds a value of a member, and notes where a constant lies.
  void ShowValue(const tf::Tensor& value) {
    if (StreamCapture::IsVirtual(value.data())) {
      if (!IsOfVariable(value)) held_.push_back(value);
    } else if (member_ != nullptr && member_->constant.NumElements() > 0) {
      constants_[value.data()] = &member_->constant;
    }
  }
  // The bytes at an address on the device, if they are a small constant; else none.
  std::vector<char> ConstantAt(const void* address) const {
    const auto found = constants_.find(address);
    if (found == constants_.end()) return {};
    const char* const bytes = static_cast<const char*>(found->second->data());
    return {bytes, bytes + found->second->TotalBytes()};
  }

  // A member may copy a number to the device. The list copies that of the iteration in which it runs, and not the one
  // that is there now.
  void BeginInLoop(const Members::Member* member) {
    std::vector<Command>& commands = capture_.list().commands;
    if (number_ >= 0) {
      for (size_t i = first_of_member_; i < commands.size(); ++i) {
        const auto* constant = std::get_if<CopyConstant>(&commands[i].desc);
        if (constant == nullptr) continue;
        const size_t bytes = constant->bytes->size();
        commands[i].desc = CopyFromHost{bytes};
        commands[i].in = {BufferSlice{captured_->numbers[number_], iteration_ * static_cast<int64_t>(bytes)}};
      }
    }
    number_ = -1;
    first_of_member_ = commands.size();
    if (member == nullptr) return;
    for (const ValueRef& input : member->inputs) {
      const int number = input.index - first_number_;
      const bool is_number = number >= 0 && number < static_cast<int>(captured_->numbers.size());
      if (input.member == ValueRef::kArgument && is_number) number_ = number;
    }
  }

  // True if the capture takes one more iteration. After a few of them it knows how many commands all would be.
  bool BeginIteration(CapturedLoop* loop) {
    constexpr int64_t kFew = 32;
    const int64_t commands = static_cast<int64_t>(capture_.list().commands.size());
    if (loop->begun == 0) loop->commands_before = commands;
    const bool is_power = (loop->begun & (loop->begun - 1)) == 0;
    if (loop->begun >= kFew && is_power && loop->iterations > loop->begun) {
      const int64_t expected =
          loop->commands_before + (commands - loop->commands_before) * loop->iterations / loop->begun;
      if (expected > static_cast<int64_t>(StreamCapture::kMaxCommands)) {
        expected_iterations_ = loop->iterations;
        return false;
      }
      capture_.Reserve(expected);
    }
    const int64_t to_come = std::max<int64_t>(loop->iterations - loop->begun, 1);
    has_many_iterations_ = to_come > iterations_left_;
    iterations_ = max_iterations_ - iterations_left_ + to_come;
    ++loop->begun;
    --iterations_left_;
    return !has_many_iterations_;
  }

  absl::Status RunMembers(std::vector<tf::Tensor>* results) {
    Members::Environment environment;
    environment.device = &device_;
    environment.resources = &resources_;
    environment.arguments = invocation_.host;
    const size_t first_uploaded = environment.arguments.size();
    for (size_t i = 0; i < invocation_.uploaded.size(); ++i) {
      const tf::Tensor& argument = invocation_.uploaded[i];
      const size_t first = FirstWithElements(invocation_, i);
      tf::Tensor on_device;
      if (first < i) {
        captured_->uploaded.push_back(BufferSlice::kNowhere);
        const tf::Tensor& same = environment.arguments[first_uploaded + first];
        TF_RETURN_IF_ERROR(on_device.BitcastFrom(same, argument.dtype(), argument.shape()));
      } else {
        TF_RETURN_IF_ERROR(Upload(argument, &on_device));
      }
      environment.arguments.push_back(std::move(on_device));
    }
    for (const tf::Tensor* argument : invocation_.device) {
      int buffer;
      environment.arguments.push_back(NewInput(argument->dtype(), argument->shape(), &buffer));
      captured_->arguments.push_back(buffer);
    }
    TF_RETURN_IF_ERROR(MakeVariables(&environment.arguments));
    std::vector<tf::Tensor> elements;
    for (int64_t n = 0; of_loop_ != nullptr && n < of_loop_->count; ++n) {
      for (const auto& [dtype, shape] : of_loop_->elements) {
        elements.push_back(NewInput(dtype, shape, &captured_->elements.emplace_back()));
        held_.push_back(elements.back());
      }
    }
    for (const tf::Tensor& numbers : invocation_.numbers) {
      NewOnHost(static_cast<int64_t>(numbers.TotalBytes()), &captured_->numbers.emplace_back());
    }
    for (const Members::Member& member : members_.members()) OriginOf(*member.kernel);
    // All values are held, so that one op alone writes each buffer: no kernel reuses the buffer of a value that
    // somebody holds. Variables are not held, because an update would copy a held one.
    const CaptureObserver observer([this](const tf::OpKernel& member) { BeginMember(member); },
                                   [this](const tf::Tensor& value) { ShowValue(value); },
                                   [this](CapturedLoop* loop) { return BeginIteration(loop); }, &iterations_left_);
    for (const tf::Tensor& argument : environment.arguments) {
      if (StreamCapture::IsVirtual(argument.data())) held_.push_back(argument);
    }
    const ScopedStream stream(capture_.device(), capture_.stream());
    const RedirectedStream tensorflows(capture_.stream());
    TF_RETURN_IF_ERROR(of_loop_ == nullptr ? members_.RunAll(outer_, environment, results)
                                           : RunIterations(elements, &environment, results));
    if (!capture_.why_uncapturable().empty()) return absl::FailedPreconditionError(capture_.why_uncapturable());
    return absl::OkStatus();
  }

  absl::Status RunIterations(const std::vector<tf::Tensor>& elements, Members::Environment* environment,
                             std::vector<tf::Tensor>* results) {
    std::vector<tf::Tensor>& arguments = environment->arguments;
    const std::vector<int>& variables = of_loop_->variables;
    std::vector<int> invariant_arguments;
    for (int i = 0; i < static_cast<int>(arguments.size()); ++i) {
      if (std::find(variables.begin(), variables.end(), i) == variables.end()) invariant_arguments.push_back(i);
    }
    const size_t first_element = arguments.size() + invocation_.numbers.size();
    const size_t num_elements = of_loop_->elements.size();
    first_number_ = static_cast<int>(arguments.size());
    for (const tf::Tensor& numbers : invocation_.numbers) {
      invariant_arguments.push_back(static_cast<int>(arguments.size()));
      arguments.push_back(numbers.SubSlice(0));
    }
    arguments.resize(first_element + num_elements);
    std::vector<tf::Tensor> next(variables.size()), others;
    Members::Execution iteration(members_, outer_, *environment, invariant_arguments);
    for (int64_t n = 0; n < of_loop_->count; ++n, iteration.StartOver()) {
      iteration_ = n;
      for (size_t i = 0; i < num_elements; ++i) arguments[first_element + i] = elements[n * num_elements + i];
      TF_RETURN_IF_ERROR(iteration.RunUntil(static_cast<int>(members_.members().size()), false));
      for (size_t i = 0; i < next.size(); ++i) next[i] = iteration.TakeValue(members_.results()[i]);
      for (size_t i = next.size(); i < members_.results().size(); ++i) {
        others.push_back(iteration.TakeValue(members_.results()[i]));
      }
      for (size_t i = 0; i < next.size(); ++i) arguments[variables[i]] = std::move(next[i]);
      BeginInLoop(nullptr);
    }
    for (int variable : variables) results->push_back(arguments[variable]);
    results->insert(results->end(), others.begin(), others.end());
    return absl::OkStatus();
  }

  // Stand-ins for the variables, which kernels find by handles as they find real ones.
  absl::Status MakeVariables(std::vector<tf::Tensor>* arguments) {
    for (size_t i = 0; i < invocation_.variables.size(); ++i) {
      const tf::Tensor& value = *invocation_.variables[i]->tensor();
      auto* variable = new tf::Var(value.dtype());
      variable->is_initialized = true;
      int buffer = BufferSlice::kNowhere;
      *variable->tensor() = invocation_.IsOfCpu(i) ? value : NewInput(value.dtype(), value.shape(), &buffer);
      captured_->variables.push_back(buffer);
      buffers_of_variables_.insert(buffer);
      variables_.push_back(variable);
      TF_RETURN_IF_ERROR(resources_.Create(kCaptureContainer, std::to_string(i), variable));
      const tf::Tensor* const known_value = invocation_.KnownValue(i);
      if (known_value == nullptr) continue;
      auto* known = new tf::Var(value.dtype());
      known->is_initialized = true;
      *known->tensor() = tf::tensor::DeepCopy(*known_value);
      TF_RETURN_IF_ERROR(resources_.Create(kKnownValuesContainer, std::to_string(i), known));
    }
    for (size_t i = 0; i < invocation_.handles.size(); ++i) {
      const tf::ResourceHandle& real = *invocation_.handles[i];
      tf::ResourceHandle handle;
      handle.set_device(real.device());
      handle.set_container(kCaptureContainer);
      handle.set_name(std::to_string(invocation_.variable_of_resource[i]));
      handle.set_hash_code(real.hash_code());
      handle.set_maybe_type_name(real.maybe_type_name());
      handle.set_dtypes_and_shapes(real.dtypes_and_shapes());
      tf::Tensor argument(tf::DT_RESOURCE, tf::TensorShape({}));
      argument.scalar<tf::ResourceHandle>()() = std::move(handle);
      arguments->push_back(std::move(argument));
    }
    return absl::OkStatus();
  }

  bool IsOfVariable(const tf::Tensor& value) {
    const int buffer = capture_.Resolve(value.data()).buffer;
    return buffer != BufferSlice::kNowhere && buffers_of_variables_.count(buffer) != 0;
  }

  // Describes `tensor` as a result of the cluster.
  absl::Status Describe(const tf::Tensor& tensor, ResultValue* value) {
    value->dtype = tensor.dtype();
    value->shape = tensor.shape();
    if (!StreamCapture::IsVirtual(tensor.data())) {
      value->kind = tensor.NumElements() == 0 ? ResultValue::Kind::kEmpty : ResultValue::Kind::kTensor;
      value->tensor = tensor;
      return absl::OkStatus();
    }
    const BufferSlice place = capture_.Resolve(tensor.data());
    if (place.offset != 0) return absl::UnimplementedError("a part of a buffer is a result");
    value->kind = ResultValue::Kind::kBuffer;
    value->index = place.buffer;
    const auto find = [&](const std::vector<int>& buffers, ResultValue::Kind kind) {
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (buffers[i] != place.buffer) continue;
        value->kind = kind;
        value->index = static_cast<int>(i);
      }
    };
    find(captured_->arguments, ResultValue::Kind::kArgument);
    find(captured_->variables, ResultValue::Kind::kVariable);
    const bool is_given = capture_.list().buffers[place.buffer].kind == Buffer::Kind::kInput;
    if (value->kind == ResultValue::Kind::kBuffer && !is_given) capture_.list().live_out.push_back(place.buffer);
    return absl::OkStatus();
  }

  absl::Status CompleteCapture(const std::vector<tf::Tensor>& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      const bool fetched = static_cast<int>(i) >= invocation_.first_fetched &&
                           static_cast<int>(i) < invocation_.first_fetched + invocation_.num_fetched;
      ResultValue* value = &captured_->results.emplace_back();
      TF_RETURN_IF_ERROR(fetched ? Fetch(results[i], value) : Describe(results[i], value));
    }
    const commands::BufferUses uses = commands::UsesOf(capture_.list());
    for (size_t i = 0; i < variables_.size(); ++i) {
      VariableUpdate& update = captured_->variable_updates.emplace_back();
      if (invocation_.IsOfCpu(i)) continue;  // nobody writes it
      const int own = captured_->variables[i];
      update.written_in_place = own != BufferSlice::kNowhere && !uses.buffers[own].writers.empty();
      TF_RETURN_IF_ERROR(Describe(*variables_[i]->tensor(), &update.value));
      const bool same = update.value.kind == ResultValue::Kind::kVariable &&
                        update.value.index == static_cast<int>(i) &&
                        update.value.shape == invocation_.variables[i]->tensor()->shape();
      update.assigned = !same && !(update.value.kind == ResultValue::Kind::kEmpty && own == BufferSlice::kNowhere &&
                                   update.value.shape == invocation_.variables[i]->tensor()->shape());
    }
    for (const std::vector<int>* given : {&captured_->arguments, &captured_->elements}) {
      for (int argument : *given) {
        if (argument != BufferSlice::kNowhere && !uses.buffers[argument].writers.empty()) {
          captured_->written_arguments.push_back(argument);
        }
      }
    }
    auto ops = std::make_shared<std::vector<trace::ListOps::Names>>();
    for (const tf::NodeDef* node : captured_->origins) ops->push_back({node->name(), node->op()});
    captured_->ops = std::move(ops);
    const auto constant_at = [this](const void* address) { return ConstantAt(address); };
    OptimizeCapture(invocation_, real_, of_loop_ != nullptr, how_, constant_at, std::move(capture_.list()),
                    captured_.get());
    return absl::OkStatus();
  }

  const Capturing how_;
  const Iterations* const of_loop_;
  const int64_t max_iterations_;
  int64_t iterations_left_;
  int64_t iterations_ = 0;  // at least
  bool has_many_iterations_ = false;
  int64_t expected_iterations_ = 0;  // whose commands would be too many
  const Members& members_;
  tf::OpKernelContext* const outer_;
  Device& real_;
  const Invocation& invocation_;
  StreamCapture capture_;
  VirtualAllocator memory_;
  CapturingDevice device_;
  tf::ResourceMgr resources_;
  std::vector<tf::Var*> variables_;  // owned by resources_
  std::unordered_set<int> buffers_of_variables_;
  std::vector<tf::Tensor> held_;
  std::unordered_map<const tf::OpKernel*, int> origins_;
  const Members::Member* member_ = nullptr;                       // the one that runs
  std::unordered_map<const void*, const tf::Tensor*> constants_;  // by address on the device
  // For iterations: the first argument that is a number, the number that the current member copies, if any, and where
  // that member's commands begin.
  int first_number_ = 0, number_ = -1;
  size_t first_of_member_ = 0;
  int64_t iteration_ = 0;
  std::unique_ptr<Captured> captured_;
};

}  // namespace

std::unique_ptr<Captured> Capture(const Members& members, tf::OpKernelContext* outer, Device& real,
                                  const Invocation& invocation, Capturing how, int64_t max_iterations,
                                  Obstacle* obstacle) {
  return Capturer(members, outer, real, invocation, how, nullptr, max_iterations).Run(obstacle);
}

std::unique_ptr<Captured> CaptureIterations(const Members& members, tf::OpKernelContext* outer, Device& real,
                                            const Invocation& invocation, const Iterations& iterations,
                                            int64_t max_iterations, Obstacle* obstacle) {
  return Capturer(members, outer, real, invocation, Capturing::kInOneList, &iterations, max_iterations).Run(obstacle);
}

}  // namespace xpu::cluster
