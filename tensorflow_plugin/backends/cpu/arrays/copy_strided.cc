#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/arrays/transpose.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"

namespace xpu::cpu {
namespace {

// Bytes worth one grain of the team's work.
constexpr int64_t kGrainBytes = 64 << 10;

// A copy in its simplest form: strides in bytes, the destination's positive and descending, no extent of 1, nothing
// left to merge.
struct CopyPlan {
  int64_t size;  // of an element, a power of two up to 16
  Dims shape, src_strides, dst_strides;
  const char* src;
  char* dst;

  int last() const { return shape.rank() - 1; }
};

void SortByDestination(CopyPlan* p) {
  for (int i = 1; i < p->shape.rank(); ++i) {
    for (int j = i; j > 0 && p->dst_strides[j - 1] < p->dst_strides[j]; --j) {
      for (Dims* d : {&p->shape, &p->src_strides, &p->dst_strides}) std::swap((*d)[j - 1], (*d)[j]);
    }
  }
}

CopyPlan Simplify(const CopyStridedDesc& desc, const Args& args) {
  CopyPlan p;
  const int64_t bytes = static_cast<int64_t>(desc.element_size);
  p.src = static_cast<const char*>(args.in[0]) + desc.src_offset * bytes;
  p.dst = static_cast<char*>(args.out[0]) + desc.dst_offset * bytes;
  for (int i = 0; i < desc.shape.rank(); ++i) {
    const int64_t extent = desc.shape[i];
    if (extent == 1) continue;
    int64_t src_stride = desc.src_strides[i] * bytes, dst_stride = desc.dst_strides[i] * bytes;
    if (dst_stride < 0) {  // walk this dimension from its other end
      p.src += (extent - 1) * src_stride;
      p.dst += (extent - 1) * dst_stride;
      src_stride = -src_stride;
      dst_stride = -dst_stride;
    }
    p.shape.push_back(extent);
    p.src_strides.push_back(src_stride);
    p.dst_strides.push_back(dst_stride);
  }
  SortByDestination(&p);
  // An element of an odd size becomes a run of smaller ones.
  p.size = 16;
  while (bytes % p.size != 0) p.size /= 2;
  if (p.size != bytes) {
    p.shape.push_back(bytes / p.size);
    p.src_strides.push_back(p.size);
    p.dst_strides.push_back(p.size);
  }
  if (p.shape.rank() == 0) {
    p.shape.push_back(1);
    p.src_strides.push_back(p.size);
    p.dst_strides.push_back(p.size);
  }
  Dims* const strides[] = {&p.src_strides, &p.dst_strides};
  MergeDims(&p.shape, strides, 2);
  // A short run of elements next to each other on both sides is one larger element: so [n, 2] floats transpose as
  // doubles.
  const int last = p.last();
  const int64_t run = p.shape[last] * p.size;
  if (last > 0 && run <= 16 && (run & (run - 1)) == 0 && p.src_strides[last] == p.size &&
      p.dst_strides[last] == p.size) {
    p.size = run;
    for (Dims* d : {&p.shape, &p.src_strides, &p.dst_strides}) d->resize(last);
  }
  return p;
}

// Where the i-th point of the first `rank` dimensions is.
struct Cursor {
  Cursor(const CopyPlan& plan, int rank, int64_t i)
      : plan_(plan), rank_(rank), at_(rank, 0), src(plan.src), dst(plan.dst) {
    for (int d = rank - 1; d >= 0; --d) {
      at_[d] = i % plan.shape[d];
      i /= plan.shape[d];
      src += at_[d] * plan.src_strides[d];
      dst += at_[d] * plan.dst_strides[d];
    }
  }
  void Advance() {
    for (int d = rank_ - 1; d >= 0; --d) {
      src += plan_.src_strides[d];
      dst += plan_.dst_strides[d];
      if (++at_[d] < plan_.shape[d]) return;
      src -= plan_.shape[d] * plan_.src_strides[d];
      dst -= plan_.shape[d] * plan_.dst_strides[d];
      at_[d] = 0;
    }
  }

 private:
  const CopyPlan& plan_;
  int rank_;
  Dims at_;

 public:
  const char* src;
  char* dst;
};

template <int kSize>
void StridedRow(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n) {
  if (dst_stride == kSize && src_stride == 0) {
    char value[kSize];
    std::memcpy(value, src, kSize);
    for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * kSize, value, kSize);
  } else if (dst_stride == kSize) {
    for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * kSize, src + i * src_stride, kSize);
  } else {
    for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * dst_stride, src + i * src_stride, kSize);
  }
}

