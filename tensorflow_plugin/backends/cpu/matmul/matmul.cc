#include <algorithm>
#include <complex>
#include <cstring>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/convert.h"
#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/matmul/engine.h"
#include "tensorflow_plugin/backends/cpu/matmul/few_rows.h"
#include "tensorflow_plugin/backends/cpu/matmul/gemm.h"
#include "tensorflow_plugin/backends/cpu/matmul/integer_matmul.h"
#include "tensorflow_plugin/backends/cpu/matmul/matmul_loops.h"
#include "tensorflow_plugin/backends/cpu/matmul/panels.h"
#include "tensorflow_plugin/backends/cpu/onednn.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/float_mode.h"
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// Multiplications that are worth another thread.
constexpr int64_t kGrainWork = 1 << 18;
// If one thread is held up, the others take its parts.
constexpr int64_t kPartsPerThread = 2;

// The elements of both matrices that a thread multiplies at a time, of sums that are divided among threads.
constexpr int64_t kCachedElements = 1 << 16;

// Threads get a multiple of so many rows of a product of few columns.
constexpr int64_t kNarrowRows = 8;

const ThreadTeam& Alone() {
  static const ThreadTeam alone(1);
  return alone;
}

// All code below takes canonical descriptors (primitives/canonical.h), but for Multiply.

// Calls f(a offset, b offset, c offset) for every batch in [begin, end).
template <typename F>
void ForEachBatch(const MatMulDesc& d, int64_t begin, int64_t end, F&& f) {
  for (int64_t i = begin; i < end; ++i) {
    int64_t a = 0, b = 0, c = 0, rest = i;
    for (int axis = d.batch.rank() - 1; axis >= 0; --axis) {
      const int64_t at = rest % d.batch[axis];
      rest /= d.batch[axis];
      a += at * d.a_batch_strides[axis];
      b += at * d.b_batch_strides[axis];
      c += at * d.c_batch_strides[axis];
    }
    f(a, b, c);
  }
}

// The elements that an operand spans, for conversions of the whole.
int64_t Span(const Dims& batch, const Dims& strides, int64_t rows, int64_t cols, int64_t ld) {
  int64_t span = (rows - 1) * ld + cols;
  for (int i = 0; i < batch.rank(); ++i) span += (batch[i] - 1) * strides[i];
  return span;
}

template <typename T>
StridedMatrix<T> View(T* data, bool transpose, int64_t ld) {
  return {data, transpose ? 1 : ld, transpose ? ld : 1};
}
template <typename T>
StridedMatrix<T> Transposed(const StridedMatrix<T>& m) {
  return {m.data, m.col_stride, m.row_stride};
}

// Products of the batch that are worth another thread, by their multiplications.
int64_t GrainOf(const MatMulDesc& d) {
  return std::max<int64_t>(1, kGrainWork / std::max<int64_t>(1, d.m * d.n * d.k));
}

// Runs one product per batch: with many batches a thread takes whole products, `grain` or more of them. Else all
// threads share each.
template <typename T, typename C = T, typename Multiply>
void ForEachProduct(const MatMulDesc& d, int64_t grain, const Args& args, const ThreadTeam& team, Multiply&& multiply) {
  const T *a = static_cast<const T*>(args.in[0]), *b = static_cast<const T*>(args.in[1]);
  C* c = static_cast<C*>(args.out[0]);
  const int64_t batches = d.batch.num_elements();
  auto run = [&](int64_t begin, int64_t end, const ThreadTeam& inner) {
    ForEachBatch(d, begin, end, [&](int64_t a_offset, int64_t b_offset, int64_t c_offset) {
      multiply(a + a_offset, b + b_offset, c + c_offset, inner);
    });
  };
  if (batches >= 2 * team.size()) {
    team.ParallelFor(batches, grain, [&](int64_t begin, int64_t end) { run(begin, end, ThreadTeam(1)); });
  } else {
    run(0, batches, team);
  }
}

template <typename T>
void RunGemm(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  ForEachProduct<T>(d, GrainOf(d), args, team, [&](const T* a, const T* b, T* c, const ThreadTeam& inner) {
    Gemm<T>(d.m, d.n, d.k, View(a, d.transpose_a, d.lda), View(b, d.transpose_b, d.ldb), View(c, false, d.ldc), T(1),
            false, inner);
  });
}
void RunGemm(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  if (d.type == DType::kDouble) return RunGemm<double>(d, args, team);
  if (SizeOf(d.type) == sizeof(uint32_t)) return RunGemm<uint32_t>(d, args, team);
  RunGemm<uint64_t>(d, args, team);
}

