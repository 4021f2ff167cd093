#include "tensorflow_plugin/commands/list.h"

#include <type_traits>

#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

std::string ToString(const Place& place) {
  if (place.buffer == Place::kNowhere) return "null";
  std::string text = "b" + std::to_string(place.buffer);
  if (place.offset != 0) text += "+" + std::to_string(place.offset);
  return text;
}

std::string ToString(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) text += (text.empty() ? "" : ", ") + ToString(place);
  return text;
}

std::string NameOf(const CopyBytes& d) { return "copy of " + std::to_string(d.bytes) + " bytes"; }
std::string NameOf(const FillBytes& d) { return "fill of " + std::to_string(d.bytes) + " bytes"; }
std::string NameOf(const FillWords& d) { return "fill of " + std::to_string(d.bytes) + " bytes"; }
std::string NameOf(const Upload& d) { return "upload of " + std::to_string(d.bytes->size()) + " bytes"; }
std::string NameOf(const ElementwiseDesc& d) {
  return "Elementwise " + d.shape.ToString() + " {" + d.program->ToString() + "}";
}
template <typename Desc>
std::string NameOf(const Desc& d) {
  return Name(d);
}

char* At(const Place& place, char* const* addresses) {
  return place.buffer == Place::kNowhere ? nullptr : addresses[place.buffer] + place.offset;
}

struct Enqueuer {
  Device& device;
  Stream& stream;
  const Command& command;
  char* const* addresses;

  char* in(int i) const { return At(command.in[i], addresses); }
  char* out(int i) const { return At(command.out[i], addresses); }

  Status operator()(const CopyBytes& d) const { return stream.CopyDeviceToDevice(out(0), in(0), d.bytes); }
  Status operator()(const FillBytes& d) const { return stream.Memset(out(0), d.value, d.bytes); }
  Status operator()(const FillWords& d) const { return stream.MemsetU32(out(0), d.value, d.bytes); }
  Status operator()(const Upload& d) const { return stream.CopyHostToDevice(out(0), d.bytes->data(), d.bytes->size()); }
  template <typename Desc>
  Status operator()(const Desc& d) const {
    Args args;
    for (size_t i = 0; i < command.in.size(); ++i) args.in[i] = in(i);
    for (size_t i = 0; i < command.out.size(); ++i) args.out[i] = out(i);
    args.workspace = At(command.workspace, addresses);
    return device.Enqueue(stream, d, args, command.footprint);
  }
};

}  // namespace

std::string ToString(const Command& command) {
  const std::string name = std::visit([](const auto& desc) { return NameOf(desc); }, command.desc);
  return name + "  " + ToString(command.in) + " -> " + ToString(command.out);
}

Status Replay(Device& device, Stream& stream, const List& list, char* const* addresses, int* origin) {
  for (const Command& command : list.commands) {
    const Status status = std::visit(Enqueuer{device, stream, command, addresses}, command.desc);
    if (__builtin_expect(!status.ok(), 0)) {
      *origin = command.origin;
      return status;
    }
  }
  return OkStatus();
}

}  // namespace xpu::commands
