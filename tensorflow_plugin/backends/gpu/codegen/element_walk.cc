#include "tensorflow_plugin/backends/gpu/codegen/element_walk.h"

#include <cstdint>

#include "tensorflow_plugin/backends/gpu/codegen/sources.h"
#include "tensorflow_plugin/backends/gpu/codegen/walk.h"

namespace xpu::gpu {
namespace {

// How an input is walked, merged with the others.
enum class PartWalk : char { kDense = 'd', kScalar = 's', kStrided = 'x' };

}  // namespace

ElementWalk::ElementWalk(const ElementwiseDesc& desc, int first)
    : program_(*desc.program), first_(first), shape_(desc.shape) {
  const int n = program_.num_inputs();
  Dims* all[Program::kMaxInputs];
  for (int i = first_; i < n; ++i) {
    strides_[i] = desc.in_strides[i];
    all[i - first_] = &strides_[i];
  }
  MergeDims(&shape_, all, n - first_);
  const Dims dense = DenseStrides(shape_);
  for (int i = first_; i < n; ++i) {
    const Dims& strides = strides_[i];
    const bool is_scalar = strides == Dims(strides.rank(), 0) || elements() == 1;
    const PartWalk walk = is_scalar ? PartWalk::kScalar : strides == dense ? PartWalk::kDense : PartWalk::kStrided;
    walks_ += static_cast<char>(walk);
    if (walk == PartWalk::kStrided) strided_.push_back(&strides);
  }
}

const char* ElementWalk::index_type() const { return IndexType(elements()); }

// Programs are interned: the address is the program.
std::string ElementWalk::Key() const {
  return errors::Concat(reinterpret_cast<uintptr_t>(&program_), " ", walks_, " ", strided_.empty() ? 0 : shape_.rank(),
                        " ", index_type());
}

std::string ElementWalk::Parameters() const {
  std::string text;
  for (int i = first_; i < program_.num_inputs(); ++i) text += errors::Concat(", MEMORY(in", i, ")");
  for (int i = 0; i < program_.num_outputs(); ++i) text += errors::Concat(", MEMORY(out", i, ")");
  return strided_.empty() ? text : text + ", CONSTANT long *table";
}

std::string ElementWalk::Arguments() const {
  std::string text;
  const auto memory = [&](const char* name, int i) { text += errors::Concat(", PASS(", name, i, ")"); };
  for (int i = first_; i < program_.num_inputs(); ++i) memory("in", i);
  for (int i = 0; i < program_.num_outputs(); ++i) memory("out", i);
  return strided_.empty() ? text : text + ", table";
}

std::string ElementWalk::Statements(const std::string& given) const {
  const int strided = static_cast<int>(strided_.size());
  std::string text;
  if (strided != 0) text += WalkText(shape_.rank(), strided, "i", index_type());
  int next_strided = 0;
  text += Registers(program_, [&](int input) {
    if (input < first_) return given;
    const PartWalk walk{walks_[static_cast<size_t>(input - first_)]};
    const std::string index = walk == PartWalk::kDense    ? "i"
                              : walk == PartWalk::kScalar ? "0"
                                                          : "o" + std::to_string(next_strided++);
    return Load(program_.inputs()[static_cast<size_t>(input)], "in" + std::to_string(input), index);
  });
  return text + Stores();
}

std::string ElementWalk::Stores() const {
  std::string text;
  for (int i = 0; i < program_.num_outputs(); ++i) {
    const std::string value = "r" + std::to_string(program_.outputs()[static_cast<size_t>(i)]);
    text += "  " + Store(program_.output_type(i), "out" + std::to_string(i), "i", value);
  }
  return text;
}

std::string ElementWalk::StatementsOfEach(int64_t each) const {
  constexpr int kMostHeld = 24;  // numbers of the table that an item has registers for
  const int strided = static_cast<int>(strided_.size()), numbers = (2 + strided) * shape_.rank();
  const bool held = strided != 0 && numbers <= kMostHeld;
  std::string arrays, loads;
  int next_strided = 0;
  for (int input = first_; input < program_.num_inputs(); ++input) {
    const PartWalk walk{walks_[static_cast<size_t>(input - first_)]};
    const char* const storage = StorageOf(program_.inputs()[static_cast<size_t>(input)]);
    const std::string element = errors::Concat("AT(", storage, ", in", input, ")");
    if (walk == PartWalk::kScalar) {
      arrays += errors::Concat("  const ", storage, " v", input, " = ", element, "[0];\n");
      continue;
    }
    arrays += errors::Concat("  ", storage, " v", input, "[", each, "];\n");
    const std::string index = walk == PartWalk::kDense ? "i" : "o" + std::to_string(next_strided++);
    loads += errors::Concat("  v", input, "[k] = ", element, "[", index, "];\n");
  }
  if (held) {
    arrays += errors::Concat("  long held[", numbers, "];\n#pragma unroll\n  for (int k = 0; k < ", numbers,
                             "; ++k) held[k] = table[k];\n");
  }
  const std::string loop = errors::Concat("#pragma unroll\n  for (uint k = 0; k < ", each, "; ++k) {\n  const ",
                                          index_type(), " i = first + k * items;\n  if (i < n) {\n");
  std::string text = arrays;
  if (!loads.empty()) {
    text += loop + (held ? "  const long *table = held;\n" : "");
    if (strided != 0) text += WalkText(shape_.rank(), strided, "i", index_type());
    text += loads + "  }\n  }\n";
  }
  const std::string registers = Registers(program_, [&](int input) {
    const PartWalk walk{walks_[static_cast<size_t>(input - first_)]};
    const std::string value = errors::Concat("v", input, walk == PartWalk::kScalar ? "" : "[k]");
    const DType type = program_.inputs()[static_cast<size_t>(input)];
    return type == DType::kHalf       ? "from_half(" + value + ")"
           : type == DType::kBFloat16 ? "from_bfloat16(" + value + ")"
                                      : value;
  });
  return text + loop + registers + Stores() + "  }\n  }\n";
}

void ElementWalk::SetArguments(Call& call, const void* const* in, void* const* out) const {
  for (int i = 0; i < program_.num_inputs() - first_; ++i) call.Memory(in[i]);
  for (int i = 0; i < program_.num_outputs(); ++i) call.Memory(out[i]);
  if (!strided_.empty()) call.Table(WalkTable(shape_, strided_));
}

}  // namespace xpu::gpu
