#include "tensorflow_plugin/backends/plain/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tensorflow_plugin/backends/host_runtime/random_numbers.h"

namespace xpu::plain {
namespace {

// Array i of a command's parameters: after what its start takes.
template <typename T>
const T* Parameters(const RandomDesc& desc, const Args& args, int i) {
  const int first = desc.start == RandomStart::kHere ? 0 : desc.start == RandomStart::kCounterGiven ? 1 : 2;
  return static_cast<const T*>(args.in[first + i]);
}

// Doubles one by one, of the two that four words give; the second one first, as TensorFlow's kernels take them.
class Doubles {
 public:
  using Group = void (*)(const uint32_t* bits, double* out);
  explicit Doubles(Group group) : group_(group) {}

  double Next(Philox& generator) {
    if (left_ == 0) {
      uint32_t bits[4];
      generator.Next(bits);
      group_(bits, values_);
      left_ = 2;
    }
    return values_[--left_];
  }

 private:
  const Group group_;
  double values_[2];
  int left_ = 0;
};

void UniformPair(const uint32_t* bits, double* out) { host_runtime::UniformGroup(bits, out); }
void NormalPair(const uint32_t* bits, double* out) { host_runtime::BoxMuller(bits, out); }

// Marsaglia and Tsang, "A simple method for generating gamma variables", ACM Trans. Math. Softw. 26, 2000.
// There d v is gamma(d + 1/3, 1), for v = (1 + c x)^3 of a normal x, if accepted with a probability of 0.95 or more.
// Smaller alphas than 1 take the one of alpha + 1, times u^(1/alpha).
double GammaSample(double alpha, Philox generator) {
  Doubles normal(&NormalPair), uniform(&UniformPair);
  if (alpha == 1) return -std::log1p(-uniform.Next(generator));  // exponential
  const bool small = alpha < 1;
  const double d = alpha + (small ? 2.0 / 3 : -1.0 / 3);
  // With such an alpha nothing is ever accepted.
  if (!(d > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    const double x = normal.Next(generator);
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = uniform.Next(generator);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      const double sample = d * v;
      return small ? sample * std::pow(uniform.Next(generator), 1 / alpha) : sample;
    }
  }
}

// Each number has this many groups of words to itself.
constexpr uint64_t kGroupsPerGamma = 256;

template <typename T>
void GammaOf(const RandomDesc& desc, const Args& args, int64_t begin, int64_t end) {
  const T* const alphas = Parameters<T>(desc, args, 0);
  const int64_t samples = desc.n / desc.parameters;
  const Philox start = host_runtime::GeneratorOf(host_runtime::WithStart(desc, args));
  for (int64_t i = begin; i < end; ++i) {
    const int64_t parameter = i / samples, sample = i % samples;
    Philox generator = start;
    generator.Skip(kGroupsPerGamma * static_cast<uint64_t>(i));
    const double value = GammaSample(static_cast<double>(static_cast<ComputeTypeT<T>>(alphas[parameter])), generator);
    static_cast<T*>(args.out[0])[sample * desc.parameters + parameter] =
        static_cast<T>(static_cast<ComputeTypeT<T>>(value));
  }
}

// Candidates for numbers of a normal distribution within [low, high], in units of its deviation: a few at a time, each
// accepted or not. All arithmetic is in T, rounded after each operation.
template <typename T>
class Candidates {
 public:
  using C = ComputeTypeT<T>;
  static constexpr int kGroup = host_runtime::kGroupSize<T>;
  static constexpr int kMost = 1000;  // refusals in a row

  Candidates(C low, C high) : low_(low), high_(high) {
    const C root = R(std::sqrt(R(R(low * low) + 4)));
    const C cutoff = R(R(2 * R(std::exp(R(C(0.5) + R(R(low * R(low - root)) / 4))))) / R(low + root));
    difference_ = R(high - low);
    // Where at least this much lies on one side of the mean, most normal numbers are within.
    const C enough = R(C(1.3));
    if ((low < -enough && high >= 0) || (high > enough && low <= 0)) {
      method_ = Method::kNormal;
    } else if (difference_ < cutoff) {
      method_ = Method::kUniform;
      plus_ = low < 0 ? C(0) : R(low * low);
    } else {
      method_ = Method::kExponential;
      rate_ = R(R(low + root) / 2);
    }
  }

