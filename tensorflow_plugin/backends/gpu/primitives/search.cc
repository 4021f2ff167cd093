#include <string>

#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/search.cl.inc"
    ;

}  // namespace

bool Supports(const Abilities& abilities, const SearchDesc& desc) {
  return IsDefined(desc) && HasType(abilities, desc.type);
}

Status Enqueue(Machine& machine, Queue& queue, const SearchDesc& desc, const Args& args, const Footprint&) {
  const DType type = desc.type;
  Call call(machine, queue, errors::Concat("search ", Name(type), " ", Name(desc.index_type)), [&] {
    return errors::Concat("#define T ", RegisterOf(type), "\n#define LOAD_SORTED(i) ", Load(type, "sorted", "i"),
                          "\n#define LOAD_VALUE(i) ", Load(type, "values", "i"), "\n#define INDEX ",
                          StorageOf(desc.index_type), "\n", kSource);
  });
  const int64_t items = desc.rows * desc.m;
  for (int64_t value : {items, desc.n, desc.m}) call.Value(static_cast<uint64_t>(value));
  call.Value(static_cast<int32_t>(desc.upper)).Memory(desc.n == 0 ? nullptr : args.in[0]);
  return call.Memory(args.in[1]).Memory(args.out[0]).Run(items);
}

}  // namespace xpu::gpu
