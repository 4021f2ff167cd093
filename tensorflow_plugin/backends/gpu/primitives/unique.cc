#include <algorithm>
#include <string>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/unique.cl.inc"
    ;

enum Stage : int32_t { kClear, kInsert, kCount, kPositions, kFirsts, kNumbers };  // in unique.cl

int64_t StretchesOf(int64_t n) { return std::clamp<int64_t>(n / 128, 1, 1024); }

// Places of the table, of which half are free at least.
int64_t PlacesOf(int64_t n) {
  int64_t places = 256;
  while (places < 2 * n) places *= 2;
  return places;
}

std::string Source(const UniqueDesc& desc) {
  const int words = IsComplex(desc.type) ? 2 : 1;
  const size_t size = SizeOf(desc.type) / static_cast<size_t>(words);
  const bool is_floating = IsFloating(desc.type) || IsComplex(desc.type);
  return errors::Concat(
      "#define WORD ", UnitOf(size).type, "\n#define WORDS ", words, "\n#define INDEX ", StorageOf(desc.index_type),
      "\n#define FLOATING ", is_floating ? 1 : 0, "\n#define SIGN ((WORD)1 << ", 8 * size - 1, ")\n",
      is_floating ? errors::Concat("#define INFINITE ((WORD)", InfinityBits(desc.type), ")\n") : "", kSource);
}

}  // namespace

// Rows and places are counted in 32 bits.
bool Supports(const Abilities&, const UniqueDesc& desc) { return IsDefined(desc) && desc.n <= int64_t{1} << 30; }

int64_t WorkspaceBytes(const UniqueDesc& desc) {
  // The table's row numbers and least row numbers; each row's place; counts.
  return static_cast<int64_t>(sizeof(uint32_t)) * (2 * PlacesOf(desc.n) + desc.n + StretchesOf(desc.n) + 1);
}

Status Enqueue(Machine& machine, Queue& queue, const UniqueDesc& desc, const Args& args, const Footprint& footprint) {
  const int64_t n = desc.n, stretches = StretchesOf(n), places = PlacesOf(n);
  uint32_t* const rows = static_cast<uint32_t*>(args.workspace);
  uint32_t *const leasts = rows + places, *const place_of = leasts + places, *const counts = place_of + n;
  const std::string key = errors::Concat("unique ", Name(desc.type), " ", Name(desc.index_type));
  const auto run = [&](Stage step, int64_t items) {
    if (items == 0) return OkStatus();
    Call call(machine, queue, key, [&] { return Source(desc); });
    call.Value(static_cast<int32_t>(step));
    for (int64_t value : {n, desc.inner, (n + stretches - 1) / stretches, stretches, places - 1}) {
      call.Value(static_cast<uint64_t>(value));
    }
    call.Memory(footprint.in[0].elements == 0 ? nullptr : args.in[0]).Memory(rows).Memory(leasts).Memory(place_of);
    call.Memory(counts).Memory(n == 0 ? nullptr : args.out[0]).Memory(n == 0 ? nullptr : args.out[1]);
    return call.Memory(args.out[2]).Run(items);
  };
  XPU_RETURN_IF_ERROR(run(kClear, places));
  XPU_RETURN_IF_ERROR(run(kInsert, n));
  XPU_RETURN_IF_ERROR(run(kCount, stretches));
  XPU_RETURN_IF_ERROR(run(kPositions, 1));
  XPU_RETURN_IF_ERROR(run(kFirsts, stretches));
  return run(kNumbers, n);
}

}  // namespace xpu::gpu
