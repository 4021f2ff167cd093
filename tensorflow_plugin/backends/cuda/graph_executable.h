// Command lists as CUDA graphs. The driver takes a microsecond for a small kernel of a graph, and three to enqueue one.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_GRAPH_EXECUTABLE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_GRAPH_EXECUTABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

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

// Runs of commands that need nothing of the host become graphs; the other commands are enqueued one by one. A graph has
// the addresses and the stream that it was captured for. It is captured when these come for the second time, and kept
// until as many others were used since. While a profiler listens all commands are enqueued one by one, so that it sees
// them.
class GraphExecutable final : public gpu::TracedExecutable {
 public:
  // Device and capture stream outlive it.
  GraphExecutable(Device& device, CaptureStream& capture, std::shared_ptr<const CommandList> list);

  // How many graphs there are, for tests.
  int NumGraphs() const;

 protected:
  Status RunCommands(Stream& stream, char* const* addresses, std::shared_ptr<const void> kept,
                     int* failed) const override;

 private:
  // The number of the stream, what the program asks of products, and where the buffers on the device lie.
  using Key = std::vector<uint64_t>;
  struct KeptGraph {
    std::shared_ptr<const Graph> graph;  // null: seen once
    uint64_t used = 0;                   // greater than those of graphs that were used before
  };
  struct Segment {
    size_t begin, end;  // of the list's commands
    bool is_graph;
    mutable std::map<Key, KeptGraph> graphs;
    mutable uint64_t uses = 0;
  };
  Key KeyOf(const Queue& queue, char* const* addresses) const;
  Status RunOne(Queue& queue, size_t i, char* const* addresses, int* failed) const;
  // Commands that may fail and write nothing: with one wait for all of them.
  Status RunChecks(Queue& queue, size_t begin, size_t end, char* const* addresses, int* failed) const;
  Status RunOneByOne(Queue& queue, const Segment& segment, char* const* addresses, int* failed) const;
  Status RunGraph(Queue& queue, const Segment& segment, const Key& key, char* const* addresses, int* failed) const;
  // The graph of these addresses, captured if they come for the second time; null: there is none.
  std::shared_ptr<const Graph> FindGraph(Queue& queue, const Segment& segment, const Key& key,
                                         char* const* addresses) const;
  // Null: the commands cannot be captured.
  std::shared_ptr<const Graph> Capture(Queue& queue, const Segment& segment, char* const* addresses) const;

  CaptureStream& capture_;
  std::vector<Segment> segments_;
  const std::shared_ptr<const CommandList> list_;
  bool has_constants_ = false, copies_to_host_ = false;
  mutable std::mutex mutex_;  // of the segments' graphs
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_GRAPH_EXECUTABLE_H_
