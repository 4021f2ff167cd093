#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/indices.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/compact.cl.inc"
    ;

enum Stage : int32_t { kCount, kPositions, kWrite };  // in compact.cl

int64_t StretchesOf(int64_t n) { return std::clamp<int64_t>(n / 128, 1, 1024); }

// By the bits, which no device's arithmetic takes for zeros: denormal numbers are none.
std::string Source(DType type) {
  const int words = IsComplex(type) ? 2 : 1;
  const CopyUnit unit = UnitOf(SizeOf(type) / static_cast<size_t>(words));
  const bool has_signed_zero = IsComplex(type) || IsFloating(type);
  return errors::Concat("#define WORD ", unit.type, "\n#define WORDS ", words, "\n#define WITHOUT_SIGN(word) ",
                        has_signed_zero ? "(WORD)((word) << 1)" : "(word)", "\n", kSource);
}

}  // namespace

bool Supports(const Abilities&, const CompactDesc& desc) {
  int64_t n = 1;
  for (int64_t extent : desc.shape) {
    if (!FitsReport(n, extent)) return false;
    n *= std::max<int64_t>(extent, 1);
  }
  return true;
}

int64_t WorkspaceBytes(const CompactDesc& desc) {
  return static_cast<int64_t>(sizeof(uint64_t)) * (StretchesOf(desc.shape.num_elements()) + 1);
}

Status Enqueue(Machine& machine, Queue& queue, const CompactDesc& desc, const Args& args, const Footprint&) {
  const int64_t n = desc.shape.num_elements(), stretches = StretchesOf(n);
  std::vector<int64_t> dims(desc.shape.begin(), desc.shape.end());
  if (dims.empty()) dims.push_back(1);  // a buffer has at least a byte
  const auto run = [&](Stage step) {
    Call call(machine, queue, errors::Concat("compact ", Name(desc.type)), [&] { return Source(desc.type); });
    call.Value(static_cast<int32_t>(step));
    for (int64_t value : {n, (n + stretches - 1) / stretches, stretches, desc.count}) {
      call.Value(static_cast<uint64_t>(value));
    }
    call.Value(static_cast<int32_t>(desc.shape.rank())).Table(dims);
    call.Memory(args.in[0]).Memory(args.workspace).Memory(desc.count == 0 ? nullptr : args.out[0]);
    if (step != kWrite) return call.Memory(nullptr).Run(step == kPositions ? 1 : stretches);
    call.Report();
    return call.RunChecked(stretches, args, [expected = desc.count](uint32_t count) {
      return errors::InvalidArgument("Compact: ", count, " elements are not zero, expected ", expected);
    });
  };
  XPU_RETURN_IF_ERROR(run(kCount));
  XPU_RETURN_IF_ERROR(run(kPositions));
  return run(kWrite);
}

}  // namespace xpu::gpu