using RowFunction = void (*)(const char*, int64_t, char*, int64_t, int64_t);
RowFunction RowFunctionFor(int64_t size) {
  switch (size) {
    case 1:
      return StridedRow<1>;
    case 2:
      return StridedRow<2>;
    case 4:
      return StridedRow<4>;
    case 8:
      return StridedRow<8>;
    default:
      return StridedRow<16>;
  }
}

// Row by row of the innermost dimension; a long row is cut into pieces.
void CopyRows(const CopyPlan& p, const host_runtime::ThreadTeam& team) {
  const int last = p.last();
  const int64_t n = p.shape[last], src_stride = p.src_strides[last], dst_stride = p.dst_strides[last];
  const bool run = src_stride == p.size && dst_stride == p.size;
  const RowFunction copy = RowFunctionFor(p.size);
  const int64_t piece = std::max<int64_t>(1, kGrainBytes / p.size);
  const int64_t pieces = (n + piece - 1) / piece;
  const int64_t rows = p.shape.num_elements() / n;
  // A short row costs its bookkeeping rather than its bytes.
  const int64_t row_cost = std::max<int64_t>(std::min(n, piece) * p.size, 64);
  team.ParallelFor(rows * pieces, std::max<int64_t>(1, kGrainBytes / row_cost), [&](int64_t begin, int64_t end) {
    Cursor cursor(p, last, begin / pieces);
    int64_t from = begin % pieces * piece;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t m = std::min(piece, n - from);
      const char* src = cursor.src + from * src_stride;
      char* dst = cursor.dst + from * dst_stride;
      if (run) {
        std::memcpy(dst, src, m * p.size);
      } else {
        copy(src, src_stride, dst, dst_stride, m);
      }
      from += piece;
      if (from >= n) {
        from = 0;
        cursor.Advance();
      }
    }
  });
}

// The dimension that is contiguous in the source, if the innermost of the destination is not; otherwise -1.
int TransposedDim(const CopyPlan& p) {
  const int last = p.last();
  if (std::abs(p.src_strides[last]) == p.size || p.src_strides[last] == 0) return -1;
  for (int d = 0; d < last; ++d) {
    if (p.src_strides[d] == p.size) return d;
  }
  return -1;
}

// Tiles of (dimension `across`, innermost dimension), which are each other's transposes.
void CopyTransposed(CopyPlan p, int across, const host_runtime::ThreadTeam& team) {
  const int last = p.last();
  // The plane's dimensions go last.
  for (int d = across; d + 1 < last; ++d) {
    for (Dims* dims : {&p.shape, &p.src_strides, &p.dst_strides}) std::swap((*dims)[d], (*dims)[d + 1]);
  }
  across = last - 1;
  const int64_t rows = p.shape[across], columns = p.shape[last];
  // Square tiles, or the same area where one side is short.
  const int64_t side = kTransposeTileBytes / p.size;
  const int64_t row_tile = std::min(rows, columns < side ? side * side / columns : side);
  const int64_t column_tile = std::min(columns, rows < side ? side * side / rows : side);
  const int64_t row_tiles = (rows + row_tile - 1) / row_tile;
  const int64_t column_tiles = (columns + column_tile - 1) / column_tile;
  const int64_t planes = p.shape.num_elements() / (rows * columns);
  const TransposeFunction transpose = TransposeFunctionFor(p.size);
  const int64_t tile_bytes = row_tile * column_tile * p.size;
  team.ParallelFor(planes * row_tiles * column_tiles, std::max<int64_t>(1, kGrainBytes / tile_bytes),
                   [&](int64_t begin, int64_t end) {
                     const int64_t per_plane = row_tiles * column_tiles;
                     Cursor plane(p, across, begin / per_plane);
                     int64_t in_plane = begin % per_plane;
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t r = in_plane / column_tiles * row_tile, c = in_plane % column_tiles * column_tile;
                       transpose(plane.src + r * p.size + c * p.src_strides[last], p.src_strides[last],
                                 plane.dst + r * p.dst_strides[across] + c * p.dst_strides[last], p.dst_strides[across],
                                 p.dst_strides[last], std::min(row_tile, rows - r), std::min(column_tile, columns - c));
                       if (++in_plane == per_plane) {
                         in_plane = 0;
                         plane.Advance();
                       }
                     }
                   });
}

}  // namespace

Status CpuKernels::Run(const CopyStridedDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  if (desc.shape.num_elements() == 0) return OkStatus();
  const CopyPlan plan = Simplify(desc, args);
  const int across = TransposedDim(plan);
  if (across >= 0) {
    CopyTransposed(plan, across, team);
  } else {
    CopyRows(plan, team);
  }
  return OkStatus();
}

}  // namespace xpu::cpu
