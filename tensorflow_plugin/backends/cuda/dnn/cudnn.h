// cuDNN 9, NVIDIA's library of convolutions, opened when it is first asked for. Types and numbers are those of
// cudnn_graph.h.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_CUDNN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_CUDNN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensorflow_plugin/backends/cuda/driver.h"

namespace xpu::cuda {

// cudnnDataType_t.
enum DnnNumber { kDnnFloat = 0, kDnnDouble = 1, kDnnHalf = 2, kDnnBFloat16 = 9 };
inline constexpr int kDnnCrossCorrelation = 1;     // CUDNN_CROSS_CORRELATION
inline constexpr int kDnnPropagateNan = 1;         // CUDNN_PROPAGATE_NAN
inline constexpr int kDnnCompiledAtRuntime = 0;    // CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION
inline constexpr int kDnnAdd = 0, kDnnRelu = 100;  // of cudnnPointwiseMode_t

// cudnnBackendHeurMode_t: the order of engines that its rules expect, and engines that are there for all else.
enum DnnHeuristic { kDnnFallback = 2, kDnnModeA = 3 };

// cudnnBackendNumericalNote_t: what an engine does to numbers.
enum DnnNote {
  kDnnTensorCores = 0,
  kDnnRoundsInputs = 1,
  kDnnReducedSums = 2,
  kDnnFft = 3,
  kDnnNondeterministic = 4,
  kDnnWinograd = 5,
  kDnnNotes = 32,  // there is room for that many, and so of its behavior; version 9.28 has 10
};

// cudnnBackendDescriptorType_t.
enum DnnKind {
  kDnnPointwise = 0,
  kDnnConvolution = 1,
  kDnnEngine = 2,
  kDnnEngineConfig = 3,
  kDnnHeuristics = 4,
  kDnnPlan = 5,
  kDnnForward = 10,
  kDnnFilterGradient = 11,
  kDnnDataGradient = 12,
  kDnnPointwiseOperation = 13,
  kDnnGraph = 15,
  kDnnVariantPack = 16,
  kDnnTensor = 17,
};

// cudnnBackendAttributeType_t.
enum DnnType {
  kDnnTypeHandle = 0,
  kDnnTypeNumber = 1,
  kDnnTypeBool = 2,
  kDnnTypeInt64 = 3,
  kDnnTypeFloat = 4,
  kDnnTypeDouble = 5,
  kDnnTypePointer = 6,
  kDnnTypeConvolutionMode = 7,
  kDnnTypeHeuristic = 8,
  kDnnTypeNan = 10,
  kDnnTypeNote = 11,
  kDnnTypePointwiseMode = 14,
  kDnnTypeDescriptor = 15,
  kDnnTypeBehavior = 19,
};

// cudnnBackendAttributeName_t.
enum DnnAttribute {
  kDnnPointwiseMode = 0,
  kDnnPointwiseNumber = 1,
  kDnnPointwiseNan = 2,
  kDnnConvolutionSums = 100,
  kDnnConvolutionMode = 101,
  kDnnConvolutionDilations = 102,
  kDnnConvolutionStrides = 103,
  kDnnConvolutionPadAfter = 104,
  kDnnConvolutionPadBefore = 105,
  kDnnConvolutionRank = 106,
  kDnnHeuristicsMode = 200,
  kDnnHeuristicsGraph = 201,
  kDnnHeuristicsResults = 202,
  kDnnConfigEngine = 300,
  kDnnPlanHandle = 400,
  kDnnPlanConfig = 401,
  kDnnPlanWorkspaceBytes = 402,
  // An operation has six attributes in a row. They are alpha, beta, the convolution, the filter, images and results.
  kDnnForwardFirst = 700,
  kDnnDataGradientFirst = 706,
  kDnnFilterGradientFirst = 712,
  kDnnPointwiseOf = 750,
  kDnnPointwiseFirst = 751,
  kDnnPointwiseSecond = 752,
  kDnnPointwiseResult = 753,
  kDnnGraphHandle = 800,
  kDnnGraphOperations = 801,
  kDnnTensorAlignment = 900,
  kDnnTensorNumber = 901,
  kDnnTensorShape = 902,
  kDnnTensorStrides = 903,
  kDnnTensorId = 906,
  kDnnTensorIsVirtual = 907,
  kDnnPackIds = 1000,
  kDnnPackPointers = 1001,
  kDnnPackWorkspace = 1003,
  kDnnEngineIndex = 1301,
  kDnnEngineNotes = 1303,
  kDnnEngineBehavior = 1305,
};

using DnnHandle = struct cudnnContext*;
using DnnDescriptorHandle = void*;  // cudnnBackendDescriptor_t
using DnnResult = int;              // cudnnStatus_t, 0 of success

// V(result, field, symbol, parameters): the functions that are used.
#define XPU_CUDNN_FUNCTIONS(V)                                                                     \
  V(size_t, GetVersion, "cudnnGetVersion", ())                                                     \
  V(const char*, GetErrorString, "cudnnGetErrorString", (DnnResult error))                         \
  V(void, GetLastErrorString, "cudnnGetLastErrorString", (char* text, size_t size))                \
  V(DnnResult, Create, "cudnnCreate", (DnnHandle * handle))                                        \
  V(DnnResult, Destroy, "cudnnDestroy", (DnnHandle handle))                                        \
  V(DnnResult, SetStream, "cudnnSetStream", (DnnHandle handle, StreamHandle stream))               \
  V(DnnResult, DescriptorCreate, "cudnnBackendCreateDescriptor", (int kind, DnnDescriptorHandle*)) \
  V(DnnResult, DescriptorDestroy, "cudnnBackendDestroyDescriptor", (DnnDescriptorHandle))          \
  V(DnnResult, DescriptorSet, "cudnnBackendSetAttribute",                                          \
    (DnnDescriptorHandle, int attribute, int type, int64_t count, const void* values))             \
  V(DnnResult, DescriptorGet, "cudnnBackendGetAttribute",                                          \
    (DnnDescriptorHandle, int attribute, int type, int64_t most, int64_t* count, void* values))    \
  V(DnnResult, DescriptorFinalize, "cudnnBackendFinalize", (DnnDescriptorHandle))                  \
  V(DnnResult, Execute, "cudnnBackendExecute", (DnnHandle handle, DnnDescriptorHandle plan, DnnDescriptorHandle pack))

struct Cudnn {
#define XPU_FIELD(result, name, symbol, parameters) result(*name) parameters = nullptr;
  XPU_CUDNN_FUNCTIONS(XPU_FIELD)
#undef XPU_FIELD
};

// nullptr where there is none. `why` may be null.
const Cudnn* FindCudnn(std::string* why);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_CUDNN_H_