// Four products of the real and imaginary parts. `Real` matrices are views with strides of two.
template <typename Real>
void RunComplexGemm(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  using T = std::complex<Real>;
  const Real a_sign = d.conjugate_a ? -1 : 1, b_sign = d.conjugate_b ? -1 : 1;
  ForEachProduct<T>(d, GrainOf(d), args, team, [&](const T* pa, const T* pb, T* pc, const ThreadTeam& inner) {
    auto part = [](auto view, int imaginary) {
      using P = decltype(view.data);
      using R = std::conditional_t<std::is_const_v<std::remove_pointer_t<P>>, const Real, Real>;
      return StridedMatrix<R>{reinterpret_cast<R*>(view.data) + imaginary, 2 * view.row_stride, 2 * view.col_stride};
    };
    auto a = [&](int i) { return part(View(pa, d.transpose_a, d.lda), i); };
    auto b = [&](int i) { return part(View(pb, d.transpose_b, d.ldb), i); };
    auto c = [&](int i) { return part(View(pc, false, d.ldc), i); };
    Gemm<Real>(d.m, d.n, d.k, a(0), b(0), c(0), Real(1), false, inner);
    Gemm<Real>(d.m, d.n, d.k, a(1), b(1), c(0), -a_sign * b_sign, true, inner);
    Gemm<Real>(d.m, d.n, d.k, a(0), b(1), c(1), b_sign, false, inner);
    Gemm<Real>(d.m, d.n, d.k, a(1), b(0), c(1), a_sign, true, inner);
  });
}

void RunBytes(MatMulEngine engine, const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  using Byte = uint8_t;
  const auto view = [](const Byte* data, bool transpose, int64_t ld, DType type) {
    const StridedMatrix<const Byte> m = View(data, transpose, ld);
    return ByteMatrix{m.data, m.row_stride, m.col_stride, type == DType::kInt8};
  };
  ForEachProduct<Byte, int32_t>(
      d, GrainOf(d), args, team, [&](const Byte* a, const Byte* b, int32_t* c, const ThreadTeam& inner) {
        MultiplyBytes(engine, d.m, d.n, d.k, view(a, d.transpose_a, d.lda, d.type),
                      view(b, d.transpose_b, d.ldb, TypeOfB(d)), View(c, false, d.ldc), inner);
      });
}

void BuildPlan(const MatMulDesc& d, OnednnPlan* plan) {
  using dnnl::memory;
  const memory::data_type type = DnnlType(d.type);
  auto describe = [&](const Dims& batch_strides, int64_t rows, int64_t cols, bool transpose, int64_t ld) {
    memory::dims dims, strides;
    for (int i = 0; i < d.batch.rank(); ++i) {
      const bool broadcast = batch_strides[i] == 0;
      dims.push_back(broadcast ? 1 : d.batch[i]);
      strides.push_back(broadcast ? rows * cols : batch_strides[i]);
    }
    dims.insert(dims.end(), {rows, cols});
    strides.insert(strides.end(), {transpose ? 1 : ld, transpose ? ld : 1});
    return memory::desc(dims, type, strides);
  };
  const memory::desc a = describe(d.a_batch_strides, d.m, d.k, d.transpose_a, d.lda);
  const memory::desc b = describe(d.b_batch_strides, d.k, d.n, d.transpose_b, d.ldb);
  const memory::desc c = describe(d.c_batch_strides, d.m, d.n, false, d.ldc);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc product(Engine(), a, b, c, attr);
  if (std::string(product.impl_info_str()).find("ref") != std::string::npos) return;
  const int src = plan->Buffer(a), weights = plan->Buffer(b), dst = plan->Buffer(c);
  plan->Add(dnnl::matmul(product), product.scratchpad_desc(),
            {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}});
}

