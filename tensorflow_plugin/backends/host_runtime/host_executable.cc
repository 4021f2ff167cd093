#include "tensorflow_plugin/backends/host_runtime/host_executable.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/clock.h"
#include "tensorflow_plugin/backends/host_runtime/copies.h"
#include "tensorflow_plugin/backends/host_runtime/host_stream.h"
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"
#include "tensorflow_plugin/primitives/small_vector.h"
#include "tensorflow_plugin/trace/labels.h"

namespace xpu::host_runtime {
namespace {

// To wake a thread takes time (ThreadTeam::WorthWakingNs). That pays for a single command much sooner than for many
// small ones, which may be so many times as long together.
constexpr int64_t kHandedOverPerCommand = 10;
// The thread that hands them over can go on meanwhile. The gain depends on the program. It may have something else to
// do until it wants the results, or it waits for them and is woken in its turn. Lists that take less than the first
// time, one command after the other, run here if the stream is idle. Lists that take more than the second are handed
// over. For all others, both are tried.
constexpr int64_t kHereNs = 30000, kElsewhereNs = 2000000;
// The cost of running several commands side by side.
constexpr int64_t kSideBySideNs = 2000;
// Each is compared with all others.
constexpr int kMostTogether = 64;
// The addresses of more buffers than that take memory of their own.
constexpr int kFewBuffers = 64;

template <typename Desc>
int64_t EstimateNs(const KernelSet& kernels, const Desc& desc) {
  return kernels.EstimateNs(desc);
}
int64_t EstimateNs(const KernelSet&, const CopyBytes& d) { return EstimateCopyNs(d.bytes); }
int64_t EstimateNs(const KernelSet&, const FillBytes& d) { return EstimateCopyNs(d.bytes); }
int64_t EstimateNs(const KernelSet&, const xpu::FillWords& d) { return EstimateCopyNs(d.bytes); }
int64_t EstimateNs(const KernelSet&, const CopyConstant& d) { return EstimateCopyNs(d.bytes->size()); }
int64_t EstimateNs(const KernelSet&, const CopyFromHost& d) { return EstimateCopyNs(d.bytes); }
int64_t EstimateNs(const KernelSet&, const CopyToHost& d) { return EstimateCopyNs(d.bytes); }

// The operands of a command: its inputs, its outputs and its workspace, one after the other.
struct Operands {
  const BufferSlice* places;
  int num_in, num_out;

  const BufferSlice& in(int i) const { return places[i]; }
  const BufferSlice& out(int i) const { return places[num_in + i]; }
  const BufferSlice& workspace() const { return places[num_in + num_out]; }
};

// One command, buffer i of those that its list touches lying at at[i].
struct Runner {
  const KernelSet& kernels;
  const Operands operands;
  char* const* at;
  const ThreadTeam& team;

  char* in(int i) const { return operands.in(i).In(at); }
  char* out(int i) const { return operands.out(i).In(at); }

  Status operator()(const CopyBytes& d) const { return CopyInto(d.bytes); }
  Status operator()(const CopyFromHost& d) const { return CopyInto(d.bytes); }
  Status operator()(const CopyToHost& d) const { return CopyInto(d.bytes); }
  Status CopyInto(size_t bytes) const {
    Copy(out(0), in(0), bytes, team);
    return OkStatus();
  }
  Status operator()(const FillBytes& d) const {
    Fill(out(0), d.value, d.bytes, team);
    return OkStatus();
  }
  Status operator()(const xpu::FillWords& d) const {
    FillWords(out(0), d.value, d.bytes, team);
    return OkStatus();
  }
  Status operator()(const CopyConstant& d) const {
    Copy(out(0), d.bytes->data(), d.bytes->size(), team);
    return OkStatus();
  }
  template <typename Desc>
  Status operator()(const Desc& d) const {
    Args args;
    for (int i = 0; i < operands.num_in; ++i) args.in[i] = in(i);
    for (int i = 0; i < operands.num_out; ++i) args.out[i] = out(i);
    args.workspace = operands.workspace().In(at);
    return kernels.Run(d, args, team);
  }
};

// Records a run of a list, if a profiler listens.
class Listener {
 public:
  Listener() = default;
  // To be made by the thread that runs the list.
  Listener(const CommandList& list, trace::Line* line) {
    if (!trace::On()) return;
    line_ = line;
    labels_ = trace::ScopedListLabels::Current(list.commands.size());
    if (labels_ == nullptr) {
      labels_ = std::make_shared<const std::vector<trace::Label>>(trace::LabelsOf(list));
    }
    whole_ = trace::LabelOf(trace::Kind::kList, "cluster", 0);
  }

