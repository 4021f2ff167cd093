// A stand-in for libcublasLt.so.13: products of float on the host, on the stream's turn, with the epilogues that the
// backend uses. As NVIDIA's, it sees matrices whose columns are in a row. Products of 8-bit integers need the first one
// transposed, and rows of whole words. A search finds nothing for other types.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>

#include "tensorflow_plugin/backends/cuda/blas/cublaslt.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_in.h"

using namespace xpu::cuda;

namespace xpu::cuda {

struct cublasLtMatmulDescOpaque_t {
  int compute = kCompute32F;
  int trans_a = kBlasN, trans_b = kBlasN, epilogue = kEpilogueNone;
  const float* bias = nullptr;
};
struct cublasLtMatrixLayoutOpaque_t {
  int type = 0, batches = 1;
  int64_t rows = 0, columns = 0, leading = 0, stride = 0;
};

}  // namespace xpu::cuda

namespace {

constexpr int kNotSupported = 15, kInvalidValue = 7;

StandInProducts the_products{};
int integer_products = 0;  // that have run
bool relu_drops_nan = false;

struct Product {
  cublasLtMatmulDescOpaque_t desc;
  float alpha, beta;
  const void *a_data, *b_data, *c_data;
  void* d_data;
  cublasLtMatrixLayoutOpaque_t a_layout, b_layout, c_layout, d_layout;

  void Run() const {
    if (desc.compute == kCompute32I) {
      static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
      static auto* const launches = reinterpret_cast<int (*)(StandInLaunch*, int)>(dlsym(driver, "StandInLaunches"));
      the_products.apart += launches(nullptr, 0) != ++integer_products;
      Compute<int8_t, int32_t>();
    } else {
      Compute<float, float>();
    }
  }
  template <typename Element, typename Sum>
  void Compute() const {
    const auto *a = static_cast<const Element*>(a_data), *b = static_cast<const Element*>(b_data);
    const auto* c = static_cast<const Sum*>(c_data);
    auto* d = static_cast<Sum*>(d_data);
    const auto at = [](const cublasLtMatrixLayoutOpaque_t& layout, int operation, int64_t batch, int64_t i, int64_t j) {
      if (operation != kBlasN) std::swap(i, j);
      return batch * layout.stride + i + j * layout.leading;
    };
    const int64_t terms = desc.trans_a == kBlasN ? a_layout.columns : a_layout.rows;
    for (int64_t batch = 0; batch < d_layout.batches; ++batch) {
      for (int64_t i = 0; i < d_layout.rows; ++i) {
        for (int64_t j = 0; j < d_layout.columns; ++j) {
          Sum sum = 0;
          for (int64_t l = 0; l < terms; ++l) {
            sum += static_cast<Sum>(a[at(a_layout, desc.trans_a, batch, i, l)]) *
                   static_cast<Sum>(b[at(b_layout, desc.trans_b, batch, l, j)]);
          }
          sum *= static_cast<Sum>(alpha);
          if (beta != 0) sum += static_cast<Sum>(beta) * c[at(c_layout, kBlasN, batch, i, j)];
          if ((desc.epilogue & kEpilogueBias) != 0) sum += static_cast<Sum>(desc.bias[i]);
          if ((desc.epilogue & kEpilogueRelu) != 0 &&
              (sum < 0 || (relu_drops_nan && std::isnan(static_cast<float>(sum)))))
            sum = 0;
          d[at(d_layout, kBlasN, batch, i, j)] = sum;
        }
      }
    }
  }
};

}  // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT StandInProducts StandInTakeProducts() {
  const StandInProducts taken = the_products;
  the_products = {};
  integer_products = 0;
  return taken;
}
EXPORT void StandInReluDropsNan(bool drops) { relu_drops_nan = drops; }

