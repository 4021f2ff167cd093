#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu {
namespace {

std::string ToString(const BufferSlice& place) {
  if (place.buffer == BufferSlice::kNowhere) return "null";
  std::string text = "b" + std::to_string(place.buffer);
  if (place.offset != 0) text += "+" + std::to_string(place.offset);
  return text;
}

std::string ToString(const std::vector<BufferSlice>& places) {
  std::string text;
  for (const BufferSlice& place : places) text += (text.empty() ? "" : ", ") + ToString(place);
  return text;
}

std::string NameOf(const CopyBytes& d) { return "copy of " + std::to_string(d.bytes) + " bytes"; }
std::string NameOf(const FillBytes& d) { return "fill of " + std::to_string(d.bytes) + " bytes"; }
std::string NameOf(const FillWords& d) { return "fill of " + std::to_string(d.bytes) + " bytes"; }
std::string NameOf(const CopyConstant& d) { return "constant of " + std::to_string(d.bytes->size()) + " bytes"; }
std::string NameOf(const CopyFromHost& d) { return "copy of " + std::to_string(d.bytes) + " bytes from the host"; }
std::string NameOf(const CopyToHost& d) { return "copy of " + std::to_string(d.bytes) + " bytes to the host"; }
std::string TextOf(const ElementwiseDesc& d) { return d.shape.ToString() + " {" + d.program->ToString() + "}"; }
std::string NameOf(const ElementwiseDesc& d) { return "Elementwise " + TextOf(d); }
template <typename Desc>
std::string NameOfEpilogue(const Desc& d) {
  return HasEpilogue(d) ? " " + TextOf(d.epilogue) : "";
}
std::string NameOf(const MatMulDesc& d) {
  const std::string batch = d.batch.empty() ? "" : " " + d.batch.ToString();
  return errors::Concat(Name(d), batch, " ", d.m, "x", d.k, d.transpose_a ? " turned" : "", " by ", d.k, "x", d.n,
                        d.transpose_b ? " turned" : "", NameOfEpilogue(d));
}
std::string NameOf(const WeightMatMulDesc& d) {
  return errors::Concat(Name(d), " ", d.m, "x", d.k, " by ", d.k, "x", d.n, NameOfEpilogue(d));
}
std::string NameOf(const ConvolutionDesc& d) {
  std::string filter, output;
  for (int i = 0; i < d.spatial_rank; ++i) {
    filter += std::to_string(d.filter[i]) + "x", output += "x" + std::to_string(d.output[i]);
  }
  return errors::Concat(Name(d), " ", filter, d.in_channels, "x", d.out_channels, " to ", d.batch, output,
                        NameOfEpilogue(d));
}
template <typename Desc>
std::string NameOf(const Desc& d) {
  return Name(d);
}

// From any address, both ways.
constexpr ByteRange kAll{INT64_MIN / 2, INT64_MAX / 2};

ByteRange Bytes(const BufferSlice& place, size_t bytes) {
  return {place.offset, place.offset + static_cast<int64_t>(bytes)};
}
ByteRange Bytes(const BufferSlice& place, const Operand& operand) {
  return {place.offset + operand.begin, place.offset + operand.end};
}

// For commands that are no primitives.
ByteRange RangeOf(const Command& command, const BufferSlice& place) {
  if (const auto* copy = std::get_if<CopyBytes>(&command.desc)) return Bytes(place, copy->bytes);
  if (const auto* fill = std::get_if<FillBytes>(&command.desc)) return Bytes(place, fill->bytes);
  if (const auto* fill = std::get_if<FillWords>(&command.desc)) return Bytes(place, fill->bytes);
  if (const auto* constant = std::get_if<CopyConstant>(&command.desc)) return Bytes(place, constant->bytes->size());
  if (const auto* copy = std::get_if<CopyFromHost>(&command.desc)) return Bytes(place, copy->bytes);
  if (const auto* copy = std::get_if<CopyToHost>(&command.desc)) return Bytes(place, copy->bytes);
  return kAll;
}

}  // namespace

std::string ToString(const Command& command) {
  const std::string name = std::visit([](const auto& desc) { return NameOf(desc); }, command.desc);
  return name + "  " + ToString(command.in) + " -> " + ToString(command.out) +
         (command.may_fail() ? ", or fails" : "") +
         (command.strand == Command::kNoStrand ? "" : ", strand " + std::to_string(command.strand));
}

bool WritesInput(const CommandList& list, const Command& command) {
  return std::any_of(command.out.begin(), command.out.end(), [&list](const BufferSlice& place) {
    return place.buffer != BufferSlice::kNowhere && list.buffers[place.buffer].kind != Buffer::Kind::kComputed;
  });
}

int EndOfStrands(const CommandList& list, int begin) {
  const int count = static_cast<int>(list.commands.size());
  int end = begin + 1;
  if (list.commands[begin].strand == Command::kNoStrand) return end;
  while (end < count && list.commands[end].strand >= list.commands[end - 1].strand) ++end;
  return end;
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

bool SucceedsWithinRange(const Command& command) {
  const IndexOperand indices = IndicesOf(command);
  if (indices.input < 0 || command.in[indices.input].buffer == BufferSlice::kNowhere) return false;
  const auto* scatter = std::get_if<ScatterDesc>(&command.desc);
  return scatter == nullptr || !(scatter->kind == ScatterKind::kDiv && IsInteger(scatter->type));
}

ByteRange RangeOfInput(const Command& command, size_t k) {
  return static_cast<int>(k) < command.footprint.num_in ? Bytes(command.in[k], command.footprint.in[k])
                                                        : RangeOf(command, command.in[k]);
}

ByteRange RangeOfOutput(const Command& command, size_t k) {
  return static_cast<int>(k) < command.footprint.num_out ? Bytes(command.out[k], command.footprint.out[k])
                                                         : RangeOf(command, command.out[k]);
}

}  // namespace xpu
