#include "tensorflow_plugin/cluster/replay.h"

#include <cstring>
#include <forward_list>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow_plugin/cluster/known_values.h"
#include "tensorflow_plugin/framework/invariant_values.h"
#include "tensorflow_plugin/trace/labels.h"

namespace xpu::cluster {

namespace tf = tensorflow;

int ClusterVariables::NumberOf(tf::Var* variable) {
  const int next = static_cast<int>(variables_.size());
  if (variables_.size() < kFew) {
    for (int i = 0; i < next; ++i) {
      if (variables_[i] == variable) return i;
    }
    return next;
  }
  if (numbers_.empty()) {
    for (int i = 0; i < next; ++i) numbers_.emplace(variables_[i], i);
  }
  return numbers_.try_emplace(variable, next).first->second;
}

int ClusterVariables::Add(tf::core::RefCountPtr<tf::Var> variable, bool write) {
  const int number = NumberOf(variable.get());
  if (number == static_cast<int>(variables_.size())) {
    variables_.push_back(variable.get());
    locks_.emplace_back(variable->mu(), write ? LockMode::kExclusive : LockMode::kShared);
    owned_.push_back(std::move(variable));
  } else if (write) {
    locks_[number].MakeExclusive();
  }
  return number;
}

void ClusterVariables::Lock() {
  absl::InlinedVector<VariableLock*, Invocation::kFew> locks;
  for (VariableLock& lock : locks_) locks.push_back(&lock);
  LockInOrder(absl::MakeSpan(locks));
}

namespace {

// Allocates at once or not at all. TensorFlow's allocator would wait ten seconds for memory, and the members one by one
// may do with less.
absl::Status AllocateAtOnce(tf::OpKernelContext* ctx, tf::DataType dtype, const tf::TensorShape& shape,
                            tf::Tensor* tensor) {
  tf::AllocationAttributes attributes;
  attributes.retry_on_failure = false;
  return ctx->allocate_temp(dtype, shape, tensor, tf::AllocatorAttributes(), attributes);
}

// Where each buffer lies. Those of a small list take no memory of their own.
using Addresses = absl::InlinedVector<char*, 48>;

// Places the buffers that have addresses of their own.
void PlaceFixed(const CommandList& list, Addresses* addresses) {
  for (size_t i = 0; i < addresses->size(); ++i) {
    const Buffer& buffer = list.buffers[i];
    if (buffer.kind == Buffer::Kind::kFixed) {
      (*addresses)[i] = const_cast<char*>(static_cast<const char*>(buffer.address));
    }
  }
}

// Places the buffers that share a block, and allocates the block.
absl::Status PlaceInBlock(tf::OpKernelContext* ctx, const MemoryPlan& plan, tf::Tensor* block, Addresses* addresses) {
  if (plan.bytes == 0) return absl::OkStatus();
  TF_RETURN_IF_ERROR(AllocateAtOnce(ctx, tf::DT_UINT8, tf::TensorShape({plan.bytes}), block));
  char* const base = static_cast<char*>(block->data());
  for (size_t i = 0; i < addresses->size(); ++i) {
    if (plan.offsets[i] != MemoryPlan::kElsewhere) (*addresses)[i] = base + plan.offsets[i];
  }
  return absl::OkStatus();
}

class ReplayRun {
 public:
  ReplayRun(tf::OpKernelContext* ctx, const Captured& captured, const Invocation& invocation,
            const std::vector<tf::Tensor>& hoisted, std::vector<tf::Tensor>* results)
      : ctx_(ctx),
        captured_(captured),
        invocation_(invocation),
        hoisted_(hoisted),
        results_(results),
        addresses_(captured.list->buffers.size(), nullptr),
        tensors_(captured.list->buffers.size(), nullptr) {
    if (results_ != nullptr) results_->resize(captured.results.size());
  }

