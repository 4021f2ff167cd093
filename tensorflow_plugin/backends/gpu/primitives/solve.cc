#include <string>

#include "tensorflow_plugin/backends/gpu/primitives/matrices.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSolve =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/solve.cl.inc"
    ;
const std::string kTridiagonal =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/solve_tridiagonal.cl.inc"
    ;

// The scratch of a batch: the rest of each matrix after elimination.
int64_t ScratchBytes(const SolveDesc& desc) {
  const int64_t size = static_cast<int64_t>(SizeOf(desc.type));
  if (desc.kind == SolveKind::kTridiagonal) return desc.batch * 3 * desc.n * size;
  return desc.kind == SolveKind::kGeneral ? desc.batch * desc.n * desc.n * size : 0;
}

}  // namespace

bool Supports(const Abilities& abilities, const SolveDesc& desc) { return HasMatrices(abilities, desc.type); }

int64_t WorkspaceBytes(const SolveDesc& desc) {
  const int64_t permutations = desc.kind == SolveKind::kGeneral ? desc.batch * desc.n * 4 : 0;
  return ScratchBytes(desc) + permutations;
}

Status Enqueue(Machine& machine, Queue& queue, const SolveDesc& desc, const Args& args, const Footprint&) {
  const Hardware& hardware = machine.hardware();
  const bool is_tridiagonal = desc.kind == SolveKind::kTridiagonal;
  const std::string key = errors::Concat(is_tridiagonal ? "solve_tridiagonal " : "solve ", Name(desc.type));
  Call call(machine, queue, key,
            [&] { return MatrixSource(hardware, desc.type, is_tridiagonal ? kTridiagonal : kLuSource + kSolve); });
  if (is_tridiagonal) {
    call.Value(static_cast<int32_t>(desc.pivoting)).Value(static_cast<int32_t>(desc.perturb));
  } else {
    call.Value(static_cast<int32_t>(desc.kind)).Value(static_cast<int32_t>(desc.adjoint));
  }
  call.Value(static_cast<uint64_t>(desc.n)).Value(static_cast<uint64_t>(desc.columns));
  call.Memory(args.in[0]).Memory(args.in[1]).Memory(args.out[0]).Memory(args.workspace);
  if (is_tridiagonal) return RunMatrices(call, hardware, desc.batch);
  const bool is_general = desc.kind == SolveKind::kGeneral;
  call.Memory(is_general ? static_cast<char*>(args.workspace) + ScratchBytes(desc) : nullptr);
  if (is_general) {
    call.Report();
  } else {
    call.Memory(nullptr);
  }
  XPU_RETURN_IF_ERROR(RunMatrices(call, hardware, desc.batch));
  if (!is_general) return OkStatus();
  const std::string name = Name(desc);
  return call.Check(args, [name](uint32_t i) { return errors::InvalidArgument(name, ": matrix ", i, " is singular"); });
}

}  // namespace xpu::gpu
