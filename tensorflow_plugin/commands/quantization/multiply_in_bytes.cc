// Has a convolution or a product multiply bytes where FakeQuant ops make both of its operands, as in networks that were
// trained for it:
//   FakeQuant of x, FakeQuant of the filter, Convolution of floats
// becomes
//   x to uint8, the filter to int8, Convolution of bytes, the sums to floats, times both scales.
// The range of a FakeQuant is a value of the device, and so are the scales and the zero points, which small programs
// compute. The filter's bytes are computed once, and so are the numbers of ranges. The pass leaves alone what changes.
//
// Bytes stand for finite numbers. Conditions, which run once, look whether ranges and weights are finite. Activations
// are finite if the values are that they are computed of (finite_values.h). So most networks need one condition that
// runs each time. It reads the network's input.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/hoist.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/quantization/finite_values.h"
#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/quantize_programs.h"

namespace xpu::commands {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// An elementwise command that is a FakeQuant of at most 8 bits.
struct FakeQuant {
  int command = -1, range = -1;  // the command that computes the rows
  bool divides = false;
  int64_t ranges = 1;  // each element has the range of its number modulo this
  int steps = 255;     // from the first integer to the last one
};

// Its bytes, and the rows of ByteRow for each of its ranges.
struct Bytes {
  int bytes = -1, rows = -1;  // buffers
};

// The steps of the range that a program computes rows of; 0 if it is another program.
int StepsOf(const Program& program) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (int narrow = 0; narrow < 2; ++narrow) {
      const QuantizedRange range = {static_cast<double>(narrow), static_cast<double>((1 << bits) - 1)};
      const Program* of = FakeQuantRange(range);
      if (program.num_inputs() == 0 && program.constants().size() > 1) {
        of = FakeQuantRangeOf(static_cast<float>(program.constants()[0].re),
                              static_cast<float>(program.constants()[1].re), range);
      }
      if (of == &program) return static_cast<int>(range.high - range.low);
    }
  }
  return 0;
}

// False if a window of the convolution lies in the padding.
bool AllWindowsMeetX(const ConvolutionDesc& d) {
  for (int i = 0; i < d.spatial_rank; ++i) {
    if (d.pad_before[i] > (d.filter[i] - 1) * d.dilation[i]) return false;
    if ((d.output[i] - 1) * d.stride[i] - d.pad_before[i] >= d.input[i]) return false;
  }
  return true;
}

class ByteMultiplier {
 public:
  ByteMultiplier(const Capabilities& can, const std::vector<bool>& invariant, CommandList* list)
      : can_(can),
        list_(*list),
        uses_(UsesOf(*list)),
        hoisted_(InvariantCommands(*list, invariant)),
        finite_(*list, uses_, Known(*list, invariant, hoisted_)) {}

