#include "tensorflow_plugin/cluster/variable_uses.h"

#include <algorithm>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/host_variable_op.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::cluster {

namespace tf = tensorflow;

namespace {

std::vector<VariableUses> UsesByMembers(const tf::NodeDef& op) {
  const auto count = [&](const char* attribute) {
    const auto types = op.attr().find(attribute);
    return types == op.attr().end() ? 0 : types->second.list().type_size();
  };
  const int first = count(attr::kHost) + count(attr::kUploaded) + count(attr::kDevice);
  std::vector<VariableUses> uses(op.attr().at(attr::kResources).i());
  tf::GraphDef graph;
  if (uses.empty() || !graph.ParseFromString(op.attr().at(attr::kMembers).s())) return uses;
  for (const tf::NodeDef& node : graph.node()) {
    std::vector<int> variables;
    for (const std::string& input : node.input()) {
      ValueRef source;
      const bool is_argument = ParseValueRef(input, &source).ok() && source.member == ValueRef::kArgument;
      variables.push_back(is_argument ? source.index - first : -1);
    }
    AddUses(node, variables, &uses);
  }
  return uses;
}

}  // namespace

void AddUses(const tf::NodeDef& member, const std::vector<int>& variables, std::vector<VariableUses>* uses) {
  if (std::all_of(variables.begin(), variables.end(), [](int v) { return v < 0; })) return;
  const bool has_members = member.op() == kLoopOp || member.op() == kOp;
  const std::vector<VariableUses> of_members = has_members ? UsesByMembers(member) : std::vector<VariableUses>();
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i] < 0) continue;
    VariableUses& use = (*uses)[variables[i]];
    if (has_members) {  // variables are the last arguments
      const VariableUses& within = of_members[of_members.size() - (variables.size() - i)];
      use.is_written = use.is_written || within.is_written;
      use.is_read_on_host = use.is_read_on_host || within.is_read_on_host;
    } else {
      use.is_written = use.is_written || !TraitsOf(member.op()).Has(OpTrait::kOnlyReads);
      use.is_read_on_host = use.is_read_on_host || member.op() == kHostVariableOp;
    }
  }
}

}  // namespace xpu::cluster
