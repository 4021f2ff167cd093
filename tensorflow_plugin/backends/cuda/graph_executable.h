// Command lists as CUDA graphs. The driver takes a microsecond for a small kernel of a graph, and three to enqueue one.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_GRAPH_EXECUTABLE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_GRAPH_EXECUTABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tensorflow_plugin/backends/cuda/host_checks.h"
#include "tensorflow_plugin/backends/cuda/queue.h"
#include "tensorflow_plugin/backends/gpu/traced_executable.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cuda {

// The stream that graphs are captured from, one for all lists of a device.
struct CaptureStream {
  std::mutex mutex;
  std::unique_ptr<Queue> queue;
};

// A graph that can be launched. Destroyed, it stays for the runs that were launched.
class Graph {
 public:
  explicit Graph(GraphExecHandle exec) : exec_(exec) {}
  ~Graph() { (void)Cu().GraphExecDestroy(exec_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  GraphExecHandle get() const { return exec_; }

 private:
  const GraphExecHandle exec_;
};

// Runs of commands that need nothing of the host become graphs; the other commands are enqueued one by one. Graphs have
// the addresses and the stream that they were captured for. They are captured when these come for the second time, and
// kept until as many others were used since. Commands on a buffer whose address is always another are in no graph.
// While a profiler listens all commands are enqueued one by one, so that it sees them.
class GraphExecutable final : public gpu::TracedExecutable {
 public:
  // Device and capture stream outlive it.
  GraphExecutable(Device& device, CaptureStream& capture, std::shared_ptr<const CommandList> list);

  // How many graphs there are, for tests.
  int NumGraphs() const;

 protected:
  Status RunCommands(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data,
                     int* failed) const override;

 private:
  // The number of the stream, what the program asks of products, and where the buffers on the device lie.
  using Key = std::vector<uint64_t>;
  struct Segment {
    size_t begin, end;  // of the list's commands
    bool is_graph;
  };
  using Graphs = std::vector<std::shared_ptr<const Graph>>;  // by segment; null: it has none
  struct KeptGraphs {
    std::shared_ptr<const Graphs> graphs;  // null: the key was seen once
    uint64_t used = 0;                     // greater than those of graphs that were used before
  };
  // How the commands are shared out.
  struct Plan {
    std::vector<Segment> segments;
    std::vector<size_t> keyed;  // the buffers that commands in graphs touch
    size_t num_in_graphs = 0;   // commands
    std::map<Key, KeptGraphs> kept;
    uint64_t uses = 0;
  };

  // `moves`: by buffer, true if commands on it are to be in no graph.
  std::shared_ptr<Plan> MakePlan(const std::vector<bool>& moves) const;
  static Key KeyOf(const Queue& queue, const Plan& plan, char* const* addresses);
  // The plan and the graphs of a run; no graphs if these addresses come for the first time.
  std::shared_ptr<const Graphs> FindGraphs(Queue& queue, char* const* addresses,
                                           std::shared_ptr<const Plan>* plan) const;
  // Takes buffers out of graphs whose addresses have been others in several runs on end.
  void LeaveOutMovingBuffers(const Queue& queue, char* const* addresses) const;

  Status RunSegments(Queue& queue, char* const* addresses, int* failed) const;
  Status RunOne(Queue& queue, size_t i, char* const* addresses, int* failed) const;
  // Commands that may fail and write nothing: with one wait for all of them.
  Status RunChecks(Queue& queue, size_t begin, size_t end, char* const* addresses, int* failed) const;
  Status RunOneByOne(Queue& queue, size_t begin, size_t end, char* const* addresses, int* failed) const;
  // Null: the commands cannot be captured.
  std::shared_ptr<const Graph> Capture(Queue& queue, const Segment& segment, char* const* addresses) const;

  CaptureStream& capture_;
  const std::shared_ptr<const CommandList> list_;
  bool copies_to_host_ = false;
  std::vector<std::vector<size_t>> touched_;  // by command: its buffers

  const HostChecks checks_;

  mutable std::mutex mutex_;              // of all below
  mutable std::shared_ptr<Plan> plan_;    // null before the first run
  mutable bool looks_for_moving_ = true;  // false: without moving buffers too few commands would be in graphs
  mutable uint64_t last_queue_ = 0;
  mutable std::deque<std::vector<char*>> last_addresses_;  // of runs without graphs
  mutable std::vector<uint8_t> changes_;                   // by buffer: runs on end with a new address
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_GRAPH_EXECUTABLE_H_