  // The failure of a command as the error of the op that it is of.
  absl::Status ErrorOf(const Status& failure, const Command& command, Stream& stream) const {
    Status error = failure;
    if (command.may_fail() && failure.code() == Code::kInvalidArgument) {
      std::vector<int64_t> indices;
      error = ReadIndices(command, stream, &indices);
      if (error.ok()) error = command.explain(failure, indices);
    }
    return tf::AttachDef(ToAbsl(error), *captured_.origins[command.origin]);
  }

  absl::Status Allocate(Stream& stream) {
    PlaceFixed(*captured_.list, &addresses_);
    TF_RETURN_IF_ERROR(PlaceUploaded());
    for (size_t i = 0; i < captured_.arguments.size(); ++i) {
      PlaceTensor(captured_.arguments[i], *invocation_.device[i]);
    }
    for (int argument : captured_.written_arguments) InvariantValue::StopHolding(addresses_[argument]);
    for (const Captured::DonatedArgument& donated : captured_.donated_arguments) {
      TF_RETURN_IF_ERROR(PlaceDonated(donated, stream));
    }
    for (size_t i = 0; i < captured_.variables.size(); ++i) TF_RETURN_IF_ERROR(PlaceVariable(i, stream));
    for (size_t i = 0; i < hoisted_.size(); ++i) PlaceTensor(captured_.hoisted.results[i], hoisted_[i]);
    TF_RETURN_IF_ERROR(PlaceInBlock(ctx_, captured_.memory, &block_, &addresses_));
    for (size_t i = 0; i < captured_.results.size(); ++i) {
      const ResultValue& value = captured_.results[i];
      if (value.kind == ResultValue::Kind::kBuffer && addresses_[value.index] == nullptr) {
        tf::Tensor* output = nullptr;
        if (results_ == nullptr) {
          TF_RETURN_IF_ERROR(ctx_->allocate_output(static_cast<int>(i), value.shape, &output));
        } else {
          output = &(*results_)[i];
          TF_RETURN_IF_ERROR(AllocateAtOnce(ctx_, value.dtype, value.shape, output));
        }
        PlaceTensor(value.index, *output);
      }
    }
    for (const VariableUpdate& update : captured_.variable_updates) {
      const ResultValue& value = update.value;
      if (!update.assigned || value.kind != ResultValue::Kind::kBuffer || addresses_[value.index] != nullptr) continue;
      tf::Tensor& tensor = NewTensor();
      TF_RETURN_IF_ERROR(AllocateAtOnce(ctx_, value.dtype, value.shape, &tensor));
      PlaceTensor(value.index, tensor);
    }
    return absl::OkStatus();
  }

  char* const* addresses() const { return addresses_.data(); }
  // Keeps what the list reads in the host's memory.
  const std::shared_ptr<const void>& on_host() const { return on_host_; }

  absl::Status SetResults() {
    for (size_t i = 0; i < captured_.results.size(); ++i) {
      const int output = static_cast<int>(i);
      if (results_ == nullptr && ctx_->mutable_output(output) != nullptr) continue;
      tf::Tensor tensor;
      TF_RETURN_IF_ERROR(TensorOf(captured_.results[i], &tensor));
      if (results_ != nullptr) {
        (*results_)[i] = std::move(tensor);
      } else {
        ctx_->set_output(output, std::move(tensor));
      }
    }
    // All are found before any is replaced: one may be the value that another variable had.
    absl::InlinedVector<std::pair<size_t, tf::Tensor>, 1> assigned;
    for (size_t i = 0; i < captured_.variable_updates.size(); ++i) {
      const VariableUpdate& update = captured_.variable_updates[i];
      if (update.assigned) {
        TF_RETURN_IF_ERROR(TensorOf(update.value, &assigned.emplace_back(i, tf::Tensor()).second));
      } else if (update.written_in_place) {
        assigned.emplace_back(i, *tensors_[captured_.variables[i]]);
      }
    }
    for (auto& [i, value] : assigned) *invocation_.variables[i]->tensor() = std::move(value);
    return absl::OkStatus();
  }

