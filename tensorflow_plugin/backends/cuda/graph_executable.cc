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
// Sets of addresses of a segment. Behind them the one that was used least recently goes.
constexpr size_t kMostGraphs = 16;

bool NeedsHost(const Command& command) {
  return command.may_fail() || std::holds_alternative<CopyConstant>(command.desc) ||
         std::holds_alternative<CopyFromHost>(command.desc) || std::holds_alternative<CopyToHost>(command.desc);
}

// True if it may fail, and changes nothing. A list begins with such checks of its indices.
bool IsCheck(const Command& command) {
  return command.may_fail() && std::all_of(command.out.begin(), command.out.end(), [](const BufferSlice& place) {
           return place.buffer == BufferSlice::kNowhere;
         });
}

}  // namespace

GraphExecutable::GraphExecutable(Device& device, CaptureStream& capture, std::shared_ptr<const CommandList> list)
    : TracedExecutable(device, list), capture_(capture), list_(std::move(list)) {
  const std::vector<Command>& all = list_->commands;
  for (size_t i = 0; i < all.size(); ++i) {
    has_constants_ = has_constants_ || std::holds_alternative<CopyConstant>(all[i].desc);
    copies_to_host_ = copies_to_host_ || std::holds_alternative<CopyToHost>(all[i].desc);
    const bool is_graph = !NeedsHost(all[i]);
    if (segments_.empty() || segments_.back().is_graph != is_graph) segments_.push_back({i, i, is_graph, {}});
    segments_.back().end = i + 1;
  }
  for (Segment& segment : segments_) segment.is_graph &= segment.end - segment.begin >= kLeastCommands;
}

int GraphExecutable::NumGraphs() const {
  std::lock_guard<std::mutex> lock(mutex_);
  int count = 0;
  for (const Segment& segment : segments_) {
    for (const auto& [key, kept] : segment.graphs) count += kept.graph != nullptr;
  }
  return count;
}

GraphExecutable::Key GraphExecutable::KeyOf(const Queue& queue, char* const* addresses) const {
  const std::vector<Buffer>& buffers = list_->buffers;
  Key key = {queue.number(), AllowsTf32(), RequiresDeterminism()};
  key.reserve(key.size() + buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    key.push_back(buffers[i].kind == Buffer::Kind::kOnHost ? 0 : AddressOf(addresses[i]));
  }
  return key;
}

Status GraphExecutable::RunOne(Queue& queue, size_t i, char* const* addresses, int* failed) const {
  Status on_data;
  Status status = Enqueue(queue, i, addresses, &on_data);
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

Status GraphExecutable::RunOneByOne(Queue& queue, const Segment& segment, char* const* addresses, int* failed) const {
  const std::vector<Command>& all = list_->commands;
  for (size_t i = segment.begin; i < segment.end;) {
    size_t end = i;
    while (end < segment.end && end - i < ReportBatch::kMost && IsCheck(all[end])) ++end;
    if (end - i > 1) {
      XPU_RETURN_IF_ERROR(RunChecks(queue, i, end, addresses, failed));
      i = end;
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
  Status status = RunOneByOne(capture, segment, addresses, &failed);
  GraphHandle graph = nullptr;
  GraphExecHandle exec = nullptr;
  const bool captured = Cu().StreamEndCapture(capture.stream(), &graph) == kSuccess && graph != nullptr;
  if (status.ok()) status = capture.TakeStatus();
  if (captured && status.ok() && Cu().GraphInstantiate(&exec, graph, 0) != kSuccess) exec = nullptr;
  if (graph != nullptr) (void)Cu().GraphDestroy(graph);
  return exec == nullptr ? nullptr : std::make_shared<const Graph>(exec);
}

std::shared_ptr<const Graph> GraphExecutable::FindGraph(Queue& queue, const Segment& segment, const Key& key,
                                                        char* const* addresses) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::map<Key, KeptGraph>& graphs = segment.graphs;
  auto found = graphs.find(key);
  if (found == graphs.end()) {
    if (graphs.size() >= kMostGraphs) {
      graphs.erase(std::min_element(graphs.begin(), graphs.end(),
                                    [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
    }
    found = graphs.emplace(key, KeptGraph{}).first;
  } else if (found->second.graph == nullptr) {
    found->second.graph = Capture(queue, segment, addresses);
  }
  found->second.used = ++segment.uses;
  return found->second.graph;
}

Status GraphExecutable::RunGraph(Queue& queue, const Segment& segment, const Key& key, char* const* addresses,
                                 int* failed) const {
  std::shared_ptr<const Graph> graph = FindGraph(queue, segment, key, addresses);
  if (graph == nullptr) return RunOneByOne(queue, segment, addresses, failed);
  const Status status = queue.Submit([graph = std::move(graph), stream = queue.stream()] {
    return ToStatus(Cu().GraphLaunch(graph->get(), stream), "a graph of commands");
  });
  if (!status.ok()) *failed = static_cast<int>(segment.begin);
  return status;
}

Status GraphExecutable::RunCommands(Stream& stream, char* const* addresses, std::shared_ptr<const void> kept,
                                    int* failed) const {
  Queue& queue = static_cast<Queue&>(stream);
  XPU_RETURN_IF_ERROR(queue.Enter());
  const Key key = KeyOf(queue, addresses);
  const bool traced = trace::On();
  Status status;
  for (const Segment& segment : segments_) {
    status = segment.is_graph && !traced ? RunGraph(queue, segment, key, addresses, failed)
                                         : RunOneByOne(queue, segment, addresses, failed);
    if (!status.ok()) break;
  }
  if (has_constants_) queue.KeepUntilRun(list_);  // which has what they read
  if (kept != nullptr) queue.KeepUntilRun(std::move(kept));
  if (copies_to_host_) queue.Wait();
  return status;
}

}  // namespace xpu::cuda
