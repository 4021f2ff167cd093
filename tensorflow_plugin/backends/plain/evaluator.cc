#include "tensorflow_plugin/backends/plain/evaluator.h"

#include <cstring>

namespace xpu::plain {

Evaluator::Evaluator(const ElementwiseDesc& desc, const Args& args)
    : desc_(desc), args_(args), program_(*desc.program), registers_(program_.num_registers()) {
  for (size_t i = 0; i < program_.constants().size(); ++i) {
    StoreConstant(program_.constants()[i], registers_[program_.num_inputs() + i].bytes);
  }
  for (const Instr& instr : program_.instrs()) instrs_.push_back(FindInstr(instr.op, instr.type, instr.result));
}

void Evaluator::At(const int64_t* index) {
  for (int i = 0; i < program_.num_inputs(); ++i) {
    int64_t offset = 0;
    for (int d = 0; d < desc_.shape.rank(); ++d) offset += index[d] * desc_.in_strides[i][d];
    const DType type = program_.inputs()[i];
    const auto* element = static_cast<const unsigned char*>(args_.in[i]) + offset * static_cast<int64_t>(SizeOf(type));
    if (InstrFn load = FindLoad(type)) {
      load(registers_[i].bytes, element, nullptr, nullptr, 1);
    } else {
      std::memcpy(registers_[i].bytes, element, SizeOf(type));
    }
  }
  Value* result = registers_.data() + program_.first_instr_register();
  for (size_t i = 0; i < instrs_.size(); ++i, ++result) {
    const Instr& instr = program_.instrs()[i];
    const bool failed =
        instrs_[i](result->bytes, registers_[instr.a].bytes, registers_[instr.b].bytes, registers_[instr.c].bytes, 1);
    if (failed && status_.ok()) status_ = InstrFailure(instr.op);
  }
}

bool NextIndex(const Dims& shape, int64_t* index) {
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

}  // namespace xpu::plain