// The batch dimension along which matrices lie side by side (few_rows.h), or -1. The stride from one to the next is the
// width of a row of one. Small matrices in rows are read as quickly one by one, with their sums in registers.
int SideBySideAxis(const MatMulDesc& d, bool by_column) {
  constexpr int64_t kFewestElements = 1 << 17;  // of matrices in rows
  if (!by_column && d.m != 1) return -1;
  const Dims& strides = by_column ? d.a_batch_strides : d.b_batch_strides;
  const bool in_columns = by_column ? !d.transpose_a : d.transpose_b;
  const int64_t results = by_column ? d.m : d.n, width = in_columns ? d.k : results;
  if (width % kSideBySideElements != 0) return -1;
  for (int axis = 0; axis < d.batch.rank(); ++axis) {
    if (strides[axis] != width || d.batch[axis] == 1) continue;
    if (in_columns || d.batch[axis] * results * d.k >= kFewestElements) return axis;
  }
  return -1;
}

// The batch without one of its dimensions.
MatMulDesc WithoutAxis(const MatMulDesc& d, int axis) {
  MatMulDesc rest = d;
  for (Dims* dims : {&rest.batch, &rest.a_batch_strides, &rest.b_batch_strides, &rest.c_batch_strides}) {
    std::copy(dims->begin() + axis + 1, dims->end(), dims->begin() + axis);
    dims->resize(dims->rank() - 1);
  }
  return rest;
}

// c = op(a) * op(b) with one or a few rows of c, or one column.
template <typename T>
void RunFewRows(const MatMulDesc& d, bool by_column, const Args& args, const ThreadTeam& team) {
  const int axis = SideBySideAxis(d, by_column);
  const bool side_by_side = axis >= 0;
  const int64_t heads = side_by_side ? d.batch[axis] : 1, columns = by_column ? d.m : d.n;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / (heads * columns * d.k));
  const auto multiply = [&](const T* pa, const T* pb, T* pc, const ThreadTeam& inner) {
    StridedMatrix<const T> a = View(pa, d.transpose_a, d.lda), b = View(pb, d.transpose_b, d.ldb);
    StridedMatrix<T> c = View(pc, false, d.ldc);
    if (by_column) {  // the product of the transposed matrices
      std::swap(a, b);
      a = Transposed(a), b = Transposed(b), c = Transposed(c);
    }
    if (!side_by_side) return MultiplyFewRows<T>(by_column ? d.n : d.m, columns, d.k, a, b, c, inner);
    a.row_stride = (by_column ? d.b_batch_strides : d.a_batch_strides)[axis];
    c.row_stride = d.c_batch_strides[axis];
    MultiplySideBySide<T>(heads, columns, d.k, a, b, c, inner);
  };
  if (!side_by_side) return ForEachProduct<T>(d, grain, args, team, multiply);
  ForEachProduct<T>(WithoutAxis(d, axis), grain, args, team, multiply);
}
void RunFewRows(const MatMulDesc& d, bool by_column, const Args& args, const ThreadTeam& team) {
  if (d.type == DType::kFloat) return RunFewRows<float>(d, by_column, args, team);
  if (d.type == DType::kHalf) return RunFewRows<Half>(d, by_column, args, team);
  RunFewRows<BFloat16>(d, by_column, args, team);
}

template <typename T>
void RunSmallOf(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  const auto multiply = XPU_PICK_ISA(SmallProduct<T>);
  ForEachProduct<T>(d, GrainOf(d), args, team, [&](const T* a, const T* b, T* c, const ThreadTeam&) {
    multiply(d.m, d.n, d.k, View(a, d.transpose_a, d.lda), View(b, d.transpose_b, d.ldb), c, d.ldc);
  });
}

template <typename Real>
void RunSmallComplex(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  using T = std::complex<Real>;
  constexpr int64_t kMultiplications = 8;  // that take as long as one of complex numbers
  const auto multiply = XPU_PICK_ISA(SmallComplexProduct<Real>);
  const auto factor = [](const T* data, bool transpose, int64_t ld, bool conjugate) {
    const auto* const pairs = reinterpret_cast<const Real*>(data);
    return ComplexFactor<Real>{View(pairs, transpose, ld), conjugate ? Real(-1) : Real(1)};
  };
  const int64_t grain = std::max<int64_t>(1, GrainOf(d) / kMultiplications);
  ForEachProduct<T>(d, grain, args, team, [&](const T* a, const T* b, T* c, const ThreadTeam&) {
    multiply(d.m, d.n, d.k, factor(a, d.transpose_a, d.lda, d.conjugate_a),
             factor(b, d.transpose_b, d.ldb, d.conjugate_b), reinterpret_cast<Real*>(c), d.ldc);
  });
}