  template <typename F>
  Status Command(int64_t i, const F& run) const {
    if (line_ == nullptr) return run();
    const KernelSpan span(*line_, (*labels_)[i]);
    return run();
  }
  template <typename F>
  Status Whole(const F& run) const {
    if (line_ == nullptr) return run();
    const trace::Span span(*line_, whole_);
    return run();
  }

 private:
  trace::Line* line_ = nullptr;
  trace::ScopedListLabels::Labels labels_;
  trace::Label whole_;
};

// Bytes that a command reads or writes, of a buffer or of what several buffers are parts of.
struct Touched {
  int of;
  ByteRange range;
  bool written;
};

// Commands that touch nothing that another of them writes. None of them writes an input, such as a variable, if one
// before it may fail: that one has to succeed first.
class Independent {
 public:
  Independent(const CommandList& list, const MemoryPlan& plan) : list_(list), plan_(plan) {}

  // Adds the command, if it is such a one.
  bool Add(const Command& command) {
    if (may_fail_ && WritesInput(list_, command)) return false;
    const size_t before = touched_.size();
    for (size_t k = 0; k < command.in.size(); ++k) Touch(command.in[k].buffer, RangeOfInput(command, k), false);
    for (size_t k = 0; k < command.out.size(); ++k) Touch(command.out[k].buffer, RangeOfOutput(command, k), true);
    if (const BufferSlice& place = command.workspace; place.buffer != BufferSlice::kNowhere) {
      Touch(place.buffer, {place.offset, place.offset + list_.buffers[place.buffer].bytes}, true);
    }
    for (size_t i = before; i < touched_.size(); ++i) {
      for (size_t j = 0; j < before; ++j) {
        const Touched &a = touched_[i], &b = touched_[j];
        if (a.of == b.of && a.range.Overlaps(b.range) && (a.written || b.written)) {
          touched_.resize(before);
          return false;
        }
      }
    }
    may_fail_ |= command.may_fail();
    return true;
  }
  void Clear() {
    touched_.clear();
    may_fail_ = false;
  }

 private:
  void Touch(int number, const ByteRange& range, bool written) {
    // Planned buffers are parts of one block, and fixed ones may be of each other.
    constexpr int kBlock = -1, kAnyAddress = -2;
    if (number == BufferSlice::kNowhere) return;
    const Buffer& buffer = list_.buffers[number];
    int of = number;
    int64_t start = 0;
    if (buffer.kind == Buffer::Kind::kFixed) {
      of = kAnyAddress;
      start = static_cast<int64_t>(reinterpret_cast<intptr_t>(buffer.address));
    } else if (plan_.offsets[number] != MemoryPlan::kElsewhere) {
      of = kBlock;
      start = plan_.offsets[number];
    }
    touched_.push_back({of, {start + range.begin, start + range.end}, written});
  }

  const CommandList& list_;
  const MemoryPlan& plan_;
  std::vector<Touched> touched_;
  bool may_fail_ = false;  // one of them
};

}  // namespace

// Who runs which command. Immutable.
class HostExecutable::Schedule {
 public:
  Schedule(const KernelSet& kernels, int team_size, std::shared_ptr<const CommandList> list, const MemoryPlan& plan,
           std::vector<int64_t> costs)
      : kernels_(kernels), list_(std::move(list)), costs_(std::move(costs)) {
    const int count = static_cast<int>(costs_.size());
    CollectPlaces();
    LeaveOutCopies();
    Independent together(*list_, plan);
    for (int begin = 0, end; begin < count; begin = end) {
      together.Clear();
      end = begin;
      if (list_->commands[begin].strand != Command::kNoStrand) {
        end = EndOfStrands(*list_, begin);
        AddStrands(begin, end, team_size);
        continue;
      }
      while (end < std::min(count, begin + kMostTogether) && costs_[end] < 2 * kWorthSharingNs &&
             list_->commands[end].strand == Command::kNoStrand && together.Add(list_->commands[end])) {
        ++end;
      }
      end = std::max(end, begin + 1);
      if (SideBySidePays(begin, end, team_size)) {
        std::vector<int> each;
        for (int i = begin; i <= end; ++i) each.push_back(i);
        steps_.push_back({begin, end, std::move(each), 0});
      } else {
        AddOneByOne(begin, end);
      }
      for (int i = begin; i < end; ++i) {
        if (list_->commands[i].is_awaited()) num_awaited_ = steps_.size();
      }
    }
    SumSharedWork();
    awaits_host_memory_alone_ = ReadHostMemoryAlone(num_awaited_);
    cost_of_awaited_ = CostOf(0, num_awaited_);
    cost_of_rest_ = CostOf(num_awaited_, steps_.size());
  }

