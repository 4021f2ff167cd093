#include <string>

#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kPhilox =
#include "tensorflow_plugin/backends/gpu/kernels/random/philox.cl.inc"
    ;
const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/random/random.cl.inc"
    ;
const std::string kGamma =
#include "tensorflow_plugin/backends/gpu/kernels/random/gamma.cl.inc"
    ;
const std::string kExactFloat =
#include "tensorflow_plugin/backends/gpu/kernels/random/exact.cl.inc"
    ;
const std::string kExactDouble =
#include "tensorflow_plugin/backends/gpu/kernels/random/exact_double.cl.inc"
    ;

// KIND in random/philox.cl; -1: there is none.
int KindOf(RandomKind kind) {
  switch (kind) {
    case RandomKind::kUniform:
      return 0;
    case RandomKind::kUniformInt:
    case RandomKind::kUniformFullInt:
      return 1;
    case RandomKind::kNormal:
      return 2;
    case RandomKind::kTruncatedNormal:
      return 3;
    case RandomKind::kGamma:
      return 4;
    case RandomKind::kBoundedNormal:
      break;
  }
  return -1;
}

// True if logarithms and sines have to be the C library's.
bool IsExact(const RandomDesc& desc) {
  return desc.exact && (desc.kind == RandomKind::kNormal || desc.kind == RandomKind::kTruncatedNormal);
}

// True if the C library's functions of doubles fuse products and sums, as random/exact_double.cl does. TensorFlow's CPU
// kernels call them here.
bool HostFuses() { return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"); }

int GroupOf(DType type) { return SizeOf(type) == 8 ? 2 : 4; }

// The numbers of a group, in memory.
size_t WideBytes(DType type) { return SizeOf(type) * static_cast<size_t>(GroupOf(type)); }

// random/philox.cl, with what it wants in front, for numbers that are computed in `real`.
std::string Words(const RandomDesc& desc, DType real, bool exact) {
  const std::string functions = real == DType::kDouble ? kExactDouble : kExactFloat;
  return errors::Concat(exact ? "#define EXACT\n" + functions : "", "#define KIND ", KindOf(desc.kind),
                        "\n#define GROUP ", GroupOf(real), "\n#define REAL ", RegisterOf(real), "\n", kPhilox);
}

std::string Source(const RandomDesc& desc) {
  const DType type = desc.type;
  const std::string store = errors::Concat("#define STORE(i, x) ", Store(type, "out", "i", "x"));
  if (desc.kind == RandomKind::kGamma) {
    return errors::Concat(Words(desc, DType::kDouble, true), "#define RESULT ", RegisterOf(type),
                          "\n#define LOAD_ALPHA(i) ", Load(type, "alpha", "i"), "\n", store, kGamma);
  }
  const int mantissa = type == DType::kHalf ? 10 : type == DType::kBFloat16 ? 7 : 23;
  return errors::Concat(Words(desc, type, IsExact(desc)), "#define WORD ", SizeOf(type) == 8 ? "ulong" : "uint",
                        "\n#define MANTISSA ", mantissa, "\n#define STORED ", StorageOf(type), "\n#define WIDE ",
                        WideBytes(type) == 16 ? "uint4" : "ulong", "\n#define TO_STORED(x) ",
                        type == DType::kHalf       ? "to_half(x)"
                        : type == DType::kBFloat16 ? "to_bfloat16(x)"
                                                   : "(x)",
                        "\n", store, kSource);
}

}  // namespace

bool Supports(const Abilities& abilities, const RandomDesc& desc) {
  if (!IsDefined(desc) || !HasType(abilities, desc.type) || KindOf(desc.kind) < 0) return false;
  // The C library's powers there are none.
  if (desc.kind == RandomKind::kGamma) return abilities.has_double && !desc.exact;
  return !IsExact(desc) || (abilities.has_double && (desc.type != DType::kDouble || HostFuses()));
}

Status Enqueue(Machine& machine, Queue& queue, const RandomDesc& desc, const Args& args, const Footprint&) {
  Call call(machine, queue,
            errors::Concat("random ", KindOf(desc.kind), " ", Name(desc.type), IsExact(desc) ? " exact" : ""),
            [&] { return Source(desc); });
  const bool has_key = desc.start == RandomStart::kGiven, has_counter = desc.start != RandomStart::kHere;
  const bool is_gamma = desc.kind == RandomKind::kGamma;
  call.Value(static_cast<uint64_t>(desc.n));
  if (is_gamma) call.Value(static_cast<uint64_t>(desc.parameters));
  const int starts = has_key ? 2 : has_counter ? 1 : 0;  // of the inputs
  call.Value(static_cast<int32_t>(starts));
  for (uint64_t value : {desc.key, desc.counter[0], desc.counter[1]}) call.Value(static_cast<uint64_t>(value));
  if (!is_gamma) {
    const bool has_range = desc.kind == RandomKind::kUniformInt;
    const uint64_t low = static_cast<uint64_t>(desc.low), range = static_cast<uint64_t>(desc.high) - low;
    call.Value(static_cast<uint64_t>(low)).Value(static_cast<uint64_t>(has_range ? range : 0));
    call.Value(static_cast<int32_t>(reinterpret_cast<uintptr_t>(args.out[0]) % WideBytes(desc.type) == 0));
  }
  call.Memory(has_key ? args.in[0] : nullptr).Memory(has_counter ? args.in[starts - 1] : nullptr);
  if (is_gamma) return call.Memory(args.in[starts]).Memory(args.out[0]).Run(desc.n);
  const int64_t group = GroupOf(desc.type);
  return call.Memory(args.out[0]).Run((desc.n + group - 1) / group);
}

}  // namespace xpu::gpu
