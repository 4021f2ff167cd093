#include "tensorflow_plugin/backends/cuda/graph_executable.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "tensorflow_plugin/primitives/determinism.h"
#include "tensorflow_plugin/primitives/float_precision.h"

namespace xpu::cuda {
namespace {

// Fewer commands cost less one by one.
constexpr size_t kLeastCommands = 3;
// Sets of addresses of a list. Behind them the one that was used least recently goes.
constexpr size_t kMostGraphs = 16;
// A buffer moves if so many runs on end gave it an address that the last few runs had not. Runs with a graph do not
// count.
constexpr uint8_t kMostChanges = 4;
constexpr size_t kLastRuns = 3;

bool IsCopyOfHost(const Command& command) {
  return std::holds_alternative<CopyConstant>(command.desc) || std::holds_alternative<CopyFromHost>(command.desc) ||
         std::holds_alternative<CopyToHost>(command.desc);
}

}  // namespace

GraphExecutable::GraphExecutable(Device& device, CaptureStream& capture, std::shared_ptr<const CommandList> list)
    : TracedExecutable(device, list), capture_(capture), list_(std::move(list)), checks_(*list_) {
  for (const Command& command : list_->commands) {
    copies_to_host_ = copies_to_host_ || std::holds_alternative<CopyToHost>(command.desc);
    std::vector<size_t>& touched = touched_.emplace_back();
    const auto add = [&](const BufferSlice& place) {
      if (place.buffer != BufferSlice::kNowhere) touched.push_back(static_cast<size_t>(place.buffer));
    };
    std::for_each(command.in.begin(), command.in.end(), add);
    std::for_each(command.out.begin(), command.out.end(), add);
    add(command.workspace);
  }
}

int GraphExecutable::NumGraphs() const {
  std::lock_guard<std::mutex> lock(mutex_);
  int count = 0;
  if (plan_ == nullptr) return count;
  for (const auto& [key, kept] : plan_->kept) {
    if (kept.graphs == nullptr) continue;
    for (const std::shared_ptr<const Graph>& graph : *kept.graphs) count += graph != nullptr;
  }
  return count;
}

std::shared_ptr<GraphExecutable::Plan> GraphExecutable::MakePlan(const std::vector<bool>& moves) const {
  auto plan = std::make_shared<Plan>();
  const std::vector<Command>& all = list_->commands;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_graph = !IsCopyOfHost(all[i]) && (!all[i].may_fail() || checks_.IsSafe(i)) &&
                          std::none_of(touched_[i].begin(), touched_[i].end(), [&](size_t b) { return moves[b]; });
    std::vector<Segment>& segments = plan->segments;
    if (segments.empty() || segments.back().is_graph != is_graph) segments.push_back({i, i, is_graph});
    segments.back().end = i + 1;
  }
  std::vector<bool> is_keyed(moves.size(), false);
  for (Segment& segment : plan->segments) {
    segment.is_graph &= segment.end - segment.begin >= kLeastCommands;
    for (size_t i = segment.begin; segment.is_graph && i < segment.end; ++i, ++plan->num_in_graphs) {
      for (size_t b : touched_[i]) is_keyed[b] = true;
    }
  }
  for (size_t b = 0; b < is_keyed.size(); ++b) {
    if (is_keyed[b]) plan->keyed.push_back(b);
  }
  return plan;
}

GraphExecutable::Key GraphExecutable::KeyOf(const Queue& queue, const Plan& plan, char* const* addresses) {
  Key key = {queue.number(), AllowsTf32(), RequiresDeterminism()};
  key.reserve(key.size() + plan.keyed.size());
  for (size_t b : plan.keyed) key.push_back(AddressOf(addresses[b]));
  return key;
}

