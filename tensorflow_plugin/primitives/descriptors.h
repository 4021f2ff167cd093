// The primitives' descriptors: plain structs that say everything about a command except where its buffers are.
//
// A new primitive is a descriptor here and a name in XPU_PRIMITIVES, its functions in check*.cc, its definition in the
// reference backend, and tests (CONTRIBUTING.md).
//
// ForEachExtent calls visit(field) for each extent, stride, offset, step or count of a descriptor, which is an int64_t
// or a Dims. It also calls it for the set of axes of a reduction, a uint32_t. Code that needs all of them needs no
// other list.
//
// Conventions. Extents and strides count elements. Dense means row-major without gaps. `in` and `out` below name
// the entries of Args (backend.h) in order. Inputs and outputs may not overlap, with two exceptions. An elementwise
// output may be exactly one of its dense inputs of the same element size. The other is where a comment says "in place".
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_DESCRIPTORS_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_DESCRIPTORS_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/dims.h"
#include "tensorflow_plugin/primitives/factorize_descriptors.h"
#include "tensorflow_plugin/primitives/program.h"
#include "tensorflow_plugin/primitives/quantize_descriptors.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu {

// In a question to Capabilities::Supports (backend.h): an extent, stride, offset, step or count that is open. A Dims of
// this one entry leaves the rank open, too. OpenExtents (check.h) makes such descriptors.
inline constexpr int64_t kAny = -1;

// Runs a program once per element of `shape`.
//   in:  one per program input, walked with in_strides[i] over `shape` (0 broadcasts)
//   out: one per program output, dense
struct ElementwiseDesc {
  const Program* program = nullptr;
  Dims shape;
  Dims in_strides[Program::kMaxInputs];

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    visit(shape);
    for (int i = 0; program != nullptr && i < program->num_inputs(); ++i) visit(in_strides[i]);
  }
};

enum class ReduceKind : uint8_t {
  kSum,
  kMean,
  kProd,
  kMax,
  kMin,
  kAll,            // bool
  kAny,            // bool
  kEuclideanNorm,  // sqrt(sum(|x|^2))
  kArgMax,         // first position of the extremum along one axis; `index_type` output
  kArgMin,
};

// Reduces the (never stored) single output of an elementwise program over the axes in `axes`.
//   in:  as source
//   out: dense over the axes that are kept, in order; of the program's output type, or index_type
// An empty reduction gives the identity of the kind (0, NaN for mean, 1, lowest, highest, true, false, 0).
// half and bfloat16 accumulate in float.
struct ReduceDesc {
  // Neighbours that are all reduced or all kept can be one axis: more axes than these have more elements than memory.
  static constexpr int kMaxRank = 32;
  ReduceKind kind = ReduceKind::kSum;
  ElementwiseDesc source;
  uint32_t axes = 0;  // bit i: axis i of source.shape is reduced
  DType index_type = DType::kInt64;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    source.ForEachExtent(visit);
    visit(axes);
  }
};

// c[b] = op(a[b]) * op(b[b]) for every b of `batch`. Matrices are row-major, and batches are strided (0 broadcasts a or
// b). The elements from one stored row to the next are lda, ldb and ldc. With 0 they are dense, that is k or m, n or k,
// and n.
//   in:  a [m,k] (or [k,m] if transpose_a), b [k,n] (or [n,k] if transpose_b), the epilogue's inputs but its first
//   out: c [batch..., m, n]; dense if c_batch_strides is empty; zeros when k is 0; or the epilogue's outputs
// half and bfloat16 accumulate in float; integers wrap.
//
// All three are of `type`. Or a and b are each of int8 or uint8 and c is of int32: then b_type and c_type are set.
//
// An epilogue is a program over c, which is dense then, element by element in row-major order, whatever the epilogue's
// shape. Its first input is the element, rounded to c's type; in_strides[0] means nothing. Its first output is of c's
// type, too; after a product of more than one type it may be one of the same size. All of them are dense. It cannot
// fail.
struct MatMulDesc {
  DType type = DType::kFloat;
  DType b_type = DType::kInvalid, c_type = DType::kInvalid;  // kInvalid: `type`
  Dims batch;
  Dims a_batch_strides, b_batch_strides, c_batch_strides;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false, transpose_b = false;
  bool conjugate_a = false, conjugate_b = false;  // complex types
  ElementwiseDesc epilogue;                       // none without a program

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (Dims* dims : {&batch, &a_batch_strides, &b_batch_strides, &c_batch_strides}) visit(*dims);
    for (int64_t* extent : {&m, &n, &k, &lda, &ldb, &ldc}) visit(*extent);
    epilogue.ForEachExtent(visit);
  }
};

