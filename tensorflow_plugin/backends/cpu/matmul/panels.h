// Products of a few hundred columns and many rows, such as a pointwise convolution. They read rows of `a` directly:
// as they lie, without a copy. Columns of `b` are copied to panels that stay in the first caches. Sums and epilogue are
// in registers.
//
// oneDNN multiplies as quickly, but an epilogue then reads and writes all results again, operand by operand. For sums
// of some ten terms that takes as long as the product.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_PANELS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_PANELS_H_

#include <optional>

#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// Where a row of `a` lies: in so many pieces of adjacent terms. `offsets` says where each begins.
struct RowTerms {
  int64_t pieces, length;
  const int64_t* offsets;

  static RowTerms InOnePiece(int64_t length) {
    static constexpr int64_t kNone = 0;
    return {1, length, &kNone};
  }
};

// Where rows of a product go, from some column on, and what finishes them.
struct PanelOutput {
  float* c;
  int64_t ldc, offset;         // elements from row to row, and of c in the whole result
  int64_t col;                 // the first column
  int tail;                    // lanes of the last vector of columns
  const ChainEpilogue* chain;  // may be null

  // From so many rows further on.
  PanelOutput Down(int64_t rows) const { return {c + rows * ldc, ldc, offset + rows * ldc, col, tail, chain}; }
};

// A product of m x n sums of k terms in parts of some rows and panels. Threads have shares of the same size.
class PanelParts {
 public:
  struct Part {
    int64_t row, rows, first_panel, last_panel;  // panels [first, last)
  };

  // `is_packed`: parts do not copy the panels of `b`. `on_whole_rows`: an epilogue follows each part, which has all
  // columns then.
  PanelParts(int64_t m, int64_t n, int64_t k, bool is_packed, bool on_whole_rows, int threads);

  int64_t count() const { return down_ * across_; }
  // For ThreadTeam::ParallelFor.
  int64_t grain() const { return grain_; }
  Part at(int64_t i) const;

 private:
  // At least `down` parts of rows, so that all shares have about as many parts.
  int64_t EvenRows(int64_t down, int64_t fewest_rows, int64_t shares) const;

  int64_t m_, panels_, down_, across_, grain_;
  bool by_columns_;  // parts next to each other have the same columns
};

// MatMulEngine::kPanels. An epilogue that has been run is reset. Throws std::bad_alloc.
void RunPanels(const MatMulDesc& d, const Args& args, const host_runtime::ThreadTeam& team,
               std::optional<FusedEpilogue>* epilogue);

// MatMulEngine::kUnpacked: few rows and a small `b`, which is read as it lies. Strides of `d` need not be numbers.
void RunUnpacked(const MatMulDesc& d, const Args& args, const host_runtime::ThreadTeam& team,
                 std::optional<FusedEpilogue>* epilogue);

// All columns of `b`, k rows of n elements without gaps, as panels.
class PanelMatrix {
 public:
  // `packed` holds what Pack has written.
  PanelMatrix(int64_t k, int64_t n, const float* packed) : k_(k), n_(n), packed_(packed) {}

  // Copies the columns to so many elements.
  static int64_t Elements(int64_t k, int64_t n);
  static void Pack(int64_t k, int64_t n, const float* b, float* packed);

  int64_t count() const;
  // m rows of the product with one of the panels. They begin at `offset` of the whole result. `chain` may be null.
  void MultiplyBy(int64_t panel, int64_t m, const RowTerms& terms, const float* a, int64_t lda, float* c, int64_t ldc,
                  int64_t offset, const ChainEpilogue* chain) const;
  // The same of panels [begin, end), for rows of `a` in one piece and rows of `c` without gaps.
  void MultiplySome(int64_t begin, int64_t end, int64_t m, const float* a, int64_t lda, float* c, int64_t offset,
                    const ChainEpilogue* chain) const;

 private:
  int64_t k_, n_;
  const float* packed_;
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_PANELS_H_
