#include "tensorflow_plugin/cluster/cluster_op.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/cluster/dump.h"
#include "tensorflow_plugin/cluster/hoisted.h"
#include "tensorflow_plugin/cluster/integers_on_device.h"
#include "tensorflow_plugin/cluster/known_values.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/cluster/register_op.h"
#include "tensorflow_plugin/cluster/replay.h"
#include "tensorflow_plugin/cluster/signature.h"
#include "tensorflow_plugin/cluster/variable_uses.h"
#include "tensorflow_plugin/commands/stream_capture.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

// Cached captures of a cluster; one that so many calls had no use for makes room for another.
constexpr size_t kMaxCaptures = 64;
constexpr size_t kMaxCommands = 65536;  // of all of them, some 2 KB each: those of whole loops are long
constexpr uint64_t kCallsUnused = 1000;
// A signature is captured at its first call while the cluster has fewer captures than this. Later ones are captured at
// their second call, since some never come again.
constexpr size_t kEagerCaptures = 4;
constexpr size_t kMaxWithoutCapture = 256;
constexpr int kMostRunsWithoutMemory = 3;
// Loops take longer to capture than to run. A signature is captured with at most so many iterations of its loops, once
// it has come so often before.
struct LoopLimit {
  int calls;
  int64_t iterations;
};
constexpr LoopLimit kLoopLimits[] = {{0, 32}, {2, 256}, {8, commands::StreamCapture::kMaxCommands}};
// Bytes of host arguments that a signature may have.
constexpr int64_t kMaxHostBytes = 4096;

class ClusterKernel final : public tf::OpKernel {
 public:
  explicit ClusterKernel(tf::OpKernelConstruction* c) : OpKernel(c) {
    const std::initializer_list<std::pair<const char*, int*>> kinds = {{attr::kHost, &num_host_},
                                                                       {attr::kUploaded, &num_uploaded_},
                                                                       {attr::kDevice, &num_device_},
                                                                       {attr::kHostResults, &num_host_results_},
                                                                       {attr::kFetched, &num_fetched_}};
    for (const auto& [kind, count] : kinds) {
      std::vector<tf::DataType> types;
      OP_REQUIRES_OK(c, c->GetAttr(kind, &types));
      *count = static_cast<int>(types.size());
    }
    OP_REQUIRES_OK(c, c->GetAttr(attr::kResources, &num_resources_));
    OP_REQUIRES_OK(c, FindOrMakeShared(c));
    uses_.resize(num_resources_);
    for (const Members::Member& member : members().members()) {
      std::vector<int> variables;
      for (const ValueRef& source : member.inputs) {
        const int resource = source.index - num_host_ - num_uploaded_ - num_device_;
        variables.push_back(source.member == ValueRef::kArgument ? resource : -1);
      }
      AddUses(member.kernel->def(), variables, &uses_);
    }
    reads_on_host_ = std::any_of(uses_.begin(), uses_.end(), [](const auto& use) { return use.is_read_on_host; });
  }

  void Compute(tf::OpKernelContext* ctx) override {
    // In a loop that is being captured, a cluster runs member by member: the capture takes the members' commands.
    SP_Stream_st* stream = nullptr;
    if (CaptureObserver::Current() == nullptr) StreamOf(ctx, &stream).IgnoreError();
    if (stream != nullptr) {
      std::shared_ptr<const Captured> captured;
      std::shared_ptr<Hoister> hoister;
      Invocation invocation;
      ClusterVariables variables;
      if (FillInvocation(ctx, *stream->stream, &invocation, &variables)) {
        captured = FindOrCapture(ctx, *stream->device, invocation, &hoister);
      }
      if (captured != nullptr) {
        auto cached = hoister->FindOrCompute(ctx, name(), members(), *captured, invocation, stream);
        ReplayProgress progress;
        absl::Status status = cached == nullptr
                                  ? Replay(ctx, captured, invocation, {}, stream, &progress)
                                  : Replay(ctx, cached->captured, invocation, cached->tensors, stream, &progress);
        if (progress.has_failed_condition) {
          hoister->NoteFailedCondition();
          cached = nullptr;
          DropOutputs(ctx);
          progress = {};
          status = Replay(ctx, captured, invocation, {}, stream, &progress);
        }
        if (progress.began || !absl::IsResourceExhausted(status)) {
          OP_REQUIRES_OK(ctx, status);
          return;
        }
        if (cached != nullptr) hoister->StopHoisting();
        // The members one by one may do with less memory than all at once; or else the error names the one that does
        // not.
        DropOutputs(ctx);
        CountLackOfMemory(captured.get());
      }
    }
    RunMemberByMember(ctx);
  }

