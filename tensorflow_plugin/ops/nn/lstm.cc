// LSTM cells and sequences of them, with their gradients, as one op each: products of matrices and one program per
// step.
//
// The inputs' part of the gates is one product over all steps of a sequence. So are the gradients of the weights and of
// the inputs: each step has only the product with the state before.
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/steps.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

enum class GateOrder : uint8_t { kInputCell, kInputForget };  // i, c, f, o or i, f, c, o

struct LstmOp {
  const char* name;
  GateOrder order;
  bool sequence, gradient;
};

constexpr LstmOp kForward[] = {{"LSTMBlockCell", GateOrder::kInputCell, false, false},
                               {"BlockLSTM", GateOrder::kInputCell, true, false},
                               {"BlockLSTMV2", GateOrder::kInputForget, true, false}};
constexpr LstmOp kBackward[] = {{"LSTMBlockCellGrad", GateOrder::kInputCell, false, true},
                                {"BlockLSTMGrad", GateOrder::kInputCell, true, true},
                                {"BlockLSTMGradV2", GateOrder::kInputForget, true, true}};

class LstmBase : public OpKernel {
 protected:
  LstmBase(Construction& c, const LstmOp* op)
      : op_(*op), type_(c.Attr<DType>("T")), peephole_(c.Attr<bool>("use_peephole")) {}

  // Where a gate's columns begin, of cells.
  int input_gate() const { return 0; }
  int cell_gate() const { return op_.order == GateOrder::kInputCell ? 1 : 2; }
  int forget_gate() const { return op_.order == GateOrder::kInputCell ? 2 : 1; }
  int output_gate() const { return 3; }

  struct Sizes {
    int64_t time = 1, steps = 1, batch = 0, inputs = 0, cells = 0;
    int64_t state() const { return batch * cells; }
  };

  Status CheckRank(const Tensor& t, const char* what, int rank) const {
    if (t.rank() == rank) return OkStatus();
    if (op_.sequence && !op_.gradient) return errors::InvalidArgument(what, " must be ", rank, "D");
    return errors::InvalidArgument(what, op_.sequence ? "" : "_tensor", " must be rank ", rank, " but is rank ",
                                   t.rank());
  }
  static Status CheckDim(const Tensor& t, int i, const std::string& what, int64_t expected, const std::string& named) {
    XPU_REQUIRE(t.dim(i) == expected,
                errors::InvalidArgument(what, "(", i, ") != ", named, ": ", t.dim(i), " vs. ", expected));
    return OkStatus();
  }

  // The inputs from x on, which all of these ops have: x, cs_prev, h_prev, w, wci, wcf, wco, b.
  Status ReadSizes(Context& ctx, Sizes* sizes) const {
    const int first = op_.sequence ? 1 : 0;
    const char* const names[] = {"x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"};
    const int ranks[] = {op_.sequence ? 3 : 2, 2, 2, 2, 1, 1, 1, 1};
    Tensor in[8];
    for (int i = 0; i < 8; ++i) {
      in[i] = ctx.input(first + i);
      XPU_RETURN_IF_ERROR(CheckRank(in[i], names[i], ranks[i]));
    }
    const Tensor& x = in[0];
    sizes->batch = x.dim(x.rank() - 2);
    sizes->inputs = x.dim(x.rank() - 1);
    sizes->cells = in[1].dim(1);
    XPU_RETURN_IF_ERROR(CheckDim(in[1], 0, "cs_prev.dims", sizes->batch, "batch_size"));
    XPU_RETURN_IF_ERROR(CheckDim(in[2], 0, "h_prev.dims", sizes->batch, "batch_size"));
    XPU_RETURN_IF_ERROR(CheckDim(in[2], 1, "h_prev.dims", sizes->cells, "cell_size"));
    XPU_RETURN_IF_ERROR(CheckDim(in[3], 0, "w.dim_size", sizes->inputs + sizes->cells, "input_size + cell_size"));
    XPU_RETURN_IF_ERROR(CheckDim(in[3], 1, "w.dim_size", sizes->cells * 4, "cell_size * 4"));
    XPU_RETURN_IF_ERROR(CheckDim(in[7], 0, "b.dim_size", sizes->cells * 4, "cell_size * 4"));
    if (peephole_ || op_.sequence) {
      for (int i = 4; i < 7; ++i) {
        XPU_RETURN_IF_ERROR(CheckDim(in[i], 0, std::string(names[i]) + ".dim_size", sizes->cells, "cell_size"));
      }
    }
    if (!op_.sequence) {
      XPU_REQUIRE(sizes->state() > 0, errors::InvalidArgument("cs_prev_tensor is empty, has shape: (", sizes->batch,
                                                              ",", sizes->cells, ")."));
      return OkStatus();
    }
    const Tensor steps = ctx.input(0);
    XPU_REQUIRE(steps.IsScalar(),
                errors::InvalidArgument("`seq_len_max_tensor` must be rank 0 but is rank ", steps.rank()));
    sizes->time = x.dim(0);
    sizes->steps = *steps.host<int64_t>();
    XPU_REQUIRE(sizes->steps >= 0 && sizes->steps <= sizes->time,
                errors::InvalidArgument("seq_len_max must be between 0 and ", sizes->time, " but is ", sizes->steps));
    return OkStatus();
  }

