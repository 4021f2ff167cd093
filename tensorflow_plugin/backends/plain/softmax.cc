#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {
namespace {

// One row at a time, in double: the better oracle for float, and exact enough for double.
template <typename T>
class Rows {
 public:
  Rows(const SoftmaxDesc& d, const Args& args) : d_(d), args_(args), shifted_(d.cols) {}

  void Run() {
    const bool dense = d_.kind != SoftmaxKind::kCrossEntropy;
    const int64_t row_stride = dense ? d_.cols : d_.logits_row_stride, col_stride = dense ? 1 : d_.logits_col_stride;
    for (int64_t r = 0; r < d_.rows; ++r) {
      const T* logits = static_cast<const T*>(args_.in[0]) + r * row_stride;
      double max = -std::numeric_limits<double>::infinity();
      for (int64_t c = 0; c < d_.cols; ++c) max = std::max(max, Get(logits[c * col_stride]));
      sum_ = 0;
      for (int64_t c = 0; c < d_.cols; ++c) {
        shifted_[c] = Get(logits[c * col_stride]) - max;
        sum_ += std::exp(shifted_[c]);
      }
      Row(r);
    }
  }

 private:
  static double Get(T v) { return static_cast<double>(static_cast<ComputeTypeT<T>>(v)); }
  static T Put(double v) { return static_cast<T>(static_cast<ComputeTypeT<T>>(v)); }
  double Probability(int64_t c) const { return std::exp(shifted_[c]) / sum_; }

  void Row(int64_t r) {
    T* first = static_cast<T*>(args_.out[0]);
    const bool has_backprop = d_.kind == SoftmaxKind::kCrossEntropy || d_.kind == SoftmaxKind::kSparseCrossEntropy;
    T* backprop = has_backprop ? static_cast<T*>(args_.out[1]) + r * d_.cols : nullptr;
    switch (d_.kind) {
      case SoftmaxKind::kSoftmax:
        for (int64_t c = 0; c < d_.cols; ++c) first[r * d_.cols + c] = Put(Probability(c));
        return;
      case SoftmaxKind::kLogSoftmax:
        for (int64_t c = 0; c < d_.cols; ++c) first[r * d_.cols + c] = Put(shifted_[c] - std::log(sum_));
        return;
      case SoftmaxKind::kCrossEntropy: {
        const T* labels = static_cast<const T*>(args_.in[1]) + r * d_.labels_row_stride;
        double loss = 0;
        for (int64_t c = 0; c < d_.cols; ++c) {
          const double label = Get(labels[c * d_.labels_col_stride]);
          loss += label * (std::log(sum_) - shifted_[c]);
          backprop[c] = Put(Probability(c) - label);
        }
        first[r] = Put(loss);
        return;
      }
      case SoftmaxKind::kSparseCrossEntropy: {
        const int64_t label = Label(r);
        const bool valid = label >= 0 && label < d_.cols;
        const double nan = std::numeric_limits<double>::quiet_NaN();
        first[r] = Put(valid ? std::log(sum_) - shifted_[label] : nan);
        for (int64_t c = 0; c < d_.cols; ++c) backprop[c] = Put(valid ? Probability(c) - (c == label) : nan);
        return;
      }
    }
  }

  int64_t Label(int64_t r) const {
    return d_.label_type == DType::kInt32 ? static_cast<const int32_t*>(args_.in[1])[r]
                                          : static_cast<const int64_t*>(args_.in[1])[r];
  }

  const SoftmaxDesc& d_;
  const Args& args_;
  std::vector<double> shifted_;  // logits minus their maximum
  double sum_ = 0;               // of exp(shifted)
};

}  // namespace

Status Run(const SoftmaxDesc& d, const Args& args) {
  VisitType(d.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsFloating(DTypeOf<T>::value)) Rows<T>(d, args).Run();
  });
  return OkStatus();
}

}  // namespace xpu::plain