  // Lets buffers that hold nothing but what the host has lie there.
  void UseHostMemory(char** at) const {
    for (int i : copies_left_out_) {
      const Operands copy = OperandsOf(i);
      at[copy.out(0).buffer] = copy.in(0).In(at);
    }
  }

  // The list's buffers that its commands touch. A list has many more: those that passes have done away with.
  const std::vector<int>& touched() const { return touched_; }
  // The steps that are waited for come first: all up to the last one with a command that is awaited.
  bool has_awaited() const { return num_awaited_ > 0; }
  // They need not wait for anything, nor keep to the order of a stream.
  bool awaits_host_memory_alone() const { return awaits_host_memory_alone_; }
  bool has_rest() const { return num_awaited_ < steps_.size(); }
  // One command after the other, on one thread.
  struct Cost {
    int64_t total_ns = 0;
    int64_t longest_ns = 0;
    // That of a single command which is as good to have handed to another thread.
    int64_t AsOne() const { return std::max(longest_ns, total_ns / kHandedOverPerCommand); }
  };
  const Cost& cost_of_awaited() const { return cost_of_awaited_; }
  const Cost& cost_of_rest() const { return cost_of_rest_; }

  // Buffer i of those that are touched lies at the host's address at[i]. The first command that fails, `failed`, is in
  // the last step that runs.
  Status RunAwaited(char* const* at, const ThreadTeam& team, const Listener& listener, int* failed) const {
    return listener.Whole([&] {
      SharedStatus status;
      const Teams teams(team);
      for (size_t s = 0; s < num_awaited_ && status.get().ok(); ++s) RunStep(s, at, teams, listener, &status);
      if (!status.get().ok()) *failed = status.number();
      return status.get();
    });
  }
  // `done`: called after each step, until one has failed. A failure names one of the ops that `ops_of` gives.
  template <typename OpsOf, typename Done>
  Status RunRest(char* const* at, const ThreadTeam& team, const Listener& listener, CommandQueue& queue,
                 const OpsOf& ops_of, const Done& done) const {
    return listener.Whole([&] {
      SharedStatus status;
      const Teams teams(team);
      for (size_t s = num_awaited_; s < steps_.size(); ++s) {
        RunStep(s, at, teams, listener, &status);
        if (status.get().ok()) done();
      }
      if (__builtin_expect(status.get().ok(), 1)) return status.get();
      const trace::ListOps::Ops ops = ops_of();
      if (ops == nullptr) return status.get();
      const trace::ListOps::Names& names = (*ops)[list_->commands[status.number()].origin];
      const trace::ScopedOp op(names.name, names.type);
      return trace::OfOp(status.get(), trace::ScopedOp::Current(), queue.line().device());
    });
  }
  // After how many of those steps nothing is written to [begin, end) any more.
  size_t UntilWritten(char* const* at, const char* begin, const char* end) const {
    for (size_t s = steps_.size(); s > num_awaited_; --s) {
      for (int i = steps_[s - 1].begin; i < steps_[s - 1].end; ++i) {
        const Command& command = list_->commands[i];
        const Operands operands = OperandsOf(i);
        for (size_t k = 0; k < command.out.size(); ++k) {
          const int buffer = operands.out(static_cast<int>(k)).buffer;
          if (buffer == BufferSlice::kNowhere) continue;
          const ByteRange range = RangeOfOutput(command, k);
          if (at[buffer] + range.begin < end && begin < at[buffer] + range.end) return s - num_awaited_;
        }
      }
    }
    return 0;
  }
  const CommandList& list() const { return *list_; }

