// A program becomes a kernel of which each item computes one element.
#include <string>

#include "tensorflow_plugin/backends/gpu/codegen/element_walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/plain/instructions.h"

namespace xpu::gpu {
namespace {

std::string Source(const Program& program, const ElementWalk& walk) {
  return errors::Concat(FunctionsFor(program), "kernel void run(const ulong n", walk.Parameters(),
                        program.can_fail() ? ", MEMORY(report)" : "", ") {\n  const ", walk.index_type(),
                        " i = get_global_id(0);\n  if (i >= n) return;\n", walk.Statements(), "}\n");
}

}  // namespace

bool Supports(const Abilities& abilities, const ElementwiseDesc& desc) {
  return desc.program != nullptr && HasProgram(abilities, *desc.program);
}

Status Enqueue(Machine& machine, Queue& queue, const ElementwiseDesc& desc, const Args& args, const Footprint&) {
  const Program& program = *desc.program;
  const ElementWalk walk(desc);
  const int64_t n = walk.elements();
  Call call(machine, queue, "elementwise " + walk.Key(), [&] { return Source(program, walk); });
  call.Value(static_cast<uint64_t>(n));
  walk.SetArguments(call, args.in, args.out);
  if (!program.can_fail()) return call.Run(n);
  call.Report();
  return call.RunChecked(n, args,
                         [&program](uint32_t instr) { return plain::InstrFailure(program.instrs()[instr].op); });
}

}  // namespace xpu::gpu