// Weights of 4 bits stand for a matrix w [k,n] of float: w = (weight - zero point) * scale, each operation rounded.
// Weights are -8 to 7. A byte holds two of them, the first in its lower half. A scale and a zero point (int8) are for a
// group of `group` rows of a column; the last group may have fewer rows. With `groups` = (k + group - 1) / group:
//   kAcross: bytes [k, (n + 1) / 2], with columns 2 j and 2 j + 1 of a row;     scales and zero points [groups, n]
//   kDown:   bytes [(k + 1) / 2, n], with rows 2 i and 2 i + 1 of a column;     scales and zero points [groups, n]
//   kTurned: bytes [n, (k + 1) / 2], the same, of which each column is a row;   scales and zero points [n, groups]
// A group of the last two begins with the first half of a byte.
enum class Halves : uint8_t { kAcross, kDown, kTurned };

// Finds the form of weights that stand for a given matrix bit for bit. Fails with InvalidArgument where none does, or
// where an element of the matrix is infinite or NaN.
//   in:  w dense [k,n] (or [n,k] if transposed), the bytes, scales, zero points
//   out: the form, int64 [2]: the Halves and `group`
struct FindWeightsDesc {
  DType type = DType::kFloat;
  int64_t k = 0, n = 0, groups = 1, bytes = 0;
  bool transposed = false;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&k, &n, &groups, &bytes}) visit(*extent);
  }
};

// c = a * w, with weights of 4 bits.
//   in:  a [m,k] in rows of lda elements (0: k), the bytes, scales, zero points, a form that FindWeights has found, the
//        epilogue's inputs but its first
//   out: c dense [m,n], or the epilogue's outputs, as of a MatMul
struct WeightMatMulDesc {
  DType type = DType::kFloat;
  int64_t m = 0, n = 0, k = 0, lda = 0, groups = 1, bytes = 0;
  ElementwiseDesc epilogue;  // none without a program

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&m, &n, &k, &lda, &groups, &bytes}) visit(*extent);
    epilogue.ForEachExtent(visit);
  }
};

enum class Direction : uint8_t { kForward, kDataGradient, kFilterGradient, kPackFilter };

// Where the channels are: last (NHWC, NDHWC, NWC) or right after the batch (NCHW, ...).
enum class ChannelOrder : uint8_t { kLast, kFirst };