 private:
  // Commands [begin, end) of the list. Several of them are strands that run side by side: strand i begins with the
  // command first[i] and ends where the next one begins.
  struct CommandGroup {
    int begin, end;
    std::vector<int> first;
    // The work, in nanoseconds of one thread, that threads share in this step and in those that follow it soon.
    int64_t shared_ns = 0;
  };
  // Those who share a step.
  struct Teams {
    explicit Teams(const ThreadTeam& all) : all(all), awake(all.OfThoseAwake()), worth_waking_ns(all.WorthWakingNs()) {}
    const ThreadTeam& For(const CommandGroup& step) const { return step.shared_ns < worth_waking_ns ? awake : all; }

    const ThreadTeam& all;
    const ThreadTeam awake;
    const int64_t worth_waking_ns;
  };
  void AddOneByOne(int begin, int end) {
    for (int i = begin; i < end; ++i) steps_.push_back({i, i + 1, {}, 0});
  }
  void AddStrands(int begin, int end, int team_size) {
    std::vector<int> first = {begin};
    int64_t total = 0;
    for (int i = begin; i < end; ++i) {
      if (list_->commands[i].strand != list_->commands[first.back()].strand) first.push_back(i);
      total += costs_[i];
    }
    if (team_size == 1 || total < kWorthSharingNs) return AddOneByOne(begin, end);
    first.push_back(end);
    steps_.push_back({begin, end, std::move(first), 0});
  }

  // The operands of all commands lie side by side, and name buffers by their place in touched(). So a run does not look
  // for them all over the list.
  void CollectPlaces() {
    std::vector<int> number_of(list_->buffers.size(), BufferSlice::kNowhere);
    const auto add = [&](const BufferSlice& place) {
      BufferSlice& added = places_.emplace_back(place);
      if (place.buffer == BufferSlice::kNowhere) return;
      int& number = number_of[place.buffer];
      if (number == BufferSlice::kNowhere) {
        number = static_cast<int>(touched_.size());
        touched_.push_back(place.buffer);
      }
      added.buffer = number;
    };
    for (const Command& command : list_->commands) {
      first_place_.push_back(static_cast<int>(places_.size()));
      for (const BufferSlice& place : command.in) add(place);
      num_in_.push_back(static_cast<int>(command.in.size()));
      for (const BufferSlice& place : command.out) add(place);
      add(command.workspace);
    }
    first_place_.push_back(static_cast<int>(places_.size()));
  }

  Operands OperandsOf(int64_t command) const {
    const int begin = first_place_[command], num_in = num_in_[command];
    return {places_.data() + begin, num_in, first_place_[command + 1] - begin - num_in - 1};
  }

  // Copies from the host of which nobody could tell that they are copies.
  void LeaveOutCopies() {
    std::vector<int> writers(list_->buffers.size(), 0);
    const auto count = [&writers](const BufferSlice& place) {
      if (place.buffer != BufferSlice::kNowhere) ++writers[place.buffer];
    };
    for (const Command& command : list_->commands) {
      for (const BufferSlice& place : command.out) count(place);
      count(command.workspace);
    }
    for (int live_out : list_->live_out) ++writers[live_out];
    for (size_t i = 0; i < costs_.size(); ++i) {
      const Command& command = list_->commands[i];
      if (!std::holds_alternative<CopyFromHost>(command.desc)) continue;
      const BufferSlice& to = command.out[0];
      if (to.offset != 0 || writers[to.buffer] != 1 || list_->buffers[to.buffer].kind != Buffer::Kind::kComputed) {
        continue;
      }
      copies_left_out_.push_back(static_cast<int>(i));
      costs_[i] = 0;
    }
  }

  bool IsLeftOut(int i) const {
    return std::find(copies_left_out_.begin(), copies_left_out_.end(), i) != copies_left_out_.end();
  }

