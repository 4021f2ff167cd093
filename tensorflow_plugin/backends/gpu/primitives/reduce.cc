// The kernels of a processor and those of other devices, whose groups share the elements.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/codegen/parts.h"
#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/plain/instructions.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/reduction/reduce.cl.inc"
    ;
const std::string kGroups =
#include "tensorflow_plugin/backends/gpu/kernels/reduction/reduce_group.cl.inc"
    ;

// The axes that are kept and those that are reduced, of each at least one, merged.
struct ReductionPlan {
  struct Axes {
    Dims shape;
    Dims strides[Program::kMaxInputs];
  };
  Axes kept, reduced;
  bool is_one_run = false;    // there are no parts
  bool ends_reduced = false;  // the innermost axis is one of them
};

ReductionPlan MakePlan(const ReduceDesc& desc) {
  const int inputs = desc.source.program->num_inputs();
  ReductionPlan plan;
  for (int d = 0; d < desc.source.shape.rank(); ++d) {
    const bool is_reduced = (desc.axes >> d & 1) != 0;
    ReductionPlan::Axes& axes = is_reduced ? plan.reduced : plan.kept;
    axes.shape.push_back(desc.source.shape[d]);
    for (int k = 0; k < inputs; ++k) axes.strides[k].push_back(desc.source.in_strides[k][d]);
    if (desc.source.shape[d] != 1) plan.ends_reduced = is_reduced;
  }
  for (ReductionPlan::Axes* axes : {&plan.kept, &plan.reduced}) {
    Dims* all[Program::kMaxInputs];
    if (axes->shape.empty()) axes->shape.push_back(1);
    for (int k = 0; k < inputs; ++k) {
      axes->strides[k].resize(axes->shape.rank());
      all[k] = &axes->strides[k];
    }
    MergeDims(&axes->shape, all, inputs);
  }
  plan.is_one_run = desc.source.program->can_fail();  // which reports once
  return plan;
}

// The parts of a processor's rows.
Parts PartsOf(const ReductionPlan& plan) {
  return plan.is_one_run ? Parts() : Parts::Of(plan.kept.shape.num_elements(), plan.reduced.shape.num_elements());
}

// How groups reduce. A group has items / lanes outputs, or a part of each.
struct GroupPlan {
  int lanes_log2 = 0;  // items for an output
  bool lanes_are_neighbours = false;
  int64_t groups = 1, parts = 1, span = 0;
  int64_t lanes() const { return int64_t{1} << lanes_log2; }
};

GroupPlan PlanGroups(int64_t items, bool lanes_are_neighbours, int64_t outputs, int64_t neighbours, int64_t n,
                     bool is_one_run) {
  // As many groups as large devices have room for at a time, six for each of some hundred units.
  constexpr int64_t kEnough = 768, kLine = 32, kFew = 4, kMany = 64;
  GroupPlan plan;
  plan.lanes_are_neighbours = lanes_are_neighbours;
  plan.span = n;
  const auto blocks = [&] { return std::max<int64_t>(1, (outputs * plan.lanes() + items - 1) / items); };
  // Outputs that are neighbours go to neighbouring items, as many as there are up to a limit.
  int64_t beside = 1;
  while (!lanes_are_neighbours && beside < std::min({neighbours, kMany, items})) beside *= 2;
  const int64_t most = items / beside;
  while (plan.lanes() < std::min(most, kLine) && plan.lanes() * kFew < n) ++plan.lanes_log2;
  while (plan.lanes() < most && blocks() < kEnough && plan.lanes() * kFew < n) ++plan.lanes_log2;
  if (!is_one_run) {
    constexpr int64_t kShortest = 8;  // elements of an item
    plan.parts = std::clamp<int64_t>(kEnough / blocks(), 1, std::max<int64_t>(1, n / (plan.lanes() * kShortest)));
    // Parts begin where a line of items would.
    plan.span = ((n + plan.parts - 1) / plan.parts + plan.lanes() - 1) / plan.lanes() * plan.lanes();
    plan.parts = std::max<int64_t>(1, (n + plan.span - 1) / std::max<int64_t>(1, plan.span));
  }
  plan.groups = blocks() * plan.parts;
  return plan;
}

GroupPlan FirstGroups(int64_t items, const ReductionPlan& plan) {
  const Dims& kept = plan.kept.shape;
  return PlanGroups(items, plan.ends_reduced, kept.num_elements(), kept[kept.rank() - 1],
                    plan.reduced.shape.num_elements(), plan.is_one_run);
}

