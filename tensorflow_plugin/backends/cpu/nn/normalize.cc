#include <algorithm>
#include <cmath>
#include <new>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/nn/normalize_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// The data as blocks of [rows, cols] whose columns repeat the channels. Narrow rows are folded into wider ones; with
// channels first, every plane is rows of one channel. The split depends on the descriptor alone, and so does the order
// of summation.
class Blocks {
 public:
  struct ChannelBlock {
    int64_t index, offset, rows, cols;
    int64_t channel;  // of the first column
  };

  Blocks(const NormalizeDesc& d, int64_t element_size) : channels_(d.channels) {
    const bool last = d.order == ChannelOrder::kLast;
    segments_ = last ? 1 : d.batch * d.channels;
    period_ = last ? d.channels : 1;
    length_ = last ? d.batch * d.spatial : d.spatial;
    fold_ = std::min(length_, std::max<int64_t>(1, kWidth / period_));
    rows_ = length_ / fold_;
    block_rows_ = std::max<int64_t>(16, kBlockBytes / (fold_ * period_ * element_size));
    whole_ = (rows_ + block_rows_ - 1) / block_rows_;
    blocks_ = whole_ + (length_ % fold_ != 0);
  }

  int64_t size() const { return segments_ * blocks_; }
  int64_t period() const { return period_; }        // channels side by side
  int64_t cols() const { return fold_ * period_; }  // of the widest block
  int64_t block_elements() const { return std::min(rows_, block_rows_) * cols(); }

  ChannelBlock operator[](int64_t i) const {
    const int64_t segment = i / blocks_, k = i % blocks_;
    const int64_t start = segment * length_ * period_, channel = segment * period_ % channels_;
    if (k == whole_) return {i, start + rows_ * cols(), 1, length_ % fold_ * period_, channel};
    const int64_t row = k * block_rows_;
    return {i, start + row * cols(), std::min(block_rows_, rows_ - row), cols(), channel};
  }

 private:
  static constexpr int64_t kWidth = 128, kBlockBytes = 1 << 16;
  int64_t channels_, segments_, period_, length_, fold_, rows_, block_rows_, whole_, blocks_;
};

constexpr int64_t kGrainElements = 1 << 15;

int64_t Grain(const Blocks& blocks) { return std::max<int64_t>(1, kGrainElements / blocks.block_elements()); }

// The mean and the mean squared distance from it, of every channel.
template <typename T>
void Moments(const NormalizeDesc& d, const Blocks& blocks, const T* x, double* mean, double* variance,
             const ThreadTeam& team) {
  const auto column_moments = XPU_PICK_ISA(ColumnMoments<T>);
  const int64_t period = blocks.period();
  ScratchFrame frame;
  double* means = frame.Get<double>(blocks.size() * period);
  double* squares = frame.Get<double>(blocks.size() * period);
  team.ParallelFor(blocks.size(), Grain(blocks), [&](int64_t begin, int64_t end) {
    ScratchFrame inner;
    float *column_mean = inner.Get<float>(blocks.cols()), *column_squares = inner.Get<float>(blocks.cols());
    for (int64_t i = begin; i < end; ++i) {
      const Blocks::ChannelBlock b = blocks[i];
      column_moments(x + b.offset, b.rows, b.cols, column_mean, column_squares);
      const int64_t fold = b.cols / period;
      for (int64_t p = 0; p < period; ++p) {
        double sum = 0, square = 0;
        for (int64_t c = p; c < b.cols; c += period) sum += column_mean[c];
        sum /= static_cast<double>(fold);
        for (int64_t c = p; c < b.cols; c += period) {
          const double away = column_mean[c] - sum;
          square += column_squares[c] + static_cast<double>(b.rows) * away * away;
        }
        means[i * period + p] = sum;
        squares[i * period + p] = square;
      }
    }
  });
  const double count = static_cast<double>(d.batch * d.spatial);
  std::fill_n(mean, d.channels, 0.0);
  std::fill_n(variance, d.channels, 0.0);
  for (int64_t i = 0; i < blocks.size(); ++i) {
    const Blocks::ChannelBlock b = blocks[i];
    const double weight = static_cast<double>(b.rows * (b.cols / period)) / count;
    for (int64_t p = 0; p < period; ++p) mean[b.channel + p] += weight * means[i * period + p];
  }
  for (int64_t i = 0; i < blocks.size(); ++i) {
    const Blocks::ChannelBlock b = blocks[i];
    const double weight = static_cast<double>(b.rows * (b.cols / period)) / count;
    for (int64_t p = 0; p < period; ++p) {
      const double away = means[i * period + p] - mean[b.channel + p];
      variance[b.channel + p] += squares[i * period + p] / count + weight * away * away;
    }
  }
}

