// Makes one command of those that quantize rows of floats by their largest magnitude, as Keras's int8 layers do:
//   Abs, Reduce Max, Add epsilon, Div of the levels by that; then Mul, Rint, Minimum, Maximum, Cast to int8.
// The quotient is each row's scale, which others read, too. So the new command stands where that was computed.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/hoist.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/strided_view.h"
#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/quantize_programs.h"

namespace xpu::commands {
namespace {

class QuantizationFuser {
 public:
  QuantizationFuser(const Capabilities& can, CommandList* list) : can_(can), list_(*list), uses_(UsesOf(*list)) {}

  void Run() {
    std::vector<bool> gone(list_.commands.size(), false);
    for (int i = 0; i < static_cast<int>(list_.commands.size()); ++i) {
      if (IsOne(i, Opcode::kCast)) Fuse(i, &gone);
    }
    Remove(gone, &list_);
  }

 private:
  const ElementwiseDesc& Elementwise(int command) const {
    return std::get<ElementwiseDesc>(list_.commands[command].desc);
  }

  // True if it is one instruction on floats, with as many operands as that has.
  bool IsOne(int command, Opcode op) const {
    const auto* desc = std::get_if<ElementwiseDesc>(&list_.commands[command].desc);
    if (desc == nullptr) return false;
    const Program& p = *desc->program;
    return p.instrs().size() == 1 && p.instrs()[0].op == op && p.instrs()[0].type == DType::kFloat &&
           p.num_inputs() == Info(op).arity && p.num_outputs() == 1;
  }

  // The command before `reader` that alone writes what is read at this place, the whole buffer; -1: there is none.
  int WriterOf(const BufferSlice& place, int reader) const {
    if (place.buffer == BufferSlice::kNowhere || place.offset != 0) return -1;
    const BufferUses::OfBuffer& uses = uses_.buffers[place.buffer];
    if (uses.writers.size() != 1 || uses.writers[0] >= reader ||
        list_.buffers[place.buffer].kind != Buffer::Kind::kComputed) {
      return -1;
    }
    const Command& writer = list_.commands[uses.writers[0]];
    for (size_t k = 0; k < writer.out.size(); ++k) {
      if (writer.out[k].buffer == place.buffer && WritesWhole(list_, writer, static_cast<int>(k))) {
        return uses.writers[0];
      }
    }
    return -1;
  }
  // The same, if that is one instruction, and nobody else reads the result.
  int OnlyFor(const BufferSlice& place, int reader, Opcode op) const {
    const int writer = WriterOf(place, reader);
    return writer >= 0 && IsOne(writer, op) && IsReadOnce(place) ? writer : -1;
  }
  bool IsReadOnce(const BufferSlice& place) const {
    const BufferUses::OfBuffer& uses = uses_.buffers[place.buffer];
    return !uses.kept && uses.readers.size() == 1;
  }

  // True if a command reads the elements of its input k in their order.
  bool InOrder(int command, int k) const {
    const ElementwiseDesc& desc = Elementwise(command);
    return IsDense(desc.shape, desc.in_strides[k]);
  }
  // True if it reads one element there, for all; the place is noted.
  bool IsNumber(int command, int k, BufferSlice* place) const {
    const Dims& strides = Elementwise(command).in_strides[k];
    *place = list_.commands[command].in[k];
    return std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0; });
  }

  // The number that a command of two operands reads, and the other input's place; false if it does not read such.
  bool WithNumber(int command, BufferSlice* number, BufferSlice* other) const {
    for (int k : {1, 0}) {
      if (IsNumber(command, k, number) && InOrder(command, 1 - k)) {
        *other = list_.commands[command].in[1 - k];
        return true;
      }
    }
    return false;
  }

  // True if a product reads the elements of rows in order at its input k, and at the other one each row's number.
  bool ScalesRows(int command, int k, int64_t rows, int64_t cols) const {
    const ElementwiseDesc& desc = Elementwise(command);
    if (!InOrder(command, k) || desc.shape.num_elements() != rows * cols) return false;
    int64_t inner = 1;
    for (int axis = desc.shape.rank() - 1; axis >= 0; --axis) {
      const int64_t extent = desc.shape[axis], stride = desc.in_strides[1 - k][axis];
      if (extent != 1 && stride != (inner < cols ? 0 : inner / cols)) return false;
      if (inner < cols && cols % (inner * extent) != 0) return false;
      inner *= extent;
    }
    return true;
  }

  // The rows whose maxima a reduction takes, of what lies in order; 0: it is another one.
  int64_t RowsOf(int command) const {
    const auto* desc = std::get_if<ReduceDesc>(&list_.commands[command].desc);
    if (desc == nullptr || desc->kind != ReduceKind::kMax) return 0;
    const ElementwiseDesc& source = desc->source;
    if (source.program != IdentityProgram(DType::kFloat) || !IsDense(source.shape, source.in_strides[0])) return 0;
    int64_t rows = 1;
    bool reduced = false;
    for (int axis = 0; axis < source.shape.rank(); ++axis) {
      const bool is_reduced = (desc->axes >> axis & 1) != 0;
      if (reduced && !is_reduced && source.shape[axis] != 1) return 0;
      reduced = reduced || is_reduced;
      if (!is_reduced) rows *= source.shape[axis];
    }
    return reduced ? rows : 0;
  }

