#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "tensorflow_plugin/backends/cpu/convolution/axes.h"
#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_products.h"
#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_sums_in_registers.h"
#include "tensorflow_plugin/backends/cpu/convolution/bytes/compensated_sums.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/target.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

constexpr int kQuad = 4;  // rows of x, and bytes
// Elements of a vector, and pixels of a row whose sums are in registers.
constexpr int64_t kLanes = 16;
constexpr int kPixels = 7;
// The quads of a row of the output stay in the first cache.
constexpr int64_t kMostQuadBytes = 3 << 13;
// For a filter of more rows than these have, packing it for each turn of the rows would take too much memory.
constexpr int64_t kMostPlanesOfTurns = 2;

// The quads that a row of the output meets, from some pixel and channel on. Its sums go to memory, or an epilogue
// finishes them in registers.
struct QuadRow {
  const uint8_t* quads;
  int64_t pixel_bytes, plane_bytes, planes;  // a plane has the quads of four rows of x
  const int8_t* filter;
  int64_t tap_bytes;  // from one tap of the filter to the next; those of all planes follow each other
  int32_t* sums;
  int64_t ld;
  ByteEpilogue epilogue;

  QuadRow At(int64_t pixel, int64_t stride, int64_t channel) const {
    QuadRow row = *this;
    row.quads += pixel * stride * pixel_bytes + channel * kQuad;
    row.filter += channel * kQuad;
    row.sums += pixel * ld + channel;
    row.epilogue = epilogue.At(pixel, channel);
    return row;
  }
};

XPU_BEGIN_TARGET(XPU_AVX512_VNNI)

// Quads with these bytes, shifted to their place, where `place` has ones.
static inline __m512i WithBytes(__m512i quads, __m128i bytes, __m128i shift, __m512i place) {
  constexpr int kSecondWhereSet = 0xca;  // bits of the first operand choose between those of the others
  return _mm512_ternarylogic_epi32(place, _mm512_sll_epi32(_mm512_cvtepu8_epi32(bytes), shift), quads, kSecondWhereSet);
}

// Replaces one byte of each of n quads, the one from a row with that number, modulo four.
void InsertBytes(const uint8_t* row, int64_t n, int number, uint8_t* quads) {
  const __m128i shift = _mm_cvtsi32_si128(8 * number);
  const __m512i place = _mm512_set1_epi32(static_cast<int>(0xffu << (8 * number)));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes, quads += kLanes * kQuad) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i));
    _mm512_storeu_si512(quads, WithBytes(_mm512_loadu_si512(quads), bytes, shift, place));
  }
  if (i == n) return;
  const auto mask = static_cast<__mmask16>((1 << (n - i)) - 1);
  const __m128i bytes = _mm_maskz_loadu_epi8(mask, row + i);
  _mm512_mask_storeu_epi32(quads, mask, WithBytes(_mm512_maskz_loadu_epi32(mask, quads), bytes, shift, place));
}

// The sums of kPixels pixels and kVectors vectors of channels. A quad of x is read once for all pixels that meet it.
template <int kWidth, int kStride, int kVectors, bool kFinishes>
void SumPixels(const QuadRow& row) {
  __m512i sum[kPixels][kVectors];
  BeginSums<kPixels, kVectors, kFinishes>(row.epilogue, sum);
  const int8_t* filter = row.filter;
  const uint8_t* plane = row.quads;
  for (int64_t q = 0; q < row.planes; ++q, plane += row.plane_bytes) {
    __m512i w[kWidth][kVectors];
#pragma GCC unroll 8
    for (int t = 0; t < kWidth; ++t, filter += row.tap_bytes) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) w[t][v] = _mm512_loadu_si512(filter + v * kLanes * kQuad);
    }
    const uint8_t* x = plane;
#pragma GCC unroll 32
    for (int col = 0; col < (kPixels - 1) * kStride + kWidth; ++col, x += row.pixel_bytes) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const __m512i quads = _mm512_loadu_si512(x + v * kLanes * kQuad);
