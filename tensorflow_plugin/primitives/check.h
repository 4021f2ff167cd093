// The conditions that a descriptor must meet before a backend sees it, and the memory that its command then touches.
// Device::Launch asks both, so that a kernel may rely on them and none checks again.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_CHECK_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_CHECK_H_

#include <cstdint>
#include <string>

#include "tensorflow_plugin/primitives/descriptors.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu {

// The memory that a command touches at one address of Args.
struct Operand {
  DType type;            // of the elements; kInvalid where only their size matters
  int64_t element_size;  // in bytes
  int64_t elements;      // read or written, those that a stride of 0 repeats once; 0: the address may be null
  // Bytes from the address, outside which the command touches nothing. A view with a negative stride may begin before
  // the address; a view with gaps does not touch all of them.
  int64_t begin, end;

  // Every byte from begin to end is an element's.
  bool dense() const { return elements * element_size == end - begin; }
};

// The entries of Args that a command uses, those of `in` and `out` in order.
struct Footprint {
  int num_in = 0, num_out = 0;
  // Even with nothing to write there is something to check: indices, or a count of nothing.
  bool must_run = false;
  Operand in[Program::kMaxInputs], out[Program::kMaxOutputs];  // the first num_in and num_out

  // The command is a no-op.
  bool empty() const {
    if (must_run) return false;
    for (int i = 0; i < num_out; ++i) {
      if (out[i].elements != 0) return false;
    }
    return true;
  }
};

// For every primitive:
//
// Check refuses with InvalidArgument whatever would crash a kernel. That is a missing program, strides of another rank
// than the shape, negative extents, or steps of 0. So are more elements or bytes than 64 bits count. It refuses with
// Unimplemented whatever IsDefined denies. Otherwise it fills in the footprint.
//
// IsDefined: whether the vocabulary gives the descriptor's kind on its types a meaning (a maximum of complex numbers
// has none). It looks at no extent.
//
// Name tells the descriptor's kind and types for messages: "Reduce Max of complex64".
//
#define XPU_CHECK(name)                                       \
  Status Check(const name##Desc& desc, Footprint* footprint); \
  bool IsDefined(const name##Desc& desc);                     \
  std::string Name(const name##Desc& desc);
XPU_PRIMITIVES(XPU_CHECK)
#undef XPU_CHECK

// The same kind on the same types with every extent open, to ask Capabilities::Supports with.
template <typename Desc>
Desc OpenExtents(Desc desc) {
  struct Opener {
    void operator()(int64_t& extent) const { extent = kAny; }
    void operator()(Dims& dims) const { dims = {kAny}; }
    void operator()(uint32_t& axes) const { axes = 1; }  // stands for any axes of the open shape
  };
  desc.ForEachExtent(Opener());
  return desc;
}

// Which kinds of scatter a type has: a bool can only be replaced, complex numbers have no order.
constexpr bool IsDefined(ScatterKind kind, DType type) {
  if (kind == ScatterKind::kUpdate) return true;
  if (type == DType::kBool) return false;
  return !(IsComplex(type) && (kind == ScatterKind::kMin || kind == ScatterKind::kMax));
}

// The type of a reduction's source, and the type that is stored.
inline DType SourceType(const ReduceDesc& desc) { return desc.source.program->output_type(0); }
inline bool IsArgKind(ReduceKind kind) { return kind == ReduceKind::kArgMax || kind == ReduceKind::kArgMin; }
inline DType ResultType(const ReduceDesc& desc) { return IsArgKind(desc.kind) ? desc.index_type : SourceType(desc); }

// How the filter of a convolution with packed_filter_bytes is laid out.
ConvolutionDesc PackingOf(ConvolutionDesc desc);

inline DType TypeOfB(const MatMulDesc& desc) { return desc.b_type == DType::kInvalid ? desc.type : desc.b_type; }
inline DType TypeOfC(const MatMulDesc& desc) { return desc.c_type == DType::kInvalid ? desc.type : desc.c_type; }

// True if the operands and the result are of more than one type.
inline bool IsMixed(const MatMulDesc& desc) { return TypeOfB(desc) != desc.type || TypeOfC(desc) != desc.type; }

inline DType TypeOfFilter(const ConvolutionDesc& desc) {
  return desc.filter_type == DType::kInvalid ? desc.type : desc.filter_type;
}
inline DType TypeOfY(const ConvolutionDesc& desc) { return desc.y_type == DType::kInvalid ? desc.type : desc.y_type; }
inline bool IsMixed(const ConvolutionDesc& desc) {
  return TypeOfFilter(desc) != desc.type || TypeOfY(desc) != desc.type;
}
// The input that is the filter.
inline int FilterInput(const ConvolutionDesc& desc) { return desc.direction == Direction::kForward ? 1 : 0; }
// The inputs that come before a packed filter, and those that come before the epilogue's.
inline int PackedFilterInput(const ConvolutionDesc& desc) { return IsMixed(desc) ? 4 : 2; }
inline int NumOperands(const ConvolutionDesc& desc) {
  return PackedFilterInput(desc) + (desc.packed_filter_bytes > 0 ? 1 : 0);
}

inline bool IsMixed(const WeightMatMulDesc&) { return false; }

// True if an epilogue's first output of type `output` may be stored in place of a result of type `c`.
template <typename Desc>
bool MayReplaceResult(const Desc& desc, DType c, DType output) {
  return output == c || (IsMixed(desc) && SizeOf(output) == SizeOf(c));
}
inline bool MayReplaceResult(const ConvolutionDesc& desc, DType c, DType output) {
  return output == c || (IsMixed(desc) && (SizeOf(output) == SizeOf(c) || SizeOf(output) == 1));
}

// For a MatMulDesc, WeightMatMulDesc or ConvolutionDesc.
template <typename Desc>
bool HasEpilogue(const Desc& desc) {
  return desc.epilogue.program != nullptr;
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_CHECK_H_