  // True if the first steps do no more than look at host memory.
  bool ReadHostMemoryAlone(size_t num_steps) const {
    std::vector<int> on_host{BufferSlice::kNowhere};
    for (int i : copies_left_out_) on_host.push_back(list_->commands[i].out[0].buffer);
    const auto is_on_host = [&on_host](const BufferSlice& place) {
      return std::find(on_host.begin(), on_host.end(), place.buffer) != on_host.end();
    };
    const auto is_nowhere = [](const BufferSlice& place) { return place.buffer == BufferSlice::kNowhere; };
    for (size_t s = 0; s < num_steps; ++s) {
      for (int i = steps_[s].begin; i < steps_[s].end; ++i) {
        const Command& command = list_->commands[i];
        if (!IsLeftOut(i) &&
            !(std::all_of(command.in.begin(), command.in.end(), is_on_host) &&
              std::all_of(command.out.begin(), command.out.end(), is_nowhere) && is_nowhere(command.workspace))) {
          return false;
        }
      }
    }
    return true;
  }

  Cost CostOf(size_t first, size_t end) const {
    Cost cost;
    for (size_t s = first; s < end; ++s) {
      for (int i = steps_[s].begin; i < steps_[s].end; ++i) {
        cost.total_ns = std::min(cost.total_ns + costs_[i], KernelSet::kNoEstimate / 2);
        cost.longest_ns = std::max(cost.longest_ns, costs_[i]);
      }
    }
    return cost;
  }

  // A helper that was woken stays awake until the next step that wants it, unless other steps take longer than it looks
  // for work.
  void SumSharedWork() {
    constexpr int64_t kPauseNs = 30000;
    int64_t following = 0, pause = 0;
    for (size_t s = steps_.size(); s > 0; --s) {
      CommandGroup& step = steps_[s - 1];
      const int64_t cost = CostOf(s - 1, s).total_ns;
      if (step.end == step.begin + 1 && cost < kWorthSharingNs) {
        pause += cost;
        continue;
      }
      if (pause > kPauseNs) following = 0;
      pause = 0;
      following = step.shared_ns = std::min(following + cost, KernelSet::kNoEstimate / 2);
    }
  }

  bool SideBySidePays(int begin, int end, int team_size) const {
    int64_t total = 0, longest = 0, one_by_one = 0;
    for (int i = begin; i < end; ++i) {
      total += costs_[i];
      longest = std::max(longest, costs_[i]);
      one_by_one += costs_[i] / std::clamp<int64_t>(costs_[i] / kWorthSharingNs, 1, team_size);
    }
    return std::max(longest, total / team_size) + kSideBySideNs < one_by_one;
  }

  void RunStep(size_t number, char* const* at, const Teams& teams, const Listener& listener,
               SharedStatus* status) const {
    static const ThreadTeam alone(1);
    const CommandGroup& step = steps_[number];
    if (step.end == step.begin + 1) {
      const ThreadTeam& threads = costs_[step.begin] < kWorthSharingNs ? alone : teams.For(step);
      status->Update(RunOne(step.begin, at, threads, listener), step.begin);
      return;
    }
    teams.For(step).ParallelFor(static_cast<int64_t>(step.first.size()) - 1, 1, [&](int64_t begin, int64_t end) {
      for (int i = step.first[begin]; i < step.first[end]; ++i) {
        status->Update(RunOne(i, at, alone, listener), i);
      }
    });
  }

  Status RunOne(int64_t i, char* const* at, const ThreadTeam& team, const Listener& listener) const {
    const Command& command = list_->commands[i];
    if (std::holds_alternative<CopyFromHost>(command.desc) && IsLeftOut(static_cast<int>(i))) {
      return OkStatus();
    }
    auto run = [&](const ThreadTeam& threads) {
      return std::visit(Runner{kernels_, OperandsOf(i), at, threads}, command.desc);
    };
    return listener.Command(i, [&] { return CommandQueue::Guarded(run, team); });
  }

  const KernelSet& kernels_;
  const std::shared_ptr<const CommandList> list_;
  std::vector<int64_t> costs_;             // by command
  std::vector<BufferSlice> places_;        // of all commands; their buffers are those of touched_, by number
  std::vector<int> first_place_, num_in_;  // by command
  std::vector<int> touched_;
  std::vector<int> copies_left_out_;
  std::vector<CommandGroup> steps_;
  size_t num_awaited_ = 0;
  bool awaits_host_memory_alone_ = false;
  Cost cost_of_awaited_, cost_of_rest_;
};

// The part of a list that is not awaited, over the buffers of one run, for another thread.
class HostExecutable::Rest final : public CommandQueue::SteppedEntry {
 public:
  // To be made by the thread that runs the list.
  Rest(std::shared_ptr<const Schedule> schedule, std::vector<char*> at)
      : schedule_(std::move(schedule)), at_(std::move(at)), ops_(trace::ListOps::Current()) {}

