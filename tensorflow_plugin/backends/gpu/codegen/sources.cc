#include "tensorflow_plugin/backends/gpu/codegen/sources.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <set>

#include "tensorflow_plugin/backends/gpu/codegen/special.h"
#include "tensorflow_plugin/backends/plain/instructions.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::gpu {
namespace {

const std::string kComplex =
#include "tensorflow_plugin/backends/gpu/kernels/complex.cl.inc"
    ;

struct TypeText {
  const char* storage;
  const char* reg;
  const char* wrapping;   // of integers: the unsigned type of their arithmetic
  const char* same_size;  // and the unsigned type of as many bits
};
constexpr TypeText kTypes[kNumDTypes] = {
    {},                                        // kInvalid
    {"uchar", "uchar", "uint", "uchar"},       // kBool
    {"char", "char", "uint", "uchar"},         // kInt8
    {"short", "short", "uint", "ushort"},      // kInt16
    {"int", "int", "uint", "uint"},            // kInt32
    {"long", "long", "ulong", "ulong"},        // kInt64
    {"uchar", "uchar", "uint", "uchar"},       // kUint8
    {"ushort", "ushort", "uint", "ushort"},    // kUint16
    {"uint", "uint", "uint", "uint"},          // kUint32
    {"ulong", "ulong", "ulong", "ulong"},      // kUint64
    {"ushort", "float", nullptr, nullptr},     // kHalf
    {"ushort", "float", nullptr, nullptr},     // kBFloat16
    {"float", "float", nullptr, nullptr},      // kFloat
    {"double", "double", nullptr, nullptr},    // kDouble
    {"float2", "float2", nullptr, nullptr},    // kComplex64
    {"double2", "double2", nullptr, nullptr},  // kComplex128
};
const TypeText& TextOf(DType type) { return kTypes[static_cast<int>(type)]; }

// The expression of an instruction on floating, integer and bool operands; nullptr if there is none. The operands are
// %a, %b and %c, and %T is their type. The unsigned types of an integer are %U and %W (wrapping, same_size). An
// expression that sets `failed` fails.
struct Expression {
  Opcode op;
  const char* floating;
  const char* integer;
  const char* boolean;
};
#define XPU_FUNCTION(Name, function) {Opcode::k##Name, function "(%a)", nullptr, nullptr}
#define XPU_COMPARISON(Name, op, boolean) {Opcode::k##Name, "(uchar)(%a " op " %b)", "(uchar)(%a " op " %b)", boolean}
#define XPU_WRAPPING(Name, op) {Opcode::k##Name, "%a " op " %b", "(%T)((%U)%a " op " (%U)%b)", nullptr}
constexpr Expression kExpressions[] = {
    {Opcode::kNeg, "-%a", "(%T)(0 - (%U)%a)", nullptr},
    {Opcode::kAbs, "fabs(%a)", "(%T)(%a < 0 ? 0 - (%U)%a : (%U)%a)", nullptr},
    {Opcode::kSign, "(isnan(%a) ? %a : (%T)((%a > 0) - (%a < 0)))", "(%T)((%a > 0) - (%a < 0))", nullptr},
    {Opcode::kReciprocal, "1 / %a", nullptr, nullptr},
    {Opcode::kSquare, "%a * %a", "(%T)((%U)%a * (%U)%a)", nullptr},
    XPU_FUNCTION(Sqrt, "sqrt"),
    XPU_FUNCTION(Rsqrt, "1 / sqrt"),
    XPU_FUNCTION(Exp, "exp"),
    XPU_FUNCTION(Expm1, "expm1"),
    XPU_FUNCTION(Log, "log"),
    XPU_FUNCTION(Log1p, "log1p"),
    XPU_FUNCTION(Sin, "sin"),
    XPU_FUNCTION(Cos, "cos"),
    XPU_FUNCTION(Tan, "tan"),
    XPU_FUNCTION(Asin, "asin"),
    XPU_FUNCTION(Acos, "acos"),
    XPU_FUNCTION(Atan, "atan"),
    XPU_FUNCTION(Sinh, "sinh"),
    XPU_FUNCTION(Cosh, "cosh"),
    // A driver's may stay below 1 even at infinity. From where the type has nothing nearer it is 1.
    {Opcode::kTanh, "(fabs(%a) > (sizeof(%T) == 4 ? 9.02f : 19.1f) ? copysign((%T)1, %a) : tanh(%a))", nullptr,
     nullptr},
    XPU_FUNCTION(Asinh, "asinh"),
    XPU_FUNCTION(Acosh, "acosh"),
    XPU_FUNCTION(Atanh, "atanh"),
    {Opcode::kSigmoid, "1 / (1 + exp(-%a))", nullptr, nullptr},
    XPU_FUNCTION(Erf, "erf"),
    XPU_FUNCTION(Erfc, "erfc"),
    {Opcode::kPopulationCount, nullptr, "(%T)popcount((%W)%a)", nullptr},
    XPU_FUNCTION(Ceil, "ceil"),
    XPU_FUNCTION(Floor, "floor"),
    XPU_FUNCTION(Rint, "rint"),
    {Opcode::kIsNan, "(uchar)(isnan(%a) != 0)", nullptr, nullptr},
    {Opcode::kIsInf, "(uchar)(isinf(%a) != 0)", nullptr, nullptr},
    {Opcode::kIsFinite, "(uchar)(isfinite(%a) != 0)", nullptr, nullptr},
    {Opcode::kLogicalNot, nullptr, nullptr, "(uchar)!%a"},
    {Opcode::kBitwiseNot, nullptr, "(%T)~%a", nullptr},
    XPU_WRAPPING(Add, "+"),
    XPU_WRAPPING(Sub, "-"),
    XPU_WRAPPING(Mul, "*"),
    {Opcode::kDiv, "%a / %b", nullptr, nullptr},
    {Opcode::kTruncateDiv, nullptr, "%T_truncate_div(%a, %b, &failed)", nullptr},
    {Opcode::kFloorDiv, "floor(%a / %b)", "%T_floor_div(%a, %b, &failed)", nullptr},
    {Opcode::kFloorMod, "%T_floor_mod(%a, %b)", "%T_floor_mod(%a, %b, &failed)", nullptr},
    {Opcode::kTruncateMod, "fmod(%a, %b)", "%T_truncate_mod(%a, %b, &failed)", nullptr},
    {Opcode::kMaximum, "(isnan(%a) || %a > %b ? %a : %b)", "(%a > %b ? %a : %b)", nullptr},
    {Opcode::kMinimum, "(isnan(%a) || %a < %b ? %a : %b)", "(%a < %b ? %a : %b)", nullptr},
    {Opcode::kPow, "pow(%a, %b)", "%T_power(%a, %b, &failed)", nullptr},
    {Opcode::kAtan2, "atan2(%a, %b)", nullptr, nullptr},
    {Opcode::kNextAfter, "nextafter(%a, %b)", nullptr, nullptr},
    XPU_COMPARISON(Equal, "==", "(uchar)(%a == %b)"),
    XPU_COMPARISON(NotEqual, "!=", "(uchar)(%a != %b)"),
    XPU_COMPARISON(Less, "<", nullptr),
    XPU_COMPARISON(LessEqual, "<=", nullptr),
    XPU_COMPARISON(Greater, ">", nullptr),
    XPU_COMPARISON(GreaterEqual, ">=", nullptr),
    {Opcode::kLogicalAnd, nullptr, nullptr, "(uchar)(%a && %b)"},
    {Opcode::kLogicalOr, nullptr, nullptr, "(uchar)(%a || %b)"},
    {Opcode::kBitwiseAnd, nullptr, "(%T)(%a & %b)", nullptr},
    {Opcode::kBitwiseOr, nullptr, "(%T)(%a | %b)", nullptr},
    {Opcode::kBitwiseXor, nullptr, "(%T)(%a ^ %b)", nullptr},
    {Opcode::kLeftShift, nullptr, "(%T)((%U)%a << %T_shift(%b))", nullptr},
    {Opcode::kRightShift, nullptr, "(%T)(%a >> %T_shift(%b))", nullptr},
    {Opcode::kSelect, "(%a ? %b : %c)", "(%a ? %b : %c)", "(%a ? %b : %c)"},
};
#undef XPU_FUNCTION
#undef XPU_COMPARISON
#undef XPU_WRAPPING

// For complex operands: %T_name is a function in complex.cl.
struct ComplexExpression {
  Opcode op;
  const char* text;
};
#define XPU_COMPLEX(Name, function) {Opcode::k##Name, "%T_" function "(%a)"}
constexpr ComplexExpression kComplexExpressions[] = {
    {Opcode::kNeg, "-%a"},
    {Opcode::kReciprocal, "%T_div(MAKE2(%T, 1, 0), %a)"},
    {Opcode::kSquare, "%T_mul(%a, %a)"},
    {Opcode::kRsqrt, "%T_div(MAKE2(%T, 1, 0), %T_sqrt(%a))"},
    XPU_COMPLEX(Abs, "abs"),
    XPU_COMPLEX(Sign, "sign"),
    XPU_COMPLEX(Sqrt, "sqrt"),
    XPU_COMPLEX(Exp, "exp"),
    XPU_COMPLEX(Expm1, "expm1"),
    XPU_COMPLEX(Log, "log"),
    XPU_COMPLEX(Log1p, "log1p"),
    XPU_COMPLEX(Sin, "sin"),
    XPU_COMPLEX(Cos, "cos"),
    XPU_COMPLEX(Tan, "tan"),
    XPU_COMPLEX(Asin, "asin"),
    XPU_COMPLEX(Acos, "acos"),
    XPU_COMPLEX(Atan, "atan"),
    XPU_COMPLEX(Sinh, "sinh"),
    XPU_COMPLEX(Cosh, "cosh"),
    XPU_COMPLEX(Tanh, "tanh"),
    XPU_COMPLEX(Asinh, "asinh"),
    XPU_COMPLEX(Acosh, "acosh"),
    XPU_COMPLEX(Atanh, "atanh"),
    XPU_COMPLEX(Sigmoid, "sigmoid"),
    {Opcode::kReal, "%a.x"},
    {Opcode::kImag, "%a.y"},
    {Opcode::kAngle, "atan2(%a.y, %a.x)"},
    XPU_COMPLEX(Conj, "conj"),
    {Opcode::kAdd, "%a + %b"},
    {Opcode::kSub, "%a - %b"},
    {Opcode::kMul, "%T_mul(%a, %b)"},
    {Opcode::kDiv, "%T_div(%a, %b)"},
    {Opcode::kPow, "%T_pow(%a, %b)"},
    {Opcode::kEqual, "(uchar)(%a.x == %b.x && %a.y == %b.y)"},
    {Opcode::kNotEqual, "(uchar)(%a.x != %b.x || %a.y != %b.y)"},
    {Opcode::kSelect, "(%a ? %b : %c)"},
};
#undef XPU_COMPLEX

// The entry of each opcode, null if there is none: every command asks.
template <typename E, size_t n>
std::array<const E*, kNumOpcodes> ByOpcode(const E (&entries)[n]) {
  std::array<const E*, kNumOpcodes> found{};
  for (const E& entry : entries) found[static_cast<size_t>(entry.op)] = &entry;
  return found;
}

const char* ExpressionOf(Opcode op, DType type) {
  static const auto* const real = new auto(ByOpcode(kExpressions));
  static const auto* const complex = new auto(ByOpcode(kComplexExpressions));
  const auto at = static_cast<size_t>(op);
  if (IsComplex(type)) return (*complex)[at] == nullptr ? nullptr : (*complex)[at]->text;
  const Expression* const e = (*real)[at];
  if (e == nullptr) return nullptr;
  return IsFloating(type) ? e->floating : IsInteger(type) ? e->integer : type == DType::kBool ? e->boolean : nullptr;
}

std::string RegisterName(int reg) { return "r" + std::to_string(reg); }

std::string Replaced(const char* pattern, const Instr& instr) {
  const TypeText& type = TextOf(instr.type);
  std::string text;
  for (const char* c = pattern; *c != '\0'; ++c) {
    if (*c != '%') {
      text += *c;
      continue;
    }
    switch (*++c) {
      case 'a':
        text += RegisterName(instr.a);
        break;
      case 'b':
        text += RegisterName(instr.b);
        break;
      case 'c':
        text += RegisterName(instr.c);
        break;
      case 'T':
        text += type.reg;
        break;
      case 'U':
        text += type.wrapping;
        break;
      case 'W':
        text += type.same_size;
        break;
    }
  }
  return text;
}

// The real number of a type whose register is at `from`.
std::string NumberText(DType type, const char* from) {
  uint64_t bits = 0;
  const size_t size = plain::RegisterSize(type);
  std::memcpy(&bits, from, size);
  char text[64];
  if (!IsFloating(type)) {
    std::snprintf(text, sizeof(text), "(%s)0x%" PRIx64 "ul", RegisterOf(type), bits);
  } else {
    std::snprintf(text, sizeof(text), "as_%s(0x%" PRIx64 "%s)", RegisterOf(type), bits, size == 8 ? "ul" : "u");
  }
  return text;
}

std::string ConstantText(const Constant& constant) {
  alignas(16) char value[16] = {};
  plain::StoreConstant(constant, value);
  if (!IsComplex(constant.type)) return NumberText(constant.type, value);
  const DType real = RealTypeOf(constant.type);
  return errors::Concat("MAKE2(", RegisterOf(constant.type), ", ", NumberText(real, value), ", ",
                        NumberText(real, value + SizeOf(real)), ")");
}

// Special functions are computed in double whatever the type.
std::string SpecialCall(const Instr& instr) {
  const uint16_t operands[] = {instr.a, instr.b, instr.c};
  std::string text = errors::Concat("(", RegisterOf(instr.type), ")", SpecialFunction(instr.op), "(");
  for (int i = 0; i < Info(instr.op).arity; ++i) {
    text += errors::Concat(i == 0 ? "" : ", ", "(double)", RegisterName(operands[i]));
  }
  return text + ")";
}

bool MayFail(Opcode op, DType type) {
  const char* const text = ExpressionOf(op, type);
  return text != nullptr && std::strstr(text, "&failed") != nullptr;
}

}  // namespace

