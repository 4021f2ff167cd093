#include <complex>
#include <type_traits>

#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {
namespace {

// Integers accumulate in uint64 so that they wrap instead of overflowing. Those of float accumulate in double, which
// makes this the better oracle; half and bfloat16 accumulate in float.
template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                       std::conditional_t<std::is_same_v<T, float>, double, ComputeTypeT<T>>>;

template <typename T>
T MaybeConjugate(T v, bool) {
  return v;
}
template <typename T>
std::complex<T> MaybeConjugate(std::complex<T> v, bool conjugate) {
  return conjugate ? std::conj(v) : v;
}

template <typename C, typename TA, typename TB>
void Multiply(const MatMulDesc& d, const TA* a, const TB* b, C* c) {
  using A = Accumulator<C>;
  const int64_t lda = d.lda ? d.lda : d.transpose_a ? d.m : d.k;
  const int64_t ldb = d.ldb ? d.ldb : d.transpose_b ? d.k : d.n;
  const int64_t ldc = d.ldc ? d.ldc : d.n;
  const int64_t a_row = d.transpose_a ? 1 : lda, a_col = d.transpose_a ? lda : 1;
  const int64_t b_row = d.transpose_b ? 1 : ldb, b_col = d.transpose_b ? ldb : 1;
  for (int64_t i = 0; i < d.m; ++i) {
    for (int64_t j = 0; j < d.n; ++j) {
      A sum{};
      for (int64_t l = 0; l < d.k; ++l) {
        sum += static_cast<A>(MaybeConjugate(a[i * a_row + l * a_col], d.conjugate_a)) *
               static_cast<A>(MaybeConjugate(b[l * b_row + j * b_col], d.conjugate_b));
      }
      c[i * ldc + j] = static_cast<C>(sum);
    }
  }
}

}  // namespace

Status Run(const MatMulDesc& d, const Args& args) {
  Dims c_strides = d.c_batch_strides;
  if (c_strides.empty()) {
    c_strides = DenseStrides(d.batch);
    for (int i = 0; i < c_strides.rank(); ++i) c_strides[i] *= d.m * d.n;
  }
  // The types' order is a's, b's and c's.
  const auto multiply = [&](auto a_tag, auto b_tag, auto c_tag) {
    using A = typename decltype(a_tag)::type;
    using B = typename decltype(b_tag)::type;
    using C = typename decltype(c_tag)::type;
    const int64_t batches = d.batch.num_elements();
    for (int64_t i = 0; i < batches; ++i) {
      int64_t a_offset = 0, b_offset = 0, c_offset = 0, rest = i;
      for (int axis = d.batch.rank() - 1; axis >= 0; --axis) {
        const int64_t at = rest % d.batch[axis];
        rest /= d.batch[axis];
        a_offset += at * d.a_batch_strides[axis];
        b_offset += at * d.b_batch_strides[axis];
        c_offset += at * c_strides[axis];
      }
      Multiply(d, static_cast<const A*>(args.in[0]) + a_offset, static_cast<const B*>(args.in[1]) + b_offset,
               static_cast<C*>(args.out[0]) + c_offset);
    }
  };
  if (IsMixed(d)) {
    const auto visit_byte = [](DType type, auto&& f) {
      return type == DType::kInt8 ? f(TypeTag<int8_t>{}) : f(TypeTag<uint8_t>{});
    };
    visit_byte(d.type, [&](auto a) { visit_byte(TypeOfB(d), [&](auto b) { multiply(a, b, TypeTag<int32_t>{}); }); });
  } else {
    VisitType(d.type, [&](auto tag) { multiply(tag, tag, tag); });
  }
  return OkStatus();
}

namespace {

// The epilogue as a command of its own. The product's inputs, `operands` of them, come before the epilogue's.
EpilogueCommand AsCommand(const ElementwiseDesc& desc, int operands, const Args& args) {
  EpilogueCommand epilogue{desc, args};
  epilogue.desc.in_strides[0] = DenseStrides(desc.shape);
  epilogue.args.in[0] = args.out[0];
  for (int i = 1; i < desc.program->num_inputs(); ++i) epilogue.args.in[i] = args.in[operands - 1 + i];
  return epilogue;
}

}  // namespace

EpilogueCommand EpilogueOf(const MatMulDesc& desc, const Args& args) { return AsCommand(desc.epilogue, 2, args); }
EpilogueCommand EpilogueOf(const WeightMatMulDesc& desc, const Args& args) { return AsCommand(desc.epilogue, 5, args); }
EpilogueCommand EpilogueOf(const ConvolutionDesc& desc, const Args& args) {
  return AsCommand(desc.epilogue, NumOperands(desc), args);
}

}  // namespace xpu::plain