// N-D convolution (cross-correlation) of 1 to 3 spatial dimensions, and its gradients.
// The filter is dense [spatial..., in_channels / groups, out_channels], as TensorFlow keeps it; a depthwise convolution
// is groups == in_channels. The extents of input and output are those of the forward pass in every direction.
//   kForward:        in: x, filter   out: y
//   kDataGradient:   in: filter, dy  out: dx
//   kFilterGradient: in: x, dy       out: dfilter
//   kPackFilter:         in: filter      out: packed_filter_bytes bytes
// The filter is laid out as the backend's convolution of direction `packed_for`, forward or data gradient, reads it
// best. Capabilities::PackedFilterBytes says how many bytes that takes, by the descriptor of that convolution. With
// these as its third input it computes the same. An epilogue is as in MatMulDesc: a program over the result, which its
// first output replaces. Its inputs follow the convolution's.
//
// All are of `type`. Or x is of uint8, the filter of int8 and y of int32: then filter_type and y_type are set. Such a
// convolution is forward, with the channels last. Two more inputs follow its filter, before the packed one. They are
// int32: the zero point zx of x, and the zero points zw of the filter [out_channels]. A result is the sum of
// (x - zx) * (w - zw). Padding adds nothing, and integers wrap. The first output of its epilogue may also be of one
// byte.
struct ConvolutionDesc {
  static constexpr int kMaxSpatial = 3;
  Direction direction = Direction::kForward;
  DType type = DType::kFloat;
  DType filter_type = DType::kInvalid, y_type = DType::kInvalid;  // kInvalid: `type`
  Direction packed_for = Direction::kForward;                     // of kPackFilter
  ChannelOrder order = ChannelOrder::kLast;
  int spatial_rank = 2;
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  int64_t input[kMaxSpatial] = {1, 1, 1}, filter[kMaxSpatial] = {1, 1, 1}, output[kMaxSpatial] = {1, 1, 1};
  int64_t stride[kMaxSpatial] = {1, 1, 1}, dilation[kMaxSpatial] = {1, 1, 1};
  int64_t pad_before[kMaxSpatial] = {0, 0, 0}, pad_after[kMaxSpatial] = {0, 0, 0};
  int64_t packed_filter_bytes = 0;
  ElementwiseDesc epilogue;  // none without a program

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&batch, &in_channels, &out_channels, &groups}) visit(*extent);
    for (int64_t* extents : {input, filter, output, stride, dilation, pad_before, pad_after}) {
      for (int i = 0; i < spatial_rank; ++i) visit(extents[i]);
    }
    epilogue.ForEachExtent(visit);
  }
};

enum class PoolKind : uint8_t { kMax, kAverage };

// N-D pooling; padding never counts: the maximum ignores it and the average divides by the pixels inside.
//   kMax forward:      in: x          out: y, and if positions_type is set, dense like y, where in its image the
//                                     window's first maximum is: spatial position * channels + channel. y is x there
//                                     then: a NaN where a window starts with one; in nothing but padding that is -1
//   kMax gradient:     in: x, y, dy   out: dx  (a window's gradient goes to its first maximum in row-major order)
//   kAverage forward:  in: x          out: y
//   kAverage gradient: in: dy         out: dx
struct PoolDesc {
  static constexpr int kMaxSpatial = 3;
  PoolKind kind = PoolKind::kMax;
  bool gradient = false;
  DType positions_type = DType::kInvalid;  // kInt32 or kInt64; kMax forward, channels last
  DType type = DType::kFloat;
  ChannelOrder order = ChannelOrder::kLast;
  int spatial_rank = 2;
  int64_t batch = 0, channels = 0;
  int64_t input[kMaxSpatial] = {1, 1, 1}, window[kMaxSpatial] = {1, 1, 1}, output[kMaxSpatial] = {1, 1, 1};
  int64_t stride[kMaxSpatial] = {1, 1, 1};
  int64_t pad_before[kMaxSpatial] = {0, 0, 0}, pad_after[kMaxSpatial] = {0, 0, 0};

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&batch, &channels}) visit(*extent);
    for (int64_t* extents : {input, window, output, stride, pad_before, pad_after}) {
      for (int i = 0; i < spatial_rank; ++i) visit(extents[i]);
    }
  }
};