namespace {

// One by one: a formatter would put them in the order of their names.
const std::string kOpenclWords =
#include "tensorflow_plugin/backends/gpu/kernels/prelude_opencl.cl.inc"
    ;
const std::string kCudaWords =
#include "tensorflow_plugin/backends/gpu/kernels/prelude_cuda.cl.inc"
    ;
const std::string kCommonWords =
#include "tensorflow_plugin/backends/gpu/kernels/prelude.cl.inc"
    ;

}  // namespace

const std::string kOpenclPrelude = kOpenclWords + kCommonWords;
const std::string kCudaPrelude = kCudaWords + kCommonWords;

bool HasType(const Abilities& abilities, DType type) {
  return !IsComplex(type) && TextOf(type).storage != nullptr && (type != DType::kDouble || abilities.has_double);
}

bool HasRegister(const Abilities& abilities, DType type) { return HasType(abilities, RealTypeOf(type)); }

bool HasProgram(const Abilities& abilities, const Program& program) {
  for (DType type : program.inputs()) {
    if (!HasRegister(abilities, type)) return false;
  }
  for (const Constant& constant : program.constants()) {
    if (!HasRegister(abilities, constant.type)) return false;
  }
  for (const Instr& instr : program.instrs()) {
    if (!HasRegister(abilities, instr.type) || !HasRegister(abilities, instr.result)) return false;
    const bool is_special = !IsComplex(instr.type) && SpecialFunction(instr.op) != nullptr;  // of real numbers
    if (is_special && !abilities.has_double) return false;
    if (instr.op != Opcode::kCast && !is_special && ExpressionOf(instr.op, instr.type) == nullptr) return false;
  }
  return true;
}

