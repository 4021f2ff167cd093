// Zeros around an image, which somebody fills in and copies the image into, are a convolution's own padding: it reads
// the image where that is.
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/strided_view.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

bool IsFillOfZeros(const Command& command, int64_t bytes) {
  if (command.out.size() != 1 || command.out[0].offset != 0) return false;
  const auto* some = std::get_if<FillBytes>(&command.desc);
  const auto* words = std::get_if<FillWords>(&command.desc);
  if (some != nullptr) return some->value == 0 && static_cast<int64_t>(some->bytes) == bytes;
  return words != nullptr && words->value == 0 && static_cast<int64_t>(words->bytes) == bytes;
}

// A part of each axis of a dense array.
struct Box {
  Dims begin, extent;
};

// Where the elements of a view lie in a dense array of these extents, if that is a box in the same order.
bool BoxOf(const StridedView& view, const Dims& shape, Box* box) {
  const Dims dense = DenseStrides(shape);
  box->begin = box->extent = Dims(shape.rank(), 1);
  int next = view.shape.rank() - 1;  // axis of the view
  int64_t remaining = 1, offset = view.offset;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (remaining == 1 && next >= 0 && view.strides[next] == dense[i]) remaining = view.shape[next--];
    // An axis of the view that is longer goes on in the next one, all of this one being there.
    const bool whole = remaining % shape[i] == 0;
    if (!whole && remaining > shape[i]) return false;
    box->extent[i] = whole ? shape[i] : remaining;
    remaining /= box->extent[i];
  }
  if (remaining != 1 || next >= 0) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    box->begin[i] = offset / dense[i];
    offset %= dense[i];
    if (box->begin[i] + box->extent[i] > shape[i]) return false;
  }
  return true;
}

class PaddingFolder {
 public:
  PaddingFolder(const Capabilities& can, CommandList* list) : can_(can), list_(*list), uses_(UsesOf(*list)) {}

  void Run() {
    for (size_t i = 0; i < list_.commands.size(); ++i) Fold(static_cast<int>(i));
  }

 private:
  void Fold(int reader) {
    Command& command = list_.commands[reader];
    const auto* desc = std::get_if<ConvolutionDesc>(&command.desc);
    if (desc == nullptr || (desc->direction != Direction::kForward && desc->direction != Direction::kFilterGradient) ||
        command.workspace.buffer != BufferSlice::kNowhere || command.in[0].buffer == BufferSlice::kNowhere ||
        command.in[0].offset != 0) {
      return;
    }
    const int padded = command.in[0].buffer;
    const BufferUses::OfBuffer& of = uses_.buffers[padded];
    if (list_.buffers[padded].kind != Buffer::Kind::kComputed || of.writers.size() != 2 || of.writers[1] > reader ||
        !IsFillOfZeros(list_.commands[of.writers[0]], list_.buffers[padded].bytes)) {
      return;
    }
    const Command& copy = list_.commands[of.writers[1]];
    ConvolutionDesc folded = *desc;
    if (!FoldCopy(copy, &folded) ||
        IsWritten(list_, uses_, copy.in[0].buffer, RangeOfInput(copy, 0), of.writers[1], reader)) {
      return;
    }
    Footprint footprint;
    if (!Check(folded, &footprint).ok() || !can_.Supports(folded) || can_.WorkspaceBytes(folded) > 0) return;
    command.desc = folded;
    command.footprint = footprint;
    command.in[0] = copy.in[0];
  }

  // The convolution of what is copied, where its zeros are padding.
  static bool FoldCopy(const Command& command, ConvolutionDesc* d) {
    const auto* copy = std::get_if<CopyStridedDesc>(&command.desc);
    // Bytes that stand for zero need not be zero.
    if (copy == nullptr || IsMixed(*d) || copy->element_size != SizeOf(d->type) || command.out[0].offset != 0)
      return false;
    StridedView view;
    const int64_t bytes = copy->shape.num_elements() * static_cast<int64_t>(copy->element_size);
    if (!ViewOfTarget(*copy, bytes, &view)) return false;
    const int first = d->order == ChannelOrder::kLast ? 1 : 2;  // axis of space
    const int channels = d->order == ChannelOrder::kLast ? 1 + d->spatial_rank : 1;
    Dims shape(d->spatial_rank + 2, 1);
    shape[0] = d->batch;
    shape[channels] = d->in_channels;
    for (int i = 0; i < d->spatial_rank; ++i) shape[first + i] = d->input[i];
    Box box;
    if (!BoxOf(view, shape, &box) || box.extent[0] != d->batch || box.extent[channels] != d->in_channels) return false;
    for (int i = 0; i < d->spatial_rank; ++i) {
      const int64_t begin = box.begin[first + i], extent = box.extent[first + i];
      d->pad_before[i] += begin;
      d->pad_after[i] += d->input[i] - begin - extent;
      d->input[i] = extent;
    }
    return true;
  }

  const Capabilities& can_;
  CommandList& list_;
  const BufferUses uses_;
};

}  // namespace

void FoldPadding(const Capabilities& can, CommandList* list) { PaddingFolder(can, list).Run(); }

}  // namespace xpu::commands
