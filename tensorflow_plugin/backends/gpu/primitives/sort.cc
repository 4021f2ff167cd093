#include <algorithm>
#include <string>
#include <utility>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/indices.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/sort.cl.inc"
    ;

enum Stage : int32_t { kRanks, kCount, kStretches, kDigitSums, kPlace, kFetch };  // in sort.cl

constexpr int kDigitBits = 8;
constexpr int64_t kDigits = 1 << kDigitBits;
// Rows whose elements are compared each with each.
constexpr int64_t kShort = 256;

int64_t StretchesOf(int64_t n) { return std::clamp<int64_t>(n / 512, 1, 256); }

std::string Source(const SortDesc& desc) {
  const DType type = desc.type;
  const bool is_signed = IsSignedInteger(type);
  std::string text =
      errors::Concat("#define WORD ", UnitOf(SizeOf(type)).type, "\n#define SIGN ((WORD)1 << ", 8 * SizeOf(type) - 1,
                     ")\n#define INDEX ", StorageOf(desc.index_type), "\n#define KIND ",
                     IsFloating(type) ? 2
                     : is_signed      ? 1
                                      : 0,
                     "\n");
  if (IsFloating(type)) text += errors::Concat("#define INFINITE ((WORD)", InfinityBits(type), ")\n");
  return text + kSource;
}

}  // namespace

bool Supports(const Abilities&, const SortDesc& desc) { return IsDefined(desc) && FitsReport(desc.n); }

int64_t WorkspaceBytes(const SortDesc& desc) {
  if (desc.n <= kShort) return 0;
  // Orders, twice, and of each digit the counts and their sum.
  return static_cast<int64_t>(sizeof(uint32_t)) * desc.rows * (2 * desc.n + kDigits * (StretchesOf(desc.n) + 1));
}

Status Enqueue(Machine& machine, Queue& queue, const SortDesc& desc, const Args& args, const Footprint&) {
  const int64_t rows = desc.rows, n = desc.n, stretches = StretchesOf(n);
  const bool is_short = n <= kShort;
  uint32_t* from = is_short ? nullptr : static_cast<uint32_t*>(args.workspace);
  uint32_t* to = is_short ? nullptr : from + rows * n;
  uint32_t* const counts = is_short ? nullptr : to + rows * n;
  uint32_t* const sums = is_short ? nullptr : counts + rows * kDigits * stretches;
  const std::string key = errors::Concat("sort ", Name(desc.type), " ", Name(desc.index_type));
  const auto run = [&](Stage step, int shift, int64_t items) {
    Call call(machine, queue, key, [&] { return Source(desc); });
    call.Value(static_cast<int32_t>(step));
    for (int64_t value : {rows, n, desc.k}) call.Value(static_cast<uint64_t>(value));
    call.Value(static_cast<int32_t>(desc.descending));
    for (int64_t value : {(n + stretches - 1) / stretches, stretches}) call.Value(static_cast<uint64_t>(value));
    call.Value(static_cast<int32_t>(shift)).Memory(args.in[0]).Memory(from).Memory(to).Memory(counts).Memory(sums);
    return call.Memory(args.out[0]).Memory(args.out[1]).Run(items);
  };
  if (is_short) return run(kRanks, 0, rows * n);
  for (int shift = 0; shift < 8 * static_cast<int>(SizeOf(desc.type)); shift += kDigitBits) {
    XPU_RETURN_IF_ERROR(run(kCount, shift, rows * stretches));
    XPU_RETURN_IF_ERROR(run(kStretches, shift, rows * kDigits));
    XPU_RETURN_IF_ERROR(run(kDigitSums, shift, rows));
    XPU_RETURN_IF_ERROR(run(kPlace, shift, rows * stretches));
    std::swap(from, to);
  }
  return run(kFetch, 0, rows * desc.k);
}

}  // namespace xpu::gpu
