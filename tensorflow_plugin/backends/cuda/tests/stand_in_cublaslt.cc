// A stand-in for libcublasLt.so.13, which cuDNN does not do without: it is there, and multiplies nothing.
extern "C" {

#define EXPORT __attribute__((visibility("default")))
#define UNSUPPORTED(name) \
  EXPORT int name() { return 15; }

UNSUPPORTED(cublasLtCreate)
UNSUPPORTED(cublasLtDestroy)
UNSUPPORTED(cublasLtMatmulDescCreate)
UNSUPPORTED(cublasLtMatmulDescDestroy)
UNSUPPORTED(cublasLtMatmulDescSetAttribute)
UNSUPPORTED(cublasLtMatrixLayoutCreate)
UNSUPPORTED(cublasLtMatrixLayoutDestroy)
UNSUPPORTED(cublasLtMatrixLayoutSetAttribute)
UNSUPPORTED(cublasLtMatmulPreferenceCreate)
UNSUPPORTED(cublasLtMatmulPreferenceDestroy)
UNSUPPORTED(cublasLtMatmulPreferenceSetAttribute)
UNSUPPORTED(cublasLtMatmulAlgoGetHeuristic)
UNSUPPORTED(cublasLtMatmul)

}  // extern "C"