std::shared_ptr<const GraphExecutable::Graphs> GraphExecutable::FindGraphs(Queue& queue, char* const* addresses,
                                                                           std::shared_ptr<const Plan>* plan) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (plan_ == nullptr) {
    plan_ = MakePlan(std::vector<bool>(list_->buffers.size(), false));
    changes_.resize(list_->buffers.size(), 0);
  }
  Key key = KeyOf(queue, *plan_, addresses);
  auto found = plan_->kept.find(key);
  if (found == plan_->kept.end() && looks_for_moving_ && !trace::On()) {
    const std::shared_ptr<Plan> before = plan_;
    LeaveOutMovingBuffers(queue, addresses);
    if (plan_ != before) key = KeyOf(queue, *plan_, addresses);
    found = plan_->kept.end();
  }
  *plan = plan_;
  std::map<Key, KeptGraphs>& kept = plan_->kept;
  const bool is_new = found == kept.end();
  if (is_new) {
    if (kept.size() >= kMostGraphs) {
      kept.erase(std::min_element(kept.begin(), kept.end(),
                                  [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
    }
    found = kept.emplace(std::move(key), KeptGraphs{}).first;
  } else {
    last_addresses_.clear();
  }
  KeptGraphs& mine = found->second;
  if (!is_new && mine.graphs == nullptr) {
    auto captured = std::make_shared<Graphs>();
    for (const Segment& segment : plan_->segments) {
      captured->push_back(segment.is_graph ? Capture(queue, segment, addresses) : nullptr);
    }
    mine.graphs = std::move(captured);
  }
  mine.used = ++plan_->uses;
  return mine.graphs;
}

void GraphExecutable::LeaveOutMovingBuffers(const Queue& queue, char* const* addresses) const {
  const size_t count = list_->buffers.size();
  if (last_queue_ != queue.number()) last_addresses_.clear();
  last_queue_ = queue.number();
  bool do_move = false;
  for (size_t b : plan_->keyed) {
    const bool is_new = !last_addresses_.empty() &&
                        std::none_of(last_addresses_.begin(), last_addresses_.end(),
                                     [&](const std::vector<char*>& last) { return last[b] == addresses[b]; });
    changes_[b] = is_new ? static_cast<uint8_t>(changes_[b] + 1) : 0;
    do_move = do_move || changes_[b] >= kMostChanges;
  }
  if (last_addresses_.size() == kLastRuns) last_addresses_.pop_front();
  last_addresses_.emplace_back(addresses, addresses + count);
  if (!do_move) return;
  std::vector<bool> moves(count, false);
  for (size_t b = 0; b < count; ++b) moves[b] = changes_[b] >= kMostChanges;
  std::shared_ptr<Plan> plan = MakePlan(moves);
  looks_for_moving_ = 4 * plan->num_in_graphs >= 3 * plan_->num_in_graphs;
  if (looks_for_moving_) plan_ = std::move(plan);
}

Status GraphExecutable::RunOne(Queue& queue, size_t i, char* const* addresses, int* failed) const {
  const bool is_safe = checks_.IsSafe(i);
  if (is_safe && IsCheck(list_->commands[i])) return OkStatus();
  Status on_data;
  Status status = Enqueue(queue, i, addresses, is_safe ? nullptr : &on_data);
  if (status.ok()) status = std::move(on_data);
  if (!status.ok()) *failed = static_cast<int>(i);
  return status;
}

Status GraphExecutable::RunChecks(Queue& queue, size_t begin, size_t end, char* const* addresses, int* failed) const {
  std::vector<Status> verdicts(end - begin);
  ReportBatch batch(queue);
  Status status;
  size_t i = begin;
  for (; i < end && status.ok(); ++i) status = Enqueue(queue, i, addresses, &verdicts[i - begin]);
  if (!status.ok()) --i;  // which cannot be enqueued
  const Status read = batch.Read();
  for (size_t j = begin; j < i; ++j) {
    Status& verdict = verdicts[j - begin];
    if (verdict.ok()) continue;
    *failed = static_cast<int>(j);
    return std::move(verdict);
  }
  if (status.ok()) status = read;
  if (!status.ok()) *failed = static_cast<int>(std::min(i, end - 1));
  return status;
}

Status GraphExecutable::RunOneByOne(Queue& queue, size_t begin, size_t end, char* const* addresses, int* failed) const {
  const auto is_awaited_check = [&](size_t i) { return IsCheck(list_->commands[i]) && !checks_.IsSafe(i); };
  for (size_t i = begin; i < end;) {
    size_t last = i;
    while (last < end && last - i < ReportBatch::kMost && is_awaited_check(last)) ++last;
    if (last - i > 1) {
      XPU_RETURN_IF_ERROR(RunChecks(queue, i, last, addresses, failed));
      i = last;
    } else {
      XPU_RETURN_IF_ERROR(RunOne(queue, i++, addresses, failed));
    }
  }
  return OkStatus();
}

std::shared_ptr<const Graph> GraphExecutable::Capture(Queue& queue, const Segment& segment,
                                                      char* const* addresses) const {
  void* scratch = nullptr;
  if (!queue.Scratch(Queue::kScratchBytes, &scratch).ok()) return nullptr;
  std::lock_guard<std::mutex> lock(capture_.mutex);
  Queue& capture = *capture_.queue;
  capture.BorrowScratch(queue);
  if (Cu().StreamBeginCapture(capture.stream(), kCaptureRelaxed) != kSuccess) return nullptr;
  int failed = 0;
  Status status = RunOneByOne(capture, segment.begin, segment.end, addresses, &failed);
  GraphHandle graph = nullptr;
  GraphExecHandle exec = nullptr;
  const bool captured = Cu().StreamEndCapture(capture.stream(), &graph) == kSuccess && graph != nullptr;
  if (status.ok()) status = capture.TakeStatus();
  if (captured && status.ok() && Cu().GraphInstantiate(&exec, graph, 0) != kSuccess) exec = nullptr;
  if (graph != nullptr) (void)Cu().GraphDestroy(graph);
  return exec == nullptr ? nullptr : std::make_shared<const Graph>(exec);
}

Status GraphExecutable::RunSegments(Queue& queue, char* const* addresses, int* failed) const {
  std::shared_ptr<const Plan> plan;
  const std::shared_ptr<const Graphs> graphs = FindGraphs(queue, addresses, &plan);
  const bool traced = trace::On();
  for (size_t k = 0; k < plan->segments.size(); ++k) {
    const Segment& segment = plan->segments[k];
    std::shared_ptr<const Graph> graph = graphs == nullptr || traced ? nullptr : (*graphs)[k];
    if (graph == nullptr) {
      XPU_RETURN_IF_ERROR(RunOneByOne(queue, segment.begin, segment.end, addresses, failed));
      continue;
    }
    *failed = static_cast<int>(segment.begin);
    XPU_RETURN_IF_ERROR(queue.Submit([graph = std::move(graph), stream = queue.stream()] {
      return ToStatus(Cu().GraphLaunch(graph->get(), stream), "a graph of commands");
    }));
  }
  return OkStatus();
}

Status GraphExecutable::RunCommands(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data,
                                    int* failed) const {
  Queue& queue = static_cast<Queue&>(stream);
  XPU_RETURN_IF_ERROR(queue.Enter());
  const uint64_t late_reads = queue.late_reads();
  Status failure;
  const int failing = checks_.FindFailure(addresses, &failure);
  Status status = failing < 0 ? RunSegments(queue, addresses, failed)
                              : RunOneByOne(queue, 0, static_cast<size_t>(failing), addresses, failed);
  if (failing >= 0 && status.ok()) {
    *failed = failing;
    status = std::move(failure);
  }
  if (queue.late_reads() != late_reads) {
    queue.KeepUntilRun(list_);  // which has constants
    if (host_data != nullptr) queue.KeepUntilRun(std::move(host_data));
  }
  if (copies_to_host_) queue.Wait();
  return status;
}

}  // namespace xpu::cuda
