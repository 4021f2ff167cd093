// Lines of which there are few are worked on in parts: the total of each, what is in front of each, and the results.
#include <string>

#include "tensorflow_plugin/backends/gpu/codegen/parts.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/reduction/scan.cl.inc"
    ;

enum Stage : int32_t { kTotals, kBefore, kWrite };  // in scan.cl

Parts PartsOf(const ScanDesc& desc) { return Parts::Of(desc.outer * desc.inner, desc.n); }

// As plain/scan_totals.h.
std::string Source(const ScanDesc& desc) {
  const DType type = desc.type;
  const std::string reg = RegisterOf(type);
  std::string text = errors::Concat(FunctionsFor(type), "#define T ", reg, "\n#define LOAD_X(i) ", Load(type, "x", "i"),
                                    "\n#define STORE_Y(i, x) ", Store(type, "y", "i", "x"));
  switch (desc.kind) {
    case ScanKind::kSum:
    case ScanKind::kProd: {
      const bool is_product = desc.kind == ScanKind::kProd;
      // Integers wrap, which only unsigned ones do by themselves.
      const std::string total = IsInteger(type)
                                    ? errors::Concat("(T)((ulong)(a) ", is_product ? "*" : "+", " (ulong)(b))")
                                : is_product ? ProductText(type, "a", "b")
                                             : "((a) + (b))";
      const char* const one = IsComplex(type) ? "MAKE2(T, 1, 0)" : "1";
      text += errors::Concat("#define START ", is_product ? one : "SPLAT(T, 0)", "\n#define TOTAL(a, b) ", total, "\n");
      break;
    }
    case ScanKind::kLogSumExp:
      text += errors::Concat("#define START (-INFINITY)\n#define TOTAL(a, b) log_sum(a, b)\n", reg, " log_sum(", reg,
                             " a, ", reg, " b) {\n  if (isnan(a) || isnan(b)) return a + b;\n  const ", reg,
                             " larger = fmax(a, b), smaller = fmin(a, b);\n",
                             // Equal infinities have no difference.
                             "  return isinf(larger) ? larger : larger + log1p(exp(smaller - larger));\n}\n");
      break;
  }
  return text + kSource;
}

}  // namespace

bool Supports(const Abilities& abilities, const ScanDesc& desc) {
  return IsDefined(desc) && HasRegister(abilities, desc.type);
}

int64_t WorkspaceBytes(const ScanDesc& desc) {
  const int64_t parts = PartsOf(desc).count;
  constexpr int64_t kLargest = 16;  // of a register
  return parts == 1 ? 0 : parts * desc.outer * desc.inner * kLargest;
}

Status Enqueue(Machine& machine, Queue& queue, const ScanDesc& desc, const Args& args, const Footprint&) {
  const int64_t lines = desc.outer * desc.inner, parts = PartsOf(desc).count;
  const std::string key = errors::Concat("scan ", static_cast<int>(desc.kind), " ", Name(desc.type));
  for (const Stage step : {kTotals, kBefore, kWrite}) {
    if (step != kWrite && parts == 1) continue;
    Call call(machine, queue, key, [&] { return Source(desc); });
    call.Value(static_cast<int32_t>(step));
    for (int64_t value : {lines, desc.n, desc.inner, parts, (desc.n + parts - 1) / parts}) {
      call.Value(static_cast<uint64_t>(value));
    }
    call.Value(static_cast<int32_t>(desc.exclusive)).Value(static_cast<int32_t>(desc.reverse));
    call.Memory(args.in[0]).Memory(args.workspace).Memory(args.out[0]);
    XPU_RETURN_IF_ERROR(call.Run(step == kBefore ? lines : lines * parts));
  }
  return OkStatus();
}

}  // namespace xpu::gpu
