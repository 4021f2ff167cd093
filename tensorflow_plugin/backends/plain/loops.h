// Whole primitives as plain loops on host memory, for a backend that has nothing faster for some types.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_LOOPS_H_

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::plain {

// Run the primitive to its end on the calling thread. The descriptor has passed Check; addresses are the host's.
Status Run(const ReduceDesc& desc, const Args& args);
Status Run(const MatMulDesc& desc, const Args& args);
Status Run(const FindWeightsDesc& desc, const Args& args);
Status Run(const WeightMatMulDesc& desc, const Args& args);
Status Run(const QuantizeRowsDesc& desc, const Args& args);
Status Run(const PoolDesc& desc, const Args& args);
Status Run(const NormalizeDesc& desc, const Args& args);
Status Run(const SoftmaxDesc& desc, const Args& args);
Status Run(const SampleDesc& desc, const Args& args);
Status Run(const ResampleDesc& desc, const Args& args);
Status Run(const SuppressDesc& desc, const Args& args);
Status Run(const SelectBoxesDesc& desc, const Args& args);
Status Run(const FactorizeDesc& desc, const Args& args);
Status Run(const SolveDesc& desc, const Args& args);

// A convolution of bytes without its epilogue: the pixels [begin, end) of the outputs of all images, out_channels each,
// to y.
void ConvolveBytes(const ConvolutionDesc& desc, const Args& args, int64_t begin, int64_t end, int32_t* y);

// kTridiagonal alone, and of the batch the systems [begin, end). None fails.
void SolveTridiagonal(const SolveDesc& desc, const Args& args, int64_t begin, int64_t end);

// Parts of Sample: rows [begin, end) of the batch * out_h that the points lie in, and of a gradient of images the
// images [begin, end).
void RunSamplePart(const SampleDesc& desc, const Args& args, int64_t begin, int64_t end);
// Fails if an image number is out of range.
Status CheckImageNumbers(const SampleDesc& desc, const Args& args);

// The epilogue of a product, which Run above leaves out, or of a convolution as a command of its own, over what lies
// in out[0].
struct EpilogueCommand {
  ElementwiseDesc desc;
  Args args;
};
EpilogueCommand EpilogueOf(const MatMulDesc& desc, const Args& args);
EpilogueCommand EpilogueOf(const WeightMatMulDesc& desc, const Args& args);
EpilogueCommand EpilogueOf(const ConvolutionDesc& desc, const Args& args);

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_LOOPS_H_
