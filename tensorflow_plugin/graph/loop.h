// The nodes of one loop of a graph, and the op that can take their place.
#ifndef TENSORFLOW_PLUGIN_GRAPH_LOOP_H_
#define TENSORFLOW_PLUGIN_GRAPH_LOOP_H_

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {

// The nodes of one frame, read as a loop.
class Loop {
 public:
  // `nodes` are in an order that may run.
  Loop(tensorflow::Graph* graph, const std::string& device_type, const std::vector<tensorflow::Node*>& nodes)
      : graph_(*graph), device_type_(device_type), nodes_(nodes), inside_(nodes.begin(), nodes.end()) {}

  // False: there is something in it that one op could not do, which WhyNotOneOp then says in a line.
  bool Read();
  const std::string& WhyNotOneOp() const { return why_not_one_op_; }
  // Call this after Read. True if the op has to read its condition from the device before each iteration.
  bool IsReadFromDevice() const { return is_read_from_device_; }
  // True if an op of it copies a value between host and device that no capture knows.
  bool HasTransfer() const;

  // Call this without Read, before clusters are formed. True if ops need values in host memory that the device computes
  // and the host cannot count. They are copied in each iteration. The condition does not count.
  bool CopiesToHost();

  // `counted`: the Enters of all loops whose values the host has to know. True if there are more of them now.
  bool KeepCountersOutOfClusters(std::set<const tensorflow::Node*>* counted);

  // Puts the op in its place, which Read has found to be possible.
  absl::Status Replace();

 private:
  // For people: the reason why Read returns what this does.
  bool CannotBeOneOp(std::string why) {
    why_not_one_op_ = std::move(why);
    return false;
  }

  struct Variable {
    tensorflow::Node* enter = nullptr;
    tensorflow::Node* next = nullptr;  // the NextIteration
  };
  // A member of the op: a node, or its shadow.
  struct Member {
    const tensorflow::Node* node;
    bool is_shadow;
    bool operator<(const Member& o) const { return std::tie(node, is_shadow) < std::tie(o.node, o.is_shadow); }
  };

  bool ReadVariables();
  // True if a node reads a variable of 32-bit integers, which TensorFlow has on the CPU, or brings its handle to those
  // that do.
  static bool IsOfHostVariable(const tensorflow::Node& node);
  bool ReadMemory(const tensorflow::Node& node);
  bool Sort(tensorflow::Node* node);
  bool AddVariable(tensorflow::Node* merge);
  bool ReadSwitches();

  const tensorflow::Edge& ConditionEdge() const { return *InputsOf(*condition_)[0]; }
  bool IsOnDevice(const tensorflow::Edge& e) const;
  // True if an op of the loop needs a value in host memory that is the device's.
  bool IsReadOnHost(const tensorflow::Edge& e) const;

  // The condition may be the device's, by its types alone: of 64-bit integers and floating-point numbers. If all that
  // it depends on is counted by plain ops, the host counts along, so that no iteration has to ask the device. Each such
  // node has a shadow, which computes the same in host memory. If there is more to it, the condition is read from the
  // device. The same holds for other values that ops need in host memory, such as the bounds of a loop within.
  void FindShadows();
  // False if no plain ops lead to the value at an edge. Then there is nothing new.
  bool AddShadows(const tensorflow::Edge& root);
  // True if a node reads a number that stays as it is while the loop runs, for all that the graph says.
  bool ReadsVariable(const tensorflow::Node& node) const;
  // Which of what has a shadow the device needs all the same.
  void FindNeeded();
  bool IsOnlyShadow(const tensorflow::Node* node) const {
    return shadowed_.count(node) != 0 && needed_.count(node) == 0;
  }

  // Those that are no variable's hold the same in all iterations.
  bool ReadEnters();
  bool IsOnHost(const tensorflow::Node& node) const { return memory_.at(&node).outputs[0] == tensorflow::HOST_MEMORY; }
  bool NothingElseLeaves();
  // Otherwise TensorFlow would copy between host and device in every iteration.
  bool MemoryAgrees();
  // The value that a member reads at an edge.
  Member ReadBy(const Member& member, const tensorflow::Edge& e) const;
  // The ops that the condition depends on come first; they must not depend on the condition.
  bool NumberMembers();

  cluster::ValueRef SourceOf(const Member& reader, const tensorflow::Edge& e) const;
  void Describe(tensorflow::NodeDef* def);
  // Nothing need be copied from the device.
  absl::Status AddConstantOnHost(const tensorflow::Node& constant, tensorflow::Node** on_host);
  absl::Status Connect(tensorflow::Node* op);

  tensorflow::Graph& graph_;
  const std::string& device_type_;
  const std::vector<tensorflow::Node*>& nodes_;
  const std::set<const tensorflow::Node*> inside_;
  const std::set<const tensorflow::Node*>* counted_ = nullptr;
  std::string device_, why_not_one_op_;
  std::map<const tensorflow::Node*, MemoryTypes> memory_;
  std::vector<tensorflow::Node*> enters_, merges_, exits_, members_;
  tensorflow::Node* condition_ = nullptr;  // the LoopCond
  bool is_read_from_device_ = false;
  bool cannot_be_member_ = false;  // an op that it depends on may not be captured
  std::vector<Variable> variables_;
  std::map<const tensorflow::Node*, int> variable_of_, switched_;  // of merges, of switches: numbers of variables
  std::vector<tensorflow::Node*> host_, on_device_, resources_;    // arguments: their Enters
  std::map<const tensorflow::Node*, int> argument_of_;             // of Enters
  std::map<Member, int> number_of_;
  std::set<const tensorflow::Node*> needed_;         // of those below, by the device, too
  std::set<const tensorflow::Node*> shadowed_;       // whose values decide the condition, and which are the device's
  std::vector<tensorflow::Node*> shadows_;           // members among them
  std::vector<tensorflow::Node*> shadow_arguments_;  // and Enters
  std::map<const tensorflow::Node*, int> argument_of_shadow_;
  std::vector<Member> all_members_;
  int condition_members_ = 0;
};

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_LOOP_H_