 private:
  const Members& members() const { return shared_->members; }

  static void DropOutputs(tf::OpKernelContext* ctx) {
    for (int i = 0; i < ctx->num_outputs(); ++i) delete ctx->release_output(i).tensor;
  }

  // Finds what the cluster's other kernel has made, or makes it.
  absl::Status FindOrMakeShared(tf::OpKernelConstruction* c) {
    static auto* const mutex = new tf::mutex;
    static auto* const all = new std::map<std::pair<std::string, std::string>, std::weak_ptr<Shared>>;
    const std::pair<std::string, std::string> key(name(), c->device()->name());
    {
      tf::mutex_lock lock(*mutex);
      const auto known = all->find(key);
      if (known != all->end()) shared_ = known->second.lock();
    }
    if (shared_ != nullptr) return absl::OkStatus();
    auto made = std::make_shared<Shared>();
    TF_RETURN_IF_ERROR(CreateMembers(c, &made->members));  // clusters may be among them
    tf::mutex_lock lock(*mutex);
    for (auto it = all->begin(); it != all->end();) it = it->second.expired() ? all->erase(it) : std::next(it);
    std::weak_ptr<Shared>& known = (*all)[key];
    shared_ = known.lock();  // another thread may have been quicker
    if (shared_ == nullptr) known = shared_ = std::move(made);
    return absl::OkStatus();
  }

  // Fills in the invocation and locks its variables; false if there is something that no capture can have.
  bool FillInvocation(tf::OpKernelContext* ctx, Stream& stream, Invocation* invocation,
                      ClusterVariables* variables) const {
    int64_t host_bytes = 0;
    for (int i = 0; i < num_host_; ++i) {
      const tf::Tensor& t = ctx->input(i);
      if (!tf::DataTypeCanUseMemcpy(t.dtype())) return false;
      host_bytes += t.TotalBytes();
      invocation->host.push_back(t);
    }
    if (host_bytes > kMaxHostBytes) return false;
    invocation->handles.reserve(num_resources_);
    invocation->variables.reserve(num_resources_);
    invocation->variable_of_resource.reserve(num_resources_);
    int input = num_host_;
    for (int i = 0; i < num_uploaded_; ++i) invocation->uploaded.push_back(ctx->input(input++));
    for (int i = 0; i < num_device_; ++i) invocation->device.push_back(&ctx->input(input++));
    for (int i = 0; i < num_resources_; ++i) {
      const VariableUses& use = uses_[i];
      if (!AddVariable(ctx, ctx->input(input++), use.is_read_on_host, use.is_written, invocation, variables))
        return false;
    }
    invocation->first_fetched = num_host_results_;
    invocation->num_fetched = num_fetched_;
    if (!LockVariables(variables, invocation)) return false;
    return !reads_on_host_ || ReadKnownValues(ctx, stream, &host_bytes, invocation);
  }

  // A loop may count to a variable. False if that one's value is not known before the members run.
  bool ReadKnownValues(tf::OpKernelContext* ctx, Stream& stream, int64_t* host_bytes, Invocation* invocation) const {
    invocation->known_values.resize(invocation->variables.size());
    invocation->is_of_cpu.assign(invocation->variables.size(), false);
    for (int resource = 0; resource < num_resources_; ++resource) {
      if (!uses_[resource].is_read_on_host) continue;
      const int number = invocation->variable_of_resource[resource];
      std::optional<tf::Tensor>& known = invocation->known_values[number];
      if (known) continue;
      if (Writes(*invocation, number)) return false;
      const tf::Tensor& value = *invocation->variables[number]->tensor();
      *host_bytes += value.TotalBytes();
      if (*host_bytes > kMaxHostBytes) return false;
      if (IsOfCpu(*invocation->handles[resource])) {
        invocation->is_of_cpu[number] = true;
        known = value;
      } else if (!ReadToHost(ctx, stream, value, &known.emplace()).ok()) {
        return false;
      }
    }
    return true;
  }

  // True if members write the variable, by whatever handle.
  bool Writes(const Invocation& invocation, int variable) const {
    for (int resource = 0; resource < num_resources_; ++resource) {
      if (invocation.variable_of_resource[resource] == variable && uses_[resource].is_written) return true;
    }
    return false;
  }