  void Fuse(int cast, std::vector<bool>* gone) {
    const Command& last = list_.commands[cast];
    if (Elementwise(cast).program->output_type(0) != DType::kInt8 || !InOrder(cast, 0)) return;
    BufferSlice least, most, epsilon, place;
    const int maximum = OnlyFor(last.in[0], cast, Opcode::kMaximum);
    if (maximum < 0 || !WithNumber(maximum, &least, &place)) return;
    const int minimum = OnlyFor(place, maximum, Opcode::kMinimum);
    if (minimum < 0 || !WithNumber(minimum, &most, &place)) return;
    const int rint = OnlyFor(place, minimum, Opcode::kRint);
    if (rint < 0 || !InOrder(rint, 0)) return;
    const int product = OnlyFor(list_.commands[rint].in[0], rint, Opcode::kMul);
    for (int k = 0; product >= 0 && k < 2; ++k) {
      const BufferSlice x = list_.commands[product].in[k], scale = list_.commands[product].in[1 - k];
      const int quotient = WriterOf(scale, product);
      BufferSlice levels;
      if (quotient < 0 || !IsOne(quotient, Opcode::kDiv) || !IsNumber(quotient, 0, &levels) || !InOrder(quotient, 1)) {
        continue;
      }
      const int sum = OnlyFor(list_.commands[quotient].in[1], quotient, Opcode::kAdd);
      if (sum < 0 || !WithNumber(sum, &epsilon, &place)) continue;
      const int reduction = WriterOf(place, sum);
      if (reduction < 0 || !IsReadOnce(place)) continue;
      const int64_t rows = RowsOf(reduction), elements = Elementwise(cast).shape.num_elements();
      if (rows == 0 || elements % rows != 0 || Elementwise(quotient).shape.num_elements() != rows) continue;
      const int magnitudes = OnlyFor(list_.commands[reduction].in[0], reduction, Opcode::kAbs);
      if (magnitudes < 0 || !InOrder(magnitudes, 0)) continue;
      const BufferSlice& of_magnitudes = list_.commands[magnitudes].in[0];
      if (of_magnitudes.buffer != x.buffer || of_magnitudes.offset != x.offset ||
          Elementwise(magnitudes).shape.num_elements() != elements || !ScalesRows(product, k, rows, elements / rows)) {
        continue;
      }
      Command fused;
      QuantizeRowsDesc desc;
      desc.rows = rows;
      desc.cols = elements / rows;
      if (!Check(desc, &fused.footprint).ok() || !can_.Supports(desc) || can_.WorkspaceBytes(desc) != 0) return;
      fused.desc = desc;
      fused.in = {x, epsilon, levels, most, least};
      fused.out = {last.out[0], list_.commands[quotient].out[0]};
      fused.origin = last.origin;
      if (!MayMove(fused, magnitudes, quotient, cast)) return;
      list_.commands[quotient] = std::move(fused);
      for (int i : {magnitudes, reduction, sum, product, rint, minimum, maximum, cast}) (*gone)[i] = true;
      return;
    }
  }

  // True if a command in the place of `at` reads the same as those from `first` to `last`, and may write so early.
  bool MayMove(const Command& fused, int first, int at, int last) const {
    for (size_t k = 0; k < fused.in.size(); ++k) {
      const BufferSlice& place = fused.in[k];
      const Operand& operand = fused.footprint.in[k];
      const ByteRange range{place.offset + operand.begin, place.offset + operand.end};
      // Some are read first, and some only at the end.
      if (IsWritten(list_, uses_, place.buffer, range, std::min(first, at), last)) return false;
    }
    const BufferSlice& q = fused.out[0];
    const BufferUses::OfBuffer& uses = uses_.buffers[q.buffer];
    return list_.buffers[q.buffer].kind == Buffer::Kind::kComputed && uses.writers.size() == 1 &&
           (uses.readers.empty() || uses.readers[0] > last);
  }

  const Capabilities& can_;
  CommandList& list_;
  const BufferUses uses_;
};

// Has a convolution or a product multiply bytes where FakeQuant ops make both of its operands, as in networks that were
// trained for it:
//   FakeQuant of x, FakeQuant of the filter, Convolution of floats
// becomes
//   x to uint8, the filter to int8, Convolution of bytes, the sums to floats, times both scales.
// The range of a FakeQuant is a value of the device, and so are the scales and the zeros, which small programs compute.
// The filter's bytes are computed once, and so are the numbers of ranges. The pass leaves alone what changes. A command
// that runs once, too, fails if a range is not finite. Then the list as it was has to run.
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

