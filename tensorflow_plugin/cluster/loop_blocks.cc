#include "tensorflow_plugin/cluster/loop_blocks.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow_plugin/cluster/dump.h"
#include "tensorflow_plugin/cluster/known_values.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/cluster/register_op.h"
#include "tensorflow_plugin/cluster/signature.h"
#include "tensorflow_plugin/device/stream_handle.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

// So many iterations are counted ahead.
constexpr int64_t kAhead = 512;
// A list is captured once it would have run so many iterations, by its number.
constexpr int64_t kWorthCapturing[] = {512, 128, 64};
// A longer list takes more memory than it is worth.
constexpr int64_t kMaxCommands = 2048;
// Iterations of loops within one iteration.
constexpr int64_t kMaxInnerIterations = 256;
constexpr size_t kMaxLists = 8;
constexpr int64_t kMaxHostBytes = 4096;

std::atomic<int64_t> in_blocks{0}, one_by_one{0}, captures{0};

bool IsCancelled(const tf::OpKernelContext& ctx) {
  return ctx.cancellation_manager() != nullptr && ctx.cancellation_manager()->IsCancelled();
}

}  // namespace

// A loop's numbers, some iterations ahead of its state.
class LoopBlocks::Ahead {
 public:
  explicit Ahead(const LoopParts& parts)
      : parts_(parts),
        num_variables_(static_cast<int>(parts.host_variables.size())),
        width_(num_variables_ + static_cast<int>(parts.numbers.size()) + parts.num_rows) {}

  bool Count(tf::OpKernelContext* ctx, const Members::Environment& environment) {
    if (!run_.Begin(parts_.counting, ctx, environment)) return false;
    for (;; ++iterations_, run_.Next()) {
      for (int i = 0; i < num_variables_; ++i) numbers_.push_back(run_[i]);
      if (iterations_ == kAhead || !run_.Compute()) return true;
      for (int i = num_variables_; i < width_; ++i) numbers_.push_back(run_.Other(i - num_variables_));
    }
  }
  // So many there will be, or kAhead.
  int64_t iterations() const { return iterations_; }
  // A number of an iteration: one that the body reads, or the index of a row.
  const Number& Other(int64_t iteration, int i) const { return numbers_[iteration * width_ + num_variables_ + i]; }
  // A host variable at the beginning of an iteration, or at the end of the last.
  tf::Tensor Variable(int64_t iteration, int i) const {
    return ToTensor(numbers_[iteration * width_ + i], run_.TypeOf(i));
  }
  void SetVariables(int64_t iteration, const std::vector<int>& which, std::vector<tf::Tensor>* arguments) const {
    for (int i : which) (*arguments)[parts_.host_variables[i]] = Variable(iteration, i);
  }

 private:
  const LoopParts& parts_;
  NumberProgram::Run run_;
  const int num_variables_, width_;
  int64_t iterations_ = 0;
  // For each iteration the variables at its beginning, then the other numbers of it. At last the variables at the end.
  std::vector<Number> numbers_;
};

// Runs the members before the body, some iterations ahead.
class LoopBlocks::Before {
 public:
  Before(const LoopParts& parts, const Ahead& ahead, tf::OpKernelContext* ctx, const Members::Environment& environment)
      : parts_(parts), ahead_(ahead), environment_(environment) {
    std::vector<int> all(parts.num_arguments);
    for (int i = 0; i < parts.num_arguments; ++i) all[i] = i;
    // Values that the loop changes must not be held here.
    for (int argument : parts.device_variables) environment_.arguments[argument] = tf::Tensor();
    for (int argument : parts.lists) environment_.arguments[argument] = tf::Tensor();
    run_ = std::make_unique<Members::Execution>(parts.before, ctx, environment_, all);
  }

  // The elements of so many iterations from `first` on, all of the shapes of the first. False if there is none.
  bool Get(int64_t first, int64_t count, std::vector<tf::Tensor>* elements) {
    const size_t each = parts_.elements.size();
    if (each == 0) return true;
    if (first != first_) ready_.clear();
    first_ = first;
    while (ready_.size() < count * each) {
      const size_t done = ready_.size();
      if (!Add(first + static_cast<int64_t>(done / each))) return false;
      for (size_t i = 0; i < each; ++i) {
        if (ready_[done + i].shape() != ready_[i].shape()) return false;
      }
    }
    elements->assign(ready_.begin(), ready_.begin() + count * each);
    return true;
  }

