// A program becomes a kernel of which each item computes one element, or several on devices that are no processors.
#include <algorithm>
#include <cstdint>
#include <string>

#include "tensorflow_plugin/backends/gpu/codegen/element_walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/plain/instructions.h"

namespace xpu::gpu {
namespace {

// Elements of an item. Several have enough bytes on their way, as long as there is not too much code.
int64_t EachOf(const Hardware& hardware, const Program& program) {
  const size_t instructions = program.instrs().size();
  if (hardware.is_processor || instructions > 32 || program.num_inputs() > 8) return 1;
  size_t largest = 0;
  for (DType type : program.inputs()) largest = std::max(largest, SizeOf(type));
  for (int i = 0; i < program.num_outputs(); ++i) largest = std::max(largest, SizeOf(program.output_type(i)));
  if (instructions > 12 || program.num_inputs() > 4 || largest > 4) return 2;
  return largest < 4 ? 8 : 4;
}

std::string Source(const Program& program, const ElementWalk& walk, int64_t each) {
  if (each > 1) {
    return errors::Concat(FunctionsFor(program), "kernel void run(const ulong n", walk.Parameters(),
                          program.can_fail() ? ", MEMORY(report)" : "",
                          ") {\n  const uint items = get_local_size(0);\n", "  const ", walk.index_type(), " first = (",
                          walk.index_type(), ")get_group_id(0) * (items * ", each, ") + (uint)get_local_id(0);\n",
                          walk.StatementsOfEach(each), "}\n");
  }
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
  const int64_t each = EachOf(machine.hardware(), program);
  Call call(machine, queue, "elementwise " + walk.Key(), [&] { return Source(program, walk, each); });
  call.Value(static_cast<uint64_t>(n));
  walk.SetArguments(call, args.in, args.out);
  if (program.can_fail()) call.Report();
  XPU_RETURN_IF_ERROR(each > 1 ? call.RunEach(n, each) : call.Run(n));
  if (!program.can_fail()) return OkStatus();
  return call.Check(args, [&program](uint32_t instr) { return plain::InstrFailure(program.instrs()[instr].op); });
}

}  // namespace xpu::gpu
