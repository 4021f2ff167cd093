// A GRU cell and its gradient as one op each: products of matrices, and a program after each.
#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/steps.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr DType kType = DType::kFloat;

class GruBase : public OpKernel {
 public:
  explicit GruBase(Construction&) {}

 protected:
  struct Sizes {
    int64_t batch = 0, inputs = 0, cells = 0;
    Dims state() const { return {batch, cells}; }
  };

  static Status Check(const Tensor& t, const char* name, const Dims& shape) {
    XPU_REQUIRE(t.rank() == shape.rank(),
                errors::InvalidArgument("Rank of ", name, " must be ", shape.rank(), ", got ", t.rank()));
    for (int i = 0; i < shape.rank(); ++i) {
      XPU_REQUIRE(t.dim(i) == shape[i],
                  errors::InvalidArgument(name, ".dim_size(", i, ") is ", t.dim(i), ", expected ", shape[i]));
    }
    return OkStatus();
  }

  // x, h_prev, w_ru, w_c, b_ru, b_c, which both ops have.
  static Status ReadSizes(Context& ctx, Sizes* s) {
    const Tensor x = ctx.input(0), h = ctx.input(1);
    XPU_REQUIRE(x.rank() == 2, errors::InvalidArgument("Rank of x must be 2, got ", x.rank()));
    XPU_REQUIRE(h.rank() == 2, errors::InvalidArgument("Rank of h_prev must be 2, got ", h.rank()));
    *s = {x.dim(0), x.dim(1), h.dim(1)};
    XPU_REQUIRE(h.dim(0) == s->batch,
                errors::InvalidArgument("h_prev.dims(0) != batch_size: ", h.dim(0), " vs. ", s->batch));
    XPU_RETURN_IF_ERROR(Check(ctx.input(2), "w_ru", {s->inputs + s->cells, 2 * s->cells}));
    XPU_RETURN_IF_ERROR(Check(ctx.input(3), "w_c", {s->inputs + s->cells, s->cells}));
    XPU_RETURN_IF_ERROR(Check(ctx.input(4), "b_ru", {2 * s->cells}));
    return Check(ctx.input(5), "b_c", {s->cells});
  }

  // The rows of weights that the state is multiplied with.
  static const void* OfState(const Tensor& w, const Sizes& s) { return Beyond(w.data(), s.inputs * w.dim(1), kType); }
};

class GruKernel : public GruBase {
 public:
  using GruBase::GruBase;

  Status Compute(Context& ctx) override {
    Sizes s;
    XPU_RETURN_IF_ERROR(ReadSizes(ctx, &s));
    const Tensor x = ctx.input(0), h = ctx.input(1), w_ru = ctx.input(2), w_c = ctx.input(3), b_ru = ctx.input(4),
                 b_c = ctx.input(5);
    Tensor out[4];
    for (int i = 0; i < 4; ++i) XPU_RETURN_IF_ERROR(ctx.AllocateOutput(i, s.state(), &out[i]));
    if (out[0].num_elements() == 0) return OkStatus();
    Temporary of_x, of_h, reset;
    for (Temporary* t : {&of_x, &of_h}) XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kType, {s.batch, 2 * s.cells}, t));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kType, s.state(), &reset));
    const int64_t two = 2 * s.cells;
    XPU_RETURN_IF_ERROR(Multiply(ctx, kType, s.batch, two, s.inputs, x.data(), false, w_ru.data(), false, of_x.data()));
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, kType, s.batch, two, s.cells, h.data(), false, OfState(w_ru, s), false, of_h.data()));
    std::vector<ProgramInput> in;
    for (int64_t gate : {int64_t{0}, s.cells}) {
      in.push_back({Beyond(of_x.data(), gate, kType), {two, 1}});
      in.push_back({Beyond(of_h.data(), gate, kType), {two, 1}});
      in.push_back({Beyond(b_ru.data(), gate, kType), {0, 1}});
    }
    in.push_back({h.data(), {}});
    XPU_RETURN_IF_ERROR(
        RunOver(ctx, gates_, s.state(), in, {out[0].mutable_data(), out[1].mutable_data(), reset.data()}));
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, kType, s.batch, s.cells, s.inputs, x.data(), false, w_c.data(), false, of_x.data()));
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, kType, s.batch, s.cells, s.cells, reset.data(), false, OfState(w_c, s), false, of_h.data()));
    return RunOver(ctx, state_, s.state(),
                   {{of_x.data(), {}}, {of_h.data(), {}}, {b_c.data(), {0, 1}}, {out[1].data(), {}}, {h.data(), {}}},
                   {out[2].mutable_data(), out[3].mutable_data()});
  }

 private:
  // The inputs' part, the state's and the bias of r and u; h before. Gives r, u, r * h.
  const Program* const gates_ = WriteProgram(kType, 7, [](const std::vector<FormulaValue>& in) {
    const FormulaValue r = Sigmoid(in[0] + in[1] + in[2]), u = Sigmoid(in[3] + in[4] + in[5]);
    return std::vector<FormulaValue>{r, u, in[6] * r};
  });
  // The same of c; u, h before. Gives c, h.
  const Program* const state_ = WriteProgram(kType, 5, [](const std::vector<FormulaValue>& in) {
    const FormulaValue c = Tanh(in[0] + in[1] + in[2]);
    return std::vector<FormulaValue>{c, in[3] * (in[4] - c) + c};
  });
};