// Batch normalization over [batch, spatial, channels] (kLast) or [batch, channels, spatial] (kFirst).
// Statistics and parameters are float [channels]; x, y and their gradients are `type`.
//   forward, training:  in: x, scale, offset, running_mean, running_variance
//                       out: y, new_mean, new_variance, saved_mean, saved_variance
//        new_* = `running * (1 - factor) + batch statistic * factor`, the variance with Bessel's correction n/(n-1).
//        For factor 1 it is the batch statistic alone, and running_* may be empty. saved_* = the batch mean and the
//        uncorrected batch variance
//   forward, inference: in: the same, normalised with running_*; out: y alone
//   gradient, training:  in: dy, x, scale, saved_mean, saved_variance   out: dx, dscale, doffset
//   gradient, inference: in: dy, x, scale, running_mean, running_variance   out: dx, dscale, doffset
struct NormalizeDesc {
  bool gradient = false;
  bool training = true;
  DType type = DType::kFloat;
  ChannelOrder order = ChannelOrder::kLast;
  int64_t batch = 0, spatial = 1, channels = 0;
  float epsilon = 1e-3f;
  float factor = 1.0f;  // exponential_avg_factor

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&batch, &spatial, &channels}) visit(*extent);
  }
};

enum class SoftmaxKind : uint8_t { kSoftmax, kLogSoftmax, kCrossEntropy, kSparseCrossEntropy };

// Along the last axis of [rows, cols].
//   kSoftmax, kLogSoftmax: in: logits   out: y
//   kCrossEntropy:         in: logits, labels (both `type`)   out: loss [rows], backprop [rows, cols]
//   kSparseCrossEntropy:   in: logits, labels [rows] of label_type   out: loss [rows], backprop [rows, cols]
//       a label outside [0, cols) gives NaN in its loss and backprop rows
// kCrossEntropy broadcasts: an input's element (r, c) is at r * row_stride + c * col_stride.
struct SoftmaxDesc {
  SoftmaxKind kind = SoftmaxKind::kSoftmax;
  DType type = DType::kFloat;
  DType label_type = DType::kInt64;
  int64_t rows = 0, cols = 0;
  int64_t logits_row_stride = 0, logits_col_stride = 1;
  int64_t labels_row_stride = 0, labels_col_stride = 1;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent :
         {&rows, &cols, &logits_row_stride, &logits_col_stride, &labels_row_stride, &labels_col_stride})
      visit(*extent);
  }
};

// Copies one strided view to another; only the element size matters. Strides may be negative, the source's may be 0.
//   in: source   out: destination
struct CopyStridedDesc {
  size_t element_size = 0;
  Dims shape;
  Dims src_strides, dst_strides;
  int64_t src_offset = 0, dst_offset = 0;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (Dims* dims : {&shape, &src_strides, &dst_strides}) visit(*dims);
    for (int64_t* extent : {&src_offset, &dst_offset}) visit(*extent);
  }
};

// out[b, o, j, :] = params[b, o, index(b, j), :] where index j reads `depth` coordinates over `dims`.
//   in:  params dense [batch, outer, dims..., inner], indices dense [batch, num_indices, depth] of index_type
//   out: dense [batch, outer, num_indices, inner]
// GatherV2 has depth 1; GatherNd has batch = outer = 1. An index out of range fails the command with
// InvalidArgument naming the index and its value, after zeros were written in its place. With an inner of 0 that is all
// that the command does; params and out are then nothing.
struct GatherDesc {
  size_t element_size = 0;
  DType index_type = DType::kInt64;
  int64_t batch = 1, outer = 1, inner = 1, num_indices = 0;
  Dims dims;  // rank = depth

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&batch, &outer, &inner, &num_indices}) visit(*extent);
    visit(dims);
  }
};

enum class ScatterKind : uint8_t { kUpdate, kAdd, kSub, kMul, kDiv, kMin, kMax };

// buffer[index(j), :] op= updates[j, :], in the order of j for duplicate indices. In place on out.
//   in:  indices dense [num_indices, depth] of index_type, updates dense [num_indices, inner]
//   out: buffer dense [dims..., inner]
// An index out of range fails the command with InvalidArgument and leaves its row out. With skip_negative, negative
// ones are passed over in silence (segment ids).
struct ScatterDesc {
  ScatterKind kind = ScatterKind::kUpdate;
  DType type = DType::kFloat;
  DType index_type = DType::kInt64;
  int64_t num_indices = 0, inner = 1;
  bool scalar_update = false;  // updates is one element, used for all
  bool skip_negative = false;
  Dims dims;  // rank = depth

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&num_indices, &inner}) visit(*extent);
    visit(dims);
  }
};