 private:
  // The values of the command's indices; none if it has no indices. Nothing that ran after it has written over them.
  Status ReadIndices(const Command& command, Stream& stream, std::vector<int64_t>* indices) const {
    const IndexOperand operand = IndicesOf(command);
    if (operand.input < 0) return OkStatus();
    const int64_t n = command.footprint.in[operand.input].elements;
    const BufferSlice& place = command.in[operand.input];
    std::vector<char> bytes(n * SizeOf(operand.type));
    if (const BufferSlice* on_host = OnHost(place.buffer)) {
      std::memcpy(bytes.data(), on_host->In(addresses_.data()) + place.offset, bytes.size());
    } else {
      XPU_RETURN_IF_ERROR(stream.CopyDeviceToHost(bytes.data(), place.In(addresses_.data()), bytes.size()));
      stream.Wait();
    }
    *indices = IntegersAt(bytes.data(), operand.type, n);
    return OkStatus();
  }

  // The place in the host's memory that is copied to a buffer; null if there is none. An executable may read it there
  // and leave out the copy.
  const BufferSlice* OnHost(int buffer) const {
    for (const Command& command : captured_.list->commands) {
      if (std::holds_alternative<CopyFromHost>(command.desc) && command.out[0].buffer == buffer) {
        return &command.in[0];
      }
    }
    return nullptr;
  }

  absl::Status PlaceUploaded() {
    const std::vector<Command>& commands = captured_.list->commands;
    // If the run waits for the last command, nothing reads the host's memory after it.
    const bool in_place = !commands.empty() && commands.back().is_awaited();
    for (size_t i = 0; i < captured_.elements.size(); ++i) PlaceTensor(captured_.elements[i], invocation_.elements[i]);
    if (invocation_.uploaded.empty() && captured_.numbers.empty()) return absl::OkStatus();
    const auto values = std::make_shared<std::vector<tf::Tensor>>(invocation_.uploaded);
    values->reserve(values->size() + captured_.numbers.size());  // they stay where they are
    for (size_t i = 0; i < invocation_.uploaded.size(); ++i) {
      tf::Tensor& value = (*values)[i];
      if (captured_.uploaded[i] == BufferSlice::kNowhere) continue;
      if (!in_place && !StaysAsItIs(value)) {
        TF_RETURN_IF_ERROR(CopyOnHost(ctx_, invocation_.uploaded[i], &value));
      }
      PlaceTensor(captured_.uploaded[i], value);
    }
    for (size_t i = 0; i < captured_.numbers.size(); ++i) {
      PlaceTensor(captured_.numbers[i], values->emplace_back(invocation_.numbers[i]));
    }
    on_host_ = values;
    return absl::OkStatus();
  }

  // Memory that TensorFlow has allocated is written once, by the op that makes the tensor, as long as somebody refers
  // to it. That of a NumPy array, say, is its owner's to write.
  static bool StaysAsItIs(const tf::Tensor& value) {
    const tf::TensorBuffer* buffer = tf::DMAHelper::buffer(&value);
    return buffer == nullptr || buffer->OwnsMemory();
  }

  // `tensor` stays until the run is over.
  void PlaceTensor(int buffer, const tf::Tensor& tensor) {
    if (buffer == BufferSlice::kNowhere) return;
    tensors_[buffer] = &tensor;
    addresses_[buffer] = static_cast<char*>(tensor.data());
  }

  tf::Tensor& NewTensor() { return made_.emplace_front(); }

  // Commands write into an argument only if nothing else refers to it. Otherwise they get a copy.
  absl::Status PlaceDonated(const Captured::DonatedArgument& donated, Stream& stream) {
    const tf::Tensor& value = *invocation_.device[donated.argument];
    tensors_[captured_.arguments[donated.argument]] = nullptr;
    if (value.RefCountIsOne()) {
      PlaceTensor(donated.buffer, value);
      return absl::OkStatus();
    }
    tf::Tensor& copy = NewTensor();
    TF_RETURN_IF_ERROR(AllocateAtOnce(ctx_, value.dtype(), value.shape(), &copy));
    PlaceTensor(donated.buffer, copy);
    return ToAbsl(stream.CopyDeviceToDevice(copy.data(), value.data(), value.TotalBytes()));
  }