void RunSmall(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  if (d.type == DType::kComplex64) return RunSmallComplex<float>(d, args, team);
  if (d.type == DType::kComplex128) return RunSmallComplex<double>(d, args, team);
  if (d.type == DType::kDouble) return RunSmallOf<double>(d, args, team);
  // Sums of integers wrap, whatever the sign.
  if (IsInteger(d.type)) {
    return SizeOf(d.type) == sizeof(uint32_t) ? RunSmallOf<uint32_t>(d, args, team)
                                              : RunSmallOf<uint64_t>(d, args, team);
  }
  const auto multiply = XPU_PICK_ISA(SmallMatMul);
  ForEachProduct<float>(d, GrainOf(d), args, team, [&](const float* a, const float* b, float* c, const ThreadTeam&) {
    multiply(d.m, d.n, d.k, a, d.transpose_a, d.lda, b, d.transpose_b, d.ldb, c, d.ldc);
  });
}

// Few columns, such as the classes that a network ends in.
void RunFewColumns(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  const auto pack = XPU_PICK_ISA(PackNarrow);
  const auto multiply = XPU_PICK_ISA(NarrowMatMul);
  const int64_t a_row = d.transpose_a ? 1 : d.lda, a_col = d.transpose_a ? d.lda : 1;
  const int64_t width = XPU_PICK_ISA(NarrowWidth)(d.n);
  const int64_t grain = (kGrainWork / width / d.k / kNarrowRows + 1) * kNarrowRows;
  ForEachProduct<float>(
      d, GrainOf(d), args, team, [&](const float* a, const float* b, float* c, const ThreadTeam& inner) {
        ScratchFrame frame;
        float* packed = frame.Get<float>(d.k * width);
        pack(d.n, d.k, b, d.transpose_b ? 1 : d.ldb, d.transpose_b ? d.ldb : 1, packed);
        inner.ParallelFor(d.m, grain, [&](int64_t begin, int64_t end) {
          multiply(end - begin, d.n, d.k, a + begin * a_row, a_row, a_col, packed, c + begin * d.ldc, d.ldc);
        });
      });
}

// By oneDNN, if it has the product and can do it quickly.
Status RunPlan(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  PlanKey key{static_cast<int64_t>(Primitive::kMatMul),
              static_cast<int64_t>(d.type),
              d.m,
              d.n,
              d.k,
              d.transpose_a,
              d.transpose_b,
              d.lda,
              d.ldb,
              d.ldc};
  for (const Dims* dims : {&d.batch, &d.a_batch_strides, &d.b_batch_strides, &d.c_batch_strides}) key.Add(*dims);
  std::shared_ptr<OnednnPlan> plan;
  if (key.fits()) {
    XPU_RETURN_IF_ERROR(GetPlan(key, team, [&](OnednnPlan* p) { BuildPlan(d, p); }, &plan));
    if (plan->usable()) return plan->Run({args.in[0], args.in[1], args.out[0]}, team);
  }
  if (d.type != DType::kFloat) return errors::Unimplemented("no oneDNN matrix product of type ", Name(d.type));
  RunGemm<float>(d, args, team);
  return OkStatus();
}

// How a product is shared out: so many of the first batch dimension, rows and columns at a time. For some columns of a
// matrix that is read transposed, oneDNN makes a slow product: three times as slow where there are few rows.
struct MatMulPart {
  int64_t batches, rows, cols;
};

// In fewer rows oneDNN is slow.
constexpr int64_t kPieceRows = 128, kCopiedElements = 1 << 18;

