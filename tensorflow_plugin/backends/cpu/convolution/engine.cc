#include "tensorflow_plugin/backends/cpu/convolution/engine.h"

#include <algorithm>

#include "tensorflow_plugin/backends/cpu/convolution/depthwise.h"
#include "tensorflow_plugin/backends/cpu/convolution/direct.h"
#include "tensorflow_plugin/backends/cpu/convolution/pointwise.h"
#include "tensorflow_plugin/backends/cpu/convolution/products.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/convolution/winograd.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::cpu {
namespace {

using Engine = ConvolutionEngine;

// Multiplications below which a convolution stays on the calling thread.
constexpr int64_t kShared = 1 << 22;
// Multiplications that are worth a part.
constexpr int64_t kPartWork = 1 << 20;
// One thread may be held up, and the others take what would have been its parts.
constexpr int64_t kPartsPerThread = 2;
// Every part reads the whole filter, which should stay in a core's cache beside the data. Where the filter is larger,
// oneDNN's threads read a share of it each. Where it meets enough pixels of the output, each thread has one part.
constexpr int64_t kFilterOfParts = 1 << 17;  // elements
constexpr int64_t kPixelsOfPart = 128;
// Filters up to this size are summed up from parts: elements of all parts together.
constexpr int64_t kSumElements = 1 << 23;

// False if some part of so many rows of the output reads nothing but padding.
bool AllReadRows(const ConvolutionDesc& d, int64_t rows) {
  if (rows == d.output[0]) return true;
  for (int64_t row = 0; row < d.output[0]; row += rows) {
    const int64_t last = std::min(row + rows, d.output[0]) - 1;
    const int64_t begin = row * d.stride[0] - d.pad_before[0];
    const int64_t end = last * d.stride[0] - d.pad_before[0] + (d.filter[0] - 1) * d.dilation[0] + 1;
    if (std::min(end, d.input[0]) <= std::clamp<int64_t>(begin, 0, d.input[0])) return false;
  }
  return true;
}

// Gives the choice about `wanted` parts, two at least. False if there are not so many.
bool ShareOut(const ConvolutionDesc& d, int64_t wanted, ConvolutionChoice* choice) {
  const int64_t images = Count(d.batch, std::min(wanted, d.batch));
  int64_t rows = d.output[0];
  // Rows next to each other read what lies next to each other.
  const bool has_rows = d.direction == Direction::kForward && d.order == ChannelOrder::kLast && d.batch < wanted;
  if (has_rows) rows = Count(d.output[0], std::min(Count(wanted, d.batch), d.output[0]));
  if (Count(d.batch, images) * Count(d.output[0], rows) < 2 || !AllReadRows(d, rows)) return false;
  choice->images = images;
  choice->rows = rows;
  return true;
}

// By oneDNN.
ConvolutionChoice ChooseOnednn(const ConvolutionDesc& d, int64_t multiplications, const Machine& machine) {
  ConvolutionChoice choice;
  choice.engine = Engine::kOnednn;
  choice.alone = machine.threads == 1 || multiplications < kShared;
  if (choice.alone) return choice;
  const bool large = FilterSize(d) > kFilterOfParts;
  const int64_t pixels = d.batch * host_runtime::Pixels(d.output);
  if (large && (d.direction != Direction::kForward || pixels < kPixelsOfPart * machine.threads)) return choice;
  // A thread reads a large filter once.
  int64_t wanted =
      large ? machine.threads : std::min<int64_t>(multiplications / kPartWork, kPartsPerThread * machine.threads);
  if (d.direction == Direction::kFilterGradient) {
    wanted = std::min(wanted, kSumElements / FilterSize(d));
    if (d.type != DType::kFloat || wanted < machine.threads || d.batch < machine.threads) return choice;
    if (ShareOut(d, wanted, &choice)) choice.engine = Engine::kOnednnInSums;
    return choice;
  }
  if (HasEpilogue(d)) wanted = std::max(wanted, ConvolutionSizes(d).out / kPartElements);
  if (ShareOut(d, wanted, &choice)) choice.engine = Engine::kOnednnInParts;
  return choice;
}

ConvolutionChoice Choose(const ConvolutionDesc& d, bool winograd, const Machine& machine) {
  ConvolutionChoice choice;
  const auto chosen = [&choice](Engine engine, bool alone) {
    choice.engine = engine;
    choice.alone = alone;
    return choice;
  };
  const ConvolutionSizes sizes(d);
  if (sizes.out == 0) return chosen(Engine::kNothing, false);
  if (IsMixed(d)) return chosen(Engine::kBytes, false);
  if (sizes.in[0] == 0 || sizes.in[1] == 0) return chosen(Engine::kZeros, false);
  if (d.type == DType::kDouble) return chosen(Engine::kWindows, false);
  if (!machine.HasNative(d.type)) return chosen(Engine::kInFloat, false);
  if (IsDepthwise(d, machine)) return chosen(Engine::kDepthwise, false);
  const int64_t multiplications = Multiplications(d);
  if (d.packed_filter_bytes > 0 && PointwisePays(d, machine)) return chosen(Engine::kPointwise, false);
  const bool alone = machine.threads == 1 || multiplications < kShared;
  if (d.direction == Direction::kDataGradient && DirectPays(d, machine)) return chosen(Engine::kDirect, false);
  if (winograd && WinogradPays(d, machine)) return chosen(Engine::kWinograd, alone);
  if (d.packed_filter_bytes > 0 && WindowsPay(d, machine)) return chosen(Engine::kWindowsInPanels, false);
  if (DirectPays(d, machine)) return chosen(Engine::kDirect, false);
  if (ProductPays(d)) return chosen(Engine::kProduct, alone);
  return ChooseOnednn(d, multiplications, machine);
}

}  // namespace

const char* Name(ConvolutionEngine engine) {
  switch (engine) {
    case Engine::kNothing:
      return "nothing";
    case Engine::kZeros:
      return "zeros";
    case Engine::kWindows:
      return "windows";
    case Engine::kDepthwise:
      return "depthwise";
    case Engine::kPointwise:
      return "pointwise";
    case Engine::kWindowsInPanels:
      return "windows in panels";
    case Engine::kWinograd:
      return "Winograd";
    case Engine::kDirect:
      return "direct";
    case Engine::kProduct:
      return "product of windows";
    case Engine::kOnednn:
      return "oneDNN";
    case Engine::kOnednnInParts:
      return "oneDNN in parts";
    case Engine::kOnednnInSums:
      return "oneDNN in partial sums";
    case Engine::kBytes:
      return "bytes";
    case Engine::kInFloat:
      return "in float";
  }
  return "";
}

ConvolutionChoice ChooseEngine(const ConvolutionDesc& d, const Machine& machine) { return Choose(d, true, machine); }

ConvolutionChoice ChooseEngineWithoutWinograd(const ConvolutionDesc& d, const Machine& machine) {
  return Choose(d, false, machine);
}

ConvolutionDesc ReaderOf(ConvolutionDesc d) {
  if (d.direction == Direction::kPackFilter) d.direction = d.packed_for;
  d.epilogue = {};
  d.packed_filter_bytes = 1;  // so that it is one with a packed filter
  return d;
}

}  // namespace xpu::cpu
