// One view to another: only the elements' size matters. A processor's items copy blocks of elements. On other devices
// neighbours copy neighbours, in words of 16 bytes where they can, and tiles go through local memory.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"

namespace xpu::gpu {
namespace {

const std::string kCopy =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/copy.cl.inc"
    ;
const std::string kTranspose =
#include "tensorflow_plugin/backends/gpu/kernels/arrays/transpose.cl.inc"
    ;

void PutLast(int axis, Dims* shape, Dims* src, Dims* dst) {
  for (Dims* dims : {shape, src, dst}) {
    for (int d = axis; d + 1 < dims->rank(); ++d) std::swap((*dims)[d], (*dims)[d + 1]);
  }
}

// How processors do it.

// The axis along which elements are neighbours, the longest of several; -1: none.
int DenseAxis(const Dims& shape, const Dims& strides) {
  int found = -1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (strides[d] == 1 && (found < 0 || shape[d] > shape[found])) found = d;
  }
  return found;
}

// The elements that an item copies: so many along the last axis but one, and along the last one.
struct CopyBlock {
  int64_t rows = 1, columns = 1;
};

// Puts the axes last along which elements are neighbours in the source and in the destination, so that an item copies a
// block of both. Axes that are dense in both are copied in pieces.
CopyBlock Arrange(Dims* shape, Dims* src, Dims* dst) {
  constexpr int64_t kSide = 8;
  const int of_dst = DenseAxis(*shape, *dst), of_src = DenseAxis(*shape, *src);
  if (of_dst < 0 || shape->rank() < 2 || of_src < 0 || of_src == of_dst) {
    if (of_dst >= 0) PutLast(of_dst, shape, src, dst);
    return {1, 4 * kSide};
  }
  PutLast(of_src, shape, src, dst);
  PutLast(of_dst - (of_dst > of_src ? 1 : 0), shape, src, dst);
  return {kSide, kSide};
}

// The walk is over blocks. Rows and columns, which blocks are of, are given in elements, with their strides.
std::string Source(size_t element_size, int rank, const CopyBlock& block, const char* index_type) {
  const CopyUnit unit = UnitOf(element_size);
  return errors::Concat(
      "#define ROWS ", block.rows, "\n#define COLUMNS ", block.columns, "\n#define UNITS ", element_size / unit.size,
      "\n#define COPY(rows, columns) \\\n  for (uint r = 0; r < (rows); ++r) \\\n",
      "    for (uint c = 0; c < (columns); ++c) \\\n      for (uint k = 0; k < UNITS; ++k) \\\n",
      "        to_here[(r * to_row + c * to_column) * UNITS + k] = from_here[(r * from_row + c * from_column) * UNITS "
      "+ k];\n",
      "kernel void run(const ulong n, MEMORY(in), MEMORY(out), const long from, const long to, const ulong rows, ",
      "const ulong columns, const long from_row, const long from_column, const long to_row, const long to_column, ",
      "CONSTANT long *table) {\n  const ", index_type, " i = get_global_id(0);\n  if (i >= n) return;\n",
      WalkText(rank, 2, "i", index_type), "  const ulong across = (columns + COLUMNS - 1) / COLUMNS;\n",
      "  const ulong down = (rows + ROWS - 1) / ROWS;\n",
      "  const ulong rows_left = rows - i / across % down * ROWS, columns_left = columns - i % across * COLUMNS;\n",
      "  GLOBAL ", unit.type, " *to_here = AT(", unit.type, ", out) + (to + o1) * UNITS;\n  const GLOBAL ", unit.type,
      " *from_here = AT(", unit.type, ", in) + (from + o0) * UNITS;\n",
      "  if (rows_left >= ROWS && columns_left >= COLUMNS) {\n    COPY(ROWS, COLUMNS)\n  } else {\n",
      "    COPY(min(rows_left, (ulong)ROWS), min(columns_left, (ulong)COLUMNS))\n  }\n}\n");
}

Status EnqueueBlocks(Machine& machine, Queue& queue, const CopyStridedDesc& desc, const Args& args, Dims shape,
                     Dims src, Dims dst) {
  const CopyBlock block = Arrange(&shape, &src, &dst);
  const int last = shape.rank() - 1;
  const int64_t columns = shape[last], rows = last > 0 ? shape[last - 1] : 1;
  const int64_t row_strides[] = {last > 0 ? src[last - 1] : 0, last > 0 ? dst[last - 1] : 0};
  const int64_t column_strides[] = {src[last], dst[last]};
  const auto in_blocks = [&](int axis, int64_t side) {
    shape[axis] = (shape[axis] + side - 1) / side;
    src[axis] *= side;
    dst[axis] *= side;
  };
  in_blocks(last, block.columns);
  if (last > 0) in_blocks(last - 1, block.rows);
  const int64_t items = shape.num_elements();
  const char* const index_type = IndexType(items);
  const std::string key = errors::Concat("copy ", desc.element_size, " ", shape.rank(), " ", block.rows, " ",
                                         block.columns, " ", index_type);
  Call call(machine, queue, key, [&] { return Source(desc.element_size, shape.rank(), block, index_type); });
  call.Value(static_cast<uint64_t>(items)).Memory(args.in[0]).Memory(args.out[0]);
  for (int64_t value : {desc.src_offset, desc.dst_offset, rows, columns, row_strides[0], column_strides[0],
                        row_strides[1], column_strides[1]}) {
    call.Value(static_cast<int64_t>(value));
  }
  return call.Table(WalkTable(shape, {&src, &dst})).Run(items);
}

// How other devices do it.

constexpr size_t kWidest = 16;   // bytes of a load
constexpr size_t kLargest = 32;  // bytes of an element in local memory

// The copy, in elements of `size` bytes.
class Copy {
 public:
  Copy(const CopyStridedDesc& desc, const Args& args, Dims shape, Dims src, Dims dst)
      : in_(static_cast<const char*>(args.in[0]) + desc.src_offset * static_cast<int64_t>(desc.element_size)),
        out_(static_cast<char*>(args.out[0]) + desc.dst_offset * static_cast<int64_t>(desc.element_size)),
        size_(desc.element_size),
        shape_(std::move(shape)),
        src_(std::move(src)),
        dst_(std::move(dst)) {
    // The words of elements that no number has the size of are one more axis.
    const CopyUnit unit = UnitOf(size_);
    if (size_ != unit.size && (size_ != kWidest || !IsAligned(in_, src_, -1, 1) || !IsAligned(out_, dst_, -1, 1))) {
      const auto words = static_cast<int64_t>(size_ / unit.size);
      for (Dims* strides : {&src_, &dst_}) {
        for (int64_t& stride : *strides) stride *= words;
        strides->push_back(1);
      }
      shape_.push_back(words);
      size_ = unit.size;
    }
    while (TakeShortAxisIn()) {
    }
  }

