// An element of a program: where its inputs lie, and the statements that compute and store it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_ELEMENT_WALK_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_ELEMENT_WALK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/call.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::gpu {

// The strides' pattern of a program's inputs is part of a kernel. Extents and strides are not, so that it is compiled
// once whatever the shapes.
class ElementWalk {
 public:
  // Inputs before `first` are not in memory: an epilogue's first one is the element itself.
  explicit ElementWalk(const ElementwiseDesc& desc, int first = 0);
  ElementWalk(const ElementWalk&) = delete;
  ElementWalk& operator=(const ElementWalk&) = delete;

  int64_t elements() const { return shape_.num_elements(); }
  // The integer type of an element's number.
  const char* index_type() const;

  // The part of a kernel's key that describes this, the program included.
  std::string Key() const;
  // The parameters of a kernel, or of a function that it calls: ", MEMORY(in1), ..., MEMORY(out0), ...", and a table if
  // there is one.
  std::string Parameters() const;
  // The same, passed on by the kernel.
  std::string Arguments() const;
  // Statements that compute and store element `i`. Inputs that are not in memory are the expression `given`.
  std::string Statements(const std::string& given = "") const;
  // The same for an item that has `each` elements, from `first` on and `items` apart, of which those below `n` are
  // there. All of them are on their way before the first is computed.
  std::string StatementsOfEach(int64_t each) const;
  // Sets the parameters: `in` has the inputs from `first` on.
  void SetArguments(Call& call, const void* const* in, void* const* out) const;

 private:
  std::string Stores() const;

  const Program& program_;
  const int first_;
  Dims shape_;  // as far as it can be, merged
  Dims strides_[Program::kMaxInputs];
  std::string walks_;                 // of each input in memory, by the letters in element_walk.cc
  std::vector<const Dims*> strided_;  // the strides of those that are neither dense nor one element
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_CODEGEN_ELEMENT_WALK_H_