enum class RandomKind : uint8_t {
  kUniform,          // floating: [0, 1)
  kUniformInt,       // integers: [low, high)
  kUniformFullInt,   // integers: all values
  kNormal,           // mean 0, deviation 1
  kTruncatedNormal,  // the same, redrawn beyond two deviations
  kGamma,            // gamma(alpha, 1), for each of some alphas
  kBoundedNormal,    // of a mean and a deviation, within an interval, for each of some such
};

// How many arrays of parameters a kind has.
constexpr int ParameterInputs(RandomKind kind) {
  if (kind == RandomKind::kBoundedNormal) return 4;
  return kind == RandomKind::kGamma ? 1 : 0;
}

// Where a sequence of random numbers starts: what of it is here, and what on the device.
enum class RandomStart : uint8_t { kHere, kCounterGiven, kGiven };

// Random numbers of the counter-based generator Philox 4x32-10. Equal descriptors give equal numbers.
//   in:  kHere: nothing   kCounterGiven: counter   kGiven: key, counter; uint64 [1] and [2] (low, high)
//        and kGamma: alpha   kBoundedNormal: mean, deviation, low, high; dense [parameters] of `type`
//   out: dense, n elements of `type`; of these two kinds [n / parameters, parameters]
// kBoundedNormal fails with InvalidArgument where the deviation is not positive, low not below high, or neither finite.
// Its exact numbers are those that TensorFlow makes on one thread.
struct RandomDesc {
  RandomKind kind = RandomKind::kUniform;
  DType type = DType::kFloat;
  // Bit for bit the numbers of TensorFlow's CPU kernels (core/lib/random/philox_random.h, random_distributions.h and
  // the filling order of core/kernels/random_op_cpu.h), as stateless ops promise. Otherwise any numbers of the
  // distribution that this key and counter determine, independent of those that counters 256 * n or more apart give.
  bool exact = true;
  int64_t n = 0;
  int64_t parameters = 1;  // kGamma, kBoundedNormal: how many of each; divides n
  RandomStart start = RandomStart::kHere;
  uint64_t key = 0;
  uint64_t counter[2] = {0, 0};  // low, high
  int64_t low = 0, high = 0;     // kUniformInt; read as unsigned for unsigned types

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&n, &parameters}) visit(*extent);
  }
};

// The row-major coordinates of the elements that are not zero or false (a NaN is not zero), in order.
//   in:  x dense, of `type`
//   out: dense [count, rank] int64
// The caller has counted them: data with another number of such elements fail the command with InvalidArgument,
// and nothing is written.
struct CompactDesc {
  DType type = DType::kFloat;
  Dims shape;
  int64_t count = 0;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    visit(shape);
    visit(count);
  }
};

enum class ScanKind : uint8_t { kSum, kProd, kLogSumExp };

// Running totals along the middle axis of [outer, n, inner]. Element i is the total of the elements up to i, from the
// far end where `reverse`. Where `exclusive`, it leaves out the element itself (the first is then 0, 1 or minus
// infinity).
//   in: x dense, of `type`   out: dense
// half and bfloat16 accumulate in float. kLogSumExp is the logarithm of the sum of exponentials, of floating types.
struct ScanDesc {
  ScanKind kind = ScanKind::kSum;
  DType type = DType::kFloat;
  int64_t outer = 1, n = 0, inner = 1;
  bool exclusive = false, reverse = false;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&outer, &n, &inner}) visit(*extent);
  }
};

