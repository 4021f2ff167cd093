#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "tensorflow_plugin/backends/cpu/convolution/axes.h"
#include "tensorflow_plugin/backends/cpu/convolution/byte_products.h"
#include "tensorflow_plugin/backends/cpu/convolution/shifted_sums.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/target.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

constexpr int kQuad = 4;  // rows of x, and bytes
// Sums at a time, and elements that a vector has.
constexpr int64_t kSumsAtOnce = 64, kLanes = 16;
// The quads of a row of the output stay in the first cache.
constexpr int64_t kMostQuadBytes = 3 << 13;

XPU_BEGIN_TARGET(XPU_AVX512_VNNI)

// n quads of the elements of four rows.
void MakeQuads(const uint8_t* const rows[kQuad], int64_t n, uint8_t* to) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const auto mask = static_cast<__mmask16>(n - i >= kLanes ? 0xffff : (1 << (n - i)) - 1);
    __m512i quads = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int r = 0; r < kQuad; ++r) {
      const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, rows[r] + i));
      quads = _mm512_or_si512(quads, _mm512_slli_epi32(bytes, 8 * r));
    }
    _mm512_storeu_si512(to + i * kQuad, quads);
  }
}

// n sums of dot products: those of quads at some offsets with the filter's. These lie in as many rows, which have the
// same `period` channels again and again.
void SumQuads(const uint8_t* quads, int64_t taps, const int64_t* offsets, const int8_t* filter, int64_t filter_row,
              int64_t n, int64_t period, int32_t* sums) {
  int64_t channel = 0;
  for (int64_t i = 0; i < n; i += kSumsAtOnce) {
    constexpr int kVectors = kSumsAtOnce / kLanes;
    __m512i sum[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] = _mm512_setzero_si512();
    const int8_t* w = filter + channel * kQuad;
    for (int64_t t = 0; t < taps; ++t, w += filter_row) {
      const uint8_t* const x = quads + i * kQuad + offsets[t];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sum[v] = _mm512_dpbusd_epi32(sum[v], _mm512_loadu_si512(x + v * 64), _mm512_loadu_si512(w + v * 64));
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(sums + i + v * kLanes, sum[v]);
    channel = (channel + kSumsAtOnce) % period;
  }
}

XPU_END_TARGET

// A quad has a channel's elements of four rows that a window meets. So the products of a column of four cells are one
// dot product. The quads of all pixels of a row of the output are made first. Padding is the zero of x.
class DepthwiseByQuads final : public ShiftedSums {
 public:
  explicit DepthwiseByQuads(const ConvolutionDesc& d)
      : ShiftedSums(d), axes_(AxesOf(d)), batch_(d.batch), channels_(d.in_channels) {
    const SpatialAxis& last = axes_[2];
    rows_ = axes_[0].filter * axes_[1].filter;
    row_quads_ = Count(rows_, kQuad);
    columns_ = last.covered();
    block_ = std::clamp(kMostQuadBytes / (columns_ * kQuad * row_quads_) / kLanes * kLanes, kLanes,
                        RoundUp(channels_, kLanes));
    block_ = std::min(block_, channels_);
    taps_ = row_quads_ * last.filter;
    filter_row_ = (block_ + kSumsAtOnce) * kQuad;
  }

  void Run(const Args& args, const void* packed, const ThreadTeam& team, TakeSums take) const override {
    const int32_t zero = *static_cast<const int32_t*>(args.in[2]);
    const auto* const filter = static_cast<const int8_t*>(packed);
    const int64_t blocks = Count(channels_, block_);
    ScratchFrame frame;
    const int32_t* const shift = Shift(packed, zero, &frame);
    const int64_t rows = batch_ * axes_[0].output * axes_[1].output;
    team.ParallelFor(rows, Grain(), [&](int64_t begin, int64_t end) {
      ScratchFrame of_thread;
      RowOfOutput row(*this, static_cast<const uint8_t*>(args.in[0]), zero, &of_thread);
      for (int64_t i = begin; i < end; ++i) {
        row.Begin(i);
        for (int64_t block = 0; block < blocks; ++block) {
          const int64_t first = block * block_, count = std::min(block_, channels_ - first);
          const int32_t* const shift_here = shift == nullptr ? nullptr : shift + first;
          int32_t* const made = row.Sum(first, count, filter + block * taps_ * filter_row_);
          take({made, count, shift_here, i * axes_[2].output, axes_[2].output, first, count});
        }
      }
    });
  }

 protected:
  // The quads of all taps, block by block of channels.
  int64_t FilterBytes() const override { return Count(channels_, block_) * taps_ * filter_row_; }

  void PackFilter(const int8_t* filter, int8_t* to) const override {
    const int64_t cells = axes_[2].filter;
    for (int64_t first = 0; first < channels_; first += block_) {
      const int64_t period = std::min(block_, channels_ - first);
      for (int64_t tap = 0; tap < taps_; ++tap) {
        for (int64_t j = 0; j < block_ + kSumsAtOnce; ++j) {
          for (int64_t i = 0; i < kQuad; ++i) {
            const int64_t row = tap / cells * kQuad + i;
            *to++ = row < rows_ ? filter[(row * cells + tap % cells) * channels_ + first + j % period] : 0;
          }
        }
      }
    }
  }

 private:
  // Computes a row of the output, some channels at a time.
  class RowOfOutput {
   public:
    RowOfOutput(const DepthwiseByQuads& d, const uint8_t* x, int32_t zero, ScratchFrame* frame)
        : d_(d), x_(x), zero_(static_cast<uint8_t>(zero)) {
      const SpatialAxis& last = d.axes_[2];
      const int64_t most = d.columns_ * d.block_ + kSumsAtOnce;
      quads_ = frame->Get<uint8_t>(d.row_quads_ * most * kQuad);
      sums_ = frame->Get<int32_t>(last.output * d.block_ + kSumsAtOnce);
      nothing_ = frame->Get<uint8_t>(last.input * d.channels_ + kSumsAtOnce);
      std::memset(nothing_, zero_, last.input * d.channels_ + kSumsAtOnce);
      rows_ = frame->Get<const uint8_t*>(d.row_quads_ * kQuad);
      offsets_ = frame->Get<int64_t>(d.taps_);
      std::fill_n(rows_, d.row_quads_ * kQuad, nothing_);
    }

    // Finds the rows of x for a row of the output.
    void Begin(int64_t row) {
      const SpatialAxis &a = d_.axes_[0], &b = d_.axes_[1];
      const int64_t image = row / b.output / a.output;
      const int64_t first_a = row / b.output % a.output * a.stride - a.pad, first_b = row % b.output * b.stride - b.pad;
      for (int64_t r = 0; r < d_.rows_; ++r) {
        const int64_t i = first_a + r / b.filter * a.dilation, j = first_b + r % b.filter * b.dilation;
        const bool is_inside = i >= 0 && i < a.input && j >= 0 && j < b.input;
        const int64_t at = (image * a.input + i) * b.input + j;
        rows_[r] = is_inside ? x_ + at * d_.axes_[2].input * d_.channels_ : nothing_;
      }
    }

    // The sums of `count` channels from `first` on, pixel by pixel.
    int32_t* Sum(int64_t first, int64_t count, const int8_t* filter) {
      const SpatialAxis& last = d_.axes_[2];
      const int64_t pixel_bytes = count * kQuad, row_bytes = (d_.columns_ * count + kSumsAtOnce) * kQuad;
      const int64_t before = std::min(last.pad, d_.columns_), inside = std::min(last.input, d_.columns_ - before);
      for (int64_t q = 0; q < d_.row_quads_; ++q) {
        uint8_t* const to = quads_ + q * row_bytes;
        std::memset(to, zero_, before * pixel_bytes);
        MakeQuadsOfRow(rows_ + q * kQuad, first, count, inside, to + before * pixel_bytes);
        std::memset(to + (before + inside) * pixel_bytes, zero_, (d_.columns_ - before - inside) * pixel_bytes);
        for (int64_t c = 0; c < last.filter; ++c) {
          offsets_[q * last.filter + c] = q * row_bytes + c * last.dilation * pixel_bytes;
        }
      }
      if (last.stride == 1) {
        SumQuads(quads_, d_.taps_, offsets_, filter, d_.filter_row_, last.output * count, count, sums_);
      } else {
        for (int64_t i = 0; i < last.output; ++i) {
          SumQuads(quads_ + i * last.stride * pixel_bytes, d_.taps_, offsets_, filter, d_.filter_row_, count, count,
                   sums_ + i * count);
        }
      }
      return sums_;
    }

   private:
    void MakeQuadsOfRow(const uint8_t* const* rows, int64_t first, int64_t count, int64_t pixels, uint8_t* to) const {
      const bool is_whole = count == d_.channels_;
      for (int64_t i = 0; i < (is_whole ? 1 : pixels); ++i) {
        const uint8_t* here[kQuad];
        for (int r = 0; r < kQuad; ++r) here[r] = rows[r] + i * d_.channels_ + first;
        MakeQuads(here, is_whole ? pixels * count : count, to + i * count * kQuad);
      }
    }

    const DepthwiseByQuads& d_;
    const uint8_t* const x_;
    const uint8_t zero_;
    uint8_t *quads_, *nothing_;
    int32_t* sums_;
    const uint8_t** rows_;
    int64_t* offsets_;
  };

  // Rows of the output that are worth a thread.
  int64_t Grain() const {
    constexpr double kNs = 0.1, kEpilogueNs = 0.3;  // for a tap, and for the rest of a sum
    const auto sums = static_cast<double>(axes_[2].output * channels_);
    return static_cast<int64_t>(host_runtime::kGrainNs / (sums * (static_cast<double>(taps_) * kNs + kEpilogueNs))) + 1;
  }

  const std::array<SpatialAxis, kAxes> axes_;
  const int64_t batch_, channels_;
  int64_t rows_, row_quads_;   // of x that a window meets, and their quads
  int64_t columns_;            // of x that a row of the output meets
  int64_t block_;              // channels at a time
  int64_t taps_, filter_row_;  // quads of a window, and the bytes of the filter's for one of them
};

}  // namespace

std::unique_ptr<ByteSums> DepthwiseQuadSums(const ConvolutionDesc& d) {
  return HasByteProducts() && HasOneChannelGroups(d) ? std::make_unique<DepthwiseByQuads>(d) : nullptr;
}

}  // namespace xpu::cpu
#endif
