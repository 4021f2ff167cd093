#include "tensorflow_plugin/backends/cuda/library_commands.h"

#include "tensorflow_plugin/backends/cuda/machine.h"
#include "tensorflow_plugin/backends/cuda/queue.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::cuda {

Status EnqueueCopy(Machine& machine, Queue& queue, const CopyStridedDesc& copy, const void* from, void* to) {
  Args args{};
  args.in[0] = from;
  args.out[0] = to;
  Footprint footprint;
  XPU_RETURN_IF_ERROR(Check(copy, &footprint));
  return gpu::Enqueue(machine, queue, copy, args, footprint);
}

}  // namespace xpu::cuda