MatMulPart ShareOut(const MatMulDesc& d, int team_size, bool has_epilogue) {
  // Parts of fewer columns or rows would have oneDNN copy more than it multiplies.
  constexpr int64_t kCols = 64, kRows = 16;
  const int64_t batches = d.batch.empty() ? 1 : d.batch[0];
  const int64_t work = d.batch.num_elements() * d.m * d.n * d.k, all_rows = d.batch.num_elements() * d.m;
  int64_t wanted = team_size == 1 ? 1 : std::min<int64_t>(work / kGrainWork, kPartsPerThread * team_size);
  // An epilogue wants whole rows, and few enough, but not very few; for each part oneDNN reads all of b then.
  const bool whole_rows = has_epilogue && all_rows >= kPieceRows / 2 * wanted && d.k * d.n <= kCopiedElements;
  if (whole_rows) wanted = std::max(wanted, std::min(all_rows / kPieceRows, all_rows * d.n / kPartElements));
  int64_t stacks = 1, down = 1, across = 1;  // parts in each direction
  for (int64_t parts = 1; parts < wanted; parts *= 2) {
    const int64_t rows = Count(d.m, down), cols = Count(d.n, across);
    if (stacks < batches) {
      stacks *= 2;
    } else if (d.transpose_b && rows >= 2 * kRows) {
      down *= 2;
    } else if (d.transpose_b && down > 1 && parts >= team_size) {
      break;
    } else if (cols >= 2 * kCols && ((cols >= rows && !whole_rows) || rows < 2 * kRows)) {
      across *= 2;
    } else if (rows >= 2 * kRows) {
      down *= 2;
    } else {
      break;
    }
  }
  // Three products are a share and a half for each of two threads.
  constexpr double kUneven = 0.2;
  const int64_t of_all_rows = Count(batches, Count(batches, stacks)) * across;
  while (wanted > 1 && Unevenness(of_all_rows * down, team_size) > kUneven && Count(d.m, down) >= 2 * kRows) down *= 2;
  // Parts of about the same size, of whole blocks of oneDNN's if that makes none much smaller.
  const auto even = [](int64_t all, int64_t parts, std::initializer_list<int64_t> blocks) {
    int64_t size = all;
    for (int64_t block : blocks) {
      size = std::min(all, Count(Count(all, parts), block) * block);
      if (size * parts * 10 <= all * 11) break;
    }
    return size;
  };
  // Rows of a transposed matrix lie next to each other.
  return {even(batches, stacks, {1}), d.transpose_a ? even(d.m, down, {64, 32, 16}) : even(d.m, down, {16, 4}),
          even(d.n, across, {64, 32, 16})};
}

// In parts, each by oneDNN on one thread of the team, because oneDNN's own threads are OpenMP's. All of these have to
// arrive at the end of a product, however short. Where the program keeps the processors busy, that takes longer than a
// medium product. The epilogue, if there is one, sees each part while it is in the cache.
Status RunInParts(const MatMulDesc& d, const Args& args, const ThreadTeam& team, const FusedEpilogue* epilogue) {
  const MatMulPart part = ShareOut(d, team.size(), epilogue != nullptr);
  // True if each part of c lies in one piece: whole rows of one matrix, or whole matrices. With an epilogue c is dense.
  const bool in_pieces =
      part.cols == d.n && (part.rows == d.m || d.batch.empty() || (d.batch.rank() == 1 && part.batches == 1));
  const int64_t batches = d.batch.empty() ? 1 : d.batch[0];
  const int64_t down = Count(d.m, part.rows), across = Count(d.n, part.cols);
  const int64_t size = static_cast<int64_t>(SizeOf(d.type));
  host_runtime::SharedStatus status;
  team.ParallelFor(Count(batches, part.batches) * down * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = i / (down * across) * part.batches;
      const int64_t row = i / across % down * part.rows, col = i % across * part.cols;
      MatMulDesc here = d;
      here.m = std::min(part.rows, d.m - row);
      here.n = std::min(part.cols, d.n - col);
      int64_t a = row * (d.transpose_a ? 1 : d.lda), b = col * (d.transpose_b ? d.ldb : 1), c = row * d.ldc + col;
      if (!d.batch.empty()) {
        here.batch[0] = std::min(part.batches, batches - batch);
        a += batch * d.a_batch_strides[0];
        b += batch * d.b_batch_strides[0];
        c += batch * d.c_batch_strides[0];
      }
      Args at{};
      at.in[0] = static_cast<const char*>(args.in[0]) + a * size;
      at.in[1] = static_cast<const char*>(args.in[1]) + b * size;
      at.out[0] = static_cast<char*>(args.out[0]) + c * size;
      const Status product = RunPlan(here, at, Alone());
      status.Update(product);
      if (product.ok() && epilogue != nullptr && in_pieces) {
        epilogue->Run(c, here.batch.num_elements() * here.m * here.n);
      }
    }
  });
  XPU_RETURN_IF_ERROR(status.get());
  return epilogue == nullptr || in_pieces ? OkStatus() : epilogue->RunAll(team);
}

