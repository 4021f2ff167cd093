// The common part of files of elementwise ops: tables of ops and the kernels that run their programs.
#ifndef TENSORFLOW_PLUGIN_OPS_MATH_ELEMENTWISE_H_
#define TENSORFLOW_PLUGIN_OPS_MATH_ELEMENTWISE_H_

#include <string>
#include <type_traits>
#include <vector>

#include "tensorflow_plugin/framework/registry.h"
#include "tensorflow_plugin/ops/math/broadcast.h"
#include "tensorflow_plugin/ops/math/formula.h"

namespace xpu {

// Sets of types, so that a table row can say its types in a word.
using TypeMask = uint32_t;
constexpr TypeMask Mask(DType t) { return 1u << static_cast<int>(t); }
// Floating-point types of 16 bits.
constexpr TypeMask kReducedMask = Mask(DType::kHalf) | Mask(DType::kBFloat16);
constexpr TypeMask kFloatDoubleMask = Mask(DType::kFloat) | Mask(DType::kDouble);
constexpr TypeMask kFloatMask = kReducedMask | kFloatDoubleMask;
constexpr TypeMask kComplexMask = Mask(DType::kComplex64) | Mask(DType::kComplex128);
constexpr TypeMask kSignedMask = Mask(DType::kInt8) | Mask(DType::kInt16) | Mask(DType::kInt64);  // without int32
constexpr TypeMask kUnsignedMask =
    Mask(DType::kUint8) | Mask(DType::kUint16) | Mask(DType::kUint32) | Mask(DType::kUint64);
constexpr TypeMask kBoolMask = Mask(DType::kBool);
// int32, all of whose arguments are then in host memory. Only for ops that have no DEFAULT kernel for it.
constexpr TypeMask kHostInt32Mask = Mask(DType::kInt32);

// The types of a mask, without int32.
TypeList DeviceTypes(TypeMask mask);

// How an op's program is made: from one instruction, or from a formula.
struct Recipe {
  Opcode op = Opcode::kCast;
  Formula formula = nullptr;

  constexpr Recipe(Opcode single) : op(single) {}
  template <typename F, typename = std::enable_if_t<std::is_convertible_v<F, Formula>>>
  constexpr Recipe(F f) : formula(f) {}
};

// One row of a table. The op's type attribute is T; an op on bool alone has none.
struct ElementwiseOp {
  const char* name;  // TensorFlow's, of the op
  TypeMask types;    // of T: a kernel for each, if the backend supports its program
  Recipe recipe;
  OpTraits traits = {};             // facts for graph passes (framework/op_traits.h); most ops have none
  const char* attribute = nullptr;  // the float attribute that the formula reads
};

// The program of `recipe` for operands of type `type`; nullptr with *error set if it cannot be built.
const Program* MakeProgram(const Recipe& recipe, int arity, DType type, double attribute, std::string* error);

// Calls add(entry) for an entry of `op` with its types, and for each its program as what it requires.
using AddKernel = void (*)(Registry::Entry& entry, const ElementwiseOp& op);
void RegisterRow(Registry& registry, const ElementwiseOp& op, int arity, const std::vector<const char*>& arguments,
                 AddKernel add);

// Runs `program` on a context, waiting for its status if it can fail on data.
inline Status RunProgram(Context& ctx, const ElementwiseDesc& desc, std::initializer_list<const void*> in, void* out) {
  if (__builtin_expect(desc.program->can_fail(), 0)) {
    static const DescribeError as_it_is = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
    return ctx.LaunchChecked(desc, in, {out}, &as_it_is);
  }
  return ctx.Launch(desc, in, {out});
}

// Reads the type attribute and makes the row's program.
class ProgramKernel : public OpKernel {
 protected:
  ProgramKernel(Construction& c, const ElementwiseOp& op, int arity);
  const Program* program_ = nullptr;
};

class UnaryKernel : public ProgramKernel {
 public:
  UnaryKernel(Construction& c, const ElementwiseOp* op) : ProgramKernel(c, *op, 1) {}
  Status Compute(Context& ctx) override;
};

// Operands broadcast. Equal and NotEqual may be told to answer instead of failing on incompatible shapes.
class BroadcastKernel : public ProgramKernel {
 public:
  BroadcastKernel(Construction& c, const ElementwiseOp* op);
  Status Compute(Context& ctx) override;

 private:
  bool shape_error_ = true;
  bool incompatible_result_ = false;
};

// Operands have the same number of elements; the result has the first one's shape.
class PairwiseKernel : public ProgramKernel {
 public:
  PairwiseKernel(Construction& c, const ElementwiseOp* op)
      : ProgramKernel(c, *op, 2), name_(op->name), node_(c.NodeName()) {}
  Status Compute(Context& ctx) override;

 protected:
  virtual Status CheckShapes(const Tensor& x, const Tensor& y) const;
  const char* name_;
  const std::string node_;
};

// Operands have the same shape.
class SameShapeKernel : public PairwiseKernel {
 public:
  using PairwiseKernel::PairwiseKernel;

 protected:
  Status CheckShapes(const Tensor& x, const Tensor& y) const override;
};

// Registers the rows of a table with kernel K. `arguments` are the names of inputs and output.
template <typename K, size_t N>
void RegisterTable(Registry& registry, const ElementwiseOp (&table)[N], const std::vector<const char*>& arguments) {
  for (const ElementwiseOp& op : table) {
    RegisterRow(registry, op, static_cast<int>(arguments.size()) - 1, arguments,
                [](Registry::Entry& entry, const ElementwiseOp& row) { entry.Kernel<K>(&row); });
  }
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_MATH_ELEMENTWISE_H_