// How many numbers a walk over the shape reads in turn; 0: it reads others.
int64_t NumbersInTurn(const Dims& shape, const Dims& strides) {
  int64_t elements = 1, numbers = 1;
  bool repeats = false;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (shape[d] == 1) continue;
    repeats = repeats || strides[d] == 0;
    if (strides[d] != (repeats ? 0 : elements)) return 0;
    elements *= shape[d];
    if (!repeats) numbers = elements;
  }
  return numbers;
}

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
      : can_(can), list_(*list), uses_(UsesOf(*list)), hoisted_(InvariantCommands(*list, invariant)) {}

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

  // The command before `reader` that alone writes a buffer; -1: there is none.
  int WriterOf(const BufferSlice& place, int reader) const {
    if (place.buffer == BufferSlice::kNowhere || list_.buffers[place.buffer].kind != Buffer::Kind::kComputed) return -1;
    const BufferUses::OfBuffer& uses = uses_.buffers[place.buffer];
    return uses.writers.size() == 1 && uses.writers[0] < reader ? uses.writers[0] : -1;
  }

  // The FakeQuant that makes input k of a command, all of it.
  std::optional<FakeQuant> FakeQuantOf(int reader, int k) const {
    const BufferSlice& place = list_.commands[reader].in[k];
    FakeQuant found;
    found.command = WriterOf(place, reader);
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
    const int range = WriterOf(command.in[1], found.command);
    const auto* of_range = range < 0 ? nullptr : std::get_if<ElementwiseDesc>(&list_.commands[range].desc);
    if (of_range == nullptr) return std::nullopt;
    found.steps = StepsOf(*of_range->program);
    if (found.steps == 0) return std::nullopt;
    found.ranges = NumbersInTurn(desc->shape, desc->in_strides[1]);
    for (int row = 0; row < FakeQuantRow::kRows; ++row) {
      const BufferSlice &read = command.in[1 + row], &written = list_.commands[range].out[row];
      if (read.buffer != written.buffer || read.offset != written.offset ||
          NumbersInTurn(desc->shape, desc->in_strides[1 + row]) != found.ranges) {
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
    const Bytes x_bytes = BytesOf(*x, DType::kUint8), filter_bytes = BytesOf(*filter, DType::kInt8);
    const int64_t n = filter->ranges, channels = desc->out_channels;
    const int sums = NewBuffer(product.footprint.out[0].elements * kFloatBytes);
    const Command& floats = list_.commands[i];
    const BufferSlice result = floats.out[0];

    // Per channel, if each has its own range.
    const BufferSlice scale = {NewBuffer(n * kFloatBytes), 0};
    Insert(i, i, SingleOpProgram(Opcode::kMul, DType::kFloat), {n},
           {{Row(x_bytes, ByteRow::kScale, 1), {0}}, {Row(filter_bytes, ByteRow::kScale, n), {1}}}, {scale});
    BufferSlice zeros = Row(filter_bytes, ByteRow::kInteger, n);
    if (n != channels) {
      const BufferSlice zero = zeros;
      zeros = {NewBuffer(channels * kFloatBytes), 0};
      Insert(i, i, IdentityProgram(DType::kInt32), {channels}, {{zero, {0}}}, {zeros});
    }
    product.desc = *desc;
    product.in = {{x_bytes.bytes, 0}, {filter_bytes.bytes, 0}, Row(x_bytes, ByteRow::kInteger, 1), zeros};
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
    // Symmetric ranges have a zero in the middle of the steps.
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
    inserted_.back().second.explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
    Insert(of.command, of.command, FakeQuantByteRange(of.divides, offset), {of.ranges}, rows, byte_rows);
    Insert(of.command, of.command, FakeQuantizeToBytes(of.divides, type), shape, elements, {{bytes.bytes, 0}});
    return bytes;
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
    Command command;
    for (size_t k = 0; k < in.size(); ++k) {
      command.in.push_back(in[k].first);
      desc.in_strides[k] = in[k].second;
    }
    command.out = out;
    command.origin = list_.commands[of].origin;
    command.follows_updates = list_.commands[of].follows_updates;
    command.desc = desc;
    (void)Check(desc, &command.footprint);  // it is right
    inserted_.emplace_back(position, std::move(command));
  }

  const Capabilities& can_;
  CommandList& list_;
  const BufferUses uses_;  // of the list as it was
  const std::vector<bool> hoisted_;
  std::map<std::pair<int, DType>, Bytes> bytes_;
  std::vector<std::pair<size_t, Command>> inserted_;
};

}  // namespace

void FuseQuantization(const Capabilities& can, CommandList* list) { QuantizationFuser(can, list).Run(); }

void MultiplyInBytes(const Capabilities& can, const std::vector<bool>& invariant, CommandList* list) {
  ByteMultiplier(can, invariant, list).Run();
}

}  // namespace xpu::commands
