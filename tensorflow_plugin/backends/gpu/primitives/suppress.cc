#include <string>

#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/nn/suppress.cl.inc"
    ;

}  // namespace

bool Supports(const Abilities&, const SuppressDesc&) { return true; }

Status Enqueue(Machine& machine, Queue& queue, const SuppressDesc& desc, const Args& args, const Footprint&) {
  Call call(machine, queue, desc.pairs ? "suppress pairs" : "suppress boxes",
            [&] { return errors::Concat("#define PAIRS ", desc.pairs ? 1 : 0, "\n", kSource); });
  for (int64_t value : {desc.n, desc.most}) call.Value(static_cast<uint64_t>(value));
  call.Value(static_cast<float>(desc.threshold)).Memory(args.in[0]).Memory(args.out[0]);
  const size_t groups[] = {1, 1, 1}, local[] = {call.group(), 1, 1};
  return call.RunGroups(groups, local);
}

}  // namespace xpu::gpu