#pragma GCC unroll 8
        for (int t = 0; t < kWidth; ++t) {
          const int p = (col - t) / kStride;
          if (col < t || (col - t) % kStride != 0 || p >= kPixels) continue;
          sum[p][v] = _mm512_dpbusd_epi32(sum[p][v], quads, w[t][v]);
        }
      }
    }
  }
  EndSums<kPixels, kVectors, kFinishes>(row.epilogue, sum, row.sums, row.ld);
}

// The sums of one pixel and a vector of channels, with any filter of `width` taps that are `step` bytes apart.
void SumPixel(const QuadRow& row, int64_t width, int64_t step) {
  __m512i sum = _mm512_setzero_si512();
  const int8_t* w = row.filter;
  for (int64_t q = 0; q < row.planes; ++q) {
    const uint8_t* x = row.quads + q * row.plane_bytes;
    for (int64_t t = 0; t < width; ++t, x += step, w += row.tap_bytes) {
      sum = _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(x), _mm512_loadu_si512(w));
    }
  }
  _mm512_storeu_si512(row.sums, sum);
}

XPU_END_TARGET

// SumPixels by number of vectors less one; null if there is none.
struct PixelSums {
  using Function = void (*)(const QuadRow&);
  Function store[2] = {}, finish[2] = {};

  bool exist() const { return store[0] != nullptr; }
};

template <int kWidth, int kStride>
PixelSums PixelSumsBy() {
  return {{&SumPixels<kWidth, kStride, 1, false>, &SumPixels<kWidth, kStride, 2, false>},
          {&SumPixels<kWidth, kStride, 1, true>, &SumPixels<kWidth, kStride, 2, true>}};
}

template <int kWidth>
PixelSums PixelSumsOf(int64_t stride) {
  return stride == 1 ? PixelSumsBy<kWidth, 1>() : stride == 2 ? PixelSumsBy<kWidth, 2>() : PixelSums{};
}

PixelSums FindPixelSums(const SpatialAxis& axis) {
  if (axis.dilation != 1 || axis.output < kPixels) return {};
  if (axis.filter == 3) return PixelSumsOf<3>(axis.stride);
  if (axis.filter == 5) return PixelSumsOf<5>(axis.stride);
  if (axis.filter == 7) return PixelSumsOf<7>(axis.stride);
  return {};
}

// A quad has a channel's elements of four rows that a window meets. So the products of a column of four pixels are one
// dot product. Padding is the zero point of x.
//
// Each row of x has a slot: a byte of some quads. In an image of two axes that is its number modulo the slots. The next
// row of the output finds most of its rows in their slots then. The filter is packed once for each turn of the slots.
class DepthwiseByQuads final : public CompensatedSums {
 public:
  explicit DepthwiseByQuads(const ConvolutionDesc& d)
      : CompensatedSums(d), axes_(AxesOf(d)), batch_(d.batch), channels_(d.in_channels) {
    const SpatialAxis& last = axes_[2];
    rows_ = axes_[0].filter * axes_[1].filter;
    planes_ = Count(rows_, kQuad);
    const bool shares_rows = axes_[0].filter == 1 && axes_[1].dilation == 1;
    turns_ = shares_rows && planes_ <= kMostPlanesOfTurns ? planes_ * kQuad : 1;
    columns_ = last.covered();
    block_ =
        std::clamp(kMostQuadBytes / (columns_ * kQuad * planes_) / kLanes * kLanes, kLanes, RoundUp(channels_, kLanes));
    tap_bytes_ = block_ * kQuad;
    block_ = std::min(block_, channels_);
    turn_bytes_ = planes_ * last.filter * tap_bytes_;
  }

  void Run(const Args& args, const void* packed, const ThreadTeam& team, const SumsEpilogue& epilogue) const override {
    const int32_t zero_point = *static_cast<const int32_t*>(args.in[2]);
    const auto* const filter = static_cast<const int8_t*>(packed);
    ScratchFrame frame;
    const int32_t* const compensation = Compensation(packed, zero_point, &frame);
    const int64_t rows = batch_ * axes_[0].output * axes_[1].output;
    team.ParallelFor(rows, Grain(rows, team.size()), [&](int64_t begin, int64_t end) {
      ScratchFrame of_thread;
      Block block(*this, static_cast<const uint8_t*>(args.in[0]), zero_point, &of_thread);
      for (int64_t first = 0; first < channels_; first += block_) {
        block.Begin(first, std::min(block_, channels_ - first), filter + first / block_ * turns_ * turn_bytes_);
        for (int64_t i = begin; i < end; ++i) {
          block.RunRow(i, FromColumn(compensation, first), epilogue);
        }
      }
    });
  }

