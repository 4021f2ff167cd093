#include "tensorflow_plugin/primitives/quantize_programs.h"

#include <limits>

namespace xpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Instructions on floats.
class Floats : public ProgramBuilder {
 public:
  Reg In() { return Input(DType::kFloat); }
  Reg Number(double value) { return Const(DType::kFloat, value); }
  Reg Add(Reg a, Reg b) { return Apply(Opcode::kAdd, a, b); }
  Reg Sub(Reg a, Reg b) { return Apply(Opcode::kSub, a, b); }
  Reg Mul(Reg a, Reg b) { return Apply(Opcode::kMul, a, b); }
  Reg Div(Reg a, Reg b) { return Apply(Opcode::kDiv, a, b); }
  Reg Equal(Reg a, Reg b) { return Apply(Opcode::kEqual, a, b); }
  Reg Floor(Reg a) { return Apply(Opcode::kFloor, a); }
  Reg Select(Reg condition, Reg then, Reg otherwise) { return Apply(Opcode::kSelect, condition, then, otherwise); }
  // As on the CPU, a NaN stays.
  Reg Clamp(Reg x, Reg low, Reg high) { return Apply(Opcode::kMaximum, Apply(Opcode::kMinimum, x, high), low); }
};
using Reg = ProgramBuilder::Reg;

const Program* RangeRows(Floats* b, Reg min, Reg max, const QuantizedRange& steps) {
  const double count = steps.high - steps.low;
  const Reg first = b->Number(steps.low), last = b->Number(steps.high);
  const Reg width = b->Sub(max, min), scale = b->Div(width, b->Number(count));
  const Reg exact = b->Sub(first, b->Div(min, scale));
  // Rounded, halves up: a value and its fraction, which adding 1/2 first might round.
  const Reg whole = b->Floor(exact);
  const Reg is_half = b->Apply(Opcode::kLessEqual, b->Number(0.5), b->Sub(exact, whole));
  const Reg point = b->Clamp(b->Add(whole, b->Cast(is_half, DType::kFloat)), first, last);
  const Reg low = b->Mul(b->Sub(first, point), scale), high = b->Mul(b->Sub(last, point), scale);
  const Reg per_step = b->Div(b->Number(count), width);
  const Reg none = b->Apply(Opcode::kLogicalAnd, b->Equal(min, b->Number(0)), b->Equal(max, b->Number(0)));
  b->Output(b->Select(none, b->Number(-kInfinity), low));
  b->Output(b->Select(none, b->Number(kInfinity), high));
  b->Output(scale);
  b->Output(per_step);
  b->Output(b->Floor(b->Add(b->Mul(b->Apply(Opcode::kNeg, low), per_step), b->Number(0.5))));
  return b->Build();
}

// 0, or a NaN if one of the rows is not finite.
Reg NothingOf(Floats* b, const Reg* row) {
  const Reg sum = b->Add(b->Add(row[FakeQuantRow::kLow], row[FakeQuantRow::kHigh]),
                         b->Add(row[FakeQuantRow::kScale], row[FakeQuantRow::kPerStep]));
  return b->Mul(b->Add(sum, row[FakeQuantRow::kZeroPoint]), b->Number(0));
}
// An int32 that fails to be computed if the condition is false.
Reg Required(Floats* b, Reg condition) {
  const Reg number = b->Cast(condition, DType::kInt32);
  return b->Apply(Opcode::kTruncateDiv, number, number);
}
// From 0 to 0.
Reg IsNone(Floats* b, const Reg* row) { return b->Equal(row[FakeQuantRow::kLow], b->Number(-kInfinity)); }

}  // namespace

const Program* FakeQuantRange(const QuantizedRange& steps) {
  Floats b;
  const Reg min = b.In(), max = b.In();
  return RangeRows(&b, min, max, steps);
}

const Program* FakeQuantRangeOf(float min, float max, const QuantizedRange& steps) {
  Floats b;
  const Reg least = b.Number(min), most = b.Number(max);
  return RangeRows(&b, least, most, steps);
}