  template <typename Signature>
  void AppendSignature(const Invocation& invocation, Signature* signature) const {
    for (const tf::Tensor& t : invocation.host) {
      AppendShape(t, signature);
      signature->Append(t.data(), t.TotalBytes());
    }
    for (const tf::Tensor& t : invocation.uploaded) AppendShape(t, signature);
    for (size_t i = 1; i < invocation.uploaded.size(); ++i) AppendNumber(FirstWithElements(invocation, i), signature);
    for (const tf::Tensor* t : invocation.device) AppendShape(*t, signature);
    for (size_t i = 0; i < invocation.variables.size(); ++i) {
      const tf::Tensor& value = *invocation.variables[i]->tensor();
      AppendShape(value, signature);
      AppendNumber(value.dtype(), signature);
      if (!reads_on_host_) continue;
      const tf::Tensor* const known = invocation.KnownValue(i);
      AppendNumber(known != nullptr, signature);
      if (known != nullptr) signature->Append(known->data(), known->TotalBytes());
    }
    for (int variable : invocation.variable_of_resource) AppendNumber(variable, signature);
  }

  std::string SignatureOf(const Invocation& invocation) const {
    SignatureMaker maker;
    maker.signature.reserve(64 + 24 * (invocation.device.size() + invocation.variables.size()));
    AppendSignature(invocation, &maker);
    return std::move(maker.signature);
  }
  bool HasSignature(const Invocation& invocation, const std::string& key) const {
    SignatureComparer comparer(key);
    AppendSignature(invocation, &comparer);
    return comparer.is_same();
  }

  std::shared_ptr<const Captured> FindOrCapture(tf::OpKernelContext* ctx, Device& device, const Invocation& invocation,
                                                std::shared_ptr<Hoister>* hoister) {
    std::string key;
    Shared& my = *shared_;
    LoopLimit limit{};
    {
      tf::mutex_lock lock(my.mutex);
      if (my.uncapturable) return nullptr;
      ++my.num_calls;
      // Most calls are like the last one.
      if (!my.captures.empty() && HasSignature(invocation, my.captures.front().key)) {
        CachedCapture& last = my.captures.front();
        last.last_call = my.num_calls;
        *hoister = last.hoister;
        return last.captured;
      }
      key = SignatureOf(invocation);
      for (auto it = my.captures.begin(); it != my.captures.end(); ++it) {
        if (it->key != key) continue;
        it->last_call = my.num_calls;
        my.captures.splice(my.captures.begin(), my.captures, it);
        *hoister = it->hoister;
        return it->captured;
      }
      if (IsFull() && my.captures.back().last_call + kCallsUnused > my.num_calls) return nullptr;
      if (!IsTimeToCapture(key, &limit)) return nullptr;
    }
    Obstacle obstacle;
    std::shared_ptr<const Captured> captured =
        Capture(my.members, ctx, device, invocation, Capturing::kInOneList, limit.iterations, &obstacle);
    Dump(name(), my.members, captured.get(), obstacle.why);
    tf::mutex_lock lock(my.mutex);
    if (captured == nullptr && (obstacle.has_many_iterations || obstacle.has_many_commands)) {
      my.is_long = true;
      WithoutCapture& seen = my.without_capture[key];
      seen.calls = limit.calls + 1;
      seen.awaited = kNever;
      if (obstacle.has_many_commands) return nullptr;
      for (const LoopLimit& more : kLoopLimits) {
        if (seen.awaited == kNever && more.iterations > limit.iterations && more.iterations >= obstacle.iterations) {
          seen.awaited = more.calls;
        }
      }
      return nullptr;
    }
    if (captured == nullptr) {
      // An error of shapes may be this call's alone; the members' own run gives it to the user.
      my.uncapturable = ++my.num_failures > kEagerCaptures;
      return nullptr;
    }
    ++my.num_captures;
    if (IsFull()) my.captures.pop_back();
    *hoister = std::make_shared<Hoister>();
    my.captures.push_front({std::move(key), captured, *hoister, my.num_calls, 0});
    return captured;
  }

  // True if a signature without a capture gets one now. `limit`: with so many iterations.
  bool IsTimeToCapture(const std::string& key, LoopLimit* limit) {
    Shared& my = *shared_;
    if (my.without_capture.size() > kMaxWithoutCapture) my.without_capture.clear();
    const auto [it, added] = my.without_capture.try_emplace(key);
    WithoutCapture& seen = it->second;
    if (added) seen.awaited = my.is_long ? kLoopLimits[1].calls : my.num_captures >= kEagerCaptures ? 1 : 0;
    if (seen.awaited == kNever) return false;
    if (seen.calls < seen.awaited) {
      ++seen.calls;
      return false;
    }
    for (const LoopLimit& so_far : kLoopLimits) {
      if (so_far.calls <= seen.calls) *limit = so_far;
    }
    return true;
  }

  bool IsFull() const {
    const Shared& my = *shared_;
    size_t commands = 0;
    for (const CachedCapture& cached : my.captures)
      commands += cached.captured == nullptr ? 0 : cached.captured->list->commands.size();
    return my.captures.size() >= kMaxCaptures || commands >= kMaxCommands;
  }