// The first k elements of each row [rows, n] in ascending or descending order, and where they were. Equal ones keep
// their order; NaN comes after all else, either way.
//   in: x dense, of `type`   out: elements dense [rows, k], positions dense [rows, k] of index_type
struct SortDesc {
  DType type = DType::kFloat;
  DType index_type = DType::kInt32;
  int64_t rows = 1, n = 0, k = 0;
  bool descending = false;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&rows, &n, &k}) visit(*extent);
  }
};

// Where numbers belong in sorted rows: how many elements of its row are less than each; with `upper`, not greater.
//   in: sorted dense [rows, n], values dense [rows, m], both of `type`   out: dense [rows, m] of index_type
// In a row that is not sorted: some position.
struct SearchDesc {
  DType type = DType::kFloat;
  DType index_type = DType::kInt32;
  int64_t rows = 1, n = 0, m = 0;
  bool upper = false;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&rows, &n, &m}) visit(*extent);
  }
};

// Numbers the distinct rows of [n, inner] in the order in which they first appear. Floats are compared as numbers, and
// a NaN is like no other.
//   in:  x dense, of `type`
//   out: the number of each row, dense [n] of index_type; the place where each number first appears, dense [n] int64;
//        the count, int64 [1]. Places beyond the count are -1
struct UniqueDesc {
  DType type = DType::kFloat;
  DType index_type = DType::kInt32;
  int64_t n = 0, inner = 1;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&n, &inner}) visit(*extent);
  }
};

enum class SampleKind : uint8_t { kNearest, kBilinear };

// The value outside of an image, when a point or one of the four pixels around it lies there.
enum class Outside : uint8_t {
  kEdge,    // the pixel is the nearest one inside
  kFill,    // a point beyond the centres of the outermost pixels, or at NaN, gives the fill value
  kPixels,  // each pixel outside counts as the fill value
};

enum class SampleDirection : uint8_t { kForward, kImageGradient, kPointGradient };

// Images at given points: out[b, i, j, :] = images[b, y, x, :], interpolated where y and x are not whole. kNearest
// takes the pixel at floor(y), floor(x). Point b, i, j is walked with y_strides and x_strides over [batch, out_h,
// out_w].
//   kForward:        in: images dense [images, height, width, channels] of `type`, y, x (float), image numbers
//                    out: dense [batch, out_h, out_w, channels] of `result_type`
//   kImageGradient:  in: gradient (as out above), y, x, image numbers   out: as images above
//   kPointGradient:  in: gradient, images, y, x, image numbers   out: dy, dx dense [batch, out_h, out_w] float, the
//                    sums over channels; kBilinear alone
// `numbered`: image numbers are int32 [batch]; one out of range fails the command with InvalidArgument, and its
// elements are the fill value or nothing. Otherwise that input is nothing, and image b is meant.
//
// Interpolation is along x, then along y, in float whatever the types: a + (b - a) t, or with kPixels (1 - t) a + t b.
// Each operation is rounded by itself, so that whole results are the same everywhere. The fill value is one of the
// result's type. An integer result loses its fraction. Gradients of images are summed in their type, those of half and
// bfloat16 in float.
struct SampleDesc {
  SampleKind kind = SampleKind::kBilinear;
  Outside outside = Outside::kEdge;
  SampleDirection direction = SampleDirection::kForward;
  DType type = DType::kFloat, result_type = DType::kFloat;
  int64_t images = 0, height = 0, width = 0, channels = 0;
  int64_t batch = 0, out_h = 0, out_w = 0;
  Dims y_strides, x_strides;  // of rank 3; 0 repeats
  bool numbered = false;
  float fill = 0;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&images, &height, &width, &channels, &batch, &out_h, &out_w}) visit(*extent);
    for (Dims* dims : {&y_strides, &x_strides}) visit(*dims);
  }
};