 private:
  // An error, if it is one, is told when this iteration comes.
  bool Add(int64_t iteration) {
    if (!parts_.before.members().empty()) {
      ahead_.SetVariables(iteration, parts_.read_before, &environment_.arguments);
      if (ran_) run_->StartOver();
      ran_ = true;
      if (!run_->RunUntil(static_cast<int>(parts_.before.members().size()), false).ok()) return false;
    }
    size_t result = 0;
    const size_t first_row = parts_.numbers.size();
    for (const LoopParts::Element& element : parts_.elements) {
      if (element.row_of < 0) {
        ready_.push_back(run_->TakeValue(parts_.before.results()[result++]));
        continue;
      }
      const tf::Tensor& of = environment_.arguments[element.row_of];
      const Number& number = ahead_.Other(iteration, element.number);
      const bool is_long = parts_.indices[element.number - first_row] == tf::DT_INT64;
      int64_t row = is_long ? number.l : number.i;
      if (of.dims() == 0 || of.NumElements() == 0 || row < -of.dim_size(0) || row >= of.dim_size(0)) return false;
      if (row < 0) row += of.dim_size(0);
      ready_.push_back(of.SubSlice(row));
    }
    return true;
  }

  const LoopParts& parts_;
  const Ahead& ahead_;
  Members::Environment environment_;
  std::unique_ptr<Members::Execution> run_;
  bool ran_ = false;
  int64_t first_ = 0;
  std::vector<tf::Tensor> ready_;
};

bool LoopBlocks::Look(tf::OpKernelContext* ctx, const Members::Environment& environment, Invocation* invocation,
                      ClusterVariables* variables) const {
  const std::vector<tf::Tensor>& arguments = environment.arguments;
  const int first_resource = parts_.first_resource();
  invocation->host.resize(parts_.num_host);
  int64_t host_bytes = 0;
  for (int argument : parts_.read_on_host) {
    if (!tf::DataTypeCanUseMemcpy(arguments[argument].dtype())) return false;
    host_bytes += static_cast<int64_t>(arguments[argument].TotalBytes());
    invocation->host[argument] = arguments[argument];
  }
  if (host_bytes > kMaxHostBytes) return false;
  for (int i = parts_.num_host; i < first_resource; ++i) {
    // The body reads no lists.
    invocation->device.push_back(tf::DataTypeCanUseMemcpy(arguments[i].dtype()) ? &arguments[i] : &nothing_);
  }
  for (int i = 0; i < parts_.num_resources; ++i) {
    const bool anywhere = !parts_.is_resource_used[i];
    const tf::Tensor& handle = arguments[first_resource + i];
    if (!AddVariable(ctx, handle, anywhere, parts_.uses[i].is_written, invocation, variables)) return false;
  }
  if (!LockVariables(variables, invocation)) return false;
  invocation->is_of_cpu.assign(invocation->variables.size(), false);
  invocation->known_values.resize(invocation->variables.size());
  for (int i = 0; i < parts_.num_resources; ++i) {
    if (!IsOfCpu(*invocation->handles[i])) continue;
    if (parts_.is_resource_used[i]) return false;
    invocation->is_of_cpu[invocation->variable_of_resource[i]] = true;
  }
  return true;
}

std::string LoopBlocks::SignatureOf(const Invocation& invocation, const std::vector<tf::Tensor>& elements) const {
  SignatureMaker maker;
  for (int argument : parts_.read_on_host) {
    const tf::Tensor& value = invocation.host[argument];
    AppendShape(value, &maker);
    maker.Append(value.data(), value.TotalBytes());
  }
  for (const tf::Tensor* value : invocation.device) AppendShape(*value, &maker);
  for (tf::Var* variable : invocation.variables) {
    AppendShape(*variable->tensor(), &maker);
    AppendNumber(variable->tensor()->dtype(), &maker);
  }
  for (const tf::Tensor& value : elements) {
    AppendShape(value, &maker);
    AppendNumber(value.dtype(), &maker);
  }
  for (int variable : invocation.variable_of_resource) AppendNumber(variable, &maker);
  return std::move(maker.signature);
}

std::shared_ptr<LoopBlocks::Lists> LoopBlocks::FindLists(const std::string& signature) {
  for (auto it = lists_.begin(); it != lists_.end(); ++it) {
    if ((*it)->signature != signature) continue;
    lists_.splice(lists_.begin(), lists_, it);
    return lists_.front();
  }
  if (lists_.size() == kMaxLists) lists_.pop_back();
  lists_.push_front(std::make_shared<Lists>());
  lists_.front()->signature = signature;
  return lists_.front();
}