  void Run() {
    for (int i = 0; i < static_cast<int>(list_.commands.size()); ++i) Change(i);
    std::stable_sort(inserted_.begin(), inserted_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    InsertBefore(std::move(inserted_), &list_);
  }

 private:
  // A convolution, or a product as one, that may multiply bytes.
  static std::optional<ConvolutionDesc> ConvolutionOf(const Command& command) {
    std::optional<ConvolutionDesc> convolution;
    if (const auto* desc = std::get_if<ConvolutionDesc>(&command.desc)) convolution = *desc;
    if (const auto* desc = std::get_if<MatMulDesc>(&command.desc)) convolution = AsConvolution(*desc);
    if (!convolution || convolution->type != DType::kFloat || IsMixed(*convolution) || HasEpilogue(*convolution) ||
        convolution->direction != Direction::kForward || convolution->packed_filter_bytes > 0 ||
        convolution->order != ChannelOrder::kLast || command.workspace.buffer != BufferSlice::kNowhere) {
      return std::nullopt;
    }
    convolution->type = DType::kUint8;
    convolution->filter_type = DType::kInt8;
    convolution->y_type = DType::kInt32;
    return convolution;
  }

  // The FakeQuant that makes input k of a command, all of it.
  std::optional<FakeQuant> FakeQuantOf(int reader, int k) const {
    const BufferSlice& place = list_.commands[reader].in[k];
    FakeQuant found;
    found.command = OnlyWriter(list_, uses_, place.buffer, reader);
    if (found.command < 0 || place.offset != 0) return std::nullopt;
    const Command& command = list_.commands[found.command];
    const auto* desc = std::get_if<ElementwiseDesc>(&command.desc);
    if (desc == nullptr || !WritesWhole(list_, command, 0) ||
        desc->shape.num_elements() != list_.commands[reader].footprint.in[k].elements) {
      return std::nullopt;
    }
    found.divides = desc->program == FakeQuantize(true);
    if (!found.divides && desc->program != FakeQuantize(false)) return std::nullopt;
    // One command computes all of its rows.
    const int range = OnlyWriter(list_, uses_, command.in[1].buffer, found.command);
    const auto* of_range = range < 0 ? nullptr : std::get_if<ElementwiseDesc>(&list_.commands[range].desc);
    if (of_range == nullptr) return std::nullopt;
    found.steps = StepsOf(*of_range->program);
    if (found.steps == 0) return std::nullopt;
    found.ranges = ElementsOfRepeatedBlock(desc->shape, desc->in_strides[1]);
    for (int row = 0; row < FakeQuantRow::kRows; ++row) {
      const BufferSlice &read = command.in[1 + row], &written = list_.commands[range].out[row];
      if (read.buffer != written.buffer || read.offset != written.offset ||
          ElementsOfRepeatedBlock(desc->shape, desc->in_strides[1 + row]) != found.ranges) {
        return std::nullopt;
      }
    }
    if (of_range->shape.num_elements() != found.ranges) return std::nullopt;
    found.range = range;
    return found;
  }

  void Change(int i) {
    std::optional<ConvolutionDesc> desc = ConvolutionOf(list_.commands[i]);
    if (!desc || !AllWindowsMeetX(*desc)) return;
    const std::optional<FakeQuant> x = FakeQuantOf(i, 0), filter = FakeQuantOf(i, 1);
    if (!x || !filter || x->ranges != 1 || (filter->ranges != 1 && filter->ranges != desc->out_channels) ||
        !hoisted_[filter->command] || !hoisted_[x->range] || hoisted_[i]) {
      return;
    }
    Command product;
    if (!Check(*desc, &product.footprint).ok() || !can_.Supports(*desc) || can_.WorkspaceBytes(*desc) != 0 ||
        !can_.BytesPay(*desc)) {
      return;
    }
    // Otherwise sums may not fit into 32 bits.
    const int64_t terms = desc->in_channels / desc->groups * desc->filter[0] * desc->filter[1] * desc->filter[2];
    if (terms > INT32_MAX / (x->steps * filter->steps)) return;
    using Sources = FiniteValues::Sources;
    const std::optional<Sources> of_x = finite_.SourcesOfInput(x->command, 0),
                                 of_filter = finite_.SourcesOfInput(filter->command, 0);
    if (!of_x || !of_filter) return;
    for (const Sources* sources : {&*of_x, &*of_filter}) {
      for (const auto& [buffer, source] : *sources) Require(buffer, source, x->command);
    }
    constexpr int kOfRange = kLog2OfWidestRange + 1, kOfSums = 31;
    for (const FakeQuant& of : {*x, *filter}) finite_.Bound(of.command, kOfRange);
    finite_.Bound(i, kOfSums + 2 * kOfRange);

    const Bytes x_bytes = BytesOf(*x, DType::kUint8), filter_bytes = BytesOf(*filter, DType::kInt8);
    const int64_t n = filter->ranges, channels = desc->out_channels;
    const int sums = NewBuffer(product.footprint.out[0].elements * kFloatBytes);
    const Command& floats = list_.commands[i];
    const BufferSlice result = floats.out[0];

    // Per channel, if each has its own range.
    const BufferSlice scale = {NewBuffer(n * kFloatBytes), 0};
    Insert(i, i, SingleOpProgram(Opcode::kMul, DType::kFloat), {n},
           {{Row(x_bytes, ByteRow::kScale, 1), {0}}, {Row(filter_bytes, ByteRow::kScale, n), {1}}}, {scale});
    BufferSlice zero_points = Row(filter_bytes, ByteRow::kInteger, n);
    if (n != channels) {
      const BufferSlice zero_point = zero_points;
      zero_points = {NewBuffer(channels * kFloatBytes), 0};
      Insert(i, i, IdentityProgram(DType::kInt32), {channels}, {{zero_point, {0}}}, {zero_points});
    }
    product.desc = *desc;
    product.in = {{x_bytes.bytes, 0}, {filter_bytes.bytes, 0}, Row(x_bytes, ByteRow::kInteger, 1), zero_points};
    product.out = {{sums, 0}};
    product.origin = floats.origin;
    product.follows_updates = floats.follows_updates;
    const int64_t rows = channels == 0 ? 0 : product.footprint.out[0].elements / channels;
    Insert(i + 1, i, ScaledSums(), {rows, channels}, {{product.out[0], {channels, 1}}, {scale, {0, n == 1 ? 0 : 1}}},
           {result});
    list_.commands[i] = std::move(product);
  }

  static const Program* ScaledSums() {
    ProgramBuilder builder;
    const auto sum = builder.Input(DType::kInt32), scale = builder.Input(DType::kFloat);
    builder.Output(builder.Apply(Opcode::kMul, builder.Cast(sum, DType::kFloat), scale));
    return builder.Build();
  }

  // The bytes of what a FakeQuant reads. They are computed where it stands.
  const Bytes& BytesOf(const FakeQuant& of, DType type) {
    const auto [at, is_new] = bytes_.try_emplace({of.command, type});
    Bytes& bytes = at->second;
    if (!is_new) return bytes;
    const Command& command = list_.commands[of.command];
    const auto& desc = std::get<ElementwiseDesc>(command.desc);
    // Symmetric ranges have their zero point in the middle of the steps.
    const int offset = type == DType::kInt8 ? (of.steps + 1) / 2 : 0;
    bytes.rows = NewBuffer(ByteRow::kRows * of.ranges * kFloatBytes);
    bytes.bytes = NewBuffer(desc.shape.num_elements());
    std::vector<std::pair<BufferSlice, Dims>> rows, elements = {{command.in[0], desc.in_strides[0]}};
    std::vector<BufferSlice> byte_rows;
    for (int row = 0; row < FakeQuantRow::kRows; ++row) rows.push_back({command.in[1 + row], {1}});
    for (int row = 0; row < ByteRow::kRows; ++row) byte_rows.push_back(Row(bytes, row, of.ranges));
    for (int row = 0; row < ByteRow::kScale; ++row) elements.push_back({byte_rows[row], desc.in_strides[1]});
    const Dims shape = desc.shape;
    Insert(of.command, of.command, RequireFakeQuantRange(), {of.ranges}, rows,
           {{NewBuffer(of.ranges * kFloatBytes), 0}});
    MakeCondition(&inserted_.back().second);
    Insert(of.command, of.command, FakeQuantByteRange(of.divides, offset), {of.ranges}, rows, byte_rows);
    Insert(of.command, of.command, FakeQuantizeToBytes(of.divides, type), shape, elements, {{bytes.bytes, 0}});
    return bytes;
  }

  // Adds a condition: the source keeps to its bound. `of`: a command of the op that relies on it.
  void Require(int buffer, const FiniteValues::Source& source, int of) {
    const auto [at, is_new] = required_.try_emplace(buffer, source.range);
    if (!is_new && at->second.Contains(source.range)) return;
    at->second = source.range;
    ReduceDesc magnitude;
    magnitude.kind = ReduceKind::kMax;
    magnitude.source.program = SingleOpProgram(Opcode::kAbs, DType::kFloat);
    magnitude.source.shape = {(source.range.end - source.range.begin) / kFloatBytes};
    magnitude.source.in_strides[0] = {1};
    magnitude.axes = 1;
    const int most = NewBuffer(kFloatBytes);
    const int behind = source.writer + 1;
    InsertPrimitive(behind, of, magnitude, {{buffer, source.range.begin}}, {{most, 0}});
    Insert(behind, of, RequireAtMost(std::ldexp(1.0f, finite_.Log2Of(buffer))), {1}, {{{most, 0}, {1}}},
           {{NewBuffer(kFloatBytes), 0}});
    MakeCondition(&inserted_.back().second);
  }

  static BufferSlice Row(const Bytes& bytes, int row, int64_t ranges) {
    return {bytes.rows, row * ranges * kFloatBytes};
  }

  int NewBuffer(int64_t bytes) {
    list_.buffers.push_back({Buffer::Kind::kComputed, bytes, nullptr});
    return static_cast<int>(list_.buffers.size()) - 1;
  }

  // An elementwise command in front of `position`, of the op of another command.
  void Insert(int position, int of, const Program* program, const Dims& shape,
              const std::vector<std::pair<BufferSlice, Dims>>& in, const std::vector<BufferSlice>& out) {
    ElementwiseDesc desc;
    desc.program = program;
    desc.shape = shape;
    std::vector<BufferSlice> places;
    for (size_t k = 0; k < in.size(); ++k) {
      places.push_back(in[k].first);
      desc.in_strides[k] = in[k].second;
    }
    InsertPrimitive(position, of, desc, places, out);
  }

  template <typename Desc>
  void InsertPrimitive(int position, int of, const Desc& desc, const std::vector<BufferSlice>& in,
                       const std::vector<BufferSlice>& out) {
    Command command;
    command.desc = desc;
    command.in = in;
    command.out = out;
    command.origin = list_.commands[of].origin;
    command.follows_updates = list_.commands[of].follows_updates;
    (void)Check(desc, &command.footprint);  // it is right
    if (const int64_t bytes = can_.WorkspaceBytes(desc); bytes != 0) command.workspace = {NewBuffer(bytes), 0};
    inserted_.emplace_back(position, std::move(command));
  }

  const Capabilities& can_;
  CommandList& list_;
  const BufferUses uses_;  // of the list as it was
  const std::vector<bool> hoisted_;
  FiniteValues finite_;
  std::map<int, ByteRange> required_;  // by buffer: what conditions are about
  std::map<std::pair<int, DType>, Bytes> bytes_;
  std::vector<std::pair<size_t, Command>> inserted_;
};

}  // namespace

void MultiplyInBytes(const Capabilities& can, const std::vector<bool>& invariant, CommandList* list) {
  ByteMultiplier(can, invariant, list).Run();
}

}  // namespace xpu::commands