  // Commands write into a variable's buffer only if nobody else refers to it. Otherwise they get a copy.
  absl::Status PlaceVariable(size_t i, Stream& stream) {
    const tf::Tensor& value = *invocation_.variables[i]->tensor();
    if (!captured_.variable_updates[i].written_in_place || ClaimForWriting(value)) {
      PlaceTensor(captured_.variables[i], value);
      return absl::OkStatus();
    }
    tf::Tensor& copy = NewTensor();
    TF_RETURN_IF_ERROR(AllocateAtOnce(ctx_, value.dtype(), value.shape(), &copy));
    PlaceTensor(captured_.variables[i], copy);
    return ToAbsl(stream.CopyDeviceToDevice(copy.data(), value.data(), value.TotalBytes()));
  }

  absl::Status TensorOf(const ResultValue& value, tf::Tensor* tensor) {
    switch (value.kind) {
      case ResultValue::Kind::kTensor:
        *tensor = value.tensor;
        return absl::OkStatus();
      case ResultValue::Kind::kEmpty:
        return ctx_->allocate_temp(value.dtype, value.shape, tensor);
      case ResultValue::Kind::kArgument:
        return tensor->BitcastFrom(*tensors_[captured_.arguments[value.index]], value.dtype, value.shape);
      case ResultValue::Kind::kVariable:
        return tensor->BitcastFrom(*tensors_[captured_.variables[value.index]], value.dtype, value.shape);
      case ResultValue::Kind::kBuffer:
        return tensor->BitcastFrom(*tensors_[value.index], value.dtype, value.shape);
    }
    return absl::OkStatus();
  }