 protected:
  // The quads of all taps, block by block of channels and turn by turn.
  int64_t FilterBytes() const override { return Count(channels_, block_) * turns_ * turn_bytes_; }

  void PackFilter(const int8_t* filter, int8_t* to) const override {
    const int64_t width = axes_[2].filter, slots = planes_ * kQuad;
    for (int64_t first = 0; first < channels_; first += block_) {
      const int64_t count = std::min(block_, channels_ - first);
      for (int64_t turn = 0; turn < turns_; ++turn) {
        for (int64_t tap = 0; tap < planes_ * width; ++tap) {
          for (int64_t j = 0; j < tap_bytes_ / kQuad; ++j) {
            for (int64_t i = 0; i < kQuad; ++i) {
              const int64_t row = (tap / width * kQuad + i + slots - turn) % slots;
              *to++ = row < rows_ && j < count ? filter[(row * width + tap % width) * channels_ + first + j] : 0;
            }
          }
        }
      }
    }
  }

 private:
  // Some channels: the quads that a row of the output meets, and its sums.
  class Block {
   public:
    Block(const DepthwiseByQuads& d, const uint8_t* x, int32_t zero_point, ScratchFrame* frame)
        : d_(d),
          x_(x),
          zero_point_(static_cast<uint8_t>(zero_point)),
          ld_(d.tap_bytes_ / kQuad),
          pixel_sums_(FindPixelSums(d.axes_[2])) {
      // Vectors of the last channels end behind the last pixel.
      quad_bytes_ = d.planes_ * d.columns_ * d.block_ * kQuad + kLanes * kQuad;
      quads_ = frame->Get<uint8_t>(quad_bytes_);
      sums_ = frame->Get<int32_t>(d.axes_[2].output * ld_);
      const int64_t row = d.axes_[2].input * d.channels_;
      padding_ = frame->Get<uint8_t>(row);
      std::memset(padding_, zero_point_, row);
      in_slots_ = frame->Get<int64_t>(d.planes_ * kQuad);
    }

    void Begin(int64_t first, int64_t count, const int8_t* filter) {
      first_ = first;
      count_ = count;
      filter_ = filter;
      std::memset(quads_, zero_point_, quad_bytes_);
      std::fill_n(in_slots_, d_.planes_ * kQuad, kPadding);
    }

    // Computes a row of the output.
    void RunRow(int64_t row, const int32_t* compensation, const SumsEpilogue& epilogue) {
      const SpatialAxis &a = d_.axes_[0], &b = d_.axes_[1];
      const int64_t image = row / b.output / a.output;
      const int64_t first_a = row / b.output % a.output * a.stride - a.pad, first_b = row % b.output * b.stride - b.pad;
      const int64_t turn = row % b.output * b.stride % d_.turns_, slots = d_.planes_ * kQuad;
      for (int64_t r = 0; r < d_.rows_; ++r) {
        const int64_t i = first_a + r / b.filter * a.dilation, j = first_b + r % b.filter * b.dilation;
        const bool is_inside = i >= 0 && i < a.input && j >= 0 && j < b.input;
        Insert((r + turn) % slots, is_inside ? (image * a.input + i) * b.input + j : kPadding);
      }
      const int64_t pixels = d_.axes_[2].output, first_pixel = row * pixels;
      const ByteEpilogue in_registers{epilogue.chain, compensation, d_.channels_, first_pixel * d_.channels_ + first_,
                                      first_};
      const int64_t finished = Sum(turn, in_registers);
      if (finished == count_) return;
      epilogue.take({sums_ + finished, ld_, FromColumn(compensation, finished), first_pixel, pixels, first_ + finished,
                     count_ - finished});
    }

   private:
    static constexpr int64_t kPadding = -1;

