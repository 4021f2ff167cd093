#include "tensorflow_plugin/primitives/program.h"

#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>

#include "tensorflow_plugin/primitives/fork.h"

namespace xpu {

const OpcodeInfo kOpcodeInfo[] = {
#define XPU_INFO(name, arity, types, rule) {#name, arity, (types), ResultRule::rule},
    XPU_OPCODES(XPU_INFO)
#undef XPU_INFO
};
static_assert(kNumOpcodes == sizeof(kOpcodeInfo) / sizeof(kOpcodeInfo[0]));

TypeClass ClassOf(DType t) {
  if (t == DType::kBool) return kB;
  if (IsFloating(t)) return kF;
  if (IsSignedInteger(t)) return kI;
  return IsComplex(t) ? kC : kU;
}

bool CanFail(const Instr& instr) {
  switch (instr.op) {
    case Opcode::kTruncateDiv:
    case Opcode::kFloorDiv:
    case Opcode::kFloorMod:
    case Opcode::kTruncateMod:
    case Opcode::kPow:
      return IsInteger(instr.type);
    default:
      return false;
  }
}

namespace {

// Bytes that are equal exactly for equal programs.
std::string KeyOf(const Program& p) {
  std::string key;
  auto put = [&key](const auto& v) { key.append(reinterpret_cast<const char*>(&v), sizeof(v)); };
  put(p.num_inputs());
  for (DType t : p.inputs()) put(t);
  put(p.constants().size());
  for (const Constant& c : p.constants()) {
    put(c.type);
    put(c.re);
    put(c.im);
    put(c.bits);
  }
  put(p.instrs().size());
  for (const Instr& i : p.instrs()) {
    put(i.op);
    put(i.type);
    put(i.result);
    put(i.a);
    put(i.b);
    put(i.c);
  }
  for (uint16_t o : p.outputs()) put(o);
  return key;
}

}  // namespace

DType Program::type(int reg) const {
  const int num_inputs = static_cast<int>(inputs_.size());
  if (reg < num_inputs) return inputs_[reg];
  reg -= num_inputs;
  const int num_constants = static_cast<int>(constants_.size());
  if (reg < num_constants) return constants_[reg].type;
  return instrs_[reg - num_constants].result;
}

std::string Program::ToString() const {
  std::ostringstream out;
  for (size_t i = 0; i < inputs_.size(); ++i) out << "r" << i << ":" << Name(inputs_[i]) << " = input " << i << "\n";
  int reg = num_inputs();
  for (const Constant& c : constants_) {
    out << "r" << reg++ << ":" << Name(c.type) << " = ";
    if (c.bits) {
      out << c.bits << "\n";
    } else if (IsComplex(c.type)) {
      out << "(" << c.re << "," << c.im << ")\n";
    } else {
      out << c.re << "\n";
    }
  }
  for (const Instr& i : instrs_) {
    out << "r" << reg++ << ":" << Name(i.result) << " = " << Info(i.op).name << " r" << i.a;
    if (Info(i.op).arity > 1) out << ", r" << i.b;
    if (Info(i.op).arity > 2) out << ", r" << i.c;
    out << "\n";
  }
  for (size_t i = 0; i < outputs_.size(); ++i) out << "output " << i << " = r" << outputs_[i] << "\n";
  return out.str();
}

void ProgramBuilder::Fail(std::string message) {
  if (error_.empty()) error_ = std::move(message);
}

ProgramBuilder::Reg ProgramBuilder::Input(DType type) {
  inputs_.push_back(type);
  return {Reg::kInput, static_cast<uint16_t>(inputs_.size() - 1), type};
}

ProgramBuilder::Reg ProgramBuilder::Const(const Constant& constant) {
  constants_.push_back(constant);
  return {Reg::kConstant, static_cast<uint16_t>(constants_.size() - 1), constant.type};
}

ProgramBuilder::Reg ProgramBuilder::Const(DType type, double value) { return Const(Constant{type, value, 0.0, 0}); }

ProgramBuilder::Reg ProgramBuilder::ConstComplex(DType type, std::complex<double> value) {
  return Const(Constant{type, value.real(), value.imag(), 0});
}

ProgramBuilder::Reg ProgramBuilder::ConstInt(DType type, int64_t value) {
  return Const(Constant{type, static_cast<double>(value), 0.0, value});
}

ProgramBuilder::Reg ProgramBuilder::Emit(Opcode op, DType type, DType result, const Reg* operands, int n) {
  const OpcodeInfo& info = Info(op);
  if (info.arity != n) Fail(std::string(info.name) + " takes " + std::to_string(info.arity) + " operands");
  if (!IsDefined(op, type)) Fail(std::string(info.name) + " is not defined on " + Name(type));
  const int first_typed = op == Opcode::kSelect ? 1 : 0;
  if (first_typed && operands[0].type != DType::kBool) Fail("Select needs a bool condition");
  for (int i = first_typed; i < n; ++i) {
    if (operands[i].type != type) {
      Fail(std::string(info.name) + " got operands of types " + Name(type) + " and " + Name(operands[i].type));
    }
  }
  Pending p{op, type, result, {}, n};
  for (int i = 0; i < n; ++i) p.operands[i] = operands[i];
  instrs_.push_back(p);
  return {Reg::kResult, static_cast<uint16_t>(instrs_.size() - 1), result};
}

namespace {
DType ResultType(Opcode op, DType type) {
  switch (Info(op).result) {
    case ResultRule::kBool:
      return DType::kBool;
    case ResultRule::kReal:
      return RealTypeOf(type);
    default:
      return type;
  }
}
}  // namespace

ProgramBuilder::Reg ProgramBuilder::Apply(Opcode op, Reg a) { return Emit(op, a.type, ResultType(op, a.type), &a, 1); }

ProgramBuilder::Reg ProgramBuilder::Apply(Opcode op, Reg a, Reg b) {
  const Reg operands[] = {a, b};
  return Emit(op, a.type, ResultType(op, a.type), operands, 2);
}

ProgramBuilder::Reg ProgramBuilder::Apply(Opcode op, Reg a, Reg b, Reg c) {
  const Reg operands[] = {a, b, c};
  return Emit(op, b.type, ResultType(op, b.type), operands, 3);
}

ProgramBuilder::Reg ProgramBuilder::Cast(Reg a, DType to) {
  if (a.type == to) return a;
  return Emit(Opcode::kCast, a.type, to, &a, 1);
}

ProgramBuilder::Reg ProgramBuilder::Round(Reg a) {
  return IsReducedFloat(a.type) ? Emit(Opcode::kCast, a.type, a.type, &a, 1) : a;
}

ProgramBuilder::Reg ProgramBuilder::Again(const Instr& instr, Reg a, Reg b, Reg c) {
  if (instr.op == Opcode::kCast) return instr.result == a.type ? Round(a) : Cast(a, instr.result);
  if (Info(instr.op).arity == 1) return Apply(instr.op, a);
  return Info(instr.op).arity == 2 ? Apply(instr.op, a, b) : Apply(instr.op, a, b, c);
}

std::vector<ProgramBuilder::Reg> ProgramBuilder::Inline(const Program& program, std::vector<Reg> registers) {
  const size_t inputs = program.inputs().size();
  for (size_t i = registers.size(); i < inputs + program.constants().size(); ++i) {
    registers.push_back(Const(program.constants()[i - inputs]));
  }
  for (const Instr& instr : program.instrs()) {
    registers.push_back(Again(instr, registers[instr.a], registers[instr.b], registers[instr.c]));
  }
  return registers;
}

void ProgramBuilder::Output(Reg r) { outputs_.push_back(r); }

const Program* ProgramBuilder::Build() {
  const size_t registers = inputs_.size() + constants_.size() + instrs_.size();
  if (inputs_.size() > Program::kMaxInputs) Fail("too many inputs");
  if (outputs_.empty() || outputs_.size() > Program::kMaxOutputs) Fail("a program stores 1 to 8 outputs");
  if (registers > Program::kMaxRegisters) Fail("too many registers");
  if (!error_.empty()) return nullptr;

  auto number = [this](const Reg& r) -> uint16_t {
    if (r.kind == Reg::kInput) return r.index;
    if (r.kind == Reg::kConstant) return static_cast<uint16_t>(inputs_.size() + r.index);
    return static_cast<uint16_t>(inputs_.size() + constants_.size() + r.index);
  };
  auto program = std::make_unique<Program>();
  program->inputs_ = inputs_;
  program->constants_ = constants_;
  for (const Pending& p : instrs_) {
    Instr i{p.op, p.type, p.result};
    i.a = number(p.operands[0]);
    if (p.n > 1) i.b = number(p.operands[1]);
    if (p.n > 2) i.c = number(p.operands[2]);
    program->can_fail_ = program->can_fail_ || CanFail(i);
    program->instrs_.push_back(i);
  }
  for (const Reg& r : outputs_) program->outputs_.push_back(number(r));

  // Interned and never freed: queued commands and compiled tables hold bare pointers to programs.
  static auto* mu = new Mutex;
  static auto* interned = new std::map<std::string, std::unique_ptr<Program>>;
  std::lock_guard<std::mutex> lock(*mu);
  auto& slot = (*interned)[KeyOf(*program)];
  if (!slot) slot = std::move(program);
  return slot.get();
}

const Program* IdentityProgram(DType type) {
  ProgramBuilder b;
  b.Output(b.Input(type));
  return b.Build();
}

const Program* SingleOpProgram(Opcode op, DType type) {
  ProgramBuilder b;
  const int arity = Info(op).arity;
  if (arity == 1) {
    b.Output(b.Apply(op, b.Input(type)));
  } else if (arity == 2) {
    auto x = b.Input(type);
    b.Output(b.Apply(op, x, b.Input(type)));
  } else {
    auto first = b.Input(op == Opcode::kSelect ? DType::kBool : type);
    auto x = b.Input(type);
    b.Output(b.Apply(op, first, x, b.Input(type)));
  }
  return b.Build();
}

const Program* CastProgram(DType from, DType to) {
  ProgramBuilder b;
  b.Output(b.Cast(b.Input(from), to));
  return b.Build();
}

}  // namespace xpu