  // Draws `count` candidates.
  void Draw(Philox& generator) {
    T drawn[kGroup], second[kGroup];
    uint32_t bits[4];
    generator.Next(bits);
    count = kGroup;
    if (method_ == Method::kNormal) {
      host_runtime::NormalGroup(bits, drawn);
      for (int i = 0; i < count; ++i) {
        value[i] = drawn[i];
        accepted[i] = value[i] >= low_ && value[i] <= high_;
      }
      return;
    }
    host_runtime::UniformGroup(bits, drawn);
    if (method_ == Method::kUniform) {
      generator.Next(bits);
      host_runtime::UniformGroup(bits, second);
      for (int i = 0; i < count; ++i) {
        value[i] = R(R(C(drawn[i]) * difference_) + low_);
        const C g = R(R(plus_ - R(value[i] * value[i])) / 2);
        accepted[i] = C(second[i]) <= R(std::exp(g));
      }
      return;
    }
    count = kGroup / 2;
    for (int i = 0; i < count; ++i) {
      value[i] = R(R(R(-R(std::log(C(drawn[2 * i])))) / rate_) + low_);
      const C x = low_ < rate_ ? R(rate_ - value[i]) : R(low_ - rate_);
      const C g = R(std::exp(R(R(-x * x) / 2)));
      accepted[i] = C(drawn[2 * i + 1]) <= g && value[i] < high_;
    }
  }

  // After this many refusals in a row it is given up.
  int limit() const { return method_ == Method::kNormal ? kMost + 1 : kMost; }
  Status Failure() const {
    constexpr const char* kNames[] = {"randn rejection sampler failed to accept a sample.",
                                      "uniform rejection sampler failed to  accept a sample.",
                                      "exponential distribution rejection sampler failed to accept a sample."};
    return errors::Internal("TruncatedNormal ", kNames[static_cast<int>(method_)]);
  }

  static C R(C x) { return static_cast<C>(static_cast<T>(x)); }

  int count = 0;
  C value[kGroup];
  bool accepted[kGroup];

 private:
  enum class Method { kNormal, kUniform, kExponential };

  Method method_;
  const C low_, high_;
  C difference_ = 0, plus_ = 0, rate_ = 0;
};

template <typename T>
Status BoundedNormalOf(const RandomDesc& desc, const Args& args) {
  using C = ComputeTypeT<T>;
  const auto R = &Candidates<T>::R;
  const int64_t samples = desc.n / desc.parameters;
  Philox generator = host_runtime::GeneratorOf(host_runtime::WithStart(desc, args));
  for (int64_t p = 0; p < desc.parameters; ++p) {
    const auto parameter = [&](int i) { return static_cast<C>(Parameters<T>(desc, args, i)[p]); };
    const C mean = parameter(0);
    C deviation = parameter(1), low = parameter(2), high = parameter(3);
    XPU_REQUIRE(deviation > 0 && low < high && (std::isfinite(low) || std::isfinite(high)),
                errors::InvalidArgument("Invalid parameters"));
    // A bound on one side becomes the lower one, and an interval below the mean one above it.
    if ((std::isinf(low) && low < 0) || high < mean) {
      std::swap(low, high);
      deviation = -deviation;
    }
    Candidates<T> candidates(R(R(low - mean) / deviation), R(R(high - mean) / deviation));
    int refused = 0;
    for (int64_t sample = 0; sample < samples;) {
      candidates.Draw(generator);
      for (int i = 0; i < candidates.count && sample < samples; ++i) {
        if (candidates.accepted[i]) {
          static_cast<T*>(args.out[0])[sample++ * desc.parameters + p] =
              static_cast<T>(R(R(candidates.value[i] * deviation) + mean));
          refused = 0;
        } else if (++refused >= candidates.limit()) {
          return candidates.Failure();
        }
      }
    }
  }
  return OkStatus();
}

}  // namespace

void Gamma(const RandomDesc& desc, const Args& args, int64_t begin, int64_t end) {
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsFloating(DTypeOf<T>::value)) GammaOf<T>(desc, args, begin, end);
  });
}

Status BoundedNormal(const RandomDesc& desc, const Args& args) {
  Status status;
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsFloating(DTypeOf<T>::value)) {
      status = BoundedNormalOf<T>(desc, args);
      const T nan = static_cast<T>(std::numeric_limits<ComputeTypeT<T>>::quiet_NaN());
      if (!status.ok()) std::fill_n(static_cast<T*>(args.out[0]), desc.n, nan);
    }
  });
  return status;
}

}  // namespace xpu::plain
