#include <string>

#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/nn/resample.cl.inc"
    ;

}  // namespace

bool Supports(const Abilities& abilities, const ResampleDesc& desc) {
  return IsDefined(desc) && HasType(abilities, desc.type) && HasType(abilities, desc.result_type);
}

Status Enqueue(Machine& machine, Queue& queue, const ResampleDesc& desc, const Args& args, const Footprint& footprint) {
  const DType type = desc.type, result = desc.result_type;
  Call call(machine, queue, errors::Concat("resample ", Name(type), " ", Name(result)), [&] {
    return errors::Concat("#define C ", RegisterOf(result), "\n#define LOAD_IMAGE(i) (C)", Load(type, "images", "i"),
                          "\n#define STORE_RESULT(i, x) ", Store(result, "out", "i", "x"), kSource);
  });
  const int64_t items = footprint.out[0].elements;
  call.Value(static_cast<uint64_t>(items));
  for (int64_t value : {desc.height, desc.width, desc.channels, desc.out_h, desc.out_w, desc.y_taps, desc.x_taps}) {
    call.Value(static_cast<int64_t>(value));
  }
  for (int i = 0; i < footprint.num_in; ++i) call.Memory(footprint.in[i].elements == 0 ? nullptr : args.in[i]);
  return call.Memory(args.out[0]).Run(items);
}

}  // namespace xpu::gpu
