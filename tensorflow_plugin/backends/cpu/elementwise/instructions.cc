#include "tensorflow_plugin/backends/cpu/elementwise/instructions.h"

#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

const InstrTable& ActiveTable() {
  auto make = [] {
    InstrTable table;
    AddFloatInstrs(&table);
    AddComplexInstrs(&table);
    AddIntegerInstrs(&table);
    return table;
  };
  // One each, since tests change the instruction set.
  switch (ActiveIsa()) {
    case Isa::kAvx512:
    case Isa::kAvx512Vnni:
    case Isa::kAmx: {
      static const InstrTable table = make();
      return table;
    }
    case Isa::kAvx2: {
      static const InstrTable table = make();
      return table;
    }
    default: {
      static const InstrTable table = make();
      return table;
    }
  }
}

// The row of a type: that of its register.
int Row(DType type) { return static_cast<int>(IsReducedFloat(type) ? DType::kFloat : type); }

}  // namespace

InstrFn FindInstr(Opcode op, DType type, DType result) {
  const InstrTable& table = ActiveTable();
  const InstrFn fast =
      op == Opcode::kCast ? table.cast[Row(type)][static_cast<int>(result)] : table.op[static_cast<int>(op)][Row(type)];
  return fast != nullptr ? fast : plain::FindInstr(op, type, result);
}

InstrFn FindInstrOfOne(Opcode op, DType type, int operand) {
  return ActiveTable().of_one[operand][static_cast<int>(op)][Row(type)];
}

InstrFn FindLoad(DType type) {
  const InstrFn fast = ActiveTable().load[static_cast<int>(type)];
  return fast != nullptr ? fast : plain::FindLoad(type);
}

InstrFn FindStore(DType type) {
  const InstrFn fast = ActiveTable().store[static_cast<int>(type)];
  return fast != nullptr ? fast : plain::FindStore(type);
}

}  // namespace xpu::cpu
