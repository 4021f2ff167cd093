#include "tensorflow_plugin/cluster/optimize_capture.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/commands/hoist.h"
#include "tensorflow_plugin/commands/memory_plan.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

std::vector<std::string>& PassesLeftOut() {
  static auto* names = new std::vector<std::string>;
  return *names;
}

bool IsLeftOut(const char* pass) {
  return std::find(PassesLeftOut().begin(), PassesLeftOut().end(), pass) != PassesLeftOut().end();
}

// Another capture, for hoisting, is worth its cost if this many bytes need not be read in each run. A list that trains
// a network takes long, and its variables seldom stay.
constexpr int64_t kBytesWorthHoisting = 1 << 10, kBytesWorthHoistingInTraining = 1 << 15;

class CaptureOptimizer {
 public:
  CaptureOptimizer(const Invocation& invocation, Device& device, bool is_of_loop, Capturing how, Captured* captured)
      : invocation_(invocation), device_(device), is_of_loop_(is_of_loop), how_(how), captured_(*captured) {}

  void Run(const std::function<std::vector<char>(const void* address)>& constant_at, CommandList given) {
    commands::FindSafeDivisions([&](int buffer) { return constant_at(given.buffers[buffer].address); }, &given);
    const std::vector<bool> invariant = InvariantBuffers(given);
    auto list = std::make_shared<CommandList>(std::move(given));
    if (is_of_loop_) {
      // These change the order of sums.
      std::vector<std::string> left_out = PassesLeftOut();
      left_out.insert(left_out.end(), {"FoldMatMulBatch", "BatchMatMuls", "ShareBatch"});
      commands::Optimize(device_.capabilities(), left_out, list.get());
    } else if (how_ == Capturing::kInOneList) {
      std::vector<bool> useful;
      captured_.may_hoist = !IsLeftOut("HoistInvariants") &&
                            commands::HoistableBytes(device_.capabilities(), *list, invariant, &useful) >=
                                (UpdatesVariables() ? kBytesWorthHoistingInTraining : kBytesWorthHoisting);
      if (captured_.may_hoist) captured_.invariant_variables = VariablesOf(useful);
      std::vector<std::string> left_out = PassesLeftOut();
      // Such a list runs a few times, or trains a network.
      if (captured_.may_hoist || UpdatesVariables()) left_out.emplace_back("ShareBatch");
      commands::Optimize(device_.capabilities(), left_out, list.get());
    } else {
      HoistInvariants(invariant, list.get());
    }
    if (!IsLeftOut("UpdateInPlace")) {
      FindDonatedArguments(list.get());
      AssignInPlace(list.get());
    }
    captured_.memory = commands::PlanMemory(*list);
    captured_.executable = device_.Prepare(list, captured_.memory);
    captured_.list = std::move(list);
  }

 private:
  // Finds arguments that other buffers begin as copies of.
  void FindDonatedArguments(CommandList* list) {
    std::vector<int> may_be_written;
    for (size_t i = 0; i < captured_.arguments.size(); ++i) {
      const int buffer = captured_.arguments[i];
      const auto is_argument = [&](const ResultValue& value) {
        return value.kind == ResultValue::Kind::kArgument && value.index == static_cast<int>(i);
      };
      bool is_needed = std::any_of(captured_.results.begin(), captured_.results.end(), is_argument);
      for (const VariableUpdate& update : captured_.variable_updates)
        is_needed = is_needed || is_argument(update.value);
      if (buffer != BufferSlice::kNowhere && !is_needed) may_be_written.push_back(buffer);
    }
    for (const auto& [given, replacement] : commands::UpdateInPlace(may_be_written, list)) {
      const auto found = std::find(captured_.arguments.begin(), captured_.arguments.end(), given);
      captured_.donated_arguments.push_back({static_cast<int>(found - captured_.arguments.begin()), replacement});
    }
  }