  // A capture that memory does not suffice for again and again is not tried any more.
  void CountLackOfMemory(const Captured* captured) {
    Shared& my = *shared_;
    tf::mutex_lock lock(my.mutex);
    for (CachedCapture& cached : my.captures) {
      if (cached.captured.get() == captured && ++cached.runs_without_memory == kMostRunsWithoutMemory)
        cached.captured = nullptr;
    }
  }

  void RunMemberByMember(tf::OpKernelContext* ctx) {
    Members::Environment environment;
    environment.device = ctx->device();
    environment.resources = ctx->resource_manager();
    for (int i = 0; i < ctx->num_inputs(); ++i) environment.arguments.push_back(ctx->input(i));
    // While a loop is captured there is no stream: clusters in a loop upload and fetch nothing.
    SP_Stream_st* stream = nullptr;
    if (num_uploaded_ + num_fetched_ > 0) StreamOf(ctx, &stream).IgnoreError();
    OP_REQUIRES(ctx, stream != nullptr || num_uploaded_ + num_fetched_ == 0,
                absl::InternalError("a cluster's device has no stream"));
    for (int i = 0; i < num_uploaded_; ++i) {
      OP_REQUIRES_OK(ctx, Upload(ctx, *stream->stream, &environment.arguments[num_host_ + i]));
    }
    std::vector<tf::Tensor> results;
    OP_REQUIRES_OK(ctx, members().RunAll(ctx, environment, &results));
    for (int i = 0; i < num_fetched_; ++i) {
      OP_REQUIRES_OK(ctx, Fetch(ctx, *stream->stream, &results[num_host_results_ + i]));
    }
    for (size_t i = 0; i < results.size(); ++i) ctx->set_output(static_cast<int>(i), results[i]);
  }

  static absl::Status Upload(tf::OpKernelContext* ctx, Stream& stream, tf::Tensor* value) {
    tf::Tensor on_host;
    TF_RETURN_IF_ERROR(CopyOnHost(ctx, *value, &on_host));
    TF_RETURN_IF_ERROR(ctx->allocate_temp(on_host.dtype(), on_host.shape(), value));
    if (on_host.TotalBytes() == 0) return absl::OkStatus();
    TF_RETURN_IF_ERROR(ToAbsl(stream.CopyHostToDevice(value->data(), on_host.data(), on_host.TotalBytes())));
    stream.HostCallback([on_host] { return OkStatus(); });
    return absl::OkStatus();
  }

  static absl::Status Fetch(tf::OpKernelContext* ctx, Stream& stream, tf::Tensor* value) {
    const tf::Tensor on_device = *value;
    tf::AllocatorAttributes on_host;
    on_host.set_on_host(true);
    TF_RETURN_IF_ERROR(ctx->allocate_temp(on_device.dtype(), on_device.shape(), value, on_host));
    if (on_device.TotalBytes() == 0) return absl::OkStatus();
    TF_RETURN_IF_ERROR(ToAbsl(stream.CopyDeviceToHost(value->data(), on_device.data(), on_device.TotalBytes())));
    stream.Wait();
    return ToAbsl(stream.TakeStatus());
  }

  int num_host_ = 0, num_uploaded_ = 0, num_device_ = 0, num_resources_ = 0;  // arguments
  int num_host_results_ = 0, num_fetched_ = 0;
  std::vector<VariableUses> uses_;  // by resource argument
  bool reads_on_host_ = false;      // one of those variables

  static constexpr int kNever = -1;

  struct CachedCapture {
    std::string key;
    std::shared_ptr<const Captured> captured;
    std::shared_ptr<Hoister> hoister;
    uint64_t last_call;
    int runs_without_memory = 0;  // that memory did not suffice for
  };
  struct WithoutCapture {
    int calls = 0;    // that came
    int awaited = 0;  // so many calls come before the next try
  };
  struct Shared {
    Members members;
    tf::mutex mutex;
    std::list<CachedCapture> captures;                      // the last used one first
    std::map<std::string, WithoutCapture> without_capture;  // signatures without a capture
    bool is_long = false;                                   // there were loops of many iterations
    size_t num_captures = 0, num_failures = 0;
    uint64_t num_calls = 0;
    bool uncapturable = false;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::string RegisterClusterOp(const std::string& device_type) {
  RegisterIntegersOnDevice(device_type);
  OpDefinition op = DefinitionWithMembers(kOp, {});
  op.traits = op.traits | OpTrait::kKeepsNothing;  // kernels share what is kept
  return RegisterOp<ClusterKernel>(op, device_type);
}

}  // namespace xpu::cluster
