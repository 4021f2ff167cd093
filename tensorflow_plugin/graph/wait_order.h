// Keeps the order among the ops of a graph that may wait for each other.
//
// An op that may wait for another one of the same step hangs for ever if that other op comes to depend on it. A cluster
// starts when all its inputs are there, and so it adds dependencies: each member's inputs come before all that read
// from any member. Clusters are safe if they add no path from one op that may wait to another.
#ifndef TENSORFLOW_PLUGIN_GRAPH_WAIT_ORDER_H_
#define TENSORFLOW_PLUGIN_GRAPH_WAIT_ORDER_H_

#include <cstdint>
#include <vector>

#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

class WaitOrder {
 public:
  // `order`: the ops of the graph, sources before their readers but for the ends of iterations. `frames`: by node id.
  // All of them live longer.
  WaitOrder(const tensorflow::Graph& graph, const std::vector<tensorflow::Node*>& order,
            const std::vector<tensorflow::ControlFlowInfo>& frames);

  // False if no op of the graph has another one to wait for. Then no group delays anything, in a changed graph either.
  // Otherwise the graph must be as it was when this was made.
  bool HasPoints() const { return !points_.empty(); }

  // The points that lead to others once each group is one op, though they do not in the graph. A point is an op that
  // may wait, or the beginning or end of an iteration of a loop with such an op.
  // `group_of`: by node id; -1 for nodes that stay as they are.
  std::vector<int> PointsThatDelayOthers(const std::vector<int>& group_of) const;

  // True if of any two points one leads to the other, so that the ops can run one after the other on one thread.
  bool IsTotal() const;

  // True if a node leads to a point that the given point does not lead to. Where each group agrees about a point, that
  // point delays no other. All nodes on a new path from the point would lead to such a point. The first of them does
  // not, as the point leads to it.
  bool IsNeededBefore(const tensorflow::Node& node, int point) const;

 private:
  // A set of points, one bit each.
  using Points = std::vector<uint64_t>;

  bool IsBackEdge(const tensorflow::Edge& e) const;
  void FindPoints(const tensorflow::Graph& graph);
  // By node id, the points that lead to a node, itself included, or those that it leads to.
  std::vector<Points> Spread(bool forward, const std::vector<int>& group_of) const;

  const std::vector<tensorflow::Node*>& order_;
  const std::vector<tensorflow::ControlFlowInfo>& frames_;
  std::vector<bool> cut_;    // by node id: the end of an iteration that is a point, and so is the next beginning
  std::vector<int> points_;  // node ids
  std::vector<Points> before_, after_;
};

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_WAIT_ORDER_H_
