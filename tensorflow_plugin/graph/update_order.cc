#include "tensorflow_plugin/graph/update_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

using Output = std::pair<const tf::Node*, int>;

class UpdateOrder {
 public:
  explicit UpdateOrder(const std::vector<tf::Node*>& members)
      : members_(members), waits_(members.size()), readers_(members.size()), awaited_(members.size(), 0) {
    for (size_t i = 0; i < members.size(); ++i) numbers_[members[i]] = static_cast<int>(i);
  }

  std::vector<tf::Node*> Run() {
    AddVariables();
    if (updates_after_.empty()) return members_;
    for (size_t i = 0; i < members_.size(); ++i) AddSources(static_cast<int>(i), *members_[i]);
    // The members that could run, in their old order, and the updates among them that had better wait.
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    std::set<int> held;
    const auto make_ready = [&](int i) {
      if (readers_[static_cast<size_t>(i)] > 0) {
        held.insert(i);
      } else {
        ready.push(i);
      }
    };
    for (size_t i = 0; i < members_.size(); ++i) {
      if (awaited_[i] == 0) make_ready(static_cast<int>(i));
    }
    std::vector<tf::Node*> order;
    while (!ready.empty() || !held.empty()) {
      if (ready.empty()) {  // the members that read the value depend on its update
        ready.push(*held.begin());
        held.erase(held.begin());
      }
      const int i = ready.top();
      ready.pop();
      order.push_back(members_[static_cast<size_t>(i)]);
      for (int update : updates_after_[i]) {
        if (--readers_[static_cast<size_t>(update)] == 0 && held.erase(update) != 0) ready.push(update);
      }
      for (int next : waits_[static_cast<size_t>(i)]) {
        if (--awaited_[static_cast<size_t>(next)] == 0) make_ready(next);
      }
    }
    return order;
  }

 private:
  void AddEdge(int from, int to) {
    waits_[static_cast<size_t>(from)].push_back(to);
    ++awaited_[static_cast<size_t>(to)];
  }

  // Members before it, also those that lead to it by constants, which are members of no cluster.
  void AddSources(int i, const tf::Node& node) {
    for (const tf::Edge* e : node.in_edges()) {
      const auto member = numbers_.find(e->src());
      if (member != numbers_.end()) {
        if (member->second < i) AddEdge(member->second, i);  // else it is of the iteration before
      } else if (e->src()->IsConstant()) {
        AddSources(i, *e->src());
      }
    }
  }

  // Notes which members have to run before which updates, and keeps those of one variable in order.
  void AddVariables() {
    std::map<Output, int> last;                      // by handle: the last member that has it
    std::map<Output, std::vector<int>> uses_before;  // the members that use the variable's present value
    for (size_t n = 0; n < members_.size(); ++n) {
      const int i = static_cast<int>(n);
      const tf::Node& node = *members_[n];
      const bool reads = TraitsOf(node.type_string()).Has(OpTrait::kOnlyReads);
      for (const tf::Edge* e : node.in_edges()) {
        if (e->IsControlEdge() || node.input_type(e->dst_input()) != tf::DT_RESOURCE) continue;
        const Output handle(e->src(), e->src_output());
        const auto [before, is_first] = last.emplace(handle, i);
        if (!is_first && before->second != i) AddEdge(before->second, i);
        before->second = i;
        std::vector<int>& uses = uses_before[handle];
        if (!reads) {
          AddUpdate(i, &uses);
        } else if (node.type_string() == "ReadVariableOp") {
          for (const tf::Edge* use : node.out_edges()) {
            const auto user = use->IsControlEdge() ? numbers_.end() : numbers_.find(use->dst());
            if (user != numbers_.end()) uses.push_back(user->second);
          }
        }
      }
    }
  }

  void AddUpdate(int update, std::vector<int>* uses) {
    std::sort(uses->begin(), uses->end());
    uses->erase(std::unique(uses->begin(), uses->end()), uses->end());
    for (int user : *uses) {
      if (user == update) continue;
      updates_after_[user].push_back(update);
      ++readers_[static_cast<size_t>(update)];
    }
    uses->clear();
  }

  const std::vector<tf::Node*>& members_;
  std::map<const tf::Node*, int> numbers_;
  // By member.
  std::vector<std::vector<int>> waits_;            // those that come after it
  std::vector<int> readers_;                       // of an update: how many members use the value before
  std::vector<int> awaited_;                       // how many have to come before
  std::map<int, std::vector<int>> updates_after_;  // by user of a value
};

}  // namespace

std::vector<tf::Node*> WithUpdatesLate(const std::vector<tf::Node*>& members) { return UpdateOrder(members).Run(); }

}  // namespace xpu::graph