  char* At(const void* p, int64_t elements) const { return Beyond(p, elements, type_); }
  // Gate `gate` of arrays [batch, 4 * cells] and [4 * cells].
  ProgramInput Gate(const void* gates, int gate, const Sizes& s) const {
    return {At(gates, gate * s.cells), {4 * s.cells, 1}};
  }
  ProgramInput Bias(const void* b, int gate, const Sizes& s) const { return {At(b, gate * s.cells), {0, 1}}; }

  Status Multiply(Context& ctx, int64_t m, int64_t n, int64_t k, const void* a, bool transpose_a, const void* b,
                  bool transpose_b, void* c) const {
    return xpu::Multiply(ctx, type_, m, n, k, a, transpose_a, b, transpose_b, c);
  }

  const LstmOp op_;
  const DType type_;
  const bool peephole_;
};

class LstmKernel : public LstmBase {
 public:
  LstmKernel(Construction& c, const LstmOp* op) : LstmBase(c, op) {
    const double bias = c.HasAttr("forget_bias") ? c.Attr<float>("forget_bias") : 0.0;
    const double clip = c.Attr<float>("cell_clip");
    const bool peephole = peephole_;
    // For each of i, c, f, o: the inputs' part, the state's, the bias; the cell's state; the peepholes of i, f, o.
    step_ = WriteProgram(type_, peephole ? 16 : 13, [=](const std::vector<FormulaValue>& in) {
      const auto gate = [&](int g) { return in[3 * g] + in[3 * g + 1] + in[3 * g + 2]; };
      const FormulaValue& before = in[12];
      FormulaValue i = gate(0), f = gate(2) + bias, o = gate(3);
      const FormulaValue ci = Tanh(gate(1));
      if (peephole) i = i + before * in[13], f = f + before * in[14];
      i = Sigmoid(i), f = Sigmoid(f);
      FormulaValue cs = ci * i + before * f;
      if (clip > 0) cs = Minimum(Maximum(cs, -clip), clip);
      if (peephole) o = o + cs * in[15];
      o = Sigmoid(o);
      const FormulaValue co = Tanh(cs);
      return std::vector<FormulaValue>{i, cs, f, o, ci, co, o * co};
    });
  }

