// A program becomes a kernel of which each item computes one element. How its inputs are walked is part of the kernel;
// extents and strides are not, so that it is compiled once whatever the shapes.
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/opencl/primitives.h"
#include "tensorflow_plugin/backends/opencl/walk.h"
#include "tensorflow_plugin/backends/plain/instructions.h"

namespace xpu::opencl {
namespace {

// How an input is walked, merged with the others.
enum class Walk : char { kDense = 'd', kScalar = 's', kStrided = 'x' };

struct Plan {
  Dims shape;
  std::string walks;                 // of the inputs, by the letters above
  std::vector<const Dims*> strided;  // the strides of those that are kStrided
  Dims strides[Program::kMaxInputs];
};

void MakePlan(const ElementwiseDesc& desc, Plan* plan) {
  const int n = desc.program->num_inputs();
  Dims* all[Program::kMaxInputs];
  plan->shape = desc.shape;
  for (int i = 0; i < n; ++i) {
    plan->strides[i] = desc.in_strides[i];
    all[i] = &plan->strides[i];
  }
  MergeDims(&plan->shape, all, n);
  const Dims dense = DenseStrides(plan->shape);
  for (int i = 0; i < n; ++i) {
    const Dims& strides = plan->strides[i];
    const bool is_scalar = strides == Dims(strides.rank(), 0) || plan->shape.num_elements() == 1;
    const Walk walk = is_scalar ? Walk::kScalar : strides == dense ? Walk::kDense : Walk::kStrided;
    plan->walks += static_cast<char>(walk);
    if (walk == Walk::kStrided) plan->strided.push_back(&strides);
  }
}

std::string Source(const Program& program, const Plan& plan, const char* index_type) {
  const int strided = static_cast<int>(plan.strided.size());
  std::string text = ExtensionsFor(program) + "kernel void run(const ulong n";
  for (int i = 0; i < program.num_inputs(); ++i) text += errors::Concat(", MEMORY(in", i, ")");
  for (int i = 0; i < program.num_outputs(); ++i) text += errors::Concat(", MEMORY(out", i, ")");
  if (strided != 0) text += ", constant long *table";
  if (program.can_fail()) text += ", MEMORY(report)";
  text += errors::Concat(") {\n  const ", index_type, " i = get_global_id(0);\n  if (i >= n) return;\n");
  if (strided != 0) text += WalkText(plan.shape.rank(), strided, "i", index_type);
  int next_strided = 0;
  text += Registers(program, [&](int input) {
    const char walk = plan.walks[static_cast<size_t>(input)];
    const std::string index = walk == static_cast<char>(Walk::kDense)    ? "i"
                              : walk == static_cast<char>(Walk::kScalar) ? "0"
                                                                         : "o" + std::to_string(next_strided++);
    return Load(program.inputs()[static_cast<size_t>(input)], "in" + std::to_string(input), index);
  });
  for (int i = 0; i < program.num_outputs(); ++i) {
    const std::string value = "r" + std::to_string(program.outputs()[static_cast<size_t>(i)]);
    text += "  " + Store(program.output_type(i), "out" + std::to_string(i), "i", value);
  }
  return text + "}\n";
}

}  // namespace

bool Supports(const Abilities& abilities, const ElementwiseDesc& desc) {
  return desc.program != nullptr && HasProgram(abilities, *desc.program);
}

Status Enqueue(Machine& machine, Queue& queue, const ElementwiseDesc& desc, const Args& args, const Footprint&) {
  const Program& program = *desc.program;
  Plan plan;
  MakePlan(desc, &plan);
  const int64_t n = plan.shape.num_elements();
  const char* const index_type = IndexType(n);
  // Programs are interned: the address is the program.
  const std::string key = errors::Concat("elementwise ", desc.program, " ", plan.walks, " ",
                                         plan.strided.empty() ? 0 : plan.shape.rank(), " ", index_type);
  Call call(machine, queue, key, [&] { return Source(program, plan, index_type); });
  call.Value(static_cast<cl_ulong>(n));
  for (int i = 0; i < program.num_inputs(); ++i) call.Memory(args.in[i]);
  for (int i = 0; i < program.num_outputs(); ++i) call.Memory(args.out[i]);
  if (!plan.strided.empty()) call.Table(WalkTable(plan.shape, plan.strided));
  if (!program.can_fail()) return call.Run(n);
  call.Report();
  return call.RunChecked(n, args,
                         [&program](uint32_t instr) { return plain::InstrFailure(program.instrs()[instr].op); });
}

}  // namespace xpu::opencl
