#include "tensorflow_plugin/graph/wait_order.h"

#include <set>
#include <string>

#include "tensorflow_plugin/graph/may_wait.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

// Adds the bits of `from`; whether some are new.
bool Add(const std::vector<uint64_t>& from, std::vector<uint64_t>* to) {
  bool changed = false;
  for (size_t i = 0; i < from.size(); ++i) {
    const uint64_t all = (*to)[i] | from[i];
    changed = changed || all != (*to)[i];
    (*to)[i] = all;
  }
  return changed;
}

bool Has(const std::vector<uint64_t>& points, size_t point) { return (points[point / 64] >> (point % 64) & 1) != 0; }

}  // namespace

WaitOrder::WaitOrder(const tf::Graph& graph, const std::vector<tf::Node*>& order,
                     const std::vector<tf::ControlFlowInfo>& frames)
    : order_(order), frames_(frames), cut_(graph.num_node_ids(), false) {
  FindPoints(graph);
  if (points_.empty()) return;
  const std::vector<int> no_groups(graph.num_node_ids(), -1);
  before_ = Spread(/*forward=*/true, no_groups);
  after_ = Spread(/*forward=*/false, no_groups);
}

void WaitOrder::FindPoints(const tf::Graph& graph) {
  MayWait may_wait(graph.flib_def());
  std::set<std::string> frames;  // that hold an op that may wait, or whose inner loops do
  for (const tf::Node* node : order_) {
    if (!may_wait(*node)) continue;
    points_.push_back(node->id());
    for (const tf::Node* frame = frames_[node->id()].frame; frame != nullptr && frame->IsEnter();
         frame = frames_[frame->id()].parent_frame) {
      frames.insert(frames_[frame->id()].frame_name);
    }
  }
  if (points_.size() < 2) {  // nobody to wait for
    points_.clear();
    return;
  }
  for (const tf::Node* node : order_) {
    if (frames.count(frames_[node->id()].frame_name) == 0) continue;
    bool begins = false;
    for (const tf::Edge* e : node->in_edges()) begins = begins || (node->IsMerge() && e->src()->IsNextIteration());
    if (begins || node->IsNextIteration()) points_.push_back(node->id());
    cut_[node->id()] = node->IsNextIteration();
  }
}

bool WaitOrder::IsBackEdge(const tf::Edge& e) const { return cut_[e.src()->id()]; }

std::vector<WaitOrder::Points> WaitOrder::Spread(bool forward, const std::vector<int>& group_of) const {
  const Points none((points_.size() + 63) / 64, 0);
  std::vector<Points> of_node(group_of.size(), none);
  std::vector<Points> of_group;
  for (int group : group_of) {
    if (group >= static_cast<int>(of_group.size())) of_group.resize(group + 1, none);
  }
  for (size_t i = 0; i < points_.size(); ++i) of_node[points_[i]][i / 64] |= uint64_t{1} << (i % 64);
  // Loops and groups lead back in the order: the second round and later ones are for them.
  for (bool changed = true; changed;) {
    changed = false;
    const auto visit = [&](const tf::Node& node) {
      Points& mine = of_node[node.id()];
      for (const tf::Edge* e : forward ? node.in_edges() : node.out_edges()) {
        const tf::Node& other = forward ? *e->src() : *e->dst();
        if (other.IsOp() && !IsBackEdge(*e)) changed = Add(of_node[other.id()], &mine) || changed;
      }
      if (group_of[node.id()] < 0) return;
      Points& all = of_group[group_of[node.id()]];
      changed = Add(mine, &all) || changed;
      changed = Add(all, &mine) || changed;
    };
    if (forward) {
      for (auto node = order_.begin(); node != order_.end(); ++node) visit(**node);
    } else {
      for (auto node = order_.rbegin(); node != order_.rend(); ++node) visit(**node);
    }
  }
  return of_node;
}

std::vector<int> WaitOrder::PointsThatDelayOthers(const std::vector<int>& group_of) const {
  std::vector<int> delaying;
  if (points_.empty()) return delaying;
  const std::vector<Points> before = Spread(/*forward=*/true, group_of);
  Points found((points_.size() + 63) / 64, 0);
  for (int point : points_) {
    for (size_t i = 0; i < found.size(); ++i) found[i] |= before[point][i] & ~before_[point][i];
  }
  for (size_t i = 0; i < points_.size(); ++i) {
    if (Has(found, i)) delaying.push_back(static_cast<int>(i));
  }
  return delaying;
}

bool WaitOrder::IsTotal() const {
  for (size_t i = 0; i < points_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!Has(after_[points_[i]], j) && !Has(after_[points_[j]], i)) return false;
    }
  }
  return true;
}

bool WaitOrder::IsNeededBefore(const tf::Node& node, int point) const {
  const Points &of_node = after_[node.id()], &of_point = after_[points_[point]];
  for (size_t i = 0; i < of_node.size(); ++i) {
    if ((of_node[i] & ~of_point[i]) != 0) return true;
  }
  return false;
}

}  // namespace xpu::graph
