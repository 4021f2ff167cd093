// Elementwise functions that OpenCL C lacks, in double, as the reference computes them.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_SPECIAL_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_SPECIAL_H_

#include <string>

#include "tensorflow_plugin/primitives/program.h"

namespace xpu::gpu {

// The function of doubles that an instruction is; nullptr: it is none of these.
const char* SpecialFunction(Opcode op);
// The sources of those that a program uses, each once.
std::string SpecialSources(const Program& program);

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_SPECIAL_H_
