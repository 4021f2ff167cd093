// ResourceSparseApply*: one step of an optimizer on the rows of the variables that `indices` names. The rows are
// gathered, updated by the same program as whole variables are (optimizer_rules.cc), and scattered back.
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/training/optimizer_rules.h"

namespace xpu {
namespace {

// A row that is named several times takes a step for each, in order. So the positions in `indices` are cut into
// rounds in which every row appears at most once; there is one round unless rows repeat.
std::vector<std::vector<int64_t>> CutIntoRounds(const std::vector<int64_t>& indices) {
  std::vector<std::vector<int64_t>> rounds;
  std::unordered_map<int64_t, size_t> times;
  for (size_t i = 0; i < indices.size(); ++i) {
    const size_t round = times[indices[i]]++;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back(static_cast<int64_t>(i));
  }
  return rounds;
}

class SparseApplyKernel : public OpKernel {
 public:
  SparseApplyKernel(Construction& c, const ApplyOp* op)
      : op_(*op), type_(c.Attr<DType>("T")), update_(ReadUpdate(c, *op, type_)) {
    for (size_t i = 0; i < op->variables.size(); ++i) variable_inputs_.push_back(static_cast<int>(i));
    while (!op->IsGradient(gradient_)) ++gradient_;
  }

  Status Compute(Context& ctx) override {
    ctx.ForwardReference(0, 0);
    std::vector<LockedVariable> variables;
    XPU_RETURN_IF_ERROR(LockedVariable::LockAll(ctx, variable_inputs_, LockMode::kExclusive, &variables));
    const Tensor var = variables[0].value();
    XPU_RETURN_IF_ERROR(CheckVariables(op_, type_, variables));
    XPU_REQUIRE(var.rank() >= 1, errors::InvalidArgument("var must be at least 1 dimensional"));
    for (int i = 0; i < static_cast<int>(op_.arguments.size()); ++i) {
      if (i != gradient_) XPU_RETURN_IF_ERROR(CheckScalar(op_, i, ctx.input(InputOf(i))));
    }
    const Tensor grad = ctx.input(InputOf(gradient_)), indices = ctx.input(InputOf(gradient_) + 1);
    XPU_REQUIRE(indices.IsVector(),
                errors::InvalidArgument("indices must be one-dimensional, got shape ", indices.ShapeString()));
    XPU_RETURN_IF_ERROR(CheckGradient(var, grad, indices.dim(0)));
    std::vector<int64_t> rows;
    XPU_RETURN_IF_ERROR(FetchIntegers(ctx, indices, &rows));
    for (size_t i = 0; i < rows.size(); ++i) {
      XPU_REQUIRE(rows[i] >= 0 && rows[i] < var.dim(0),
                  errors::InvalidArgument("Index ", rows[i], " at offset ", i, " in indices is out of range [0, ",
                                          var.dim(0), ")"));
    }
    if (grad.num_elements() == 0) return OkStatus();

    std::vector<Tensor> buffers;
    for (LockedVariable& v : variables) buffers.push_back(v.value());
    for (int i : update_.written) XPU_RETURN_IF_ERROR(variables[i].BeginUpdate(ctx, &buffers[i]));
    const auto rounds = CutIntoRounds(rows);
    if (rounds.size() == 1) {
      XPU_RETURN_IF_ERROR(Step(ctx, buffers, grad, indices));
    } else {
      for (const auto& positions : rounds) XPU_RETURN_IF_ERROR(StepOf(ctx, buffers, grad, rows, positions));
    }
    for (int i : update_.written) variables[i].Commit();
    return OkStatus();
  }

 private:
  // The op's input that holds argument `i`: the indices follow the gradient.
  int InputOf(int i) const { return static_cast<int>(variable_inputs_.size()) + i + (i > gradient_ ? 1 : 0); }

  Status CheckGradient(const Tensor& var, const Tensor& grad, int64_t num_indices) const {
    XPU_REQUIRE(grad.rank() == var.rank(),
                errors::InvalidArgument("grad must have the same number of dimensions as var, got shapes ",
                                        grad.ShapeString(), " and ", var.ShapeString()));
    for (int i = 1; i < var.rank(); ++i) {
      XPU_REQUIRE(grad.dim(i) == var.dim(i),
                  errors::InvalidArgument("var and grad must match in dimension ", i, ", got shapes ",
                                          var.ShapeString(), " and ", grad.ShapeString()));
    }
    XPU_REQUIRE(grad.dim(0) == num_indices,
                errors::InvalidArgument("grad must be the same size as indices in the first dimension. Got ",
                                        grad.dim(0), " and ", num_indices));
    return OkStatus();
  }

