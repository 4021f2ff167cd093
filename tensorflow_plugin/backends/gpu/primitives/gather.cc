#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/indices.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/host_runtime/indices.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/gather.cl.inc"
    ;
const std::string kRows =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/gather_rows.cl.inc"
    ;

// How rows are moved by devices that are no processors: 2^items_log2 items move a piece of one, `each` words per item.
struct RowPlan {
  size_t word;  // its bytes
  int64_t units;
  int items_log2 = 0;
  int64_t each = 1, pieces = 1;
  int64_t items() const { return int64_t{1} << items_log2; }
};

RowPlan PlanFor(const GatherDesc& desc, const Args& args) {
  const int64_t bytes = desc.inner * static_cast<int64_t>(desc.element_size);
  const uintptr_t places = reinterpret_cast<uintptr_t>(args.in[0]) | reinterpret_cast<uintptr_t>(args.out[0]) |
                           static_cast<uintptr_t>(bytes);
  RowPlan plan{UnitOf(desc.element_size).size, 0};
  for (size_t word = 16; word > plan.word; word /= 2) {
    if (places % word == 0) plan.word = word;
  }
  plan.units = bytes / static_cast<int64_t>(plan.word);
  // Neighbours read neighbours, and items of long rows have several words each.
  constexpr int64_t kLine = 32, kMost = 256, kEach = 4;
  while (plan.items() < std::min(plan.units, kLine)) ++plan.items_log2;
  if (plan.items() < plan.units) plan.each = kEach;
  while (plan.items() < kMost && plan.items() * plan.each < plan.units) ++plan.items_log2;
  plan.pieces = (plan.units + plan.items() * plan.each - 1) / (plan.items() * plan.each);
  return plan;
}

}  // namespace

bool Supports(const Abilities&, const GatherDesc& desc) {
  return IsInteger(desc.index_type) && FitsReport(desc.batch, desc.num_indices);
}

Status Enqueue(Machine& machine, Queue& queue, const GatherDesc& desc, const Args& args, const Footprint&) {
  std::vector<int64_t> dims(desc.dims.begin(), desc.dims.end());
  const int depth = desc.dims.rank();
  if (dims.empty()) dims.push_back(1);  // a buffer has at least a byte
  const int64_t arrays = desc.batch * desc.outer, rows = arrays * desc.num_indices;
  const bool has_rows = desc.inner != 0;
  const auto run = [&](Call& call, int64_t items) {
    call.Value(static_cast<int32_t>(depth)).Table(dims);
    call.Memory(has_rows ? args.in[0] : nullptr).Memory(args.in[1]).Memory(has_rows ? args.out[0] : nullptr).Report();
    return call.RunChecked(items, args, [&machine, desc, indices = args.in[1]](uint32_t number) {
      return IndexFailure(machine, desc.index_type, desc.dims, indices, number,
                          host_runtime::PositionOf(number, desc.batch, desc.num_indices));
    });
  };
  if (machine.hardware().is_processor || !has_rows) {
    const CopyUnit unit = UnitOf(desc.element_size);
    const int64_t units = desc.inner * static_cast<int64_t>(desc.element_size / unit.size);
    const int64_t items = rows * std::max<int64_t>(units, 1);
    const char* const index_type = IndexType(items);  // divisions of 32 bits take a fraction of the time
    Call call(machine, queue, errors::Concat("gather ", unit.type, " ", Name(desc.index_type), " ", index_type), [&] {
      return errors::Concat("#define UNIT ", unit.type, "\n#define INDEX ", index_type, "\n",
                            RowOfText(desc.index_type), kSource);
    });
    for (int64_t value : {items, units, desc.num_indices, desc.outer, desc.dims.num_elements()}) {
      call.Value(static_cast<uint64_t>(value));
    }
    return run(call, items);
  }
  const RowPlan plan = PlanFor(desc, args);
  const int64_t items = rows * plan.pieces * plan.items();
  const std::string index_type = IndexType(items);
  const std::string key =
      errors::Concat("gather rows ", plan.word, " ", plan.each, " ", Name(desc.index_type), " ", index_type);
  Call call(machine, queue, key, [&] {
    const bool is_vector = plan.word == 16;
    return errors::Concat("#define UNIT ", is_vector ? "uint4" : UnitOf(plan.word).type, "\n#define ZERO ",
                          is_vector ? "MAKE4(uint4, 0, 0, 0, 0)" : "0", "\n#define EACH ", plan.each,
                          "\n#define INDEX ", index_type, "\n", DivideText(index_type), RowOfText(desc.index_type),
                          kRows);
  });
  call.Value(static_cast<uint64_t>(rows)).Value(static_cast<uint64_t>(plan.units));
  call.Value(static_cast<int32_t>(plan.items_log2));
  const auto value = [&](int64_t number) { call.Value(static_cast<uint64_t>(number)); };
  const auto divisor = [&](int64_t extent) { call.Value(DivisorOf(extent, index_type)); };
  value(plan.pieces);
  divisor(plan.pieces);
  value(desc.num_indices);
  divisor(desc.num_indices);
  divisor(desc.outer);
  value(desc.dims.num_elements());
  return run(call, items);
}

}  // namespace xpu::gpu