// The run that puts parts together: [parts, outputs], of which few neighbours are enough to read whole sectors.
GroupPlan LastGroups(int64_t items, int64_t outputs, int64_t parts) {
  constexpr int64_t kSector = 8;
  return PlanGroups(items, false, outputs, std::min(outputs, kSector), parts, true);
}

constexpr int64_t kGroupItems[] = {64, 256};
int64_t ItemsOf(const Hardware& hardware) { return hardware.largest_group < 256 ? kGroupItems[0] : kGroupItems[1]; }

int64_t AccBytes(const ReduceDesc& desc) {
  if (IsArgKind(desc.kind)) return 16;  // an element and its position
  return IsComplex(SourceType(desc)) ? static_cast<int64_t>(SizeOf(SourceType(desc))) : 8;
}

std::string KindSource(const ReduceDesc& desc) {
  const DType type = SourceType(desc), result = ResultType(desc);
  const std::string value = RegisterOf(type);
  std::string text = errors::Concat("#define VALUE_TYPE ", value, "\n#define RESULT_TYPE ", RegisterOf(result),
                                    "\n#define STORE_RESULT(i, x) ", Store(result, "out", "i", "x"));
  const auto define = [&](const std::string& acc, const std::string& identity, const std::string& term,
                          const std::string& combine, const std::string& of_total) {
    text += errors::Concat("typedef ", acc, " ACC;\n#define IDENTITY ", identity, "\n#define TERM(x, e) ", term,
                           "\n#define COMBINE(a, b) ", combine, "\n#define RESULT(a, divisor) ", of_total, "\n");
  };
  // Integers wrap, which only unsigned ones do by themselves, and means are taken in 64 bits.
  const bool is_integer = IsInteger(type);
  const std::string sum = is_integer ? "ulong" : value;
  switch (desc.kind) {
    case ReduceKind::kSum:
    case ReduceKind::kMean: {
      const char* const wide = value[0] == 'u' ? "ulong" : "long";
      const std::string quotient =
          errors::Concat("((divisor) == 0 ? 0 : (", value, ")((", wide, ")(a) / (", wide, ")(divisor)))");
      define(sum, "SPLAT(ACC, 0)", "(ACC)(x)", "((a) + (b))",
             is_integer ? quotient : errors::Concat("((a) / (", RegisterOf(RealTypeOf(type)), ")(divisor))"));
      break;
    }
    case ReduceKind::kProd:
      define(sum, IsComplex(type) ? "MAKE2(ACC, 1, 0)" : "1", "(ACC)(x)",
             is_integer ? "((a) * (b))" : ProductText(type, "a", "b"), errors::Concat("(", value, ")(a)"));
      break;
    case ReduceKind::kEuclideanNorm:
      if (IsComplex(type)) {
        define(RegisterOf(RealTypeOf(type)), "0", value + "_squared_abs(x)", "((a) + (b))",
               errors::Concat("MAKE2(", value, ", sqrt(a), 0)"));
        break;
      }
      define(is_integer ? "double" : value, "0", "((ACC)(x) * (ACC)(x))", "((a) + (b))",
             is_integer ? Cast(DType::kDouble, type, "sqrt(a)") : "sqrt(a)");
      break;
    case ReduceKind::kMax:
    case ReduceKind::kAny:
    case ReduceKind::kMin:
    case ReduceKind::kAll: {
      const bool is_max = desc.kind == ReduceKind::kMax || desc.kind == ReduceKind::kAny;
      const std::string better = errors::Concat("(a) ", is_max ? ">" : "<", " (b)");
      define(value, Extreme(type, !is_max), "(x)",
             errors::Concat("(", IsFloating(type) ? "isnan(a) || " : "", better, " ? (a) : (b))"), "(a)");
      break;
    }
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin: {
      // The first of the best; a NaN, which compares false, is none.
      const bool is_max = desc.kind == ReduceKind::kArgMax;
      define(errors::Concat("struct { ", value, " best; long at; }"),
             errors::Concat("acc_of(", Extreme(type, !is_max), ", 0)"), "acc_of(x, e)",
             errors::Concat("((b).best ", is_max ? ">" : "<",
                            " (a).best || ((b).best == (a).best && (b).at < (a).at) ? (b) : (a))"),
             errors::Concat("(", RegisterOf(result), ")(a).at"));
      text += errors::Concat("ACC acc_of(const ", value, " best, const long at) {\n  const ACC acc = {best, at};\n",
                             "  return acc;\n}\n");
      break;
    }
  }
  return text;
}

