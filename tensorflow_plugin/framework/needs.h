// The needs of a kernel: descriptors made from the types that are being registered, with their extents open, which the
// backend must support.
//
//   registry.Op("Cast").Types("SrcT", ...).Types("DstT", ...).Requires(needs::Cast("SrcT", "DstT"))
//
// needs:: has what many ops need; an op of its own kind passes a function that asks.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_NEEDS_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_NEEDS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {

// A type attribute and its value in one registration.
using TypeBinding = std::pair<const char*, DType>;

// One round of questions: for one op and one combination of its types.
class Needs {
 public:
  Needs(const Capabilities& capabilities, const std::vector<TypeBinding>& types)
      : capabilities_(capabilities), types_(types) {}

  // The type registered for an attribute; asking for one that Types did not name is a problem.
  DType type(const char* attr);

  // Commands of this kind on these types, whatever their extents.
  template <typename Desc>
  void Ask(const Desc& desc) {
    if (supported_) supported_ = capabilities_.Supports(OpenExtents(desc));
  }
  // A program by itself; a missing one, which did not build, is a problem. `error` says why.
  void AskProgram(const Program* program, const std::string& error = "");

  // The registration makes no sense, whatever the backend supports.
  void Fail(std::string problem);

  bool supported() const { return supported_ && problem_.empty(); }
  const std::string& problem() const { return problem_; }

 private:
  const Capabilities& capabilities_;
  const std::vector<TypeBinding>& types_;
  bool supported_ = true;
  std::string problem_;
};

using Need = std::function<void(Needs&)>;

namespace needs {

// A type: that of an attribute, or a fixed one.
struct TypeRef {
  TypeRef(const char* a) : attr(a) {}  // NOLINT: an attribute's name stands for its type
  TypeRef(DType t) : type(t) {}        // NOLINT
  DType In(Needs& n) const { return attr != nullptr ? n.type(attr) : type; }
  const char* attr = nullptr;
  DType type = DType::kInvalid;
};

// Elementwise programs: of one instruction, of none (copies and fills), a conversion.
Need Op(Opcode op, TypeRef type);
Need Identity(TypeRef type);
Need Cast(TypeRef from, TypeRef to);
// The reduction of an array as it is.
Need Reduce(ReduceKind kind, TypeRef type, TypeRef index_type = DType::kInt64);
// Transposed or not, on both sides; for complex types with the conjugate transpose.
Need MatMul(TypeRef type);
Need MatMul(TypeRef type, TypeRef b_type, TypeRef c_type);
Need Softmax(SoftmaxKind kind, TypeRef type, TypeRef label_type = DType::kInt64);
// Copies of elements of a type's size.
Need Copy(TypeRef type);
// Indices of one type, or of both int32 and int64.
Need Gather(TypeRef type, TypeRef index_type);
Need Gather(TypeRef type);
Need Scatter(ScatterKind kind, TypeRef type, TypeRef index_type);
Need Scatter(ScatterKind kind, TypeRef type);
Need Random(RandomKind kind, TypeRef type, bool exact, RandomStart start = RandomStart::kHere);

}  // namespace needs
}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_NEEDS_H_