// Calls f(block, parameters by column) on the team. `params` are `count` arrays of one value per channel.
template <int count, typename F>
void ForEachBlock(const Blocks& blocks, const float* const (&params)[count], const ThreadTeam& team, F&& f) {
  team.ParallelFor(blocks.size(), Grain(blocks), [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    float* columns[count];
    for (float*& c : columns) c = frame.Get<float>(blocks.cols());
    int64_t channel = -1;
    for (int64_t i = begin; i < end; ++i) {
      const Blocks::ChannelBlock b = blocks[i];
      if (b.channel != channel) {
        channel = b.channel;
        for (int k = 0; k < count; ++k) {
          for (int64_t c = 0; c < blocks.cols(); c += blocks.period()) {
            std::copy_n(params[k] + channel, blocks.period(), columns[k] + c);
          }
        }
      }
      f(b, columns);
    }
  });
}

template <typename T>
void Forward(const NormalizeDesc& d, const Args& args, const ThreadTeam& team) {
  const T* x = static_cast<const T*>(args.in[0]);
  const float* param[4];  // scale, offset, running mean and variance
  for (int i = 0; i < 4; ++i) param[i] = static_cast<const float*>(args.in[1 + i]);
  T* y = static_cast<T*>(args.out[0]);
  const Blocks blocks(d, sizeof(T));
  ScratchFrame frame;
  float *center = frame.Get<float>(d.channels), *scale = frame.Get<float>(d.channels);
  double *mean = frame.Get<double>(d.channels), *variance = frame.Get<double>(d.channels);
  if (d.training) {
    Moments(d, blocks, x, mean, variance, team);
    const double count = static_cast<double>(d.batch * d.spatial), bessel = count > 1 ? count / (count - 1) : 1;
    float* out[4];
    for (int i = 0; i < 4; ++i) out[i] = static_cast<float*>(args.out[1 + i]);
    for (int64_t c = 0; c < d.channels; ++c) {
      const double corrected = variance[c] * bessel;
      const bool replace = d.factor == 1.0f;  // whatever the running values are, even NaN
      out[0][c] = static_cast<float>(replace ? mean[c] : param[2][c] * (1.0 - d.factor) + mean[c] * d.factor);
      out[1][c] = static_cast<float>(replace ? corrected : param[3][c] * (1.0 - d.factor) + corrected * d.factor);
      out[2][c] = static_cast<float>(mean[c]);
      out[3][c] = static_cast<float>(variance[c]);
    }
  } else {
    std::copy_n(param[2], d.channels, mean);
    std::copy_n(param[3], d.channels, variance);
  }
  for (int64_t c = 0; c < d.channels; ++c) {
    center[c] = static_cast<float>(mean[c]);
    scale[c] = static_cast<float>(param[0][c] / std::sqrt(variance[c] + d.epsilon));
  }
  const auto apply = XPU_PICK_ISA(ColumnApply<T>);
  const float* const params[] = {center, scale, param[1]};
  ForEachBlock(blocks, params, team, [&](const Blocks::ChannelBlock& b, float* const* columns) {
    apply(x + b.offset, y + b.offset, b.rows, b.cols, columns[0], columns[1], columns[2]);
  });
}