const char* StorageOf(DType type) { return TextOf(type).storage; }
const char* RegisterOf(DType type) { return TextOf(type).reg; }

std::string FunctionsFor(DType type) {
  if (!IsComplex(type)) return "";
  const std::string real = type == DType::kComplex64 ? "float" : "double", reg = real + "2";
  return errors::Concat("#ifndef HAS_", reg, "\n#define HAS_", reg, "\n#define C ", reg, "\n#define R ", real,
                        "\n#define F(name) ", reg, "_##name\n", kComplex, "#undef C\n#undef R\n#undef F\n#endif\n");
}

std::string FunctionsFor(const Program& program) {
  std::set<std::string> lines, functions;
  const auto use = [&](DType type) {
    lines.insert(FunctionsFor(type));
    const TypeText& text = TextOf(type);
    if (IsInteger(type)) {
      functions.insert(errors::Concat("INTEGER(", text.reg, ", ", text.wrapping, ", ", 8 * SizeOf(type), ")\n"));
    } else if (IsFloating(type)) {
      functions.insert(errors::Concat("CUT(", text.reg, ")\n"));
    } else if (IsComplex(type)) {
      functions.insert(errors::Concat("CUT(", RegisterOf(RealTypeOf(type)), ")\n"));
    }
  };
  for (int reg = 0; reg < program.num_registers(); ++reg) use(program.type(reg));
  for (const Instr& instr : program.instrs()) use(instr.type);
  const std::string special = SpecialSources(program);
  std::string all;
  for (const std::string& line : lines) all += line;
  for (const std::string& function : functions) all += function;
  return all + special;
}

