#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/opencl/device.h"

namespace xpu::opencl {
namespace {

// Shows its commands to a profiler that listens. A driver's own lists (cl_khr_command_buffer) keep the places of their
// operands, which another run has elsewhere.
class ShownOneByOne final : public OneByOne {
 public:
  using OneByOne::OneByOne;

  Status Run(Stream& stream, char* const* addresses, std::shared_ptr<const void> kept, int* failed) const override {
    if (!recording::On()) return OneByOne::Run(stream, addresses, std::move(kept), failed);
    recording::ListLabels::Labels labels = recording::ListLabels::Current(list().commands.size());
    if (labels == nullptr) labels = std::make_shared<const std::vector<recording::Label>>(recording::LabelsOf(list()));
    const recording::ListLabels current(std::move(labels));
    const RecordedCommand whole(static_cast<Queue&>(stream), recording::Kind::kList, "cluster");
    return OneByOne::Run(stream, addresses, std::move(kept), failed);
  }

 protected:
  Status Enqueue(Stream& stream, size_t i, char* const* addresses, Status* on_data) const override {
    const recording::ListOps::Ops ops = recording::ListOps::Current();
    std::optional<recording::Op> op;
    if (ops != nullptr) {
      const recording::ListOps::Names& names = (*ops)[static_cast<size_t>(list().commands[i].origin)];
      op.emplace(names.name, names.type);
    }
    const recording::ListLabels::Labels labels =
        recording::On() ? recording::ListLabels::Current(list().commands.size()) : nullptr;
    if (labels == nullptr) return OneByOne::Enqueue(stream, i, addresses, on_data);
    const RecordedCommand command(static_cast<Queue&>(stream), [&] { return (*labels)[i]; });
    return OneByOne::Enqueue(stream, i, addresses, on_data);
  }
};

}  // namespace

std::unique_ptr<Executable> OpenclDevice::Prepare(std::shared_ptr<const commands::List> list,
                                                  const commands::MemoryPlan&) {
  return std::make_unique<ShownOneByOne>(*this, std::move(list));
}

}  // namespace xpu::opencl