Status Multiply(const MatMulDesc& desc, const Args& args, const ThreadTeam& team,
                std::optional<FusedEpilogue>* epilogue);

// A small matrix of long sums, such as the gradient of weights that many pixels were multiplied with. Every thread adds
// up parts of the sums.
Status RunInPartialSums(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  const int64_t work = d.m * d.n * d.k, elements = d.m * d.n;
  const int64_t parts = std::min<int64_t>(work / kGrainWork, kPartsPerThread * team.size());
  const int64_t length = (d.k + parts - 1) / parts;
  const int64_t at_once = std::max<int64_t>(16, kCachedElements / (d.m + d.n));
  ScratchFrame frame;
  float* const sums = frame.Get<float>(parts * elements);
  host_runtime::SharedStatus status;
  team.ParallelFor(d.k, length, [&](int64_t begin, int64_t end) {
    ScratchFrame inner;
    float* const terms = inner.Get<float>(elements);
    for (int64_t l = begin; l < end;) {
      float* const sum = sums + l / length * elements;
      const bool first = l % length == 0;
      MatMulDesc part = d;
      part.k = std::min({at_once, length - l % length, end - l});
      part.ldc = d.n;
      Args at{};
      at.in[0] = static_cast<const float*>(args.in[0]) + l * (d.transpose_a ? d.lda : 1);
      at.in[1] = static_cast<const float*>(args.in[1]) + l * (d.transpose_b ? 1 : d.ldb);
      at.out[0] = first ? sum : terms;
      std::optional<FusedEpilogue> none;
      status.Update(Multiply(part, at, Alone(), &none));
      for (int64_t i = 0; !first && i < elements; ++i) sum[i] += terms[i];
      l += part.k;
    }
  });
  XPU_RETURN_IF_ERROR(status.get());
  const int64_t used = (d.k + length - 1) / length;
  for (int64_t i = 1; i < used; ++i) {
    for (int64_t j = 0; j < elements; ++j) sums[j] += sums[i * elements + j];
  }
  for (int64_t row = 0; row < d.m; ++row) {
    std::copy_n(sums + row * d.n, d.n, static_cast<float*>(args.out[0]) + row * d.ldc);
  }
  return OkStatus();
}

// half and bfloat16 by way of float.
Status RunConverted(const MatMulDesc& d, const Args& args, const ThreadTeam& team) {
  const int64_t a_size = d.transpose_a ? Span(d.batch, d.a_batch_strides, d.k, d.m, d.lda)
                                       : Span(d.batch, d.a_batch_strides, d.m, d.k, d.lda);
  const int64_t b_size = d.transpose_b ? Span(d.batch, d.b_batch_strides, d.n, d.k, d.ldb)
                                       : Span(d.batch, d.b_batch_strides, d.k, d.n, d.ldb);
  const int64_t c_size = d.batch.num_elements() * d.m * d.n;
  ScratchFrame frame;
  float *a = frame.Get<float>(a_size), *b = frame.Get<float>(b_size), *c = frame.Get<float>(c_size);
  ToFloat(d.type, args.in[0], a, a_size, team);
  ToFloat(d.type, args.in[1], b, b_size, team);
  // Without gaps between its rows c can be converted as a whole, in whatever order its batches lie.
  const bool gapless = c_size == Span(d.batch, d.c_batch_strides, d.m, d.n, d.ldc);
  MatMulDesc in_float = d;
  in_float.type = DType::kFloat;
  in_float.b_type = in_float.c_type = DType::kInvalid;  // the same
  if (!gapless) {
    in_float.ldc = d.n;
    in_float.c_batch_strides = Dims();
  }
  Args buffers{};
  buffers.in[0] = a;
  buffers.in[1] = b;
  buffers.out[0] = c;
  std::optional<FusedEpilogue> none;  // it runs afterwards, since it reads results of 16 bits
  XPU_RETURN_IF_ERROR(Multiply(in_float, buffers, team, &none));
  if (gapless) {
    FromFloat(d.type, c, args.out[0], c_size, team);
    return OkStatus();
  }
  // Memory between the rows of c stays as it is.
  ForEachBatch(d, 0, d.batch.num_elements(), [&](int64_t, int64_t, int64_t offset) {
    for (int64_t row = 0; row < d.m; ++row, c += d.n, offset += d.ldc) {
      FromFloat(d.type, c, static_cast<uint16_t*>(args.out[0]) + offset, d.n, ThreadTeam(1));
    }
  });
  return OkStatus();
}