std::string Load(DType type, const std::string& memory, const std::string& index) {
  if (type == DType::kHalf) return "LOAD_HALF(" + memory + ", " + index + ")";
  const std::string element = std::string("AT(") + StorageOf(type) + ", " + memory + ")[" + index + "]";
  return type == DType::kBFloat16 ? "from_bfloat16(" + element + ")" : element;
}

std::string Store(DType type, const std::string& memory, const std::string& index, const std::string& value) {
  if (type == DType::kHalf) return "STORE_HALF(" + memory + ", " + index + ", " + value + ");\n";
  const std::string element = std::string("AT(") + StorageOf(type) + ", " + memory + ")[" + index + "] = ";
  return element + (type == DType::kBFloat16 ? "to_bfloat16(" + value + ")" : value) + ";\n";
}

std::string ProductText(DType type, const std::string& a, const std::string& b) {
  return IsComplex(type) ? errors::Concat(RegisterOf(type), "_mul(", a, ", ", b, ")")
                         : errors::Concat("((", a, ") * (", b, "))");
}

std::string Extreme(DType type, bool highest) {
  if (type == DType::kBool) return highest ? "1" : "0";
  if (IsFloating(type)) return highest ? "INFINITY" : "-INFINITY";
  // For b bits: 2^(b - 1) - 1 and the number below its negative, or 2^b - 1 and 0.
  const bool is_unsigned = RegisterOf(type)[0] == 'u';
  const uint64_t largest = UINT64_MAX >> (64 - 8 * SizeOf(type) + (is_unsigned ? 0 : 1));
  if (highest) return errors::Concat("((", RegisterOf(type), ")", largest, "ul)");
  return is_unsigned ? "0" : errors::Concat("((", RegisterOf(type), ")(-", largest, "l - 1))");
}