// Elements that an item of a group has on their way at a time: enough bytes, and not too much code.
int64_t EachOf(const ReduceDesc& desc) {
  const Program& program = *desc.source.program;
  size_t bytes = 0;
  for (DType type : program.inputs()) bytes += SizeOf(type);
  const size_t instructions = program.instrs().size();
  return instructions > 32 ? 2 : instructions > 8 || bytes > 16 || IsArgKind(desc.kind) ? 4 : bytes < 4 ? 16 : 8;
}

std::string Source(const ReduceDesc& desc, const std::string& before_kernel, const std::string& kernel) {
  const Program& program = *desc.source.program;
  std::string parameters, arguments;
  const auto memory = [&](const std::string& name) {
    parameters += ", MEMORY(" + name + ")";
    arguments += ", PASS(" + name + ")";
  };
  for (int k = 0; k < program.num_inputs(); ++k) memory("in" + std::to_string(k));
  if (program.can_fail()) memory("report");
  std::string functions = FunctionsFor(program);
  if (desc.kind == ReduceKind::kEuclideanNorm && IsInteger(SourceType(desc))) {
    functions += "CUT(double)\n";
  }
  const std::string body = Registers(program, [&](int input) {
    return Load(program.inputs()[static_cast<size_t>(input)], "in" + std::to_string(input),
                "o[" + std::to_string(input) + "]");
  });
  return errors::Concat(functions, "#define INPUTS ", program.num_inputs(), "\n#define SOURCE_PARAMETERS ", parameters,
                        "\n#define SOURCE_ARGUMENTS ", arguments, "\n", KindSource(desc),
                        "VALUE_TYPE VALUE(const long *o SOURCE_PARAMETERS) {\n", body, "  return r",
                        program.outputs()[0], ";\n}\n", before_kernel, kernel);
}

// Programs are interned: the address is the program. A sum is a mean that is divided by 1.
std::string KeyOf(const ReduceDesc& desc) {
  const ReduceKind kind = desc.kind == ReduceKind::kMean ? ReduceKind::kSum : desc.kind;
  return errors::Concat(static_cast<int>(kind), " ", reinterpret_cast<uintptr_t>(desc.source.program), " ",
                        IsArgKind(kind) ? Name(desc.index_type) : "");
}

Call::Judge JudgeOf(const Program& program) {
  return [&program](uint32_t instr) { return plain::InstrFailure(program.instrs()[instr].op); };
}

Status EnqueueGroups(Machine& machine, Queue& queue, const ReduceDesc& desc, const Args& args,
                     const ReductionPlan& plan) {
  const Program& program = *desc.source.program;
  const int inputs = program.num_inputs(), kept = plan.kept.shape.rank(), reduced = plan.reduced.shape.rank();
  const int64_t outputs = plan.kept.shape.num_elements(), n = plan.reduced.shape.num_elements();
  const int64_t items = ItemsOf(machine.hardware());
  std::vector<int64_t> table;
  for (const ReductionPlan::Axes* axes : {&plan.kept, &plan.reduced}) {
    std::vector<const Dims*> strides;
    for (int k = 0; k < inputs; ++k) strides.push_back(&axes->strides[k]);
    const std::vector<int64_t> walk = WalkTable(axes->shape, strides);
    table.insert(table.end(), walk.begin(), walk.end());
  }
  const std::string index_type = IndexType(std::max(outputs, n));
  const std::string key =
      errors::Concat("reduce in groups ", items, " ", kept, " ", reduced, " ", index_type, " ", KeyOf(desc));
  constexpr size_t kShortProgram = 8;
  const bool one_axis = reduced == 1 && program.instrs().size() <= kShortProgram;
  const GroupPlan first = FirstGroups(items, plan);
  for (const bool again : {false, true}) {
    const GroupPlan groups = again ? LastGroups(items, outputs, first.parts) : first;
    Call call(machine, queue, key, [&] {
      const std::string walks = WalkFunction("kept", kept, inputs, index_type) +
                                WalkFunction("reduced", reduced, inputs, index_type, kept * (2 + inputs));
      return Source(desc,
                    errors::Concat(one_axis ? "#define ONE_AXIS\n" : "", "#define INDEX ", index_type,
                                   "\n#define ITEMS ", items, "\n#define EACH ", EachOf(desc), "\n", walks),
                    kGroups);
    });
    for (int64_t value : {outputs, again ? first.parts : n, groups.parts, groups.span}) {
      index_type == "uint" ? call.Value(static_cast<uint32_t>(value)) : call.Value(static_cast<uint64_t>(value));
    }
    call.Value(static_cast<int32_t>(groups.lanes_log2)).Value(static_cast<int32_t>(groups.lanes_are_neighbours));
    call.Value(static_cast<int64_t>(desc.kind == ReduceKind::kMean ? n : 1)).Value(static_cast<int32_t>(again));
    call.Table(table).Memory(args.workspace).Memory(args.out[0]);
    for (int k = 0; k < inputs; ++k) call.Memory(args.in[k]);
    if (program.can_fail()) call.Report();
    const size_t counts[] = {static_cast<size_t>(groups.groups), 1, 1}, local[] = {static_cast<size_t>(items), 1, 1};
    XPU_RETURN_IF_ERROR(call.RunGroups(counts, local));
    if (program.can_fail()) return call.Check(args, JudgeOf(program));
    if (groups.parts == 1) break;
  }
  return OkStatus();
}

