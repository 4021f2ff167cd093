// One view to another, an item per element: only its size matters.
#include <string>

#include "tensorflow_plugin/backends/opencl/primitives.h"
#include "tensorflow_plugin/backends/opencl/walk.h"

namespace xpu::opencl {
namespace {

std::string Source(size_t element_size, int rank, const char* index_type) {
  const Unit unit = UnitOf(element_size);
  return errors::Concat(
      "kernel void run(const ulong n, MEMORY(in), MEMORY(out), const long from, const long to, constant long *table) "
      "{\n"
      "  const ",
      index_type, " i = get_global_id(0);\n  if (i >= n) return;\n", WalkText(rank, 2, "i", index_type),
      "  for (uint k = 0; k < ", element_size / unit.size, "; ++k) {\n    AT(", unit.type, ", out)[(to + o1) * ",
      element_size / unit.size, " + k] = AT(", unit.type, ", in)[(from + o0) * ", element_size / unit.size,
      " + k];\n  }\n}\n");
}

}  // namespace

bool Supports(const Abilities&, const CopyStridedDesc&) { return true; }

Status Enqueue(Machine& machine, Queue& queue, const CopyStridedDesc& desc, const Args& args, const Footprint&) {
  Dims shape = desc.shape, src = desc.src_strides, dst = desc.dst_strides;
  Dims* const strides[] = {&src, &dst};
  MergeDims(&shape, strides, 2);
  const int64_t n = shape.num_elements();
  if (n == 1 || (shape.rank() == 1 && src[0] == 1 && dst[0] == 1)) {
    const int64_t size = static_cast<int64_t>(desc.element_size);
    return queue.CopyDeviceToDevice(static_cast<char*>(args.out[0]) + desc.dst_offset * size,
                                    static_cast<const char*>(args.in[0]) + desc.src_offset * size,
                                    desc.element_size * static_cast<size_t>(n));
  }
  const char* const index_type = IndexType(n);
  const std::string key = errors::Concat("copy ", desc.element_size, " ", shape.rank(), " ", index_type);
  Call call(machine, queue, key, [&] { return Source(desc.element_size, shape.rank(), index_type); });
  call.Value(static_cast<cl_ulong>(n)).Memory(args.in[0]).Memory(args.out[0]);
  call.Value(static_cast<cl_long>(desc.src_offset)).Value(static_cast<cl_long>(desc.dst_offset));
  return call.Table(WalkTable(shape, {&src, &dst})).Run(n);
}

}  // namespace xpu::opencl
