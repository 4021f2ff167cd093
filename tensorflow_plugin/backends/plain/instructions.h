// Every instruction as a loop over registers. The reference runs it on one element, and the host backend on a tile
// where it has nothing faster.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_INSTRUCTIONS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_INSTRUCTIONS_H_

#include <cstdint>
#include <string>

#include "tensorflow_plugin/primitives/descriptors.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::plain {

// dst[i] = op(a[i], b[i], c[i]) for i in [0, n). Arrays hold registers: float for half and bfloat16, bool as a byte
// that is 0 or 1. The array dst may be one of the operands if its elements have the same size. True if an element
// failed.
using InstrFn = bool (*)(void* dst, const void* a, const void* b, const void* c, int64_t n);

// The loop of an instruction; nullptr for an op that is not defined on its type.
InstrFn FindInstr(Opcode op, DType type, DType result);

// A program's inputs and outputs <-> registers: differ for half and bfloat16 only.
InstrFn FindLoad(DType type);
InstrFn FindStore(DType type);

// Bytes of a register.
size_t RegisterSize(DType type);
// Writes the constant's register to `dst`.
void StoreConstant(const Constant& constant, void* dst);

// The status of a command in which instruction `op` failed on an element.
Status InstrFailure(Opcode op);

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_INSTRUCTIONS_H_