// One kernel for a kind and a source program, whatever shapes and strides. If there are few rows, they are reduced in
// parts, and the parts in one more run.
Status EnqueueOnProcessor(Machine& machine, Queue& queue, const ReduceDesc& desc, const Args& args,
                          const ReductionPlan& plan) {
  const Program& program = *desc.source.program;
  const int inputs = program.num_inputs();
  const int64_t outputs = plan.kept.shape.num_elements(), n = plan.reduced.shape.num_elements();
  std::vector<int64_t> table;
  for (const ReductionPlan::Axes* axes : {&plan.kept, &plan.reduced}) {
    table.insert(table.end(), axes->shape.begin(), axes->shape.end());
    for (int k = 0; k < inputs; ++k) table.insert(table.end(), axes->strides[k].begin(), axes->strides[k].end());
  }
  const std::string key = "reduce " + KeyOf(desc);
  const Parts first = PartsOf(plan);
  for (const bool again : {false, true}) {
    const int64_t elements = again ? first.count : n;
    const Parts parts = again ? Parts() : first;
    const Parts::PartWalk walk = parts.WalkOn(machine.hardware(), elements);
    Call call(machine, queue, key, [&] { return Source(desc, "", kSource); });
    for (int64_t value : {outputs, elements, parts.count, walk.first, walk.step, walk.span}) {
      call.Value(static_cast<uint64_t>(value));
    }
    call.Value(static_cast<int64_t>(desc.kind == ReduceKind::kMean ? n : 1)).Value(static_cast<int32_t>(again));
    call.Value(static_cast<int32_t>(plan.ends_reduced)).Value(static_cast<int32_t>(plan.kept.shape.rank()));
    call.Value(static_cast<int32_t>(plan.reduced.shape.rank())).Table(table);
    call.Memory(args.workspace).Memory(args.out[0]);
    for (int k = 0; k < inputs; ++k) call.Memory(args.in[k]);
    if (program.can_fail()) {
      call.Report();
      return call.RunChecked(outputs, args, JudgeOf(program));
    }
    XPU_RETURN_IF_ERROR(call.Run(outputs * parts.count));
    if (parts.count == 1) break;
  }
  return OkStatus();
}

}  // namespace

bool Supports(const Abilities& abilities, const ReduceDesc& desc) {
  if (!IsDefined(desc) || desc.source.program->num_inputs() == 0) return false;
  if (!HasProgram(abilities, *desc.source.program) || !HasRegister(abilities, SourceType(desc))) return false;
  const bool needs_double = desc.kind == ReduceKind::kEuclideanNorm && IsInteger(SourceType(desc));
  return !needs_double || abilities.has_double;
}

int64_t WorkspaceBytes(const Abilities& abilities, const ReduceDesc& desc) {
  const ReductionPlan plan = MakePlan(desc);
  const int64_t outputs = plan.kept.shape.num_elements();
  int64_t partials = PartsOf(plan).count;
  for (int64_t items : kGroupItems) {
    if (!abilities.only_processors) partials = std::max(partials, FirstGroups(items, plan).parts);
  }
  return partials == 1 ? 0 : partials * outputs * AccBytes(desc);
}

Status Enqueue(Machine& machine, Queue& queue, const ReduceDesc& desc, const Args& args, const Footprint&) {
  const ReductionPlan plan = MakePlan(desc);
  return machine.hardware().is_processor ? EnqueueOnProcessor(machine, queue, desc, args, plan)
                                         : EnqueueGroups(machine, queue, desc, args, plan);
}

}  // namespace xpu::gpu
