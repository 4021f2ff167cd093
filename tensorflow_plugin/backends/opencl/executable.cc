#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/opencl/device.h"

namespace xpu::opencl {
namespace {

// Shows its commands to a profiler that listens. A driver's own lists (cl_khr_command_buffer) keep the places of their
// operands, which another run has elsewhere.
class TracedSequentialExecutable final : public SequentialExecutable {
 public:
  using SequentialExecutable::SequentialExecutable;

  Status Run(Stream& stream, char* const* addresses, std::shared_ptr<const void> kept, int* failed) const override {
    if (!trace::On()) return SequentialExecutable::Run(stream, addresses, std::move(kept), failed);
    trace::ScopedListLabels::Labels labels = trace::ScopedListLabels::Current(list().commands.size());
    if (labels == nullptr) labels = std::make_shared<const std::vector<trace::Label>>(trace::LabelsOf(list()));
    const trace::ScopedListLabels current(std::move(labels));
    const RecordedCommand whole(static_cast<Queue&>(stream), trace::Kind::kList, "cluster");
    return SequentialExecutable::Run(stream, addresses, std::move(kept), failed);
  }

 protected:
  Status Enqueue(Stream& stream, size_t i, char* const* addresses, Status* on_data) const override {
    const trace::ListOps::Ops ops = trace::ListOps::Current();
    std::optional<trace::ScopedOp> op;
    if (ops != nullptr) {
      const trace::ListOps::Names& names = (*ops)[static_cast<size_t>(list().commands[i].origin)];
      op.emplace(names.name, names.type);
    }
    const trace::ScopedListLabels::Labels labels =
        trace::On() ? trace::ScopedListLabels::Current(list().commands.size()) : nullptr;
    if (labels == nullptr) return SequentialExecutable::Enqueue(stream, i, addresses, on_data);
    const RecordedCommand command(static_cast<Queue&>(stream), [&] { return (*labels)[i]; });
    return SequentialExecutable::Enqueue(stream, i, addresses, on_data);
  }
};

}  // namespace

std::unique_ptr<Executable> OpenclDevice::Prepare(std::shared_ptr<const commands::List> list,
                                                  const commands::MemoryPlan&) {
  return std::make_unique<TracedSequentialExecutable>(*this, std::move(list));
}

}  // namespace xpu::opencl