  tf::OpKernelContext* const ctx_;
  const Captured& captured_;
  const Invocation& invocation_;
  const std::vector<tf::Tensor>& hoisted_;
  std::vector<tf::Tensor>* const results_;              // null: the outputs of ctx_
  Addresses addresses_;                                 // by buffer
  absl::InlinedVector<const tf::Tensor*, 48> tensors_;  // by buffer, of those that are a tensor's
  std::forward_list<tf::Tensor> made_;                  // for the run: places that stay
  tf::Tensor block_;
  std::shared_ptr<const void> on_host_;
};

// Most handles hold their variable. The cluster was placed beside its variables, so no device names are compared.
// Those that members read in host memory may be the CPU's, `anywhere`.
bool FindVariable(tf::OpKernelContext* ctx, const tf::ResourceHandle& handle, bool anywhere,
                  tf::core::RefCountPtr<tf::Var>* variable) {
  if (!handle.IsRefCounting()) {
    return tf::LookupResource(ctx, handle, variable).ok() ||
           (anywhere && FindVariableAnywhere(ctx, handle, variable).ok());
  }
  const auto found = handle.GetResource<tf::Var>();
  if (!found.ok()) return false;
  found.value()->Ref();
  variable->reset(found.value());
  return true;
}

}  // namespace

bool AddVariable(tf::OpKernelContext* ctx, const tf::Tensor& handle, bool anywhere, bool write, Invocation* invocation,
                 ClusterVariables* variables) {
  if (handle.dtype() != tf::DT_RESOURCE || handle.NumElements() != 1) return false;
  // A copy of a handle is half a dozen strings.
  const auto* named = static_cast<const tf::ResourceHandle*>(handle.data());
  tf::core::RefCountPtr<tf::Var> variable;
  if (!FindVariable(ctx, *named, anywhere, &variable)) return false;
  invocation->handles.push_back(named);
  invocation->variable_of_resource.push_back(variables->Add(std::move(variable), write));
  return true;
}

bool LockVariables(ClusterVariables* variables, Invocation* invocation) {
  variables->Lock();
  for (tf::Var* variable : variables->variables()) {
    if (!variable->is_initialized || variable->copy_on_read_mode.load()) return false;
    invocation->variables.push_back(variable);
  }
  return true;
}

absl::Status CopyOnHost(tf::OpKernelContext* ctx, const tf::Tensor& value, tf::Tensor* copy) {
  tf::AllocatorAttributes on_host;
  on_host.set_on_host(true);
  TF_RETURN_IF_ERROR(ctx->allocate_temp(value.dtype(), value.shape(), copy, on_host));
  if (value.TotalBytes() > 0) std::memcpy(copy->data(), value.data(), value.TotalBytes());
  return absl::OkStatus();
}

trace::ScopedListLabels::Labels Captured::Labels() const {
  std::call_once(labels_made_, [this] {
    std::vector<trace::Label> labels = trace::LabelsOf(*list);
    for (size_t i = 0; i < labels.size(); ++i) {
      const tf::NodeDef& node = *origins[list->commands[i].origin];
      labels[i].op = trace::Intern(node.name());
      labels[i].op_type = trace::Intern(node.op());
    }
    labels_ = std::make_shared<const std::vector<trace::Label>>(std::move(labels));
  });
  return labels_;
}

absl::Status RunHoisted(tf::OpKernelContext* ctx, const Captured& captured, const Invocation& invocation,
                        SP_Stream_st* stream, std::vector<tf::Tensor>* results) {
  const HoistedList& hoisted = captured.hoisted;
  constexpr int64_t kShare = 4;
  int64_t bytes = hoisted.memory.bytes, free_bytes = 0, total = 0;
  for (int b : hoisted.results) bytes += hoisted.list->buffers[b].bytes;
  stream->device->MemoryUsage(&free_bytes, &total);
  if (bytes > free_bytes / kShare) return absl::ResourceExhaustedError("too little memory is free to keep values");
  Addresses addresses(hoisted.list->buffers.size(), nullptr);
  PlaceFixed(*hoisted.list, &addresses);
  for (int i : hoisted.variables) {
    addresses[captured.variables[i]] = static_cast<char*>(invocation.variables[i]->tensor()->data());
  }
  for (int b : hoisted.results) {
    const tf::TensorShape shape({hoisted.list->buffers[b].bytes});
    TF_RETURN_IF_ERROR(AllocateAtOnce(ctx, tf::DT_UINT8, shape, &results->emplace_back()));
    addresses[b] = static_cast<char*>(results->back().data());
  }
  tf::Tensor block;
  TF_RETURN_IF_ERROR(PlaceInBlock(ctx, hoisted.memory, &block, &addresses));
  int failed = 0;
  return ToAbsl(hoisted.executable->Run(*stream->stream, addresses.data(), nullptr, &failed));
}

absl::Status Replay(tf::OpKernelContext* ctx, const std::shared_ptr<const Captured>& captured,
                    const Invocation& invocation, const std::vector<tf::Tensor>& hoisted, SP_Stream_st* stream,
                    ReplayProgress* progress, std::vector<tf::Tensor>* results) {
  TF_RETURN_IF_ERROR(ToAbsl(RequireNotForked()));
  Stream& queue = *stream->stream;
  TF_RETURN_IF_ERROR(ToAbsl(TakeEarlierFailure(queue)));
  std::optional<trace::ScopedOp> op;
  std::optional<trace::ScopedListLabels> labels;
  if (trace::On()) {
    op.emplace(ctx->op_kernel().name(), ctx->op_kernel().type_string());
    labels.emplace(captured->Labels());
  }
  const trace::ListOps ops(captured->ops);
  ReplayRun run(ctx, *captured, invocation, hoisted, results);
  TF_RETURN_IF_ERROR(run.Allocate(queue));
  progress->began = true;
  int failed = 0;
  const Status status = captured->executable->Run(queue, run.addresses(), run.on_host(), &failed);
  if (!status.ok()) {
    const Command& command = captured->list->commands[failed];
    progress->has_failed_condition = command.is_condition && status.code() == Code::kInvalidArgument;
    return run.ErrorOf(status, command, queue);
  }
  TF_RETURN_IF_ERROR(run.SetResults());
  return ToAbsl(queue.TakeStatus());
}

}  // namespace xpu::cluster
