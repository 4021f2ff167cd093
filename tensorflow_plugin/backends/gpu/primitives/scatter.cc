#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/indices.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/host_runtime/scatter_op.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/scatter.cl.inc"
    ;

enum Step : int32_t { kRows, kCount, kPositions, kPlace, kUpdate };

constexpr int kDigitBits = 8;
constexpr int64_t kDigits = 1 << kDigitBits;

// How updates are divided for the sort.
struct Stretches {
  explicit Stretches(int64_t n) : count(std::clamp<int64_t>(n / 128, 1, 256)), length((n + count - 1) / count) {}
  int64_t count, length;
};

bool Divides(const ScatterDesc& desc) { return desc.kind == ScatterKind::kDiv && IsInteger(desc.type); }

std::string CombineText(const ScatterDesc& desc) {
  const std::string type = RegisterOf(desc.type);
  const auto arithmetic = [&](const char* op) {
    // Integers wrap, which only unsigned ones do by themselves.
    return IsInteger(desc.type) ? errors::Concat("(T)((ulong)(x) ", op, " (ulong)(y))")
                                : errors::Concat("(x) ", op, " (y)");
  };
  switch (desc.kind) {
    case ScatterKind::kAdd:
      return arithmetic("+");
    case ScatterKind::kSub:
      return arithmetic("-");
    case ScatterKind::kMul:
      return IsInteger(desc.type) ? arithmetic("*") : ProductText(desc.type, "x", "y");
    case ScatterKind::kDiv:
      if (IsComplex(desc.type)) return type + "_div(x, y)";
      if (!Divides(desc)) return "(x) / (y)";
      // The lowest value has no negative; by zero it stays what it was.
      return "(y) == 0 ? (x) : (T)-1 < 0 && (y) == (T)-1 ? (T)(0 - (ulong)(x)) : (T)((x) / (y))";
    case ScatterKind::kMin:
      return "(y) < (x) ? (y) : (x)";
    case ScatterKind::kMax:
      return "(x) < (y) ? (y) : (x)";
    case ScatterKind::kUpdate:
      break;
  }
  return "";
}

std::string Source(const ScatterDesc& desc) {
  const DType type = desc.type;
  std::string text;
  if (desc.kind == ScatterKind::kUpdate) {
    const CopyUnit unit = UnitOf(SizeOf(type));
    text = errors::Concat("#define UNIT ", unit.type, "\n#define SCALAR_UNITS ", SizeOf(type) / unit.size, "\n");
  } else {
    const char* const round = type == DType::kHalf       ? "round_to_half(x)"
                              : type == DType::kBFloat16 ? "round_to_bfloat16(x)"
                                                         : "(x)";
    text =
        errors::Concat(FunctionsFor(type), "#define T ", RegisterOf(type), "\n#define ROUND(x) ", round,
                       "\n#define LOAD_UPDATE(i) ", Load(type, "updates", "i"), "\n#define LOAD_BUFFER(i) ",
                       Load(type, "buffer", "i"), "\n#define STORE_BUFFER(i, x) ", Store(type, "buffer", "i", "x"),
                       "#define COMBINE(x, y) (", CombineText(desc), ")\n", Divides(desc) ? "#define DIVIDES\n" : "");
  }
  return text + RowOfText(desc.index_type) + kSource;
}

}  // namespace

bool Supports(const Abilities& abilities, const ScatterDesc& desc) {
  if (!IsDefined(desc)) return false;
  if (desc.kind != ScatterKind::kUpdate && !HasRegister(abilities, desc.type)) return false;
  int64_t rows = 1;
  for (int64_t extent : desc.dims) {
    if (!FitsReport(rows, extent)) return false;
    rows *= std::max<int64_t>(extent, 1);
  }
  // An integer division reports the element, beyond all indices.
  const bool open = desc.inner < 0;
  return FitsReport(desc.num_indices, Divides(desc) && !open ? desc.inner + 1 : 1);
}

int64_t WorkspaceBytes(const ScatterDesc& desc) {
  // Rows and order, twice, and counts.
  return static_cast<int64_t>(sizeof(uint32_t)) * (4 * desc.num_indices + kDigits * Stretches(desc.num_indices).count);
}

Status Enqueue(Machine& machine, Queue& queue, const ScatterDesc& desc, const Args& args, const Footprint&) {
  const int64_t n = desc.num_indices, rows = desc.dims.num_elements();
  const bool moves = desc.kind == ScatterKind::kUpdate;
  const CopyUnit unit = UnitOf(SizeOf(desc.type));
  const int64_t units = desc.inner * static_cast<int64_t>(moves ? SizeOf(desc.type) / unit.size : 1);
  const Stretches stretches(n);
  std::vector<int64_t> dims(desc.dims.begin(), desc.dims.end());
  const int depth = desc.dims.rank();
  if (dims.empty()) dims.push_back(1);  // a buffer has at least a byte

  uint32_t* const scratch = static_cast<uint32_t*>(args.workspace);
  uint32_t *from = scratch, *to = scratch + 2 * n;  // rows, then their order
  const std::string key =
      errors::Concat("scatter ", static_cast<int>(desc.kind), " ",
                     moves ? std::to_string(SizeOf(desc.type)) : Name(desc.type), " ", Name(desc.index_type));
  const auto run = [&](Step step, int shift, int64_t items) {
    Call call(machine, queue, key, [&] { return Source(desc); });
    call.Value(static_cast<int32_t>(step));
    for (int64_t value : {n, units, rows}) call.Value(static_cast<uint64_t>(value));
    call.Value(static_cast<int32_t>(depth)).Table(dims);
    for (int64_t value : {stretches.length, stretches.count}) call.Value(static_cast<uint64_t>(value));
    for (int value : {shift, desc.scalar_update ? 1 : 0, desc.skip_negative ? 1 : 0}) {
      call.Value(static_cast<int32_t>(value));
    }
    call.Memory(args.in[0]).Memory(args.in[1]).Memory(rows == 0 ? nullptr : args.out[0]);
    call.Memory(from).Memory(from + n).Memory(to).Memory(to + n).Memory(scratch + 4 * n);
    if (step != kUpdate) return call.Memory(nullptr).Run(items);
    call.Report();
    return call.RunChecked(items, args, [&machine, desc, indices = args.in[0]](uint32_t number) {
      if (number < desc.num_indices) {
        return IndexFailure(machine, desc.index_type, desc.dims, indices, number, std::to_string(number));
      }
      const int64_t element = number - desc.num_indices;
      return host_runtime::DivisionByZero(element / desc.inner, element % desc.inner);
    });
  };
  XPU_RETURN_IF_ERROR(run(kRows, 0, n));
  for (int shift = 0; shift < 32 && rows >> shift != 0; shift += kDigitBits) {
    XPU_RETURN_IF_ERROR(run(kCount, shift, stretches.count));
    XPU_RETURN_IF_ERROR(run(kPositions, shift, 1));
    XPU_RETURN_IF_ERROR(run(kPlace, shift, stretches.count));
    std::swap(from, to);
  }
  return run(kUpdate, 0, n * units);
}

}  // namespace xpu::gpu
