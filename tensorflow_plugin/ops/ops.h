// The table of contents of ops/: one Register function per file.
#ifndef TENSORFLOW_PLUGIN_OPS_OPS_H_
#define TENSORFLOW_PLUGIN_OPS_OPS_H_

#include "tensorflow_plugin/framework/registry.h"

// V(Name): `void RegisterName(Registry&)` exists and is called when the core loads. One line each, in order.
#define XPU_OP_FILES(V) \
  V(Activations)        \
  V(AddN)               \
  V(ArrayBlocks)        \
  V(ArrayConcat)        \
  V(ArrayDiag)          \
  V(ArrayMask)          \
  V(ArrayPad)           \
  V(ArraySlice)         \
  V(ArrayTranspose)     \
  V(Cast)               \
  V(CheckNumerics)      \
  V(Collectives)        \
  V(Convolution)        \
  V(Count)              \
  V(Ctc)                \
  V(CtcDecode)          \
  V(Debug)              \
  V(Dilation)           \
  V(DynamicSlice)       \
  V(Einsum)             \
  V(Fft)                \
  V(Fill)               \
  V(Gather)             \
  V(Gru)                \
  V(HostOps)            \
  V(ImageColor)         \
  V(ImageCrop)          \
  V(ImageResize)        \
  V(ImageSuppress)      \
  V(ImageSelectBoxes)   \
  V(ImageTransform)     \
  V(Inplace)            \
  V(Iterators)          \
  V(LinalgFactorize)    \
  V(LinalgSolve)        \
  V(Lrn)                \
  V(Lstm)               \
  V(MatMul)             \
  V(MathBinary)         \
  V(MathUnary)          \
  V(Normalize)          \
  V(Optimizers)         \
  V(Order)              \
  V(Patches)            \
  V(Pool)               \
  V(Quantize)           \
  V(Random)             \
  V(RandomParameters)   \
  V(RandomState)        \
  V(Reduce)             \
  V(ReverseSequence)    \
  V(Scan)               \
  V(Scatter)            \
  V(Segment)            \
  V(Select)             \
  V(SliceBegins)        \
  V(Softmax)            \
  V(SparseEmptyRows)    \
  V(SparseMatMul)       \
  V(SparseOptimizers)   \
  V(SparseOrder)        \
  V(SparseSegment)      \
  V(SparseSlice)        \
  V(SparseToDense)      \
  V(Special)            \
  V(StochasticCast)     \
  V(TensorArrays)       \
  V(TensorLists)        \
  V(Unique)             \
  V(Variables)          \
  V(Where)

namespace xpu {

#define XPU_DECLARE(name) void Register##name(Registry& registry);
XPU_OP_FILES(XPU_DECLARE)
#undef XPU_DECLARE

inline void RegisterAllOps(Registry& registry) {
#define XPU_CALL(name) Register##name(registry);
  XPU_OP_FILES(XPU_CALL)
#undef XPU_CALL
  (void)registry;
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_OPS_H_