void LoopBlocks::Await(int64_t iterations, Lists* lists) {
  int64_t left = iterations;
  for (int s = 0; s < kNumSizes; ++s) {
    // The short list shows how long others would be, so it is there before them.
    lists->awaited[s] += kSizes[s] == 1 ? iterations : left - left % kSizes[s];
    // While a longer list is not there, a shorter one serves what it would.
    if (lists->captured[s] != nullptr) left %= kSizes[s];
  }
}

const char* LoopBlocks::Trouble(const Captured& captured, const Invocation& invocation) const {
  for (size_t i = 0; i < parts_.device_variables.size(); ++i) {
    const tf::Tensor& before = *invocation.device[parts_.device_variables[i] - parts_.num_host];
    const ResultValue& after = captured.results[i];
    if (after.shape != before.shape() || after.dtype != before.dtype()) return "a loop variable changes its shape";
  }
  return captured.written_arguments.empty() ? nullptr : "an argument is written";
}

std::shared_ptr<const Captured> LoopBlocks::CaptureBlock(tf::OpKernelContext* ctx, Device& device,
                                                         const Invocation& invocation,
                                                         const std::vector<tf::Tensor>& elements, int64_t count) const {
  Obstacle obstacle;
  Invocation with_numbers = invocation;
  for (tf::DataType type : parts_.numbers) with_numbers.numbers.emplace_back(type, tf::TensorShape({count}));
  Iterations iterations{count, parts_.device_variables, {}};
  for (const tf::Tensor& value : elements) iterations.elements.emplace_back(value.dtype(), value.shape());
  std::shared_ptr<const Captured> captured =
      CaptureIterations(parts_.body, ctx, device, with_numbers, iterations, kMaxInnerIterations * count, &obstacle);
  if (captured != nullptr) {
    if (const char* trouble = Trouble(*captured, invocation)) {
      obstacle.why = trouble;
      captured = nullptr;
    }
  }
  Dump(absl::StrCat(ctx->op_kernel().name(), ", ", count, " iterations"), parts_.body, captured.get(), obstacle.why);
  if (captured != nullptr) captures.fetch_add(1, std::memory_order_relaxed);
  return captured;
}

std::shared_ptr<const Captured> LoopBlocks::Choose(tf::OpKernelContext* ctx, Device& device,
                                                   const Invocation& invocation,
                                                   const std::vector<tf::Tensor>& elements, int64_t iterations,
                                                   Lists* lists, int* size) {
  constexpr int kShortest = kNumSizes - 1;
  // The list of a size, captured if that is worth it.
  const auto find = [&](int s) -> std::shared_ptr<const Captured> {
    {
      const tf::mutex_lock lock(mutex_);
      const bool is_worth_it = !lists->failed[s] && lists->awaited[s] >= kWorthCapturing[s];
      if (lists->captured[s] != nullptr || !is_worth_it) return lists->captured[s];
    }
    std::shared_ptr<const Captured> captured = CaptureBlock(ctx, device, invocation, elements, kSizes[s]);
    const tf::mutex_lock lock(mutex_);
    lists->failed[s] = captured == nullptr;
    lists->captured[s] = captured;
    return captured;
  };
  const std::shared_ptr<const Captured> shortest = find(kShortest);
  if (shortest == nullptr) return nullptr;
  const int64_t commands = static_cast<int64_t>(shortest->list->commands.size());
  for (*size = 0; *size < kShortest; ++*size) {
    if (kSizes[*size] > iterations || commands * kSizes[*size] > kMaxCommands) continue;
    if (std::shared_ptr<const Captured> captured = find(*size)) return captured;
  }
  return shortest;
}

std::vector<tf::Tensor> LoopBlocks::NumbersOf(const Ahead& ahead, int64_t first, int64_t count) const {
  std::vector<tf::Tensor> numbers;
  for (size_t k = 0; k < parts_.numbers.size(); ++k) {
    tf::Tensor& of_iterations = numbers.emplace_back(parts_.numbers[k], tf::TensorShape({count}));
    for (int64_t n = 0; n < count; ++n) Put(ahead.Other(first + n, static_cast<int>(k)), n, &of_iterations);
  }
  return numbers;
}

