// Which engine computes a convolution. The choice depends on the descriptor and the machine alone. Profiles name it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_ENGINE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_ENGINE_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/machine.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

enum class ConvolutionEngine : uint8_t {
  kNothing,          // no results
  kZeros,            // sums of nothing
  kWindows,          // windows laid out as rows, and products of these: double (convolution/windows.h)
  kDepthwise,        // a filter for each channel (convolution/depthwise.h)
  kPointwise,        // filters of one pixel that are packed (convolution/pointwise.h)
  kWindowsInPanels,  // other packed filters over few pixels: a product of all windows (convolution/pointwise.h)
  kWinograd,         // filters of 3x3 (convolution/winograd.h). An infinity among the results has another engine follow
  kDirect,           // products that read windows in place (convolution/direct.h)
  kProduct,          // large filters over few pixels: one matmul of all windows (convolution/products.h)
  kOnednn,           // oneDNN; if not `alone`, on OpenMP's threads
  kOnednnInParts,    // oneDNN on each thread of the team, for some images or rows; an epilogue follows each part
  kOnednnInSums,     // the same for a filter's gradient: the parts' gradients are added up
  kBytes,            // bytes, in one of three ways or by plain loops (convolution/bytes/bytes.h)
  kInFloat,          // half and bfloat16 become float, and another engine follows
};

// "product of windows", as profiles have it.
const char* Name(ConvolutionEngine engine);

struct ConvolutionChoice {
  ConvolutionEngine engine = ConvolutionEngine::kNothing;
  bool alone = false;  // on the thread that runs the command
  // kOnednnInParts and kOnednnInSums: a part is so many images or, of one image, so many rows of the output.
  int64_t images = 0, rows = 0;
};

// For every direction but kPackFilter, which lays a filter out for ReaderOf(d)'s engine.
ConvolutionChoice ChooseEngine(const ConvolutionDesc& d, const Machine& machine);

// The engine for results that are not all finite, after Winograd's algorithm. It reads no packed filter.
ConvolutionChoice ChooseEngineWithoutWinograd(const ConvolutionDesc& d, const Machine& machine);

// The convolution that a filter is packed for.
ConvolutionDesc ReaderOf(ConvolutionDesc d);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_ENGINE_H_
