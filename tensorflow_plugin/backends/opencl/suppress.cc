#include <string>

#include "tensorflow_plugin/backends/opencl/primitives.h"

namespace xpu::opencl {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/opencl/suppress.cl.inc"
    ;

}  // namespace

bool Supports(const Abilities&, const SuppressDesc&) { return true; }

Status Enqueue(Machine& machine, Queue& queue, const SuppressDesc& desc, const Args& args, const Footprint&) {
  Call call(machine, queue, desc.pairs ? "suppress pairs" : "suppress boxes",
            [&] { return errors::Concat("#define PAIRS ", desc.pairs ? 1 : 0, "\n", kSource); });
  for (int64_t value : {desc.n, desc.most}) call.Value(static_cast<cl_ulong>(value));
  call.Value(static_cast<cl_float>(desc.threshold)).Memory(args.in[0]).Memory(args.out[0]);
  const size_t groups[] = {1, 1, 1}, local[] = {call.group(), 1, 1};
  return call.RunGroups(groups, local);
}

}  // namespace xpu::opencl
