// The members of a loop, divided by what they depend on, so that blocks of iterations can be captured (loop_blocks.h).
#ifndef TENSORFLOW_PLUGIN_CLUSTER_LOOP_PARTS_H_
#define TENSORFLOW_PLUGIN_CLUSTER_LOOP_PARTS_H_

#include <map>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/cluster/number_program.h"
#include "tensorflow_plugin/cluster/variable_uses.h"

namespace xpu::cluster {

// An iteration is: what the host counts, the members `before`, the body, the members `after`. The commands of the body
// are the same in each iteration.
struct LoopParts {
  // False if the loop has no such parts. `arguments`: the types of the loop op's (loop_op.h), `num_host` of them in
  // host memory, then those on the device, then `num_resources` variables.
  bool Read(const Members& members, const std::vector<int>& loop_variables, int condition_members,
            const tensorflow::DataTypeVector& arguments, int num_host, int num_resources);

  int num_host = 0, num_resources = 0, num_arguments = 0;
  int first_resource() const { return num_arguments - num_resources; }

  // Loop variables, by argument: in host memory, on the device, and lists that members append to.
  std::vector<int> host_variables, device_variables, lists;
  // It computes the condition and the next host variables, then `numbers`, then the rows' indices, which are integers.
  NumberProgram counting;
  // Members that need the count in host memory and nothing that the body computes, such as those that read element i of
  // a list.
  Members before;
  // The values that the body gets from there. x[i] needs no member: it is a part of x.
  struct Element {
    int row_of;  // the argument x; -1 of the next result of `before`
    int number;  // of x[i], the place of i among the numbers that `counting` computes
  };
  std::vector<Element> elements;
  // Its results are the next device variables, then values for `after`. Its arguments are the loop's, then numbers,
  // then elements.
  Members body;
  // Members that put values into lists. Their results are the next lists. Their arguments are the loop's, then values
  // of the body.
  Members after;
  std::vector<tensorflow::DataType> numbers, indices;
  int num_rows = 0, num_values = 0;
  std::vector<int> read_on_host;  // arguments in host memory that the body's commands depend on
  // Host variables, by their place among them, that the other parts read.
  std::vector<int> read_before, read_after;
  std::vector<VariableUses> uses;  // of variables by the body, by resource argument
  std::vector<bool> is_resource_used;

 private:
  // Dependence of values in host memory.
  enum class Depends {
    kOnNothing,  // but constants and shapes
    kOnArguments,
    kOnCount,  // it differs from iteration to iteration
  };
  using Given = std::map<std::pair<int, int>, int>;  // as in Members::Part

  Depends What(const ValueRef& value) const;
  ValueRef Origin(ValueRef value) const;
  bool SortVariables(const std::vector<int>& loop_variables, int condition_members);
  bool IsAppendedTo(int argument, const ValueRef& next, int condition_members);
  bool FindEffects(int condition_members);
  void FindDependence();
  // True for a member of `before` whose values others need.
  bool IsBefore(int member) const;
  // True if the value is row `index` of an argument that stays as it is.
  bool IsRow(const ValueRef& value, int* argument, ValueRef* index) const;
  // The value as an input of the body.
  ValueRef InBody(const ValueRef& value);
  bool ReadBody();
  bool ReadAfter();
  bool ReadCounting();
  bool ReadUses();
  std::vector<int> HostVariablesOf(const Members& part) const;

  const Members* members_ = nullptr;
  tensorflow::DataTypeVector types_;
  std::vector<ValueRef> next_on_host_, next_on_device_, next_lists_;
  std::vector<std::pair<int, int>> pushed_;  // inputs of members: the values that go into lists
  std::vector<int> effects_;
  std::vector<Depends> depends_;
  std::vector<bool> is_ahead_;  // members that need neither loop variables of the device nor variables
  std::vector<ValueRef> numbers_, elements_, rows_;
};

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_LOOP_PARTS_H_
