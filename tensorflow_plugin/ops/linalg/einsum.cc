// Einsum on strided views. Sums over one input are a Reduce, products of two inputs a MatMul, or an elementwise product
// where nothing is summed. Tensors are copied to another order only where a MatMul cannot walk them as they are.
#include <algorithm>
#include <limits>

#include "tensorflow_plugin/ops/linalg/einsum_plan.h"
#include "tensorflow_plugin/ops/math/reduction.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

using einsum::Axis;
using einsum::View;

struct EinsumOperand {
  View view;
  const void* data = nullptr;
};

// The strides of `view` along each label, 0 for one it does not have.
Dims Strides(const std::vector<int>& order, const View& view) {
  Dims strides;
  for (int label : order) strides.push_back(view.Stride(label));
  return strides;
}
std::vector<int> Labels(const View& view) {
  std::vector<int> labels;
  for (const Axis& axis : view) labels.push_back(axis.label);
  return labels;
}

class EinsumKernel : public OpKernel {
 public:
  explicit EinsumKernel(Construction& c) : type_(c.Attr<DType>("T")) {
    c.Fail(einsum::Parse(c.Attr<std::string>("equation"), &equation_));
    identity_ = IdentityProgram(type_);
    multiply_ = SingleOpProgram(Opcode::kMul, type_);
  }

  Status Compute(Context& ctx) override {
    const int num_inputs = ctx.num_inputs();
    XPU_REQUIRE(num_inputs == 1 || num_inputs == 2,
                errors::InvalidArgument("Expected 1 or 2 inputs but got: ", num_inputs));
    Tensor inputs[2];
    Dims shapes[2];
    for (int i = 0; i < num_inputs; ++i) {
      inputs[i] = ctx.input(i);
      shapes[i] = inputs[i].dims();
    }
    einsum::Problem problem;
    XPU_RETURN_IF_ERROR(einsum::Resolve(equation_, shapes, num_inputs, &problem));
    if (num_inputs == 1 && IsReshape(problem)) return ctx.ShareOutput(0, inputs[0], problem.output_shape);

    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, problem.output_shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    const bool empty_sum = inputs[0].num_elements() == 0 || (num_inputs == 2 && inputs[1].num_elements() == 0);
    if (empty_sum || problem.output_has_diagonal) {
      XPU_RETURN_IF_ERROR(ctx.Zero(out.mutable_data(), out.bytes()));
      if (empty_sum) return OkStatus();
    }
    Execution run{*this, ctx, problem, out};
    EinsumOperand operands[2];
    for (int i = 0; i < num_inputs; ++i) operands[i] = {problem.inputs[i], inputs[i].data()};
    return num_inputs == 1 ? run.Unary(operands[0]) : run.Binary(operands[0], operands[1]);
  }

 private:
  // One input with nothing to sum, and its elements in order already.
  static bool IsReshape(const einsum::Problem& p) {
    if (p.output_has_diagonal || p.inputs[0].size() != p.output.size()) return false;
    for (int i = 0; i < p.output.size(); ++i) {
      const Axis &a = p.inputs[0][i], &b = p.output[i];
      if (a.label != b.label || a.stride != b.stride) return false;
    }
    return true;
  }

  // One execution, with the temporaries it needs.
  struct Execution {
    const EinsumKernel& kernel;
    Context& ctx;
    const einsum::Problem& problem;
    const Tensor& out;
    Temporary temporaries[6] = {};
    int num_temporaries = 0;

