#include "tensorflow_plugin/backends/plain/weights.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {

bool Weights::AreWeights(int64_t num_bytes) const {
  if (group < 1 || (k + group - 1) / group != groups) return false;
  if (halves != Halves::kAcross && group % 2 != 0 && groups > 1) return false;
  if (halves == Halves::kAcross) return num_bytes == k * row_bytes();
  return num_bytes == (halves == Halves::kDown ? (k + 1) / 2 : n) * row_bytes();
}

Status WeightsOf(const WeightMatMulDesc& desc, const Args& args, Weights* weights) {
  const auto* form = static_cast<const int64_t*>(args.in[4]);
  *weights = {static_cast<Halves>(form[0]),
              desc.k,
              desc.n,
              form[1],
              desc.groups,
              static_cast<const uint8_t*>(args.in[1]),
              static_cast<const float*>(args.in[2]),
              static_cast<const int8_t*>(args.in[3])};
  const bool is_known = form[0] >= 0 && form[0] <= static_cast<int64_t>(Halves::kTurned);
  if (is_known && weights->AreWeights(desc.bytes)) return OkStatus();
  return errors::InvalidArgument("WeightMatMul: ", desc.bytes, " bytes are no weights of form ", form[0],
                                 " in groups of ", form[1], " rows for a matrix of ", desc.k, "x", desc.n);
}

namespace {

bool StandFor(const Weights& weights, const float* w, bool transposed) {
  for (int64_t i = 0; i < weights.k; ++i) {
    for (int64_t j = 0; j < weights.n; ++j) {
      const float element = weights.At(i, j);
      if (!std::isfinite(element)) return false;
      if (std::memcmp(&element, w + (transposed ? j * weights.k + i : i * weights.n + j), sizeof(element)) != 0) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

Status Run(const FindWeightsDesc& d, const Args& args) {
  Weights weights;
  weights.k = d.k;
  weights.n = d.n;
  weights.groups = d.groups;
  weights.bytes = static_cast<const uint8_t*>(args.in[1]);
  weights.scales = static_cast<const float*>(args.in[2]);
  weights.zero_points = static_cast<const int8_t*>(args.in[3]);
  const auto* w = static_cast<const float*>(args.in[0]);
  auto* form = static_cast<int64_t*>(args.out[0]);
  const auto try_group = [&](int64_t group) {
    weights.group = group;
    if (!weights.AreWeights(d.bytes) || !StandFor(weights, w, d.transposed)) return false;
    form[0] = static_cast<int64_t>(weights.halves);
    form[1] = group;
    return true;
  };
  // All sizes of groups of which there are so many; powers of 2, which are usual, come first.
  const int64_t least = d.groups == 1 ? d.k : (d.k + d.groups - 1) / d.groups;
  const int64_t most = d.groups == 1 ? d.k : (d.k - 1) / (d.groups - 1);
  for (Halves halves : {Halves::kAcross, Halves::kDown, Halves::kTurned}) {
    weights.halves = halves;
    int64_t power = 1;
    while (power < least) power *= 2;
    if (power <= most && try_group(power)) return OkStatus();
    for (int64_t group = least; group <= most; ++group) {
      if (group != power && try_group(group)) return OkStatus();
    }
  }
  form[0] = form[1] = 0;
  return errors::InvalidArgument("FindWeights: no form of ", d.bytes, " bytes gives the matrix of ", d.k, "x", d.n);
}

Status Run(const WeightMatMulDesc& d, const Args& args) {
  Weights weights;
  XPU_RETURN_IF_ERROR(WeightsOf(d, args, &weights));
  std::vector<float> w(static_cast<size_t>(d.k * d.n));
  for (int64_t i = 0; i < d.k; ++i) {
    for (int64_t j = 0; j < d.n; ++j) w[i * d.n + j] = weights.At(i, j);
  }
  MatMulDesc product;
  product.m = d.m;
  product.n = d.n;
  product.k = d.k;
  product.lda = d.lda;
  Args operands = args;
  operands.in[1] = w.data();
  return Run(product, operands);
}

}  // namespace xpu::plain