  Status Run(CommandQueue& queue, const ThreadTeam& team, const Listener& listener) {
    return schedule_->RunRest(
        at_.data(), team, listener, queue, [this] { return ops_; }, [this, &queue] { queue.Done(*this); });
  }
  size_t UntilWritten(const char* begin, const char* end) const override {
    return schedule_->UntilWritten(at_.data(), begin, end);
  }

 private:
  const std::shared_ptr<const Schedule> schedule_;
  const std::vector<char*> at_;  // where each touched buffer lies
  const trace::ListOps::Ops ops_;
};

std::unique_ptr<Executable> HostExecutable::Make(const KernelSet& kernels, const DeviceMemory* memory, int team_size,
                                                 std::shared_ptr<const CommandList> list, const MemoryPlan& plan) {
  std::vector<int64_t> costs;
  for (const Command& command : list->commands) {
    costs.push_back(std::visit([&](const auto& desc) { return EstimateNs(kernels, desc); }, command.desc));
    if (costs.back() == KernelSet::kNoEstimate) return nullptr;
  }
  auto schedule = std::make_shared<const Schedule>(kernels, team_size, std::move(list), plan, std::move(costs));
  return std::unique_ptr<Executable>(new HostExecutable(memory, std::move(schedule)));
}

HostExecutable::HostExecutable(const DeviceMemory* memory, std::shared_ptr<const Schedule> schedule)
    : memory_(memory), schedule_(std::move(schedule)) {
  const Schedule::Cost& cost = schedule_->cost_of_rest();
  const bool is_cheap = cost.AsOne() < CommandQueue::Options().inline_below_ns;
  if (cost.total_ns > kElsewhereNs) {
    where_ = CommandQueue::Where::kElsewhere;
  } else if (cost.total_ns < kHereNs) {
    where_ = is_cheap ? CommandQueue::Where::kHereAlone : CommandQueue::Where::kHere;
  } else {
    here_.emplace(/*guess=*/is_cheap);
  }
}

Status HostExecutable::Run(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data,
                           int* failed) const {
  SmallVector<char*, kFewBuffers> at;
  const std::vector<int>& touched = schedule_->touched();
  at.resize(static_cast<int>(touched.size()));
  std::transform(touched.begin(), touched.end(), at.begin(), [addresses](int buffer) { return addresses[buffer]; });
  if (memory_ != nullptr) {
    for (char*& address : at) address = memory_->Translate(address);
  }
  schedule_->UseHostMemory(at.begin());
  CommandQueue& queue = static_cast<HostStream&>(stream).queue();
  Listener listener(schedule_->list(), &queue.line());
  if (schedule_->has_awaited() && schedule_->awaits_host_memory_alone()) {
    XPU_RETURN_IF_ERROR(schedule_->RunAwaited(at.begin(), ThreadTeam(1), listener, failed));
  } else if (schedule_->has_awaited()) {
    XPU_RETURN_IF_ERROR(queue.RunAwaited(schedule_->cost_of_awaited().AsOne(), [&](const ThreadTeam& team) {
      return schedule_->RunAwaited(at.begin(), team, listener, failed);
    }));
  }
  if (schedule_->has_rest()) {
    CommandQueue::Where where = where_;
    if (here_.has_value()) where = here_->Next(NowNs()) ? CommandQueue::Where::kHere : CommandQueue::Where::kElsewhere;
    // Nobody else waits for steps that run here.
    const auto here = [&](const ThreadTeam& team) {
      return schedule_->RunRest(at.begin(), team, listener, queue, &trace::ListOps::Current, [] {});
    };
    queue.SubmitSteps(where, here, [&] {
      auto rest = std::make_shared<Rest>(schedule_, std::vector<char*>(at.begin(), at.end()));
      const auto run = [&queue, rest, host_data = std::move(host_data), listener = std::move(listener)](
                           const ThreadTeam& team) { return rest->Run(queue, team, listener); };
      return std::pair(std::shared_ptr<CommandQueue::SteppedEntry>(rest), run);
    });
  }
  return OkStatus();
}

}  // namespace xpu::host_runtime