absl::Status LoopBlocks::PutIntoLists(tf::OpKernelContext* ctx, const Ahead& ahead, int64_t first, int64_t count,
                                      const std::vector<tf::Tensor>& results, Members::Environment* environment) const {
  if (parts_.lists.empty()) return absl::OkStatus();
  Members::Environment now{environment->device, environment->resources, environment->arguments};
  std::vector<int> invariant_arguments;
  for (int i = 0; i < parts_.num_arguments; ++i) invariant_arguments.push_back(i);
  for (int list : parts_.lists) {
    // Nobody else holds it here, so that it is not copied for each value.
    environment->arguments[list] = tf::Tensor();
    invariant_arguments.erase(std::find(invariant_arguments.begin(), invariant_arguments.end(), list));
  }
  now.arguments.resize(parts_.num_arguments + parts_.num_values);
  std::vector<tf::Tensor> next(parts_.lists.size());
  Members::Execution run(parts_.after, ctx, now, invariant_arguments);
  size_t result = parts_.device_variables.size();
  for (int64_t n = 0; n < count; ++n, run.StartOver()) {
    ahead.SetVariables(first + n, parts_.read_after, &now.arguments);
    for (int i = 0; i < parts_.num_values; ++i) now.arguments[parts_.num_arguments + i] = results[result++];
    TF_RETURN_IF_ERROR(run.RunUntil(static_cast<int>(parts_.after.members().size()), false));
    for (size_t i = 0; i < next.size(); ++i) next[i] = run.TakeValue(parts_.after.results()[i]);
    for (size_t i = 0; i < next.size(); ++i) now.arguments[parts_.lists[i]] = std::move(next[i]);
  }
  for (int list : parts_.lists) environment->arguments[list] = std::move(now.arguments[list]);
  return absl::OkStatus();
}

absl::Status LoopBlocks::Advance(tf::OpKernelContext* ctx, Members::Environment* environment) {
  SP_Stream_st* stream = nullptr;
  if (!StreamOf(ctx, &stream).ok()) return absl::OkStatus();
  std::vector<int> all_variables(parts_.host_variables.size());
  for (size_t i = 0; i < all_variables.size(); ++i) all_variables[i] = static_cast<int>(i);
  for (int64_t done = kAhead; done == kAhead;) {
    Ahead ahead(parts_);
    if (!ahead.Count(ctx, *environment)) return absl::OkStatus();
    Before before(parts_, ahead, ctx, *environment);
    std::shared_ptr<Lists> lists;
    std::string signature;
    for (done = 0; done < ahead.iterations() && !IsCancelled(*ctx);) {
      Invocation invocation;
      ClusterVariables variables;
      std::vector<tf::Tensor> elements;
      if (!before.Get(done, 1, &elements) || !Look(ctx, *environment, &invocation, &variables)) break;
      std::string now = SignatureOf(invocation, elements);
      if (lists == nullptr || now != signature) {
        signature = std::move(now);
        const tf::mutex_lock lock(mutex_);
        lists = FindLists(signature);
        Await(ahead.iterations() - done, lists.get());
      }
      int size = 0;
      const std::shared_ptr<const Captured> captured =
          Choose(ctx, *stream->device, invocation, elements, ahead.iterations() - done, lists.get(), &size);
      const int64_t count = kSizes[size];
      if (captured == nullptr || !before.Get(done, count, &invocation.elements)) break;
      invocation.numbers = NumbersOf(ahead, done, count);
      ReplayProgress progress;
      std::vector<tf::Tensor> results;
      const absl::Status status = Replay(ctx, captured, invocation, {}, stream, &progress, &results);
      if (!status.ok() && (progress.began || !absl::IsResourceExhausted(status))) return status;
      if (!status.ok()) {
        // One iteration may do with less memory.
        const tf::mutex_lock lock(mutex_);
        lists->captured[size] = nullptr;
        lists->failed[size] = true;
        if (count == 1) break;
        continue;
      }
      for (size_t i = 0; i < parts_.device_variables.size(); ++i) {
        environment->arguments[parts_.device_variables[i]] = std::move(results[i]);
      }
      TF_RETURN_IF_ERROR(PutIntoLists(ctx, ahead, done, count, results, environment));
      done += count;
      in_blocks.fetch_add(count, std::memory_order_relaxed);
    }
    ahead.SetVariables(done, all_variables, &environment->arguments);
  }
  return absl::OkStatus();
}

std::string DescribeLoops() {
  return absl::StrCat("{\"in_blocks\": ", in_blocks.load(), ", \"one_by_one\": ", one_by_one.load(),
                      ", \"captures\": ", captures.load(), "}");
}

void NoteIteration() { one_by_one.fetch_add(1, std::memory_order_relaxed); }

}  // namespace xpu::cluster
