#include <utility>

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {
namespace {

struct Enqueuer {
  Device& device;
  Stream& stream;
  const Command& command;
  char* const* addresses;
  Status* status;  // of one that may fail

  char* in(int i) const { return command.in[i].In(addresses); }
  char* out(int i) const { return command.out[i].In(addresses); }

  Status operator()(const CopyBytes& d) const { return stream.CopyDeviceToDevice(out(0), in(0), d.bytes); }
  Status operator()(const FillBytes& d) const { return stream.Memset(out(0), d.value, d.bytes); }
  Status operator()(const FillWords& d) const { return stream.MemsetU32(out(0), d.value, d.bytes); }
  Status operator()(const CopyConstant& d) const {
    return stream.CopyHostToDevice(out(0), d.bytes->data(), d.bytes->size());
  }
  Status operator()(const CopyFromHost& d) const { return stream.CopyHostToDevice(out(0), in(0), d.bytes); }
  Status operator()(const CopyToHost& d) const { return stream.CopyDeviceToHost(out(0), in(0), d.bytes); }
  template <typename Desc>
  Status operator()(const Desc& d) const {
    Args args = ArgsOf(command, addresses);
    if (command.may_fail()) {
      args.status = status;
      args.explain = &command.explain;
    }
    return device.Enqueue(stream, d, args, command.footprint);
  }
};

}  // namespace

Args ArgsOf(const Command& command, char* const* addresses) {
  Args args;
  for (size_t i = 0; i < command.in.size(); ++i) args.in[i] = command.in[i].In(addresses);
  for (size_t i = 0; i < command.out.size(); ++i) args.out[i] = command.out[i].In(addresses);
  args.workspace = command.workspace.In(addresses);
  return args;
}

SequentialExecutable::SequentialExecutable(Device& device, std::shared_ptr<const CommandList> list)
    : device_(device), list_(std::move(list)) {
  for (const Command& command : list_->commands) {
    has_constants_ = has_constants_ || std::holds_alternative<CopyConstant>(command.desc);
    has_copies_to_host_ = has_copies_to_host_ || std::holds_alternative<CopyToHost>(command.desc);
  }
}

Status SequentialExecutable::Enqueue(Stream& stream, size_t i, char* const* addresses, Status* on_data) const {
  const Command& command = list_->commands[i];
  return std::visit(Enqueuer{device_, stream, command, addresses, on_data}, command.desc);
}

Status SequentialExecutable::Run(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data,
                                 int* failed) const {
  Status status;
  for (size_t i = 0; i < list_->commands.size(); ++i) {
    Status on_data;
    status = Enqueue(stream, i, addresses, &on_data);
    if (status.ok()) status = std::move(on_data);
    if (status.ok()) continue;
    *failed = static_cast<int>(i);
    break;
  }
  if (has_constants_) stream.HostCallback([list = list_] { return OkStatus(); });
  if (host_data != nullptr) stream.HostCallback([host_data = std::move(host_data)] { return OkStatus(); });
  if (has_copies_to_host_) stream.Wait();
  return status;
}

std::unique_ptr<Executable> Device::Prepare(std::shared_ptr<const CommandList> list, const MemoryPlan&) {
  return std::make_unique<SequentialExecutable>(*this, std::move(list));
}

}  // namespace xpu
