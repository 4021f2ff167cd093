#include <vector>

#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {
namespace {

using host_runtime::SpatialStrides;

template <typename F>
void ForEachPixel(const int64_t* extent, F&& f) {
  int64_t at[3];
  for (at[0] = 0; at[0] < extent[0]; ++at[0]) {
    for (at[1] = 0; at[1] < extent[1]; ++at[1]) {
      for (at[2] = 0; at[2] < extent[2]; ++at[2]) f(at);
    }
  }
}

int64_t Offset(const SpatialStrides& s, const int64_t* at) { return at[0] * s.s[0] + at[1] * s.s[1] + at[2] * s.s[2]; }

// The input pixel that filter pixel `f` of the window at output pixel `o` reads; false in the padding.
bool InputPixel(const ConvolutionDesc& d, const int64_t* o, const int64_t* f, int64_t* in) {
  for (int i = 0; i < 3; ++i) {
    in[i] = o[i] * d.stride[i] + f[i] * d.dilation[i] - d.pad_before[i];
    if (in[i] < 0 || in[i] >= d.input[i]) return false;
  }
  return true;
}

// The output pixel whose window reads input pixel `in` through filter pixel `f`; false if there is none.
bool OutputPixel(const ConvolutionDesc& d, const int64_t* in, const int64_t* f, int64_t* o) {
  for (int i = 0; i < 3; ++i) {
    const int64_t start = in[i] + d.pad_before[i] - f[i] * d.dilation[i];
    if (start < 0 || start % d.stride[i] != 0 || start / d.stride[i] >= d.output[i]) return false;
    o[i] = start / d.stride[i];
  }
  return true;
}

template <typename T, typename A>
class Convolution {
 public:
  explicit Convolution(const ConvolutionDesc& d)
      : d_(d),
        in_per_group_(d.in_channels / d.groups),
        out_per_group_(d.out_channels / d.groups),
        x_(d.order, d.in_channels, d.input),
        y_(d.order, d.out_channels, d.output) {}

  void Forward(const T* x, const T* w, T* y) const {
    for (int64_t n = 0; n < d_.batch; ++n) {
      ForEachPixel(d_.output, [&](const int64_t* o) {
        for (int64_t oc = 0; oc < d_.out_channels; ++oc) {
          const int64_t first = oc / out_per_group_ * in_per_group_;
          A sum = 0;
          ForEachPixel(d_.filter, [&](const int64_t* f) {
            int64_t in[3];
            if (!InputPixel(d_, o, f, in)) return;
            for (int64_t ic = 0; ic < in_per_group_; ++ic) {
              sum += A(x[n * x_.n + (first + ic) * x_.c + Offset(x_, in)]) * A(w[Filter(f, ic, oc)]);
            }
          });
          y[n * y_.n + oc * y_.c + Offset(y_, o)] = static_cast<T>(sum);
        }
      });
    }
  }

  void DataGradient(const T* w, const T* dy, T* dx) const {
    for (int64_t n = 0; n < d_.batch; ++n) {
      ForEachPixel(d_.input, [&](const int64_t* in) {
        for (int64_t c = 0; c < d_.in_channels; ++c) {
          const int64_t first = c / in_per_group_ * out_per_group_;
          A sum = 0;
          ForEachPixel(d_.filter, [&](const int64_t* f) {
            int64_t o[3];
            if (!OutputPixel(d_, in, f, o)) return;
            for (int64_t oc = first; oc < first + out_per_group_; ++oc) {
              sum += A(dy[n * y_.n + oc * y_.c + Offset(y_, o)]) * A(w[Filter(f, c % in_per_group_, oc)]);
            }
          });
          dx[n * x_.n + c * x_.c + Offset(x_, in)] = static_cast<T>(sum);
        }
      });
    }
  }

  void FilterGradient(const T* x, const T* dy, T* dw) const {
    ForEachPixel(d_.filter, [&](const int64_t* f) {
      for (int64_t ic = 0; ic < in_per_group_; ++ic) {
        for (int64_t oc = 0; oc < d_.out_channels; ++oc) {
          const int64_t c = oc / out_per_group_ * in_per_group_ + ic;
          A sum = 0;
          for (int64_t n = 0; n < d_.batch; ++n) {
            ForEachPixel(d_.output, [&](const int64_t* o) {
              int64_t in[3];
              if (!InputPixel(d_, o, f, in)) return;
              sum += A(x[n * x_.n + c * x_.c + Offset(x_, in)]) * A(dy[n * y_.n + oc * y_.c + Offset(y_, o)]);
            });
          }
          dw[Filter(f, ic, oc)] = static_cast<T>(sum);
        }
      }
    });
  }

 private:
  int64_t Filter(const int64_t* f, int64_t ic, int64_t oc) const {
    const int64_t pixel = (f[0] * d_.filter[1] + f[1]) * d_.filter[2] + f[2];
    return (pixel * in_per_group_ + ic) * d_.out_channels + oc;
  }

  const ConvolutionDesc& d_;
  const int64_t in_per_group_, out_per_group_;
  const SpatialStrides x_, y_;
};

// float accumulates in double, which makes this the better oracle.
template <typename T>
struct Accumulator {
  using type = float;
};
template <>
struct Accumulator<float> {
  using type = double;
};
template <>
struct Accumulator<double> {
  using type = double;
};

}  // namespace

Status ReferenceKernels::Run(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team) const {
  if (IsMixed(d)) {
    const int64_t pixels = d.batch * host_runtime::Pixels(d.output);
    if (!HasEpilogue(d)) {
      plain::ConvolveBytes(d, args, 0, pixels, static_cast<int32_t*>(args.out[0]));
      return OkStatus();
    }
    // The epilogue may store less.
    std::vector<int32_t> sums(pixels * d.out_channels);
    plain::ConvolveBytes(d, args, 0, pixels, sums.data());
    plain::EpilogueCommand epilogue = plain::EpilogueOf(d, args);
    epilogue.args.in[0] = sums.data();
    return RunEpilogue(epilogue, team);
  }
  auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Convolution<T, typename Accumulator<T>::type> convolution(d);
    const T *a = static_cast<const T*>(args.in[0]), *b = static_cast<const T*>(args.in[1]);
    T* out = static_cast<T*>(args.out[0]);
    switch (d.direction) {
      case Direction::kForward:
        return convolution.Forward(a, b, out);
      case Direction::kDataGradient:
        return convolution.DataGradient(a, b, out);
      case Direction::kFilterGradient:
        return convolution.FilterGradient(a, b, out);
      case Direction::kPackFilter:
        return;  // not supported
    }
  };
  VisitType(d.type, [&](auto tag) {
    if constexpr (IsFloating(DTypeOf<typename decltype(tag)::type>::value)) run(tag);
  });
  return HasEpilogue(d) ? RunEpilogue(plain::EpilogueOf(d, args), team) : OkStatus();
}

}  // namespace xpu::reference