// Images resampled along both axes with weights that do not depend on one another:
//   out[b, i, j, :] = sum over s < y_taps, t < x_taps of wy[i, s] wx[j, t] images[b, y[i] + s, x[j] + t, :]
//   in:  images dense [batch, height, width, channels] of `type`, y [out_h, 2], wy [out_h, y_taps], x [out_w, 2],
//        wx [out_w, x_taps]
//   out: dense [batch, out_h, out_w, channels] of `result_type`
// y and x are int32 spans: the first pixel, and how many (of the taps, those beyond are not read). Pixels outside of
// the image are left out. Weights are float; sums are in float, of a double result in double.
struct ResampleDesc {
  DType type = DType::kFloat, result_type = DType::kFloat;
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t out_h = 0, out_w = 0;
  int64_t y_taps = 0, x_taps = 0;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&batch, &height, &width, &channels, &out_h, &out_w, &y_taps, &x_taps}) visit(*extent);
  }
};

enum class FftKind : uint8_t {
  kComplex,      // complex to complex
  kRealForward,  // real to the half of its transform that says it all: the last extent becomes last / 2 + 1
  kRealInverse,  // and back; always inverse
};

// Discrete Fourier transforms over all axes of `shape`, 1 to 3 of them, of each array of a batch. The inverse divides
// by the number of elements. `type` is the complex side's, complex64 or complex128.
//   in: dense [batch, shape...], real or complex by `kind`   out: the same
struct FftDesc {
  FftKind kind = FftKind::kComplex;
  bool inverse = false;
  DType type = DType::kComplex64;
  int64_t batch = 1;
  Dims shape;  // of the transform: its real side where there is one

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    visit(batch);
    visit(shape);
  }
};

// Greedy suppression of overlapping candidates. Candidate i of n is kept unless an earlier one that is kept overlaps it
// by more than the threshold, and until `most` are.
//   in:  boxes dense [n, 4] float (two opposite corners), or with `pairs` the overlaps themselves, dense [n, n] float
//   out: kept, dense [n] bool
// The overlap of boxes is that of their areas: intersection over union; 0 where an area is not positive.
struct SuppressDesc {
  int64_t n = 0, most = 0;
  float threshold = 0;
  bool pairs = false;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&n, &most}) visit(*extent);
  }
};

// The boxes with the highest scores of all classes of an image, after the greedy suppression of each class by itself. A
// candidate of a class has a score above `least`. Equal scores are in the order of classes, and of boxes in a class.
//   in:  boxes dense [batch, n, box_sets, 4] float (two opposite corners); scores dense [batch, n, classes] float
//   out: boxes dense [batch, rows, 4], scores and classes dense [batch, rows] float; how many, dense [batch] int32
// box_sets is 1 or classes. At most `most_of_class` stay of a class. Rows that no box fills are 0.
struct SelectBoxesDesc {
  int64_t batch = 0, n = 0, box_sets = 1, classes = 0;
  int64_t most_of_class = 0, rows = 0;
  float threshold = 0, least = 0;  // threshold: as in SuppressDesc
  bool clip = false;               // to [0, 1]

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&batch, &n, &box_sets, &classes, &most_of_class, &rows}) visit(*extent);
  }
};

// V(name): every primitive, once. Name##Desc is its descriptor.
#define XPU_PRIMITIVES(V) \
  V(Elementwise)          \
  V(Reduce)               \
  V(MatMul)               \
  V(FindWeights)          \
  V(WeightMatMul)         \
  V(QuantizeRows)         \
  V(Convolution)          \
  V(Pool)                 \
  V(Normalize)            \
  V(Softmax)              \
  V(CopyStrided)          \
  V(Gather)               \
  V(Scatter)              \
  V(Random)               \
  V(Compact)              \
  V(Scan)                 \
  V(Sort)                 \
  V(Search)               \
  V(Unique)               \
  V(Sample)               \
  V(Resample)             \
  V(Fft)                  \
  V(Factorize)            \
  V(Solve)                \
  V(Suppress)             \
  V(SelectBoxes)

enum class Primitive : uint8_t {
#define XPU_ENUM(name) k##name,
  XPU_PRIMITIVES(XPU_ENUM)
#undef XPU_ENUM
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_DESCRIPTORS_H_