  // The step of some of the rows: row positions[j] of the gradient, row rows[positions[j]] of the variables.
  Status StepOf(Context& ctx, const std::vector<Tensor>& buffers, const Tensor& grad, const std::vector<int64_t>& rows,
                const std::vector<int64_t>& positions) const {
    std::vector<int64_t> named;
    for (int64_t p : positions) named.push_back(rows[p]);
    Temporary from, to, part;
    XPU_RETURN_IF_ERROR(Upload(ctx, positions, DType::kInt64, &from));
    XPU_RETURN_IF_ERROR(Upload(ctx, named, DType::kInt64, &to));
    XPU_RETURN_IF_ERROR(GatherRows(ctx, grad, from.tensor(), &part));
    return Step(ctx, buffers, part.tensor(), to.tensor());
  }

  // The step of the rows that `indices` names, each once.
  Status Step(Context& ctx, const std::vector<Tensor>& buffers, const Tensor& grad, const Tensor& indices) const {
    const int num_variables = static_cast<int>(buffers.size());
    ElementwiseDesc desc;
    desc.program = update_.program;
    SetFlat(grad.num_elements(), desc.program->num_inputs(), &desc);
    Args args;
    std::vector<Temporary> values(num_variables);
    for (int i = 0; i < num_variables; ++i) {
      XPU_RETURN_IF_ERROR(GatherRows(ctx, buffers[i], indices, &values[i]));
      args.in[i] = values[i].data();
    }
    for (int i = num_variables; i < desc.program->num_inputs(); ++i) {
      const bool is_gradient = i - num_variables == gradient_;
      args.in[i] = is_gradient ? grad.data() : ctx.input(InputOf(i - num_variables)).data();
      if (!is_gradient) desc.in_strides[i][0] = 0;
    }
    for (size_t k = 0; k < update_.written.size(); ++k) args.out[k] = values[update_.written[k]].data();
    XPU_RETURN_IF_ERROR(ctx.LaunchElementwise(desc, args));
    for (int i : update_.written) {
      ScatterDesc scatter;
      scatter.type = type_;
      scatter.index_type = indices.dtype();
      scatter.num_indices = indices.num_elements();
      scatter.inner = Product(buffers[i].dims(), 1, buffers[i].rank());
      scatter.dims = {buffers[i].dim(0)};
      XPU_RETURN_IF_ERROR(ctx.Launch(scatter, {indices.data(), values[i].data()}, {buffers[i].mutable_data()}));
    }
    return OkStatus();
  }

  Status GatherRows(Context& ctx, const Tensor& all, const Tensor& indices, Temporary* rows) const {
    Dims shape = all.dims();
    shape[0] = indices.num_elements();
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, shape, rows));
    GatherDesc desc;
    desc.element_size = SizeOf(type_);
    desc.index_type = indices.dtype();
    desc.inner = Product(all.dims(), 1, all.rank());
    desc.num_indices = indices.num_elements();
    desc.dims = {all.dim(0)};
    return ctx.Launch(desc, {all.data(), indices.data()}, {rows->data()});
  }

  const ApplyOp& op_;
  const DType type_;
  const UpdateProgram update_;
  std::vector<int> variable_inputs_;
  int gradient_ = 0;  // which of the arguments
};

}  // namespace

void RegisterSparseOptimizers(Registry& registry) {
  for (const ApplyOp& op : ApplyOps()) {
    if (!op.sparse) continue;
    const std::string name = "ResourceSparse" + std::string(op.name + std::strlen("Resource"));
    registry.Op(name.c_str())
        .Types("T", DeviceTypes(op.types))
        .Types("Tindices", {DType::kInt32, DType::kInt64})
        .Traits(OpTrait::kWaitsForDevice)
        .Host(op.variables)
        .Requires(NeedUpdate(op))
        .Requires(needs::Gather("T"))
        .Requires(needs::Scatter(ScatterKind::kUpdate, "T"))
        .Kernel<SparseApplyKernel>(&op);
    if (!HasReferenceForm(op)) continue;
    registry.Op(name.c_str() + std::strlen("Resource"))
        .Types("T", DeviceTypes(op.types))
        .Types("Tindices", {DType::kInt32, DType::kInt64})
        .Traits(OpTrait::kWaitsForDevice)
        .Requires(NeedUpdate(op))
        .Requires(needs::Gather("T"))
        .Requires(needs::Scatter(ScatterKind::kUpdate, "T"))
        .Kernel<SparseApplyKernel>(&op);
  }
}

}  // namespace xpu
