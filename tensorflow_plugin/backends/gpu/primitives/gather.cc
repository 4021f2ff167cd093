#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/indices.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/gather.cl.inc"
    ;

}  // namespace

bool Supports(const Abilities&, const GatherDesc& desc) {
  return IsInteger(desc.index_type) && FitsReport(desc.batch, desc.num_indices);
}

Status Enqueue(Machine& machine, Queue& queue, const GatherDesc& desc, const Args& args, const Footprint&) {
  const CopyUnit unit = UnitOf(desc.element_size);
  const int64_t units = desc.inner * static_cast<int64_t>(desc.element_size / unit.size);
  const int64_t items = desc.batch * desc.outer * desc.num_indices * std::max<int64_t>(units, 1);
  std::vector<int64_t> dims(desc.dims.begin(), desc.dims.end());
  const char* const index_type = IndexType(items);  // divisions of 32 bits take a fraction of the time
  const int depth = desc.dims.rank();
  if (dims.empty()) dims.push_back(1);  // a buffer has at least a byte
  Call call(machine, queue, errors::Concat("gather ", unit.type, " ", Name(desc.index_type), " ", index_type), [&] {
    return errors::Concat("#define UNIT ", unit.type, "\n#define INDEX ", index_type, "\n", RowOfText(desc.index_type),
                          kSource);
  });
  for (int64_t value : {items, units, desc.num_indices, desc.outer, desc.dims.num_elements()}) {
    call.Value(static_cast<uint64_t>(value));
  }
  call.Value(static_cast<int32_t>(depth)).Table(dims);
  call.Memory(units == 0 ? nullptr : args.in[0]).Memory(args.in[1]).Memory(units == 0 ? nullptr : args.out[0]).Report();
  return call.RunChecked(items, args, [&machine, desc, indices = args.in[1]](uint32_t number) {
    const int64_t n = desc.num_indices;
    const std::string position = (desc.batch > 1 ? std::to_string(number / n) + "," : "") + std::to_string(number % n);
    return IndexFailure(machine, desc.index_type, desc.dims, indices, number, position);
  });
}

}  // namespace xpu::gpu
