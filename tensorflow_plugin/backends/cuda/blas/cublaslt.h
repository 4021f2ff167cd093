// cuBLASLt, NVIDIA's library of matmuls, opened when it is first asked for. Types and numbers are those of cublasLt.h.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_BLAS_CUBLASLT_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_BLAS_CUBLASLT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensorflow_plugin/backends/cuda/driver.h"

namespace xpu::cuda {

// cudaDataType.
enum BlasType { kR32F = 0, kR64F = 1, kR16F = 2, kR8I = 3, kC32F = 4, kC64F = 5, kR32I = 10, kR16BF = 14 };
// cublasComputeType_t.
enum BlasCompute { kCompute32F = 68, kCompute64F = 70, kCompute32I = 72, kCompute32FFastTf32 = 77 };
// cublasOperation_t.
enum BlasOperation { kBlasN = 0, kBlasT = 1, kBlasC = 2 };
enum MatmulAttribute { kMatmulTransA = 3, kMatmulTransB = 4, kMatmulEpilogue = 7, kMatmulBias = 8 };
// cublasLtEpilogue_t: kEpilogueNone, or a sum of the others.
enum BlasEpilogueBits { kEpilogueNone = 1, kEpilogueRelu = 2, kEpilogueBias = 4 };
enum LayoutAttribute { kLayoutBatchCount = 5, kLayoutBatchStride = 6 };
enum PreferenceAttribute {
  kPreferenceWorkspaceBytes = 1,
  kPreferenceReductionSchemes = 3,
  kPreferenceAlignmentA = 5,  // then those of B, C and D
};
// cublasLtReductionScheme_t: how parts of a sum are added up. A bit says that parts are in the type of sums.
constexpr uint32_t kReduceInTypeOfSums = 2;

struct MatmulAlgorithm {
  uint64_t data[8];
};
struct MatmulHeuristic {
  MatmulAlgorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
using BlasHandle = struct cublasLtContext*;
using MatmulHandle = struct cublasLtMatmulDescOpaque_t*;
using LayoutHandle = struct cublasLtMatrixLayoutOpaque_t*;
using PreferenceHandle = struct cublasLtMatmulPreferenceOpaque_t*;

// V(field, symbol, parameters): the functions that are used; all return a cublasStatus_t, 0 of success.
#define XPU_CUBLASLT_FUNCTIONS(V)                                                                                   \
  V(Create, "cublasLtCreate", (BlasHandle * handle))                                                                \
  V(Destroy, "cublasLtDestroy", (BlasHandle handle))                                                                \
  V(DescCreate, "cublasLtMatmulDescCreate", (MatmulHandle * desc, int compute, int scale))                          \
  V(DescDestroy, "cublasLtMatmulDescDestroy", (MatmulHandle desc))                                                  \
  V(DescSet, "cublasLtMatmulDescSetAttribute", (MatmulHandle desc, int attribute, const void* value, size_t size))  \
  V(LayoutCreate, "cublasLtMatrixLayoutCreate",                                                                     \
    (LayoutHandle * layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                            \
  V(LayoutDestroy, "cublasLtMatrixLayoutDestroy", (LayoutHandle layout))                                            \
  V(LayoutSet, "cublasLtMatrixLayoutSetAttribute",                                                                  \
    (LayoutHandle layout, int attribute, const void* value, size_t size))                                           \
  V(PreferenceCreate, "cublasLtMatmulPreferenceCreate", (PreferenceHandle * preference))                            \
  V(PreferenceDestroy, "cublasLtMatmulPreferenceDestroy", (PreferenceHandle preference))                            \
  V(PreferenceSet, "cublasLtMatmulPreferenceSetAttribute",                                                          \
    (PreferenceHandle preference, int attribute, const void* value, size_t size))                                   \
  V(GetHeuristic, "cublasLtMatmulAlgoGetHeuristic",                                                                 \
    (BlasHandle handle, MatmulHandle desc, LayoutHandle a, LayoutHandle b, LayoutHandle c, LayoutHandle d,          \
     PreferenceHandle preference, int asked, MatmulHeuristic* results, int* found))                                 \
  V(Matmul, "cublasLtMatmul",                                                                                       \
    (BlasHandle handle, MatmulHandle desc, const void* alpha, const void* a, LayoutHandle a_layout, const void* b,  \
     LayoutHandle b_layout, const void* beta, const void* c, LayoutHandle c_layout, void* d, LayoutHandle d_layout, \
     const MatmulAlgorithm* algorithm, void* workspace, size_t workspace_bytes, StreamHandle stream))

struct CublasLt {
#define XPU_FIELD(name, symbol, parameters) int(*name) parameters = nullptr;
  XPU_CUBLASLT_FUNCTIONS(XPU_FIELD)
#undef XPU_FIELD
};

// nullptr where there is none. `why` may be null.
const CublasLt* FindCublasLt(std::string* why);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_BLAS_CUBLASLT_H_
