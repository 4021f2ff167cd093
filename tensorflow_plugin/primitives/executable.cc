#include <utility>

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {
namespace {

using commands::Command;
using commands::List;

struct Enqueuer {
  Device& device;
  Stream& stream;
  const Command& command;
  char* const* addresses;

  char* in(int i) const { return command.in[i].In(addresses); }
  char* out(int i) const { return command.out[i].In(addresses); }

  Status operator()(const commands::CopyBytes& d) const { return stream.CopyDeviceToDevice(out(0), in(0), d.bytes); }
  Status operator()(const commands::FillBytes& d) const { return stream.Memset(out(0), d.value, d.bytes); }
  Status operator()(const commands::FillWords& d) const { return stream.MemsetU32(out(0), d.value, d.bytes); }
  Status operator()(const commands::Upload& d) const {
    return stream.CopyHostToDevice(out(0), d.bytes->data(), d.bytes->size());
  }
  template <typename Desc>
  Status operator()(const Desc& d) const {
    Args args;
    for (size_t i = 0; i < command.in.size(); ++i) args.in[i] = in(i);
    for (size_t i = 0; i < command.out.size(); ++i) args.out[i] = out(i);
    args.workspace = command.workspace.In(addresses);
    return device.Enqueue(stream, d, args, command.footprint);
  }
};

class OneByOne final : public Executable {
 public:
  OneByOne(Device& device, std::shared_ptr<const List> list) : device_(device), list_(std::move(list)) {
    for (const Command& command : list_->commands) {
      has_uploads_ = has_uploads_ || std::holds_alternative<commands::Upload>(command.desc);
    }
  }

  Status Run(Stream& stream, char* const* addresses, int* origin) const override {
    Status status;
    for (const Command& command : list_->commands) {
      status = std::visit(Enqueuer{device_, stream, command, addresses}, command.desc);
      if (status.ok()) continue;
      *origin = command.origin;
      break;
    }
    if (has_uploads_) stream.HostCallback([list = list_] { return OkStatus(); });
    return status;
  }

 private:
  Device& device_;
  const std::shared_ptr<const List> list_;
  bool has_uploads_ = false;
};

}  // namespace

std::unique_ptr<Executable> Device::Prepare(std::shared_ptr<const List> list, const commands::MemoryPlan&) {
  return std::make_unique<OneByOne>(*this, std::move(list));
}

}  // namespace xpu
