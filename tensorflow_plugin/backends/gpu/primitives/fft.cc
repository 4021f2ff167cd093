#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/fft.cl.inc"
    ;

// In fft.cl. Loads and stores are in the order of FftKind: complex, from real and to the half, and back.
enum Step : int32_t { kLoadReal, kLoadHalf, kLoad, kRoots, kPass, kMirror, kStoreReal, kStoreHalf, kStore };

// The factors of a length: fours, a two, and odd primes, by which an element of a pass takes as many products.
std::vector<int64_t> FactorsOf(int64_t n) {
  std::vector<int64_t> factors;
  for (int64_t factor = 4; n > 1; factor = factor == 4 ? 2 : factor == 2 ? 3 : factor + 2) {
    if (factor * factor > n && factor > 4) factor = n;
    for (; n % factor == 0; n /= factor) factors.push_back(factor);
  }
  return factors;
}

std::string Source(const Hardware& hardware, DType type) {
  const char* const real = type == DType::kComplex64 ? "float" : "double";
  const char* const angle = hardware.has_double ? "double" : "float";
  return errors::Concat("#define REAL ", real, "\n#define COMPLEX ", real, "2\n#define ANGLE ", angle, "\n", kSource);
}

int64_t LongestAxis(const FftDesc& desc) { return *std::max_element(desc.shape.begin(), desc.shape.end()); }

}  // namespace

bool Supports(const Abilities& abilities, const FftDesc& desc) {
  return desc.type == DType::kComplex64 || (desc.type == DType::kComplex128 && abilities.has_double);
}

int64_t WorkspaceBytes(const FftDesc& desc) {
  // The bytes that a pass reads and writes, and the roots of unity.
  return static_cast<int64_t>(SizeOf(desc.type)) * (2 * desc.batch * desc.shape.num_elements() + LongestAxis(desc));
}

Status Enqueue(Machine& machine, Queue& queue, const FftDesc& desc, const Args& args, const Footprint&) {
  const int64_t n = desc.shape.num_elements(), all = desc.batch * n, last = desc.shape[desc.shape.rank() - 1];
  const Dims strides = DenseStrides(desc.shape);
  const bool is_double = desc.type == DType::kComplex128;
  char* const scratch = static_cast<char*>(args.workspace);
  const int64_t bytes = all * static_cast<int64_t>(SizeOf(desc.type));
  void *here = scratch, *next = scratch + bytes;
  void* const roots = scratch + 2 * bytes;
  const double scale = desc.inverse ? 1 / static_cast<double>(n) : 1;
  const std::string key = errors::Concat("fft ", Name(desc.type));
  const auto run = [&](Step step, int64_t items, const void* from, void* to, int axis = 0, int64_t done = 1,
                       int64_t factor = 1) {
    Call call(machine, queue, key, [&] { return Source(machine.hardware(), desc.type); });
    call.Value(static_cast<int32_t>(step));
    for (int64_t value : {items, desc.shape[axis], strides[axis], done, factor, last}) {
      call.Value(static_cast<uint64_t>(value));
    }
    call.Value(static_cast<int32_t>(desc.inverse));
    if (is_double) {
      call.Value(static_cast<double>(scale));
    } else {
      call.Value(static_cast<float>(scale));
    }
    return call.Memory(from).Memory(to).Memory(roots).Run(items);
  };
  const bool to_real = desc.kind == FftKind::kRealInverse, from_real = desc.kind == FftKind::kRealForward;
  XPU_RETURN_IF_ERROR(run(to_real ? kLoadHalf : from_real ? kLoadReal : kLoad, all, args.in[0], here));
  for (int axis = 0; axis < desc.shape.rank(); ++axis) {
    if (to_real && axis == desc.shape.rank() - 1) XPU_RETURN_IF_ERROR(run(kMirror, all, nullptr, here));
    if (desc.shape[axis] == 1) continue;
    XPU_RETURN_IF_ERROR(run(kRoots, desc.shape[axis], nullptr, roots, axis));
    int64_t done = 1;
    for (int64_t factor : FactorsOf(desc.shape[axis])) {
      XPU_RETURN_IF_ERROR(run(kPass, all, here, next, axis, done, factor));
      done *= factor;
      std::swap(here, next);
    }
  }
  return run(to_real ? kStoreReal : from_real ? kStoreHalf : kStore, all, here, args.out[0]);
}

}  // namespace xpu::gpu
