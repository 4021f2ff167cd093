#include "tensorflow_plugin/backends/cuda/blas/blas_epilogue.h"

namespace xpu::cuda {
namespace {

class Finder {
 public:
  Finder(DType type, int64_t columns, const ElementwiseDesc& desc, BlasEpilogue* found)
      : desc_(desc), program_(*desc.program), type_(type), n_(columns), found_(*found) {}

  bool Run() {
    if (program_.num_outputs() != 1 || program_.output_type(0) != type_) return false;
    int at = Unrounded(program_.outputs()[0]);
    if (const Instr* const instr = Made(at); instr != nullptr && instr->op == Opcode::kMaximum) {
      if (!IsZero(instr->a) && !IsZero(instr->b)) return false;
      found_.relu = true;
      at = Unrounded(IsZero(instr->a) ? instr->b : instr->a);
    }
    return IsSum(at) && has_product_;
  }

 private:
  // The instruction that makes a register; null for inputs and constants.
  const Instr* Made(int reg) const {
    const int index = reg - program_.first_instr_register();
    return index < 0 ? nullptr : &program_.instrs()[static_cast<size_t>(index)];
  }
  bool IsZero(int reg) const {
    const int index = reg - program_.num_inputs();
    if (index < 0 || Made(reg) != nullptr) return false;
    const Constant& constant = program_.constants()[static_cast<size_t>(index)];
    return IsReal(constant.type) && constant.re == 0;
  }
  // Types of the numbers that the steps may compute with.
  bool IsReal(DType type) const { return type == type_ || (IsReducedFloat(type_) && type == DType::kFloat); }
  // The register before conversions between a 16-bit type and float.
  int Unrounded(int reg) const {
    const Instr* instr = Made(reg);
    while (instr != nullptr && instr->op == Opcode::kCast && IsReal(instr->type) && IsReal(instr->result)) {
      reg = instr->a;
      instr = Made(reg);
    }
    return reg;
  }

  // True if a register is a sum of the product and of inputs.
  bool IsSum(int reg) {
    reg = Unrounded(reg);
    if (reg < program_.num_inputs()) return IsTerm(reg);
    const Instr* const instr = Made(reg);
    return instr != nullptr && instr->op == Opcode::kAdd && IsReal(instr->type) && IsSum(instr->a) && IsSum(instr->b);
  }
  bool IsTerm(int input) {
    if (input == 0) {
      const bool is_first = !has_product_;
      has_product_ = true;
      return is_first;
    }
    if (program_.inputs()[static_cast<size_t>(input)] != type_) return false;
    Dims shape = desc_.shape, strides = desc_.in_strides[input];
    Dims* const both[] = {&strides};
    MergeDims(&shape, both, 1);
    const int last = shape.rank() - 1;
    if (last < 0 || strides[last] != 1) return false;
    const bool is_row = shape[last] == n_ && (last == 0 || (last == 1 && strides[0] == 0));
    if (is_row && found_.bias == 0) {
      found_.bias = input;
      return true;
    }
    if (last != 0 || shape[0] != desc_.shape.num_elements() || found_.added != 0) return false;
    found_.added = input;
    return true;
  }

  const ElementwiseDesc& desc_;
  const Program& program_;
  const DType type_;
  const int64_t n_;
  BlasEpilogue& found_;
  bool has_product_ = false;
};

}  // namespace

bool FindBlasEpilogue(DType type, int64_t columns, const ElementwiseDesc& desc, BlasEpilogue* epilogue) {
  if (type != DType::kFloat && !IsReducedFloat(type)) return false;
  return Finder(type, columns, desc, epilogue).Run();
}

}  // namespace xpu::cuda
