#include "tensorflow_plugin/backends/gpu/traced_executable.h"

#include <optional>
#include <utility>
#include <vector>

namespace xpu::gpu {

Status TracedExecutable::Run(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data,
                             int* failed) const {
  if (!trace::On()) return RunCommands(stream, addresses, std::move(host_data), failed);
  trace::ScopedListLabels::Labels labels = trace::ScopedListLabels::Current(list().commands.size());
  if (labels == nullptr) labels = std::make_shared<const std::vector<trace::Label>>(trace::LabelsOf(list()));
  const trace::ScopedListLabels current(std::move(labels));
  const TracedCommand whole(static_cast<Queue&>(stream).trace(), trace::Kind::kList, "cluster");
  return RunCommands(stream, addresses, std::move(host_data), failed);
}

Status TracedExecutable::Enqueue(Stream& stream, size_t i, char* const* addresses, Status* on_data) const {
  const trace::ListOps::Ops ops = trace::ListOps::Current();
  std::optional<trace::ScopedOp> op;
  if (ops != nullptr) {
    const trace::ListOps::Names& names = (*ops)[static_cast<size_t>(list().commands[i].origin)];
    op.emplace(names.name, names.type);
  }
  const trace::ScopedListLabels::Labels labels =
      trace::On() ? trace::ScopedListLabels::Current(list().commands.size()) : nullptr;
  if (labels == nullptr) return SequentialExecutable::Enqueue(stream, i, addresses, on_data);
  const TracedCommand command(static_cast<Queue&>(stream).trace(), [&] { return (*labels)[i]; });
  return SequentialExecutable::Enqueue(stream, i, addresses, on_data);
}

}  // namespace xpu::gpu
