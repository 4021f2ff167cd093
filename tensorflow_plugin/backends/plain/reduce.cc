#include <cmath>
#include <complex>
#include <type_traits>

#include "tensorflow_plugin/backends/plain/evaluator.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/backends/plain/scalar_ops.h"

namespace xpu::plain {
namespace {

// Sums are carried in the widest type of T's class, so that the reference is at least as accurate as anyone.
template <typename T>
struct Wide {
  using type = std::conditional_t<std::is_floating_point_v<T>, double,
                                  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
};
template <typename T>
struct Wide<std::complex<T>> {
  using type = std::complex<double>;
};

// The reduction of one output element. T is a register type.
template <typename T>
class Accumulator {
 public:
  using W = typename Wide<T>::type;

  explicit Accumulator(ReduceKind kind) : kind_(kind) {
    if (kind == ReduceKind::kProd) sum_ = W(1);
    if constexpr (!scalar::kIsComplex<T>) {
      best_ = scalar::StartOfExtremum<T>(kind == ReduceKind::kMax || kind == ReduceKind::kArgMax);
      if (kind == ReduceKind::kAll) best_ = T(1);
      if (kind == ReduceKind::kAny) best_ = T(0);
    }
  }

  void Add(const T& x) {
    bool failed = false;
    switch (kind_) {
      case ReduceKind::kSum:
      case ReduceKind::kMean:
        sum_ = scalar::ops::Add::Apply(sum_, W(x), &failed);
        break;
      case ReduceKind::kProd:
        sum_ = scalar::ops::Mul::Apply(sum_, W(x), &failed);
        break;
      case ReduceKind::kEuclideanNorm:
        if constexpr (scalar::kIsComplex<T>) {
          squares_ += std::norm(W(x));
        } else {
          squares_ += static_cast<double>(x) * static_cast<double>(x);
        }
        break;
      default:
        if constexpr (!scalar::kIsComplex<T>) Compare(x);
    }
    ++count_;
  }

  T Result() const {
    if (kind_ == ReduceKind::kSum || kind_ == ReduceKind::kProd) return Narrow(sum_);
    if (kind_ == ReduceKind::kEuclideanNorm) return scalar::Cast<T>(std::sqrt(squares_));
    if (kind_ != ReduceKind::kMean) return best_;
    if constexpr (scalar::kIsInt<T>) {
      return count_ == 0 ? T{0} : static_cast<T>(sum_ / static_cast<W>(count_));
    } else if constexpr (std::is_same_v<T, bool>) {
      return false;
    } else {
      return Narrow(sum_ / static_cast<double>(count_));
    }
  }
  int64_t position() const { return position_; }

 private:
  static T Narrow(const W& w) { return static_cast<T>(w); }

  void Compare(const T& x) {
    bool failed = false;
    switch (kind_) {
      case ReduceKind::kMax:
      case ReduceKind::kAny:
        best_ = scalar::ops::Maximum::Apply(best_, x, &failed);
        break;
      case ReduceKind::kMin:
      case ReduceKind::kAll:
        best_ = scalar::ops::Minimum::Apply(best_, x, &failed);
        break;
      default:
        // NaN compares false: it is never the extremum, as in TensorFlow.
        if (kind_ == ReduceKind::kArgMax ? x > best_ : x < best_) {
          best_ = x;
          position_ = count_;
        }
    }
  }

  ReduceKind kind_;
  W sum_ = W(0);
  double squares_ = 0;
  T best_ = T{};
  int64_t count_ = 0;
  int64_t position_ = 0;
};

template <typename Storage>
void ReduceAs(const ReduceDesc& desc, const Args& args, Evaluator* evaluator) {
  using T = ComputeTypeT<Storage>;
  const Dims& shape = desc.source.shape;
  Dims kept(shape.rank(), 1), reduced(shape.rank(), 1);
  for (int d = 0; d < shape.rank(); ++d) ((desc.axes >> d) & 1 ? reduced : kept)[d] = shape[d];
  if (kept.num_elements() == 0) return;

  Dims kept_index(shape.rank(), 0);
  int64_t output = 0;
  do {
    Accumulator<T> accumulator(desc.kind);
    if (reduced.num_elements() != 0) {
      Dims reduced_index(shape.rank(), 0);
      do {
        Dims index(shape.rank(), 0);
        for (int d = 0; d < shape.rank(); ++d) index[d] = kept_index[d] + reduced_index[d];
        evaluator->At(index.begin());
        accumulator.Add(*reinterpret_cast<const T*>(evaluator->output(0).bytes));
      } while (NextIndex(reduced, reduced_index.begin()));
    }
    if (IsArgKind(desc.kind)) {
      VisitType(desc.index_type, [&](auto tag) {
        using Index = typename decltype(tag)::type;
        if constexpr (scalar::kIsInt<Index>) {
          static_cast<Index*>(args.out[0])[output] = static_cast<Index>(accumulator.position());
        }
      });
    } else {
      static_cast<Storage*>(args.out[0])[output] = static_cast<Storage>(accumulator.Result());
    }
    ++output;
  } while (NextIndex(kept, kept_index.begin()));
}

}  // namespace

Status Run(const ReduceDesc& desc, const Args& args) {
  Evaluator evaluator(desc.source, args);
  VisitType(SourceType(desc), [&](auto tag) { ReduceAs<typename decltype(tag)::type>(desc, args, &evaluator); });
  return evaluator.status();
}

}  // namespace xpu::plain