    Status Temp(const View& view, void** data) {
      Temporary& t = temporaries[num_temporaries++];
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kernel.type_, {view.num_elements()}, &t));
      *data = t.data();
      return OkStatus();
    }

    // Copies between two views of the same labels, which `to` has in the order to walk.
    Status Copy(const EinsumOperand& from, const View& to, void* data) {
      CopyStridedDesc desc;
      desc.element_size = SizeOf(kernel.type_);
      const std::vector<int> labels = Labels(to);
      desc.shape = to.Shape();
      desc.src_strides = Strides(labels, from.view);
      desc.dst_strides = Strides(labels, to);
      return ctx.Launch(desc, {from.data}, {data});
    }

    Status Pack(EinsumOperand* operand, const View& to) {
      void* data;
      XPU_RETURN_IF_ERROR(Temp(to, &data));
      XPU_RETURN_IF_ERROR(Copy(*operand, to, data));
      *operand = {to, data};
      return OkStatus();
    }

    // Sums `program` of the operands over the labels that are not in `kept`. The result is dense and in the order of
    // `order`, which has the labels of both.
    Status Sum(const Program* program, const std::vector<int>& order, const View& kept, const EinsumOperand& a,
               const EinsumOperand* b, void* result) {
      ReduceDesc desc;
      desc.kind = ReduceKind::kSum;
      desc.source.program = program;
      for (int label : order) {
        const Axis* axis = a.view.Find(label);
        desc.source.shape.push_back(axis != nullptr ? axis->extent : b->view.Find(label)->extent);
      }
      desc.source.in_strides[0] = Strides(order, a.view);
      if (b != nullptr) desc.source.in_strides[1] = Strides(order, b->view);
      AxisSet reduced;
      for (int label : order) reduced.push_back(!kept.Has(label));
      SetReduced(reduced, &desc);
      return ctx.Launch(desc, {a.data, b != nullptr ? b->data : nullptr}, {result});
    }

    Status Unary(EinsumOperand input) {
      // The cheapest walk is along the input's memory; the result has that order too.
      const View kept = Kept(input.view, nullptr);
      if (kept.size() == input.view.size()) return Copy(input, problem.output, out.mutable_data());
      if (Labels(kept) == Labels(problem.output) && !problem.output_has_diagonal) {
        return Sum(kernel.identity_, Labels(input.view), kept, input, nullptr, out.mutable_data());
      }
      XPU_RETURN_IF_ERROR(Reduce(&input, kept));
      return Copy(input, problem.output, out.mutable_data());
    }

    // The axes of `view` that are in the output or in the other input, dense.
    View Kept(const View& view, const View* other) const {
      View kept;
      for (const Axis& axis : view) {
        if (problem.output.Has(axis.label) || (other != nullptr && other->Has(axis.label))) {
          kept.Add(axis.label, axis.extent, 0);
        }
      }
      return Dense(kept);
    }

    Status Reduce(EinsumOperand* operand, const View& kept) {
      if (kept.size() == operand->view.size()) return OkStatus();
      void* data;
      XPU_RETURN_IF_ERROR(Temp(kept, &data));
      XPU_RETURN_IF_ERROR(Sum(kernel.identity_, Labels(operand->view), kept, *operand, nullptr, data));
      *operand = {kept, data};
      return OkStatus();
    }

    Status Binary(EinsumOperand left, EinsumOperand right) {
      const View kept_left = Kept(left.view, &right.view), kept_right = Kept(right.view, &left.view);
      XPU_RETURN_IF_ERROR(Reduce(&left, kept_left));
      XPU_RETURN_IF_ERROR(Reduce(&right, kept_right));
      bool contracts = false, free_left = false, free_right = false;
      for (const Axis& axis : left.view) contracts = contracts || !problem.output.Has(axis.label);
      for (const Axis& axis : problem.output) {
        free_left = free_left || !right.view.Has(axis.label);
        free_right = free_right || !left.view.Has(axis.label);
      }
      // An outer product is a MatMul too. Many products with a vector are, where each matrix is dense in memory, or in
      // long pieces. Otherwise they are faster as one sum. For half and bfloat16 that would round each product before a
      // sum; MatMul does not.
      const bool both = free_left && free_right;
      const bool has_matrices =
          free_left ? IsOfMatrices(left.view, right.view) : free_right && IsOfMatrices(right.view, left.view);
      const bool by_matmul = both || (contracts && (has_matrices || IsReducedFloat(kernel.type_)));
      return by_matmul ? Multiply(left, right) : Elementwise(left, right, contracts);
    }

    // True if the batch axes of `view` (in the other input and the output too) come before its matrix in memory. The
    // same if rows or columns of a large matrix are pieces of memory, as the keys of one head are.
    bool IsOfMatrices(const View& view, const View& other) const {
      constexpr int64_t kLongPiece = 16, kLargeMatrix = 1 << 13;  // elements
      int64_t batch = std::numeric_limits<int64_t>::max(), matrix = 0, piece = 0, elements = 1;
      for (const Axis& axis : view) {
        if (other.Has(axis.label) && problem.output.Has(axis.label)) {
          batch = std::min(batch, axis.stride);
        } else {
          matrix = std::max(matrix, axis.stride);
          elements *= axis.extent;
          if (axis.stride == 1) piece = axis.extent;
        }
      }
      return batch > matrix || (piece >= kLongPiece && elements >= kLargeMatrix);
    }

    // Products element by element, summed where axes are contracted: no MatMul is in it.
    Status Elementwise(const EinsumOperand& left, const EinsumOperand& right, bool contracts) {
      View product = Dense(problem.output);
      std::vector<int> labels = Labels(product);
      if (contracts) {
        // Along the memory of the larger input; what is kept comes out in that order.
        const View& larger = left.view.num_elements() < right.view.num_elements() ? right.view : left.view;
        for (const Axis& axis : left.view) {
          if (!product.Has(axis.label)) labels.push_back(axis.label);
        }
        std::sort(labels.begin(), labels.end(), [&](int a, int b) { return larger.Stride(a) > larger.Stride(b); });
        View kept;
        for (int label : labels) {
          if (const Axis* axis = product.Find(label)) kept.Add(label, axis->extent, 0);
        }
        product = Dense(kept);
      }
      void* result = out.mutable_data();
      const bool in_place = !problem.output_has_diagonal && Labels(product) == Labels(problem.output);
      if (!in_place) XPU_RETURN_IF_ERROR(Temp(product, &result));
      if (contracts) {
        XPU_RETURN_IF_ERROR(Sum(kernel.multiply_, labels, product, left, &right, result));
      } else {
        ElementwiseDesc desc;
        desc.program = kernel.multiply_;
        desc.shape = product.Shape();
        desc.in_strides[0] = Strides(labels, left.view);
        desc.in_strides[1] = Strides(labels, right.view);
        XPU_RETURN_IF_ERROR(ctx.Launch(desc, {left.data, right.data}, {result}));
      }
      return in_place ? OkStatus() : Copy({product, result}, problem.output, out.mutable_data());
    }

    Status Multiply(EinsumOperand left, EinsumOperand right) {
      View product = problem.output;
      void* result = out.mutable_data();
      einsum::Contraction plan;
      while (true) {
        plan = einsum::Contraction();
        const einsum::Obstacle obstacle = einsum::PlanContraction(left.view, right.view, product, &plan);
        if (obstacle == einsum::Obstacle::kNone) break;
        XPU_REQUIRE(num_temporaries < 5, errors::Internal("Einsum found no order for its operands"));
        if (obstacle == einsum::Obstacle::kOutput) {
          product = plan.packed;
          XPU_RETURN_IF_ERROR(Temp(product, &result));
        } else {
          XPU_RETURN_IF_ERROR(Pack(obstacle == einsum::Obstacle::kLeft ? &left : &right, plan.packed));
        }
      }
      plan.matmul.type = kernel.type_;
      if (plan.swapped) std::swap(left, right);
      XPU_RETURN_IF_ERROR(ctx.Launch(plan.matmul, {left.data, right.data}, {result}));
      if (result == out.mutable_data()) return OkStatus();
      return Copy({product, result}, problem.output, out.mutable_data());
    }
  };

  const DType type_;
  einsum::Equation equation_;
  const Program* identity_;
  const Program* multiply_;
};

}  // namespace

void RegisterEinsum(Registry& registry) {
  TypeList types = Union(kFloatTypes, kComplexTypes);
  types.push_back(DType::kInt64);
  registry.Op("Einsum")
      .Types("T", types)
      .AllHostFor(DType::kInt32, {"inputs", "output"})
      .Requires(needs::MatMul("T"))
      .Requires(needs::Reduce(ReduceKind::kSum, "T"))
      .Requires(needs::Copy("T"))
      .Requires(Opcode::kMul)
      .Kernel<EinsumKernel>();
}

}  // namespace xpu