  Status Compute(Context& ctx) override {
    Sizes s;
    XPU_RETURN_IF_ERROR(ReadSizes(ctx, &s));
    const int first = op_.sequence ? 1 : 0;
    const Tensor x = ctx.input(first), w = ctx.input(first + 3), b = ctx.input(first + 7);
    Dims shape = {s.batch, s.cells};
    if (op_.sequence) shape = {s.time, s.batch, s.cells};
    Tensor out[7];
    for (int i = 0; i < 7; ++i) XPU_RETURN_IF_ERROR(ctx.AllocateOutput(i, shape, &out[i]));
    if (out[0].num_elements() == 0) return OkStatus();

    Temporary of_x, of_h;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {s.steps * s.batch, 4 * s.cells}, &of_x));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {s.batch, 4 * s.cells}, &of_h));
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, s.steps * s.batch, 4 * s.cells, s.inputs, x.data(), false, w.data(), false, of_x.data()));
    const void *cs = ctx.input(first + 1).data(), *h = ctx.input(first + 2).data();
    const int order[] = {input_gate(), cell_gate(), forget_gate(), output_gate()};
    for (int64_t t = 0; t < s.steps; ++t) {
      XPU_RETURN_IF_ERROR(Multiply(ctx, s.batch, 4 * s.cells, s.cells, h, false, At(w.data(), s.inputs * 4 * s.cells),
                                   false, of_h.data()));
      std::vector<ProgramInput> in;
      for (int gate : order) {
        in.push_back(Gate(At(of_x.data(), t * 4 * s.state()), gate, s));
        in.push_back(Gate(of_h.data(), gate, s));
        in.push_back(Bias(b.data(), gate, s));
      }
      in.push_back({cs, {s.cells, 1}});
      for (int i = 0; peephole_ && i < 3; ++i) in.push_back({ctx.input(first + 4 + i).data(), {0, 1}});
      std::vector<void*> results;
      for (const Tensor& tensor : out) results.push_back(At(tensor.data(), t * s.state()));
      XPU_RETURN_IF_ERROR(RunOver(ctx, step_, {s.batch, s.cells}, in, results));
      cs = results[1], h = results[6];
    }
    // The steps after the end.
    const int64_t rest = (s.time - s.steps) * s.state();
    for (int i = 0; rest > 0 && i < 7; ++i) {
      XPU_RETURN_IF_ERROR(ctx.Zero(At(out[i].data(), s.steps * s.state()), rest * SizeOf(type_)));
    }
    return OkStatus();
  }

  static Need Needs() {
    return [](xpu::Needs& n) {
      const DType type = n.type("T");
      needs::MatMul(type)(n);
      for (Opcode op : {Opcode::kSigmoid, Opcode::kTanh, Opcode::kMul, Opcode::kMinimum})
        needs::Op(op, ComputedIn(type))(n);
      needs::Reduce(ReduceKind::kSum, type)(n);
      needs::Copy(type)(n);
    };
  }

 private:
  const Program* step_ = nullptr;
};

class LstmGradientKernel : public LstmBase {
 public:
  LstmGradientKernel(Construction& c, const LstmOp* op) : LstmBase(c, op) {
    const bool peephole = peephole_, sum = op->sequence;
    // i, cs before, f, o, ci, co, the gradients of cs and h; of a sequence those that later steps give; the peepholes.
    // Gives di, dci, df, do and the gradient of cs before.
    const int given = sum ? 10 : 8;
    step_ = WriteProgram(type_, given + (peephole ? 3 : 0), [=](const std::vector<FormulaValue>& in) {
      const FormulaValue &i = in[0], &before = in[1], &f = in[2], &o = in[3], &ci = in[4], &co = in[5];
      const FormulaValue dcs_given = sum ? in[6] + in[8] : in[6], dh = sum ? in[7] + in[9] : in[7];
      const FormulaValue do_ = o * (1.0 - o) * dh * co;
      FormulaValue dcs = (1.0 - co * co) * dh * o + dcs_given;
      if (peephole) dcs = dcs + do_ * in[given + 2];
      const FormulaValue dci = (1.0 - ci * ci) * dcs * i;
      const FormulaValue df = f * (1.0 - f) * dcs * before;
      const FormulaValue di = i * (1.0 - i) * dcs * ci;
      FormulaValue dbefore = dcs * f;
      if (peephole) dbefore = dbefore + di * in[given] + df * in[given + 1];
      return std::vector<FormulaValue>{di, dci, df, do_, dbefore};
    });
    product_ = WriteProgram(
        type_, 2, [](const std::vector<FormulaValue>& in) { return std::vector<FormulaValue>{in[0] * in[1]}; });
  }

  Status Compute(Context& ctx) override { return op_.sequence ? Sequence(ctx) : Cell(ctx); }