const char* InfinityBits(DType type) {
  if (type == DType::kHalf) return "0x7c00";
  if (type == DType::kBFloat16) return "0x7f80";
  return type == DType::kFloat || type == DType::kComplex64 ? "0x7f800000u" : "0x7ff0000000000000ul";
}

// The meaning is plain/scalar_ops.h's.
std::string Cast(DType from, DType to, const std::string& x) {
  if (IsComplex(to)) {
    const DType real = RealTypeOf(to);
    const std::string parts =
        IsComplex(from) ? Cast(RealTypeOf(from), real, x + ".x") + ", " + Cast(RealTypeOf(from), real, x + ".y")
                        : Cast(from, real, x) + ", 0";
    return errors::Concat("MAKE2(", RegisterOf(to), ", ", parts, ")");
  }
  if (IsComplex(from)) return Cast(RealTypeOf(from), to, x + ".x");
  if (to == DType::kBool) return "(uchar)(" + x + " != 0)";
  if (to == DType::kHalf) return "round_to_half((float)" + x + ")";
  if (to == DType::kBFloat16) return "round_to_bfloat16((float)" + x + ")";
  const std::string target = RegisterOf(to);
  if (IsFloating(from) && IsInteger(to)) {
    const bool through_int = SizeOf(to) < 4 || to == DType::kInt32;
    const char* const by = to == DType::kUint64 ? "ulong" : through_int ? "int" : "long";
    const std::string whole = std::string(RegisterOf(from)) + "_to_" + by + "(" + x + ")";
    if (SizeOf(to) >= 4) return "(" + target + ")" + whole;
    const int bits = 8 * static_cast<int>(SizeOf(to)) - (IsUnsignedInteger(to) ? 0 : 1);
    const int most = (1 << bits) - 1, least = IsUnsignedInteger(to) ? 0 : -most - 1;
    return errors::Concat("(", target, ")min(max(", whole, ", ", least, "), ", most, ")");
  }
  return "(" + target + ")" + x;
}

std::string Registers(const Program& program, const std::function<std::string(int input)>& load) {
  std::string text;
  int reg = 0;
  const auto define = [&](const std::string& value) {
    text += std::string("  const ") + RegisterOf(program.type(reg)) + " " + RegisterName(reg) + " = " + value + ";\n";
    ++reg;
  };
  for (int i = 0; i < program.num_inputs(); ++i) define(load(i));
  for (const Constant& constant : program.constants()) define(ConstantText(constant));
  if (program.can_fail()) text += "  int failed = 0;\n";
  for (size_t i = 0; i < program.instrs().size(); ++i) {
    const Instr& instr = program.instrs()[i];
    if (instr.op == Opcode::kCast) {
      define(Cast(instr.type, instr.result, RegisterName(instr.a)));
      continue;
    }
    if (SpecialFunction(instr.op) != nullptr) {
      define(SpecialCall(instr));
      continue;
    }
    define(Replaced(ExpressionOf(instr.op, instr.type), instr));
    if (MayFail(instr.op, instr.type)) {
      text += errors::Concat("  if (failed) FAIL(", i, ");\n  failed = 0;\n");
    }
  }
  return text;
}

}  // namespace xpu::gpu