  Status Enqueue(Machine& machine, Queue& queue) {
    const int of_src = NeighboursOf(src_), of_dst = NeighboursOf(dst_);
    if (of_src < 0 || of_dst < 0 || of_src == of_dst || src_[of_dst] == 0) {
      Split();
      Sort();
      Widen();
      return EnqueueElements(machine, queue);
    }
    PutLast(of_src, &shape_, &src_, &dst_);
    PutLast(of_dst - (of_dst > of_src ? 1 : 0), &shape_, &src_, &dst_);
    const int last = shape_.rank() - 1;
    // Now they are the last two. If one is short, items have neighbours along the other one.
    constexpr int64_t kShort = 8;
    const bool shorter_is_last = shape_[last] < shape_[last - 1];
    if (shape_[shorter_is_last ? last : last - 1] <= kShort && words_ == 1) {
      if (shorter_is_last) PutLast(last - 1, &shape_, &src_, &dst_);
      return EnqueueStrips(machine, queue);
    }
    // Neighbours of the destination are along the last axis but one.
    PutLast(last - 1, &shape_, &src_, &dst_);
    return EnqueueTiles(machine, queue);
  }

 private:
  // True if `count` elements along an axis, and no fewer, are one number in memory wherever they begin. -1: of no axis.
  bool IsAligned(const void* address, const Dims& strides, int axis, int64_t count) const {
    const size_t bytes = size_ * static_cast<size_t>(count);
    if (reinterpret_cast<uintptr_t>(address) % bytes != 0 || (axis >= 0 && strides[axis] != 1)) return false;
    for (int d = 0; d < strides.rank(); ++d) {
      if (d != axis && strides[d] % count != 0) return false;
    }
    return true;
  }

  // The axis along which elements are nearest to one another, the longest of several; -1: there is but one element.
  int NeighboursOf(const Dims& strides) const {
    int found = -1;
    for (int d = 0; d < shape_.rank(); ++d) {
      const int64_t distance = std::abs(strides[d]);
      if (distance == 0 || shape_[d] == 1) continue;
      const int64_t least = found < 0 ? INT64_MAX : std::abs(strides[found]);
      if (distance < least || (distance == least && shape_[d] > shape_[found])) found = d;
    }
    return found;
  }