    // Has a slot hold a row of x.
    void Insert(int64_t slot, int64_t row) {
      if (in_slots_[slot] == row) return;
      in_slots_[slot] = row;
      const SpatialAxis& last = d_.axes_[2];
      const int64_t before = std::min(last.pad, d_.columns_), inside = std::min(last.input, d_.columns_ - before);
      const uint8_t* const from = row == kPadding ? padding_ : x_ + row * last.input * d_.channels_ + first_;
      uint8_t* const to = quads_ + slot / kQuad * PlaneBytes() + before * count_ * kQuad;
      const auto number = static_cast<int>(slot % kQuad);
      if (count_ == d_.channels_) {
        InsertBytes(from, inside * count_, number, to);
        return;
      }
      for (int64_t i = 0; i < inside; ++i) {
        InsertBytes(from + i * d_.channels_, count_, number, to + i * count_ * kQuad);
      }
    }

    // Sums channels, and finishes as many as are returned.
    int64_t Sum(int64_t turn, const ByteEpilogue& epilogue) const {
      const SpatialAxis& last = d_.axes_[2];
      const QuadRow row{quads_,        count_ * kQuad, PlaneBytes(), d_.planes_, filter_ + turn * d_.turn_bytes_,
                        d_.tap_bytes_, sums_,          ld_,          epilogue};
      int64_t finished = 0;
      for (int64_t channel = 0; channel < count_;) {
        const int64_t vectors = pixel_sums_.exist() && channel + 2 * kLanes <= count_ ? 2 : 1;
        int64_t pixel = 0;
        if (pixel_sums_.exist()) {
          const bool finishes = epilogue.chain != nullptr && channel + vectors * kLanes <= count_;
          const auto sum = (finishes ? pixel_sums_.finish : pixel_sums_.store)[vectors - 1];
          for (; pixel < last.output; pixel += kPixels) {  // the last ones may compute some again
            sum(row.At(std::min(pixel, last.output - kPixels), last.stride, channel));
          }
          if (finishes) finished = channel + vectors * kLanes;
        }
        for (; pixel < last.output; ++pixel) {
          SumPixel(row.At(pixel, last.stride, channel), last.filter, last.dilation * count_ * kQuad);
        }
        channel += vectors * kLanes;
      }
      return finished;
    }

    int64_t PlaneBytes() const { return d_.columns_ * count_ * kQuad; }

    const DepthwiseByQuads& d_;
    const uint8_t* const x_;
    const uint8_t zero_point_;
    const int64_t ld_;
    const PixelSums pixel_sums_;
    int64_t quad_bytes_;
    uint8_t *quads_, *padding_;
    int32_t* sums_;
    int64_t* in_slots_;  // the rows of x, through all images
    int64_t first_ = 0, count_ = 0;
    const int8_t* filter_ = nullptr;
  };

  // Rows of the output that are worth a thread, and are many more than those that fill the slots before.
  int64_t Grain(int64_t rows, int threads) const {
    constexpr double kTapNs = 0.05;
    constexpr int64_t kRowsOfPart = 14;
    const auto sums = static_cast<double>(axes_[2].output * channels_);
    const auto taps = static_cast<double>(planes_ * axes_[2].filter);
    const auto worth = static_cast<int64_t>(host_runtime::kGrainNs / (sums * (taps * kTapNs + kSumEpilogueNs))) + 1;
    const int64_t share = Count(rows, threads);
    return std::max(worth, Count(share, std::max<int64_t>(1, share / kRowsOfPart)));
  }

  const std::array<SpatialAxis, kAxes> axes_;
  const int64_t batch_, channels_;
  int64_t rows_, planes_;           // of x that a window meets, and of their quads
  int64_t turns_;                   // of the slots
  int64_t columns_;                 // of x that a row of the output meets
  int64_t block_;                   // channels at a time
  int64_t tap_bytes_, turn_bytes_;  // of the packed filter
};

}  // namespace

std::unique_ptr<ByteSums> DepthwiseQuadSums(const ConvolutionDesc& d) {
  return HasByteProducts() && HasOneChannelGroups(d) ? std::make_unique<DepthwiseByQuads>(d) : nullptr;
}

}  // namespace xpu::cpu
#endif
