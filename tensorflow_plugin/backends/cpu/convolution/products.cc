#include "tensorflow_plugin/backends/cpu/convolution/products.h"

#include <algorithm>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"

namespace xpu::cpu {
namespace {

using host_runtime::Pixels;
using host_runtime::ThreadTeam;

// Elements of filters that are large, and of windows that are few.
constexpr int64_t kLargeFilter = 1 << 20, kMostWindows = 1 << 22;
// Elements that are worth a thread.
constexpr int64_t kGrain = 1 << 15;

// The windows of a convolution with channels last as rows of a matrix. Each pixel of the output has a row: the input's
// channels at each tap, the last axis fastest.
struct WindowRows {
  explicit WindowRows(const ConvolutionDesc& desc)
      : d(desc),
        pixels(Pixels(desc.output)),
        rows(desc.batch * pixels),
        taps(Pixels(desc.filter)),
        depth(taps * desc.in_channels),
        size(static_cast<int64_t>(SizeOf(desc.type)) * desc.in_channels) {}

  void LayOut(const char* x, char* windows, const ThreadTeam& team) const {
    team.ParallelFor(rows, std::max<int64_t>(1, kGrain / depth), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const char* const image = x + row / pixels * Pixels(d.input) * size;
        host_runtime::ForEachTap(d, row % pixels, [&](int64_t tap, int64_t pixel) {
          char* const to = windows + (row * taps + tap) * size;
          if (pixel < 0) {
            std::memset(to, 0, size);
          } else {
            std::memcpy(to, image + pixel * size, size);
          }
        });
      }
    });
  }

  const ConvolutionDesc& d;
  const int64_t pixels, rows, taps, depth, size;
};

}  // namespace

bool ProductPays(const ConvolutionDesc& d) {
  const WindowRows windows(d);
  return d.order == ChannelOrder::kLast && d.groups == 1 && windows.depth * d.out_channels > kLargeFilter &&
         windows.rows * windows.depth <= kMostWindows && d.direction != Direction::kDataGradient;
}

const char* LayOutWindows(const ConvolutionDesc& d, const void* x, const ThreadTeam& team, ScratchFrame* frame) {
  const WindowRows windows(d);
  char* const rows = frame->Get<char>(windows.rows * windows.taps * windows.size);
  windows.LayOut(static_cast<const char*>(x), rows, team);
  return rows;
}

Status RunProduct(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  const WindowRows windows(d);
  ScratchFrame frame;
  const char* const rows = LayOutWindows(d, args.in[0], team, &frame);
  const bool forward = d.direction == Direction::kForward;
  MatMulDesc product;
  product.type = d.type;
  product.m = forward ? windows.rows : windows.depth;
  product.n = d.out_channels;
  product.k = forward ? windows.depth : windows.rows;
  product.transpose_a = !forward;
  Args of_product{};
  of_product.in[0] = rows;
  of_product.in[1] = args.in[1];
  of_product.out[0] = args.out[0];
  return Kernels().Run(product, of_product, team);
}

}  // namespace xpu::cpu
