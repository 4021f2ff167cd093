#include "tensorflow_plugin/backends/gpu/call.h"

#include <algorithm>
#include <utility>

namespace xpu::gpu {
namespace {

constexpr uint32_t kNothing = UINT32_MAX;  // reported
constexpr size_t kUsualArguments = 24;

}  // namespace

Call::Call(Machine& machine, Queue& queue, const std::string& key, const std::function<std::string()>& source)
    : machine_(machine), queue_(queue) {
  launch_.arguments.reserve(kUsualArguments);
  status_ = machine.compiler().Get(key, source, &launch_.kernel);
  if (status_.ok()) group_ = std::min(kGroup, launch_.kernel->largest_group);
}

Call& Call::Table(const std::vector<int64_t>& numbers) {
  if (!status_.ok()) return *this;
  std::shared_ptr<const gpu::Table> table;
  status_ = machine_.FindTable(numbers, &table);
  Add(Argument::kTable).table = table.get();
  launch_.tables.push_back(std::move(table));
  return *this;
}

Call& Call::Report() {
  if (status_.ok()) status_ = queue_.NewReport(kNothing, &report_);
  Add(Argument::kReport).report = report_;
  return *this;
}

Status Call::Run(int64_t items) {
  const size_t groups[] = {(static_cast<size_t>(items) + group_ - 1) / group_, 1, 1};
  const size_t local[] = {group_, 1, 1};
  return RunGroups(groups, local);
}

Status Call::RunEach(int64_t things, int64_t each) {
  constexpr size_t kLeast = 64, kGroupsPerUnit = 4;
  const auto items = static_cast<size_t>((things + each - 1) / each);
  const size_t enough = kGroupsPerUnit * static_cast<size_t>(machine_.hardware().compute_units);
  size_t group = group_;
  while (group > kLeast && items < enough * group) group /= 2;
  const size_t groups[] = {(items + group - 1) / group, 1, 1}, local[] = {group, 1, 1};
  return RunGroups(groups, local);
}

Status Call::RunGroups(const size_t groups[3], const size_t local[3], std::shared_ptr<const CommandTime>* time) {
  XPU_RETURN_IF_ERROR(status_);
  std::copy_n(groups, 3, launch_.groups);
  std::copy_n(local, 3, launch_.local);
  return queue_.Run(launch_, time);
}

Status Call::RunChecked(int64_t items, const Args& args, Judge judge) {
  XPU_RETURN_IF_ERROR(Run(items));
  return Check(args, std::move(judge));
}

Status Call::Check(const Args& args, Judge judge) {
  if (args.status == nullptr) {
    return queue_.JudgeReport(report_, [judge = std::move(judge)](uint32_t number) {
      return number == kNothing ? OkStatus() : judge(number);
    });
  }
  const auto seen = [judge = std::move(judge), status = args.status](uint32_t number) {
    if (number != kNothing) *status = judge(number);
  };
  if (queue_.ReadReportLater(report_, seen)) return OkStatus();
  uint32_t number = kNothing;
  XPU_RETURN_IF_ERROR(queue_.ReadReport(report_, &number));
  seen(number);
  return OkStatus();
}

}  // namespace xpu::gpu