template <typename T>
void Gradient(const NormalizeDesc& d, const Args& args, const ThreadTeam& team) {
  const T *dy = static_cast<const T*>(args.in[0]), *x = static_cast<const T*>(args.in[1]);
  const float *scale = static_cast<const float*>(args.in[2]), *mean = static_cast<const float*>(args.in[3]);
  const float* variance = static_cast<const float*>(args.in[4]);
  T* dx = static_cast<T*>(args.out[0]);
  const Blocks blocks(d, sizeof(T));
  const int64_t period = blocks.period();
  ScratchFrame frame;
  float* sums = frame.Get<float>(blocks.size() * blocks.cols());
  float* dots = frame.Get<float>(blocks.size() * blocks.cols());
  const auto gradient_sums = XPU_PICK_ISA(ColumnGradientSums<T>);
  const float* const centers[] = {mean};
  ForEachBlock(blocks, centers, team, [&](const Blocks::ChannelBlock& b, float* const* columns) {
    const int64_t i = b.index * blocks.cols();
    gradient_sums(dy + b.offset, x + b.offset, columns[0], b.rows, b.cols, sums + i, dots + i);
  });
  double *sum = frame.Get<double>(d.channels), *dot = frame.Get<double>(d.channels);
  std::fill_n(sum, d.channels, 0.0);
  std::fill_n(dot, d.channels, 0.0);
  for (int64_t i = 0; i < blocks.size(); ++i) {
    const Blocks::ChannelBlock b = blocks[i];
    for (int64_t c = 0; c < b.cols; c += period) {
      const int64_t at = i * blocks.cols() + c;
      for (int64_t p = 0; p < period; ++p) {
        sum[b.channel + p] += sums[at + p];
        dot[b.channel + p] += dots[at + p];
      }
    }
  }
  float* params[3];  // factor, shift and slope of ColumnApplyGradient
  for (float*& p : params) p = frame.Get<float>(d.channels);
  const double count = static_cast<double>(d.batch * d.spatial);
  for (int64_t c = 0; c < d.channels; ++c) {
    const double squared = static_cast<double>(variance[c]) + d.epsilon, inverse = 1 / std::sqrt(squared);
    static_cast<float*>(args.out[1])[c] = static_cast<float>(dot[c] * inverse);
    static_cast<float*>(args.out[2])[c] = static_cast<float>(sum[c]);
    params[0][c] = static_cast<float>(scale[c] * inverse);
    params[1][c] = d.training ? static_cast<float>(sum[c] / count) : 0;
    params[2][c] = d.training ? static_cast<float>(dot[c] / count / squared) : 0;
  }
  const auto apply = XPU_PICK_ISA(ColumnApplyGradient<T>);
  const float* const applied[] = {mean, params[0], params[1], params[2]};
  ForEachBlock(blocks, applied, team, [&](const Blocks::ChannelBlock& b, float* const* columns) {
    apply(dy + b.offset, x + b.offset, dx + b.offset, b.rows, b.cols, columns[0], columns[1], columns[2], columns[3]);
  });
}

}  // namespace

Status CpuKernels::Run(const NormalizeDesc& d, const Args& args, const ThreadTeam& team) const {
  const bool has_type = d.type == DType::kFloat || IsReducedFloat(d.type);
  if (!has_type || d.batch * d.spatial * d.channels == 0) return plain::Run(d, args);
  try {
    auto run = [&](auto value) {
      using T = decltype(value);
      d.gradient ? Gradient<T>(d, args, team) : Forward<T>(d, args, team);
    };
    d.type == DType::kFloat ? run(float{}) : d.type == DType::kHalf ? run(Half{}) : run(BFloat16{});
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for the temporaries of a normalization");
  }
  return OkStatus();
}

}  // namespace xpu::cpu
