#include "tensorflow_plugin/primitives/list.h"

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

}  // namespace

std::string ToString(const Command& command) {
  const std::string name = std::visit([](const auto& desc) { return NameOf(desc); }, command.desc);
  return name + "  " + ToString(command.in) + " -> " + ToString(command.out) + (command.may_fail() ? ", or fails" : "");
}

IndexOperand IndicesOf(const Command& command) {
  if (const auto* gather = std::get_if<GatherDesc>(&command.desc)) return {1, gather->index_type};
  if (const auto* scatter = std::get_if<ScatterDesc>(&command.desc)) return {0, scatter->index_type};
  return {};
}

const Dims& DimsOfIndices(const Command& command) {
  const auto* gather = std::get_if<GatherDesc>(&command.desc);
  return gather != nullptr ? gather->dims : std::get<ScatterDesc>(command.desc).dims;
}

}  // namespace xpu::commands
