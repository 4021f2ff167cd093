// Kernels' language: what every kernel has in front, and what programs become.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_SOURCES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_SOURCES_H_

#include <functional>
#include <string>

#include "tensorflow_plugin/primitives/program.h"

namespace xpu::gpu {

// The features that a kernel may count on, whichever device it is for.
struct Abilities {
  bool has_double = true;
  bool only_processors = true;  // nothing takes as many items, and the memory for what they find, as other devices do
};

// True if there is OpenCL C for real elements of the type. The second function says so of all elements, complex ones
// too.
bool HasType(const Abilities& abilities, DType type);
bool HasRegister(const Abilities& abilities, DType type);
// True if there is OpenCL C for every instruction of a program.
bool HasProgram(const Abilities& abilities, const Program& program);

// The beginning of every kernel, for a compiler of OpenCL C and for one of CUDA C++: parameters, conversions,
// arithmetic of integers. Comments in prelude_opencl.cl and prelude.cl say what a kernel writes.
extern const std::string kOpenclPrelude, kCudaPrelude;

// The type in OpenCL C of a stored element, and of a register: float for half and bfloat16; both uchar for bool.
const char* StorageOf(DType type);
const char* RegisterOf(DType type);
// Put in front of kernels that use one of these types: what functions they need, for complex ones complex.cl.
std::string FunctionsFor(const Program& program);
std::string FunctionsFor(DType type);

// The register of element `index` of the array at parameter MEMORY(memory).
std::string Load(DType type, const std::string& memory, const std::string& index);
// A statement that stores a register there.
std::string Store(DType type, const std::string& memory, const std::string& index, const std::string& value);

// A product of registers that are not integers, which would overflow.
std::string ProductText(DType type, const std::string& a, const std::string& b);

// The least value of a type, or the greatest; infinite where there is infinity.
std::string Extreme(DType type, bool highest);

// The bits of infinity in storage, of a complex type in a part of it.
const char* InfinityBits(DType type);

// A register of one type as one of another.
std::string Cast(DType from, DType to, const std::string& value);

// Statements that define r0, r1, ... : the registers of a program, of which the first are its inputs, loaded by the
// expressions that `load` gives. In programs that can fail they write the number of the instruction to MEMORY(report).
std::string Registers(const Program& program, const std::function<std::string(int input)>& load);

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_SOURCES_H_