 private:
  // One step back. `dgates` [batch, 4 * cells]; what `later` holds of cs and h is added, in a sequence.
  Status Step(Context& ctx, const Sizes& s, const std::vector<const void*>& given, const Tensor* peepholes,
              void* gates[4], void* dgates, void* dcs_before) const {
    std::vector<ProgramInput> in;
    for (const void* address : given) in.push_back({address, {s.cells, 1}});
    for (int i = 0; peephole_ && i < 3; ++i) in.push_back({peepholes[i].data(), {0, 1}});
    XPU_RETURN_IF_ERROR(
        RunOver(ctx, step_, {s.batch, s.cells}, in, {gates[0], gates[1], gates[2], gates[3], dcs_before}));
    const int order[] = {input_gate(), cell_gate(), forget_gate(), output_gate()};
    for (int g = 0; g < 4; ++g) {
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(type_), {s.batch, s.cells}, gates[g], DenseView({s.batch, s.cells}),
                                   At(dgates, order[g] * s.cells), {Dims{4 * s.cells, 1}, 0}));
    }
    return OkStatus();
  }

  // out = the sum over all rows of gate `gate` times `other`, [rows, cells].
  Status SumOfProducts(Context& ctx, int64_t rows, const Sizes& s, const void* dgates, int gate, const void* other,
                       void* out) const {
    ReduceDesc reduce;
    reduce.source.program = product_;
    reduce.source.shape = {rows, s.cells};
    reduce.source.in_strides[0] = {4 * s.cells, 1};
    reduce.source.in_strides[1] = {s.cells, 1};
    reduce.axes = 1;
    return ctx.Launch(reduce, {At(dgates, gate * s.cells), other}, {out});
  }

  Status Peepholes(Context& ctx, int64_t rows, const Sizes& s, const void* dgates, const void* before, const void* cs,
                   const Tensor (&out)[3]) const {
    for (const Tensor& t : out) {
      if (!peephole_ || rows == 0) XPU_RETURN_IF_ERROR(ctx.Zero(t.mutable_data(), t.bytes()));
    }
    if (!peephole_ || rows == 0) return OkStatus();
    XPU_RETURN_IF_ERROR(SumOfProducts(ctx, rows, s, dgates, input_gate(), before, out[0].mutable_data()));
    XPU_RETURN_IF_ERROR(SumOfProducts(ctx, rows, s, dgates, forget_gate(), before, out[1].mutable_data()));
    return SumOfProducts(ctx, rows, s, dgates, output_gate(), cs, out[2].mutable_data());
  }

  // Fails unless inputs from `first` on have the shape of a state, over time or not.
  static Status CheckStates(Context& ctx, int first, int count, const Dims& shape) {
    const char* const names[] = {"i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"};
    for (int i = 0; i < count; ++i) {
      const Tensor t = ctx.input(first + i);
      const char* name = names[count == 8 && i >= 6 ? i + 1 : i];
      XPU_REQUIRE(t.rank() == shape.rank(),
                  errors::InvalidArgument(name, " must be rank ", shape.rank(), ". Received: ", t.rank()));
      for (int d = 0; d < shape.rank(); ++d) {
        XPU_REQUIRE(t.dim(d) == shape[d], errors::InvalidArgument(name, ".dim_size(", d, ") != ",
                                                                  d == shape.rank() - 1   ? "cell_size"
                                                                  : d == shape.rank() - 2 ? "batch_size"
                                                                                          : "time",
                                                                  ": ", t.dim(d), " vs. ", shape[d]));
      }
    }
    return OkStatus();
  }

  Status Cell(Context& ctx) const {
    Sizes s;
    XPU_RETURN_IF_ERROR(ReadSizes(ctx, &s));
    const Dims shape = {s.batch, s.cells};
    XPU_RETURN_IF_ERROR(CheckStates(ctx, 8, 8, shape));
    const Tensor peepholes[] = {ctx.input(4), ctx.input(5), ctx.input(6)};
    Tensor dcs_before, dgates, dpeepholes[3];
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &dcs_before));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {s.batch, 4 * s.cells}, &dgates));
    for (int i = 0; i < 3; ++i) XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(2 + i, peepholes[i], &dpeepholes[i]));
    Temporary gates;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {4, s.batch, s.cells}, &gates));
    void* each[4];
    for (int g = 0; g < 4; ++g) each[g] = At(gates.data(), g * s.state());
    const auto in = [&](int i) { return ctx.input(i).data(); };
    XPU_RETURN_IF_ERROR(Step(ctx, s, {in(8), in(1), in(10), in(11), in(12), in(13), in(14), in(15)}, peepholes, each,
                             dgates.mutable_data(), dcs_before.mutable_data()));
    return Peepholes(ctx, s.batch, s, dgates.data(), in(1), in(9), dpeepholes);
  }

  Status Sequence(Context& ctx) const {
    Sizes s;
    XPU_RETURN_IF_ERROR(ReadSizes(ctx, &s));
    XPU_RETURN_IF_ERROR(CheckStates(ctx, 9, 9, {s.time, s.batch, s.cells}));
    const Tensor x = ctx.input(1), cs_before = ctx.input(2), h_before = ctx.input(3), w = ctx.input(4),
                 b = ctx.input(8), cs = ctx.input(10), h = ctx.input(15);
    const Tensor peepholes[] = {ctx.input(5), ctx.input(6), ctx.input(7)};
    Tensor dx, dcs, dh, dw, db, dpeepholes[3];
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &dx));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(1, cs_before, &dcs));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(2, h_before, &dh));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(3, w, &dw));
    for (int i = 0; i < 3; ++i) XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(4 + i, peepholes[i], &dpeepholes[i]));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(7, b, &db));
    const int64_t rows = s.steps * s.batch, columns = 4 * s.cells;
    for (const Tensor* t : {&dcs, &dh}) XPU_RETURN_IF_ERROR(ctx.Zero(t->mutable_data(), t->bytes()));
    if (rows * s.cells == 0) {
      for (const Tensor* t : {&dx, &dw, &db}) XPU_RETURN_IF_ERROR(ctx.Zero(t->mutable_data(), t->bytes()));
      return Peepholes(ctx, 0, s, nullptr, nullptr, nullptr, dpeepholes);
    }
    // The states before each step: the given one, then those of the steps.
    Temporary gates, dgates, all_cs, all_h, dcs_now;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {4, s.batch, s.cells}, &gates));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {rows, columns}, &dgates));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {s.steps, s.batch, s.cells}, &all_cs));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {s.steps, s.batch, s.cells}, &all_h));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {s.batch, s.cells}, &dcs_now));
    const int64_t bytes = s.state() * static_cast<int64_t>(SizeOf(type_));
    for (const auto& [all, first, then] : {std::tuple{&all_cs, &cs_before, &cs}, std::tuple{&all_h, &h_before, &h}}) {
      XPU_RETURN_IF_ERROR(ctx.Copy(all->data(), first->data(), bytes));
      if (s.steps > 1) XPU_RETURN_IF_ERROR(ctx.Copy(At(all->data(), s.state()), then->data(), (s.steps - 1) * bytes));
    }
    void* each[4];
    for (int g = 0; g < 4; ++g) each[g] = At(gates.data(), g * s.state());
    const void* of_state = At(w.data(), s.inputs * columns);
    for (int64_t t = s.steps - 1; t >= 0; --t) {
      const auto in = [&](int i) -> const void* { return At(ctx.input(i).data(), t * s.state()); };
      void* dgates_now = At(dgates.data(), t * s.batch * columns);
      XPU_RETURN_IF_ERROR(Step(ctx, s,
                               {in(9), At(all_cs.data(), t * s.state()), in(11), in(12), in(13), in(14), in(16), in(17),
                                dcs.data(), dh.data()},
                               peepholes, each, dgates_now, dcs_now.data()));
      XPU_RETURN_IF_ERROR(ctx.Copy(dcs.mutable_data(), dcs_now.data(), bytes));
      XPU_RETURN_IF_ERROR(
          Multiply(ctx, s.batch, s.cells, columns, dgates_now, false, of_state, true, dh.mutable_data()));
    }
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, rows, s.inputs, columns, dgates.data(), false, w.data(), true, dx.mutable_data()));
    const int64_t rest = (s.time - s.steps) * s.batch * s.inputs;
    if (rest > 0) {
      XPU_RETURN_IF_ERROR(ctx.Zero(At(dx.data(), rows * s.inputs), rest * SizeOf(type_)));
    }
    XPU_RETURN_IF_ERROR(
        Multiply(ctx, s.inputs, columns, rows, x.data(), true, dgates.data(), false, dw.mutable_data()));
    XPU_RETURN_IF_ERROR(Multiply(ctx, s.cells, columns, rows, all_h.data(), true, dgates.data(), false,
                                 At(dw.data(), s.inputs * columns)));
    ReduceDesc sum;
    sum.source.program = IdentityProgram(type_);
    sum.source.shape = {rows, columns};
    sum.source.in_strides[0] = {columns, 1};
    sum.axes = 1;
    XPU_RETURN_IF_ERROR(ctx.Launch(sum, {dgates.data()}, {db.mutable_data()}));
    return Peepholes(ctx, rows, s, dgates.data(), all_cs.data(), cs.data(), dpeepholes);
  }

  const Program *step_ = nullptr, *product_ = nullptr;
};

}  // namespace

void RegisterLstm(Registry& registry) {
  const TypeList types = {DType::kHalf, DType::kFloat};
  const auto entry = [&](const LstmOp& op) {
    Registry::Entry e = registry.Op(op.name);
    e.Types("T", types).Requires(LstmKernel::Needs());
    if (op.sequence) e.Host({"seq_len_max"});
    return e;
  };
  for (const LstmOp& op : kForward) entry(op).Kernel<LstmKernel>(&op);
  for (const LstmOp& op : kBackward) entry(op).Kernel<LstmGradientKernel>(&op);
}

}  // namespace xpu
