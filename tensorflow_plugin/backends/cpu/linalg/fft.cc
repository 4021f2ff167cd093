#include <algorithm>
#include <cmath>
#include <complex>
#include <new>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/linalg/fft_block.h"
#include "tensorflow_plugin/backends/cpu/linalg/fft_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {

void Transform(const FftPlan<double>& plan, int64_t lanes, FftArrays<double>* a, FftArrays<double>* b) {
  XPU_PICK_ISA(TransformArrays<double>)(plan, lanes, a, b);
}

namespace {

template <typename R>
void RunBlock(const FftBlock<R>& block) {
  const bool even = block.roots != nullptr;
  switch (block.kind) {
    case FftKind::kComplex:
      return XPU_PICK_ISA(ComplexBlock<R>)(block);
    case FftKind::kRealForward:
      return even ? XPU_PICK_ISA(EvenForwardBlock<R>)(block) : XPU_PICK_ISA(OddForwardBlock<R>)(block);
    case FftKind::kRealInverse:
      return even ? XPU_PICK_ISA(EvenInverseBlock<R>)(block) : XPU_PICK_ISA(OddInverseBlock<R>)(block);
  }
}

// Transforms the middle axis of [outer, n, inner], from memory to memory, possibly the same. A kind with a real side is
// for an `inner` of 1.
template <typename R>
void TransformAxis(FftKind kind, bool inverse, R scale, int64_t outer, int64_t n, int64_t inner, const void* in,
                   void* out, const host_runtime::ThreadTeam& team) {
  const bool pairs = kind != FftKind::kComplex && n % 2 == 0;
  const auto plan = GetFftPlan<R>(pairs ? n / 2 : n);
  const auto roots = pairs ? GetFftRoots<R>(n) : nullptr;
  const int64_t work = WorkElements(*plan, roots.get());
  const int64_t in_n = kind == FftKind::kRealInverse ? n / 2 + 1 : n;
  const int64_t out_n = kind == FftKind::kRealForward ? n / 2 + 1 : n;
  const int64_t in_size = kind == FftKind::kRealForward ? sizeof(R) : 2 * sizeof(R);
  const int64_t out_size = kind == FftKind::kRealInverse ? sizeof(R) : 2 * sizeof(R);

  // Lanes are neighbours in memory, or else rows. As many as fill a cache line, unless they would not stay in the
  // cache.
  const bool rows = inner == 1;
  constexpr int64_t kLine = 64 / sizeof(R), kCache = (512 << 10) / (4 * sizeof(R));
  int64_t most = kLine;
  while (most > 4 && most * work > kCache) most /= 2;
  const int64_t lanes = std::min(most, rows ? outer : inner);
  const int64_t per_outer = rows ? 1 : (inner + lanes - 1) / lanes;
  const int64_t blocks = rows ? (outer + lanes - 1) / lanes : outer * per_outer;
  const double ns = static_cast<double>(lanes * n) * (3 + std::log2(static_cast<double>(n))) * 0.4;
  team.ParallelFor(blocks, Grain(static_cast<int64_t>(ns), 1), [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    R* scratch = frame.Get<R>(4 * work * lanes);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = rows ? i * lanes : i % per_outer * lanes;
      const auto side = [&](const void* data, int64_t elements, int64_t size) {
        const int64_t offset = rows ? first * elements : i / per_outer * elements * inner + first;
        void* at = const_cast<char*>(static_cast<const char*>(data)) + offset * size;
        return rows ? FftSide{at, 1, elements} : FftSide{at, inner, 1};
      };
      const int64_t width = std::min(lanes, (rows ? outer : inner) - first);
      FftArrays<R> a{scratch, scratch + work * lanes}, b{a.im + work * lanes, a.im + 2 * work * lanes};
      RunBlock<R>({kind, inverse, n, plan.get(), roots.get(), scale, side(in, in_n, in_size),
                   side(out, out_n, out_size), width, a, b});
    }
  });
}

template <typename R>
void RunAxes(const FftDesc& d, const Args& args, const host_runtime::ThreadTeam& team) {
  const int last = d.shape.rank() - 1;
  Dims side = d.shape;  // the complex one
  if (d.kind != FftKind::kComplex) side[last] = d.shape[last] / 2 + 1;
  const int64_t n = d.shape.num_elements();
  const R scale = d.inverse ? static_cast<R>(1.0 / static_cast<double>(n)) : R(1);
  const void* in = args.in[0];
  ScratchFrame frame;
  const auto transform_last = [&](FftKind kind) {
    TransformAxis<R>(kind, d.inverse, scale, d.batch * n / d.shape[last], d.shape[last], 1, in, args.out[0], team);
    in = args.out[0];
  };
  // The last axis gives the result of a transform to reals, and is the first one of any other.
  const bool to_reals = d.kind == FftKind::kRealInverse;
  if (!to_reals) transform_last(d.kind);
  void* out = args.out[0];
  if (to_reals && last > 0) out = frame.Get<std::complex<R>>(d.batch * side.num_elements());
  int64_t inner = side[last];
  for (int axis = last - 1; axis >= 0; --axis) {
    const int64_t outer = d.batch * side.num_elements() / (inner * side[axis]);
    TransformAxis<R>(FftKind::kComplex, d.inverse, R(1), outer, side[axis], inner, in, out, team);
    in = out;
    inner *= side[axis];
  }
  if (to_reals) transform_last(d.kind);
}

}  // namespace

Status CpuKernels::Run(const FftDesc& d, const Args& args, const host_runtime::ThreadTeam& team) const {
  try {
    d.type == DType::kComplex64 ? RunAxes<float>(d, args, team) : RunAxes<double>(d, args, team);
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for the temporaries of a transform over ", d.shape.ToString());
  }
  return OkStatus();
}

}  // namespace xpu::cpu