class GruGradientKernel : public GruBase {
 public:
  using GruBase::GruBase;

  Status Compute(Context& ctx) override {
    Sizes s;
    XPU_RETURN_IF_ERROR(ReadSizes(ctx, &s));
    const Tensor x = ctx.input(0), h = ctx.input(1), w_ru = ctx.input(2), w_c = ctx.input(3), r = ctx.input(6),
                 u = ctx.input(7), c = ctx.input(8), dh = ctx.input(9);
    const char* const names[] = {"r", "u", "c", "d_h"};
    for (int i = 0; i < 4; ++i) XPU_RETURN_IF_ERROR(Check(ctx.input(6 + i), names[i], s.state()));
    const int64_t two = 2 * s.cells;
    Tensor dx, dh_before, dc, dru;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &dx));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(1, h, &dh_before));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(2, h, &dc));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(3, {s.batch, two}, &dru));
    if (dc.num_elements() == 0) return dx.num_elements() == 0 ? OkStatus() : ctx.Zero(dx.mutable_data(), dx.bytes());
    Temporary du, dr, dhr, of_ru, of_c, of_h;
    for (Temporary* t : {&du, &dr, &dhr, &of_h}) XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kType, s.state(), t));
    for (Temporary* t : {&of_ru, &of_c}) XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kType, x.dims(), t));
    XPU_RETURN_IF_ERROR(RunOver(ctx, before_, s.state(),
                                {{h.data(), {}}, {u.data(), {}}, {c.data(), {}}, {dh.data(), {}}},
                                {dc.mutable_data(), du.data()}));
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, kType, s.batch, s.cells, s.cells, dc.data(), false, OfState(w_c, s), true, dhr.data()));
    XPU_RETURN_IF_ERROR(
        RunOver(ctx, reset_, s.state(), {{dhr.data(), {}}, {h.data(), {}}, {r.data(), {}}}, {dr.data()}));
    const View dense = DenseView(s.state());
    const void* const parts[] = {dr.data(), du.data()};
    for (int i = 0; i < 2; ++i) {
      XPU_RETURN_IF_ERROR(
          CopyView(ctx, SizeOf(kType), s.state(), parts[i], dense, dru.mutable_data(), {Dims{two, 1}, i * s.cells}));
    }
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, kType, s.batch, s.cells, two, dru.data(), false, OfState(w_ru, s), true, of_h.data()));
    XPU_RETURN_IF_ERROR(RunOver(ctx, after_, s.state(),
                                {{of_h.data(), {}}, {dhr.data(), {}}, {r.data(), {}}, {dh.data(), {}}, {u.data(), {}}},
                                {dh_before.mutable_data()}));
    if (dx.num_elements() == 0) return OkStatus();
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, kType, s.batch, s.inputs, two, dru.data(), false, w_ru.data(), true, of_ru.data()));
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, kType, s.batch, s.inputs, s.cells, dc.data(), false, w_c.data(), true, of_c.data()));
    return RunOver(ctx, sum_, x.dims(), {{of_ru.data(), {}}, {of_c.data(), {}}}, {dx.mutable_data()});
  }

 private:
  // h before, u, c, the gradient of h: those before the functions of c and u.
  const Program* const before_ = WriteProgram(kType, 4, [](const std::vector<FormulaValue>& in) {
    const FormulaValue &h = in[0], &u = in[1], &c = in[2], &dh = in[3];
    return std::vector<FormulaValue>{dh * (1.0 - u) * (1.0 - c * c), dh * (h - c) * u * (1.0 - u)};
  });
  // The gradient of r * h, h before, r: that before the function of r.
  const Program* const reset_ = WriteProgram(kType, 3, [](const std::vector<FormulaValue>& in) {
    return std::vector<FormulaValue>{in[0] * in[1] * in[2] * (1.0 - in[2])};
  });
  // The part of r and u, the gradient of r * h, r, that of h, u.
  const Program* const after_ = WriteProgram(kType, 5, [](const std::vector<FormulaValue>& in) {
    return std::vector<FormulaValue>{in[0] + in[1] * in[2] + in[3] * in[4]};
  });
  const Program* const sum_ = WriteProgram(
      kType, 2, [](const std::vector<FormulaValue>& in) { return std::vector<FormulaValue>{in[0] + in[1]}; });
};

}  // namespace

void RegisterGru(Registry& registry) {
  const auto entry = [&](const char* name) {
    Registry::Entry e = registry.Op(name);
    e.Types("T", {kType}).Requires(needs::MatMul("T")).Requires(needs::Copy("T"));
    for (Opcode op : {Opcode::kSigmoid, Opcode::kTanh, Opcode::kMul}) e.Requires(op);
    return e;
  };
  entry("GRUBlockCell").Kernel<GruKernel>();
  entry("GRUBlockCellGrad").Kernel<GruGradientKernel>();
}

}  // namespace xpu