EXPORT int cublasLtCreate(BlasHandle* handle) {
  *handle = reinterpret_cast<BlasHandle>(&the_products);
  return 0;
}
EXPORT int cublasLtDestroy(BlasHandle) { return 0; }
EXPORT int cublasLtMatmulDescCreate(MatmulHandle* desc, int compute, int) {
  *desc = new cublasLtMatmulDescOpaque_t;
  (*desc)->compute = compute;
  return 0;
}
EXPORT int cublasLtMatmulDescDestroy(MatmulHandle desc) {
  delete desc;
  return 0;
}
EXPORT int cublasLtMatmulDescSetAttribute(MatmulHandle desc, int attribute, const void* value, size_t size) {
  void* const field = attribute == kMatmulTransA     ? static_cast<void*>(&desc->trans_a)
                      : attribute == kMatmulTransB   ? static_cast<void*>(&desc->trans_b)
                      : attribute == kMatmulEpilogue ? static_cast<void*>(&desc->epilogue)
                      : attribute == kMatmulBias     ? static_cast<void*>(&desc->bias)
                                                     : nullptr;
  if (field == nullptr || size != (attribute == kMatmulBias ? sizeof(desc->bias) : sizeof(int))) return kInvalidValue;
  std::memcpy(field, value, size);
  return 0;
}
EXPORT int cublasLtMatrixLayoutCreate(LayoutHandle* layout, int type, uint64_t rows, uint64_t columns,
                                      int64_t leading) {
  *layout = new cublasLtMatrixLayoutOpaque_t;
  (*layout)->type = type;
  (*layout)->rows = static_cast<int64_t>(rows);
  (*layout)->columns = static_cast<int64_t>(columns);
  (*layout)->leading = leading;
  return 0;
}
EXPORT int cublasLtMatrixLayoutDestroy(LayoutHandle layout) {
  delete layout;
  return 0;
}
EXPORT int cublasLtMatrixLayoutSetAttribute(LayoutHandle layout, int attribute, const void* value, size_t size) {
  if (attribute == kLayoutBatchCount && size == sizeof(layout->batches)) {
    std::memcpy(&layout->batches, value, size);
  } else if (attribute == kLayoutBatchStride && size == sizeof(layout->stride)) {
    std::memcpy(&layout->stride, value, size);
  } else {
    return kInvalidValue;
  }
  return 0;
}
EXPORT int cublasLtMatmulPreferenceCreate(PreferenceHandle* preference) {
  *preference = nullptr;
  return 0;
}
EXPORT int cublasLtMatmulPreferenceDestroy(PreferenceHandle) { return 0; }
EXPORT int cublasLtMatmulPreferenceSetAttribute(PreferenceHandle, int, const void*, size_t) { return 0; }
EXPORT int cublasLtMatmulAlgoGetHeuristic(BlasHandle, MatmulHandle desc, LayoutHandle a, LayoutHandle b, LayoutHandle c,
                                          LayoutHandle d, PreferenceHandle, int, MatmulHeuristic* results, int* found) {
  *found = 0;
  const bool is_8_bit = desc->compute == kCompute32I;
  for (LayoutHandle layout : {a, b, c, d}) {
    const BlasType type = !is_8_bit ? kR32F : layout == a || layout == b ? kR8I : kR32I;
    if (layout->type != type || layout->rows < 1 || layout->columns < 1) return kNotSupported;
    if (is_8_bit && layout->leading % 4 != 0) return kNotSupported;
  }
  if (is_8_bit && (desc->trans_a != kBlasT || desc->trans_b != kBlasN || d->rows % 4 != 0)) return kNotSupported;
  if ((desc->epilogue & kEpilogueBias) != 0 && desc->bias == nullptr) return kNotSupported;
  results[0] = {};
  results[0].workspace_bytes = 1024;
  *found = 1;
  return 0;
}
EXPORT int cublasLtMatmul(BlasHandle, MatmulHandle desc, const void* alpha, const void* a, LayoutHandle a_layout,
                          const void* b, LayoutHandle b_layout, const void* beta, const void* c, LayoutHandle c_layout,
                          void* d, LayoutHandle d_layout, const MatmulAlgorithm*, void*, size_t, StreamHandle stream) {
  // A captured product runs as often as its graph does: it stays.
  static std::mutex mutex;
  static auto& products = *new std::deque<Product>;
  const auto keep = [](Product product) {
    std::lock_guard<std::mutex> lock(mutex);
    return &products.emplace_back(product);
  };
  const auto factor = [&](const void* number) {
    return desc->compute == kCompute32I ? static_cast<float>(*static_cast<const int32_t*>(number))
                                        : *static_cast<const float*>(number);
  };
  Product* const product =
      keep({*desc, factor(alpha), factor(beta), a, b, c, d, *a_layout, *b_layout, *c_layout, *d_layout});
  ++the_products.count;
  the_products.epilogue = desc->epilogue;
  the_products.beta = product->beta;
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  using Launch = int (*)(StreamHandle, void (*)(void*), void*);
  static const auto launch = reinterpret_cast<Launch>(dlsym(driver, "cuLaunchHostFunc"));
  return launch(stream, [](void* data) { static_cast<const Product*>(data)->Run(); }, product);
}

}  // extern "C"