  // Turns assignments into updates in place where it can.
  void AssignInPlace(CommandList* list) {
    std::vector<commands::Assignment> assignments;
    std::vector<size_t> variables;
    for (size_t i = 0; i < captured_.variables.size(); ++i) {
      const VariableUpdate& update = captured_.variable_updates[i];
      const tf::Tensor& old_value = *invocation_.variables[i]->tensor();
      if (!update.assigned || update.written_in_place || update.value.kind != ResultValue::Kind::kBuffer ||
          captured_.variables[i] == BufferSlice::kNowhere) {
        continue;
      }
      if (update.value.shape != old_value.shape() || update.value.dtype != old_value.dtype()) continue;
      if (NumReferences(ResultValue::Kind::kBuffer, update.value.index) != 1) continue;
      if (NumReferences(ResultValue::Kind::kVariable, static_cast<int>(i)) != 0) continue;
      assignments.push_back({captured_.variables[i], update.value.index});
      variables.push_back(i);
    }
    const std::vector<bool> done = commands::AssignInPlace(assignments, list);
    for (size_t k = 0; k < done.size(); ++k) {
      if (!done[k]) continue;
      VariableUpdate& update = captured_.variable_updates[variables[k]];
      update.written_in_place = true;
      update.assigned = false;
      update.value.kind = ResultValue::Kind::kVariable;
      update.value.index = static_cast<int>(variables[k]);
    }
  }
  bool UpdatesVariables() const {
    return std::any_of(captured_.variable_updates.begin(), captured_.variable_updates.end(),
                       [](const VariableUpdate& update) { return update.assigned || update.written_in_place; });
  }
  // How many results and new values of variables are this one.
  int NumReferences(ResultValue::Kind kind, int index) const {
    const auto is_it = [&](const ResultValue& value) { return value.kind == kind && value.index == index; };
    int count = static_cast<int>(std::count_if(captured_.results.begin(), captured_.results.end(), is_it));
    for (const VariableUpdate& update : captured_.variable_updates) count += update.assigned && is_it(update.value);
    return count;
  }

  void HoistInvariants(const std::vector<bool>& invariant, CommandList* list) {
    auto first = std::make_shared<CommandList>();
    std::vector<std::string> left_out = PassesLeftOut();
    if (how_ != Capturing::kHoisted) left_out.emplace_back("MultiplyInBytes");
    if (how_ == Capturing::kHoistedAsFloats) left_out.emplace_back("ReadPackedWeights");
    commands::Optimize(device_.capabilities(), left_out, invariant, list, first.get());
    if (first->commands.empty()) return;
    HoistedList& hoisted = captured_.hoisted;
    std::vector<bool> read(first->buffers.size(), false);
    for (const Command& command : first->commands) {
      for (const BufferSlice& place : command.in) {
        if (place.buffer != BufferSlice::kNowhere) read[place.buffer] = true;
      }
    }
    hoisted.variables = VariablesOf(read);
    hoisted.results = first->live_out;
    hoisted.memory = commands::PlanMemory(*first);
    hoisted.executable = device_.Prepare(first, hoisted.memory);
    hoisted.list = std::move(first);
  }

  // The buffers that are the same in every run, if nobody writes the variables in between.
  std::vector<bool> InvariantBuffers(const CommandList& list) const {
    std::vector<bool> invariant(list.buffers.size(), false);
    for (size_t b = 0; b < invariant.size(); ++b) invariant[b] = list.buffers[b].kind == Buffer::Kind::kFixed;
    for (size_t i = 0; i < captured_.variables.size(); ++i) {
      const VariableUpdate& update = captured_.variable_updates[i];
      const int b = captured_.variables[i];
      if (b != BufferSlice::kNowhere && !update.written_in_place && !update.assigned) invariant[b] = true;
    }
    return invariant;
  }

  // The variables among these buffers.
  std::vector<int> VariablesOf(const std::vector<bool>& buffers) const {
    std::vector<int> variables;
    for (size_t i = 0; i < captured_.variables.size(); ++i) {
      const int b = captured_.variables[i];
      if (b != BufferSlice::kNowhere && buffers[b]) variables.push_back(static_cast<int>(i));
    }
    return variables;
  }

  const Invocation& invocation_;
  Device& device_;
  const bool is_of_loop_;
  const Capturing how_;
  Captured& captured_;
};

}  // namespace

void LeaveOutPasses(std::vector<std::string> names) { PassesLeftOut() = std::move(names); }

void OptimizeCapture(const Invocation& invocation, Device& device, bool is_of_loop, Capturing how,
                     const std::function<std::vector<char>(const void* address)>& constant_at, CommandList list,
                     Captured* captured) {
  CaptureOptimizer(invocation, device, is_of_loop, how, captured).Run(constant_at, std::move(list));
}

}  // namespace xpu::cluster