  // Makes an axis that is short and dense in both a part of the element, so that others have neighbours. False if there
  // is none.
  bool TakeShortAxisIn() {
    if (shape_.rank() < 2) return false;
    const auto length = [&](int d) { return static_cast<size_t>(shape_[d]) * size_ * words_; };
    for (int d = 0; d < shape_.rank(); ++d) {
      if (src_[d] != 1 || dst_[d] != 1 || shape_[d] == 1 || length(d) > kLargest) continue;
      const int64_t extent = shape_[d];
      bool divides = true;
      for (int other = 0; other < shape_.rank(); ++other) {
        divides &= other == d || (src_[other] % extent == 0 && dst_[other] % extent == 0);
      }
      if (!divides) continue;
      PutLast(d, &shape_, &src_, &dst_);
      for (Dims* dims : {&shape_, &src_, &dst_}) dims->resize(dims->rank() - 1);
      for (Dims* strides : {&src_, &dst_}) {
        for (int64_t& stride : *strides) stride /= extent;
      }
      words_ *= static_cast<size_t>(extent);
      // The words are one number if all elements are aligned to it.
      const size_t bytes = size_ * words_;
      const bool is_number = bytes <= kWidest && (bytes & (bytes - 1)) == 0;
      if (is_number && reinterpret_cast<uintptr_t>(in_) % bytes == 0 &&
          reinterpret_cast<uintptr_t>(out_) % bytes == 0) {
        size_ = bytes;
        words_ = 1;
      }
      return true;
    }
    return false;
  }

  // Undoes that where elements stayed several words.
  void Split() {
    if (words_ == 1) return;
    const auto words = static_cast<int64_t>(words_);
    for (Dims* strides : {&src_, &dst_}) {
      for (int64_t& stride : *strides) stride *= words;
      strides->push_back(1);
    }
    shape_.push_back(words);
    words_ = 1;
  }

  // In the order of the destination.
  void Sort() {
    for (int done = 1; done < shape_.rank(); ++done) {
      for (int d = done; d > 0 && std::abs(dst_[d - 1]) < std::abs(dst_[d]); --d) {
        for (Dims* dims : {&shape_, &src_, &dst_}) std::swap((*dims)[d - 1], (*dims)[d]);
      }
    }
    Dims* const strides[] = {&src_, &dst_};
    MergeDims(&shape_, strides, 2);
  }

  // Makes elements along the last axis one number, as many as can be.
  void Widen() {
    const int last = shape_.rank() - 1;
    for (auto count = static_cast<int64_t>(kWidest / size_); count > 1; count /= 2) {
      if (shape_[last] % count != 0 || !IsAligned(in_, src_, last, count) || !IsAligned(out_, dst_, last, count)) {
        continue;
      }
      size_ *= static_cast<size_t>(count);
      shape_[last] /= count;
      for (Dims* strides : {&src_, &dst_}) {
        for (int d = 0; d < last; ++d) (*strides)[d] /= count;
      }
      return;
    }
  }

  static const char* NumberOf(size_t bytes) { return bytes == kWidest ? "uint4" : UnitOf(bytes).type; }
  std::string ElementText() const {
    if (words_ == 1) return errors::Concat("typedef ", NumberOf(size_), " ELEMENT;\n");
    return errors::Concat("typedef struct {\n  ", NumberOf(size_), " words[", words_, "];\n} ELEMENT;\n");
  }

  // An item for elements that are a group's items apart.
  Status EnqueueElements(Machine& machine, Queue& queue) {
    const int64_t n = shape_.num_elements(), each = size_ == kWidest ? 2 : 4;
    const char* const index_type = IndexType(n);
    const std::string key = errors::Concat("copy elements ", size_, " ", shape_.rank(), " ", index_type);
    Call call(machine, queue, key, [&] {
      return errors::Concat(ElementText(), "#define EACH ", each, "\n#define INDEX ", index_type, "\n",
                            WalkFunction("walk", shape_.rank(), 2, index_type), kCopy);
    });
    call.Value(static_cast<uint64_t>(n)).Memory(in_).Memory(out_);
    for (int i = 0; i < 2; ++i) call.Value(int64_t{0});
    return call.Table(WalkTable(shape_, {&src_, &dst_})).RunEach(n, each);
  }

  // An item for all elements along the last axis but one.
  Status EnqueueStrips(Machine& machine, Queue& queue) {
    const int axis = shape_.rank() - 2;
    const int64_t each = shape_[axis], steps[] = {src_[axis], dst_[axis]};
    const size_t bytes = size_ * static_cast<size_t>(each);
    const bool is_number = bytes <= kWidest && (bytes & (bytes - 1)) == 0;
    const bool wide_in = is_number && IsAligned(in_, src_, axis, each);
    const bool wide_out = is_number && IsAligned(out_, dst_, axis, each);
    PutLast(axis, &shape_, &src_, &dst_);
    for (Dims* dims : {&shape_, &src_, &dst_}) dims->resize(dims->rank() - 1);
    const int64_t n = shape_.num_elements();
    const char* const index_type = IndexType(n);
    const std::string key = errors::Concat("copy strips ", size_, " ", each, " ", wide_in, " ", wide_out, " ",
                                           shape_.rank(), " ", index_type);
    Call call(machine, queue, key, [&] {
      return errors::Concat(ElementText(), "#define STRIP\n#define EACH ", each, "\n#define INDEX ", index_type, "\n",
                            wide_in ? errors::Concat("#define WIDE_IN ", NumberOf(bytes), "\n") : "",
                            wide_out ? errors::Concat("#define WIDE_OUT ", NumberOf(bytes), "\n") : "",
                            WalkFunction("walk", shape_.rank(), 2, index_type), kCopy);
    });
    call.Value(static_cast<uint64_t>(n)).Memory(in_).Memory(out_);
    for (int64_t step : steps) call.Value(static_cast<int64_t>(step));
    return call.Table(WalkTable(shape_, {&src_, &dst_})).Run(n);
  }

