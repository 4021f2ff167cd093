// Makes one command of those that quantize rows of floats by their largest magnitude, as Keras's int8 layers do:
//   Abs, Reduce Max, Add epsilon, Div of the levels by that; then Mul, Rint, Minimum, Maximum, Cast to int8.
// The quotient is each row's scale, which others read, too. So the new command stands where that was computed.
#include <algorithm>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/strided_view.h"
#include "tensorflow_plugin/primitives/check.h"

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
    const int number = place.offset == 0 ? OnlyWriter(list_, uses_, place.buffer, reader) : -1;
    if (number < 0) return -1;
    const Command& writer = list_.commands[number];
    for (size_t k = 0; k < writer.out.size(); ++k) {
      if (writer.out[k].buffer == place.buffer && WritesWhole(list_, writer, static_cast<int>(k))) return number;
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

}  // namespace

void FuseQuantization(const Capabilities& can, CommandList* list) { QuantizationFuser(can, list).Run(); }

}  // namespace xpu::commands