// By oneDNN, on the team's threads if `in_parts`. An epilogue that has been run is reset.
Status RunOnednn(const MatMulDesc& d, bool in_parts, const Args& args, const ThreadTeam& team,
                 std::optional<FusedEpilogue>* epilogue) {
  Status status =
      in_parts ? RunInParts(d, args, team, epilogue->has_value() ? &**epilogue : nullptr) : RunPlan(d, args, Alone());
  // There may be less of a type in oneDNN than the processor has.
  if (d.type != DType::kFloat && status.code() == Code::kUnimplemented) return RunConverted(d, args, team);
  XPU_RETURN_IF_ERROR(status);
  if (in_parts) epilogue->reset();
  return OkStatus();
}

// The product. An epilogue that has been run is reset.
Status Multiply(const MatMulDesc& desc, const Args& args, const ThreadTeam& team,
                std::optional<FusedEpilogue>* epilogue) {
  const MatMulChoice choice = ChooseEngine(desc, FormOf(*epilogue, desc.n), Machine::Here(team.size()));
  host_runtime::NoteEngine(choice.engine);
  const MatMulDesc& d = choice.canonical.has_value() ? *choice.canonical : desc;
  const ThreadTeam& threads = choice.alone ? Alone() : team;
  switch (choice.engine) {
    case MatMulEngine::kPlain:
      return plain::Run(d, args);
    case MatMulEngine::kUnpacked:
      RunUnpacked(d, args, threads, epilogue);
      return OkStatus();
    case MatMulEngine::kSmall:
      RunSmall(d, args, threads);
      return OkStatus();
    case MatMulEngine::kPartialSums:
      return RunInPartialSums(d, args, threads);
    case MatMulEngine::kPanels:
      RunPanels(d, args, threads, epilogue);
      return OkStatus();
    case MatMulEngine::kFewRows:
    case MatMulEngine::kOneColumn:
      RunFewRows(d, choice.engine == MatMulEngine::kOneColumn, args, threads);
      return OkStatus();
    case MatMulEngine::kFewColumns:
      RunFewColumns(d, args, threads);
      return OkStatus();
    case MatMulEngine::kOnednn:
    case MatMulEngine::kOnednnInParts:
      return RunOnednn(d, choice.engine == MatMulEngine::kOnednnInParts, args, team, epilogue);
    case MatMulEngine::kGemm:
      RunGemm(d, args, threads);
      return OkStatus();
    case MatMulEngine::kComplexGemm:
      d.type == DType::kComplex64 ? RunComplexGemm<float>(d, args, threads) : RunComplexGemm<double>(d, args, threads);
      return OkStatus();
    case MatMulEngine::kBytesAsTheyLie:
    case MatMulEngine::kBytesByColumns:
    case MatMulEngine::kBytesPacked:
      RunBytes(choice.engine, d, args, threads);
      return OkStatus();
    case MatMulEngine::kInFloat:
      return RunConverted(d, args, threads);
  }
  return OkStatus();
}

}  // namespace

EpilogueWay CpuKernels::WayOfEpilogue(const MatMulDesc& desc) const {
  const bool is_chain = IsChainOfRows(desc.epilogue, desc.n);
  const EpilogueForm form = is_chain ? EpilogueForm::kChain : EpilogueForm::kProgram;
  switch (ChooseEngine(desc, form, Machine::Here(1)).engine) {
    case MatMulEngine::kUnpacked:
      return is_chain ? EpilogueWay::kInRegisters : EpilogueWay::kAfterwards;
    case MatMulEngine::kPanels:
      return is_chain ? EpilogueWay::kInRegisters : EpilogueWay::kPartByPart;
    default:  // of the parts of oneDNN not all lie in one piece
      return EpilogueWay::kAfterwards;
  }
}

Status CpuKernels::Run(const MatMulDesc& desc, const Args& args, const ThreadTeam& team) const {
  const host_runtime::ScopedFloatMode mode(host_runtime::FloatMode::OfProducts());
  try {
    return WithEpilogue(desc, args, team, [&](auto* epilogue) { return Multiply(desc, args, team, epilogue); });
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for the temporaries of a matrix product ", desc.m, "x", desc.k, "x",
                                     desc.n);
  }
}

}  // namespace xpu::cpu