  // A group for each tile. The last axis is that of the source's neighbours, and that before it the destination's.
  Status EnqueueTiles(Machine& machine, Queue& queue) {
    const int of_x = shape_.rank() - 1, of_y = of_x - 1;
    constexpr int64_t kLine = 32;
    const int64_t items = machine.hardware().largest_group < 256 ? 64 : 256;
    // Small elements are read and written by fours of bytes.
    const int64_t word = size_ < 4 && words_ == 1 ? static_cast<int64_t>(4 / size_) : 1;
    const int64_t in_each = IsAligned(in_, src_, of_x, word) ? word : 1;
    const int64_t out_each = IsAligned(out_, dst_, of_y, word) ? word : 1;
    const int64_t side = size_ * words_ > 4 ? kLine : in_each * out_each == 16 ? 4 * kLine : 2 * kLine;
    const auto side_of = [&](int axis) { return shape_[axis] <= kLine ? kLine : side; };
    const int64_t x = side_of(of_x), y = side_of(of_y);
    const int64_t columns = shape_[of_x], rows = shape_[of_y];
    const int64_t steps[] = {src_[of_x], src_[of_y], dst_[of_x], dst_[of_y]};
    for (const auto& [axis, length] : {std::pair{of_x, x}, std::pair{of_y, y}}) {
      shape_[axis] = (shape_[axis] + length - 1) / length;
      src_[axis] *= length;
      dst_[axis] *= length;
    }
    const int64_t tiles = shape_.num_elements();
    const char* const index_type = IndexType(tiles);
    const std::string key = errors::Concat("copy tiles ", size_, " ", words_, " ", x, " ", y, " ", in_each, " ",
                                           out_each, " ", shape_.rank(), " ", index_type);
    Call call(machine, queue, key, [&] {
      const auto word_text = [&](const char* name, int64_t each) {
        return errors::Concat("#define ", name, "_EACH ", each, "\n#define ", name, "_WORD ",
                              each == 1 ? "ELEMENT" : "uint", "\n");
      };
      return errors::Concat(ElementText(), "#define X ", x, "\n#define Y ", y, "\n#define ITEMS ", items, "\n",
                            word_text("IN", in_each), word_text("OUT", out_each), "#define INDEX ", index_type, "\n",
                            WalkFunction("walk", shape_.rank(), 2, index_type), kTranspose);
    });
    call.Memory(in_).Memory(out_);
    for (int64_t extent : {columns, rows}) call.Value(static_cast<uint64_t>(extent));
    for (int64_t step : steps) call.Value(static_cast<int64_t>(step));
    call.Table(WalkTable(shape_, {&src_, &dst_}));
    const size_t groups[] = {static_cast<size_t>(tiles), 1, 1}, local[] = {static_cast<size_t>(items), 1, 1};
    return call.RunGroups(groups, local);
  }

  const char* in_;  // of the first element
  char* out_;
  size_t size_;       // of a number
  size_t words_ = 1;  // numbers of an element
  Dims shape_, src_, dst_;
};

}  // namespace

bool Supports(const Abilities&, const CopyStridedDesc&) { return true; }

Status Enqueue(Machine& machine, Queue& queue, const CopyStridedDesc& desc, const Args& args, const Footprint&) {
  Dims shape = desc.shape, src = desc.src_strides, dst = desc.dst_strides;
  Dims* const strides[] = {&src, &dst};
  MergeDims(&shape, strides, 2);
  const int64_t n = shape.num_elements();
  if (n == 1 || (shape.rank() == 1 && src[0] == 1 && dst[0] == 1)) {
    const int64_t size = static_cast<int64_t>(desc.element_size);
    return queue.CopyDeviceToDevice(static_cast<char*>(args.out[0]) + desc.dst_offset * size,
                                    static_cast<const char*>(args.in[0]) + desc.src_offset * size,
                                    desc.element_size * static_cast<size_t>(n));
  }
  if (machine.hardware().is_processor) return EnqueueBlocks(machine, queue, desc, args, shape, src, dst);
  return Copy(desc, args, shape, src, dst).Enqueue(machine, queue);
}

}  // namespace xpu::gpu