const Program* FakeQuantize(bool divide) {
  Floats b;
  const Reg x = b.In();
  Reg row[FakeQuantRow::kRows];
  for (Reg& r : row) r = b.In();
  const Reg shifted = b.Sub(b.Clamp(x, row[FakeQuantRow::kLow], row[FakeQuantRow::kHigh]), row[FakeQuantRow::kLow]);
  const Reg steps = divide ? b.Div(shifted, row[FakeQuantRow::kScale]) : b.Mul(shifted, row[FakeQuantRow::kPerStep]);
  const Reg result =
      b.Mul(b.Floor(b.Add(b.Sub(steps, row[FakeQuantRow::kZeroPoint]), b.Number(0.5))), row[FakeQuantRow::kScale]);
  b.Output(b.Select(b.Equal(row[FakeQuantRow::kLow], b.Number(-kInfinity)), b.Number(0), result));
  return b.Build();
}

const Program* FakeQuantByteRange(bool divide, int offset) {
  Floats b;
  Reg row[FakeQuantRow::kRows];
  for (Reg& r : row) r = b.In();
  const Reg zero = b.Number(0), nothing = NothingOf(&b, row);
  const Reg is_finite = b.Equal(nothing, zero);
  const Reg point = b.Select(is_finite, row[FakeQuantRow::kZeroPoint], zero);
  const Reg shift = b.Sub(point, b.Number(offset));
  b.Output(b.Select(is_finite, row[FakeQuantRow::kLow], zero));
  b.Output(b.Select(is_finite, row[FakeQuantRow::kHigh], zero));
  b.Output(b.Select(is_finite, row[divide ? FakeQuantRow::kScale : FakeQuantRow::kPerStep], b.Number(1)));
  b.Output(point);
  b.Output(shift);
  b.Output(b.Select(IsNone(&b, row), zero, b.Add(row[FakeQuantRow::kScale], nothing)));
  b.Output(b.Cast(shift, DType::kInt32));
  return b.Build();
}

const Program* RequireFakeQuantRange() {
  Floats b;
  Reg row[FakeQuantRow::kRows];
  for (Reg& r : row) r = b.In();
  const Reg is_finite = b.Equal(NothingOf(&b, row), b.Number(0));
  const Reg is_narrow =
      b.Apply(Opcode::kLessEqual, b.Apply(Opcode::kAbs, b.Sub(row[FakeQuantRow::kHigh], row[FakeQuantRow::kLow])),
              b.Number(1 << kLog2OfWidestRange));
  b.Output(
      Required(&b, b.Apply(Opcode::kLogicalOr, b.Apply(Opcode::kLogicalAnd, is_finite, is_narrow), IsNone(&b, row))));
  return b.Build();
}

const Program* RequireAtMost(float most) {
  Floats b;
  const Reg x = b.In();
  b.Output(Required(&b, b.Apply(Opcode::kLessEqual, x, b.Number(most))));
  return b.Build();
}

const Program* FakeQuantizeToBytes(bool divide, DType type) {
  Floats b;
  const Reg x = b.In();
  Reg row[ByteRow::kScale];
  for (Reg& r : row) r = b.In();
  const Reg below = b.Select(b.Apply(Opcode::kLess, x, row[ByteRow::kHigh]), x, row[ByteRow::kHigh]);
  const Reg shifted = b.Sub(b.Apply(Opcode::kMaximum, below, row[ByteRow::kLow]), row[ByteRow::kLow]);
  const Reg steps = divide ? b.Div(shifted, row[ByteRow::kFactor]) : b.Mul(shifted, row[ByteRow::kFactor]);
  const Reg whole = b.Floor(b.Add(b.Sub(steps, row[ByteRow::kZeroPoint]), b.Number(0.5)));
  b.Output(b.Cast(b.Add(whole, row[ByteRow::kShift]), type));
  return b.Build();
}

}  // namespace xpu
