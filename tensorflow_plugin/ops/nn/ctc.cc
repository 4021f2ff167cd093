// Connectionist temporal classification: the loss of sequences of labels, and its gradient.
//
// The labels are in host memory and become small arrays of masks. A state of a sequence is a label or one of the blanks
// around each. All recursions are over [batch, states] arrays, one program per step in time, in logarithms:
//
//   alpha[t, s] = y[t, s] + log(sum of exp(alpha[t - 1, s - 2 .. s]))    of the ways to s at t, that at t included
//   beta[t, s]  = log(sum of exp(beta[t + 1, s .. s + 2] + y[t + 1, s .. s + 2]))    of those from there to the end
//
// where y are the logarithms of the states' probabilities. A step that is none adds minus infinity.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/steps.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// log(sum of exp(v)); minus infinity where all are. Below `lowest` differences would be NaN.
FormulaValue LogSumExp(const std::vector<FormulaValue>& v) {
  constexpr double kLowest = -1e30;
  FormulaValue most = v[0];
  for (size_t i = 1; i < v.size(); ++i) most = Maximum(most, v[i]);
  most = Maximum(most, kLowest);
  FormulaValue sum = Exp(v[0] - most);
  for (size_t i = 1; i < v.size(); ++i) sum = sum + Exp(v[i] - most);
  return Log(sum) + most;
}

// The programs, for one type.
struct Programs {
  const Program *start, *forward, *backward, *total, *occupation, *gradient;

  explicit Programs(DType type) {
    // y, start
    start = WriteProgram(type, 2, [](const auto& in) { return std::vector<FormulaValue>{in[0] + in[1]}; });
    // y, alpha of s, s - 1 and s - 2, and what steps to s from there add
    forward = WriteProgram(type, 7, [](const auto& in) {
      return std::vector<FormulaValue>{in[0] + LogSumExp({in[1] + in[4], in[2] + in[5], in[3] + in[6]})};
    });
    // y, beta + y of s, s + 1 and s + 2 a step later, what steps there add; 1 at the end, beta there. Also gives beta +
    // y.
    backward = WriteProgram(type, 9, [](const auto& in) {
      const FormulaValue sum = LogSumExp({in[1] + in[4], in[2] + in[5], in[3] + in[6]});
      const FormulaValue beta = Select(in[7] == 1.0, in[8], sum);
      return std::vector<FormulaValue>{beta, beta + in[0]};
    });
    // alpha + beta of the first two states at the start; 1 for sequences that count. Gives the loss.
    total = WriteProgram(type, 5, [](const auto& in) {
      const FormulaValue sum = LogSumExp({in[0] + in[1], in[2] + in[3]});
      return std::vector<FormulaValue>{Select(in[4] == 1.0, -sum, sum.Const(0))};
    });
    // alpha, beta, loss: how likely a state is at a time. A state that no path leads to has 0, as if the loss were
    // less.
    occupation = WriteProgram(
        type, 3, [](const auto& in) { return std::vector<FormulaValue>{Exp(in[0] + in[1] + Minimum(in[2], 1e30))}; });
    // The logarithm of a class's probability, how likely the labels make it, 1 where a sequence is.
    gradient = WriteProgram(type, 3, [](const auto& in) {
      return std::vector<FormulaValue>{Select(in[2] == 1.0, Exp(in[0]) - in[1], in[0].Const(0))};
    });
  }
};

std::string Join(const std::vector<int64_t>& values) {
  std::string s;
  for (int64_t v : values) s += (s.empty() ? "" : ",") + std::to_string(v);
  return s;
}

class CtcKernel : public OpKernel {
 public:
  // The blank is the first class or the last.
  CtcKernel(Construction& c, bool blank_first)
      : blank_first_(blank_first),
        collapse_(c.Attr<bool>("preprocess_collapse_repeated")),
        merge_(c.Attr<bool>("ctc_merge_repeated")),
        ignore_longer_(c.Attr<bool>("ignore_longer_outputs_than_inputs")),
        type_(blank_first ? DType::kFloat : c.Attr<DType>("T")),
        programs_(type_) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), lengths = ctx.input(3);
    std::vector<std::vector<int64_t>> labels;
    XPU_RETURN_IF_ERROR(ReadLabels(x, ctx.input(1), ctx.input(2), lengths, &labels));
    Problem p;
    XPU_RETURN_IF_ERROR(MakeProblem(x, labels, lengths.host<int32_t>(), &p));
    Tensor loss, gradient;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, lengths, &loss));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(1, x, &gradient));
    return Solve(ctx, p, x, loss, gradient);
  }

 private:
  // All that the labels say. Arrays of real numbers hold what a step adds, 0 or minus infinity, or 1 for yes.
  struct Problem {
    int64_t time = 0, batch = 0, classes = 0, states = 0;
    std::vector<int64_t> of_class;                  // [batch, states]: row b * classes + class
    std::vector<double> start, end;                 // [batch, states]
    std::vector<double> stay, from1, to1;           // [batch, states]: from the state, the one before, to the next
    std::vector<double> from2, to2;                 // [batch, states]: over a state
    std::vector<double> is_last, is_there, counts;  // [time, batch] twice, [batch]
  };

  Status ReadLabels(const Tensor& x, const Tensor& indices, const Tensor& values, const Tensor& lengths,
                    std::vector<std::vector<int64_t>>* labels) const {
    XPU_REQUIRE(x.rank() == 3, errors::InvalidArgument("inputs is not a 3-Tensor"));
    XPU_REQUIRE(lengths.IsVector(), errors::InvalidArgument("sequence_length is not a vector"));
    XPU_REQUIRE(indices.rank() == 2, errors::InvalidArgument("labels_indices is not a matrix"));
    XPU_REQUIRE(values.IsVector(), errors::InvalidArgument("labels_values is not a vector"));
    const int64_t time = x.dim(0), batch = x.dim(1);
    XPU_REQUIRE(time > 0, errors::InvalidArgument("Max time or first dimension of input cannot be 0."));
    XPU_REQUIRE(batch == lengths.dim(0),
                errors::InvalidArgument("len(sequence_length) != batch_size.  len(sequence_length):  ", lengths.dim(0),
                                        " batch_size: ", batch));
    XPU_REQUIRE(indices.dim(0) == values.dim(0),
                errors::InvalidArgument("labels_indices and labels_values must contain the same number of rows, but "
                                        "saw shapes: ",
                                        indices.ShapeString(), " vs. ", values.ShapeString()));
    XPU_REQUIRE(batch != 0, errors::InvalidArgument("batch_size must not be 0"));
    XPU_REQUIRE(x.dim(2) > 0, errors::InvalidArgument("num_classes must not be 0"));
    XPU_REQUIRE(indices.dim(1) == 2,
                errors::InvalidArgument("labels_indices must have 2 columns, but has shape ", indices.ShapeString()));
    const auto* at = indices.host<int64_t>();
    const auto* label = values.host<int32_t>();
    const int64_t count = indices.dim(0);
    int64_t longest = 0;
    for (int64_t i = 0; i < count; ++i) longest = std::max(longest, at[2 * i + 1] + 1);
    labels->resize(batch);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t b = at[2 * i], j = at[2 * i + 1];
      const std::string invalid =
          errors::Concat("label SparseTensor is not valid: indices[", i, "] = [", b, ",", j, "] is ");
      XPU_REQUIRE(b >= 0 && b < batch && j >= 0,
                  errors::InvalidArgument(invalid, "out of bounds: need 0 <= index < [", batch, ",", longest, "]"));
      if (i > 0) {
        const int64_t before_b = at[2 * i - 2], before_j = at[2 * i - 1];
        XPU_REQUIRE(b != before_b || j != before_j, errors::InvalidArgument(invalid, "repeated"));
        XPU_REQUIRE(b > before_b || (b == before_b && j > before_j),
                    errors::InvalidArgument(invalid, "out of order. Many sparse ops require sorted indices."));
      }
      (*labels)[b].push_back(label[i]);
    }
    const auto* length = lengths.host<int32_t>();
    for (int64_t b = 0; b < batch; ++b) {
      XPU_REQUIRE(length[b] <= time, errors::InvalidArgument("sequence_length(", b, ") <= ", time));
    }
    for (int64_t b = 0; b < batch; ++b) {
      XPU_REQUIRE(length[b] >= 0, errors::InvalidArgument("seq_len(", b, ") < 0"));
    }
    return OkStatus();
  }

  // The labels of one sequence that count: the last class ends them where it is the blank.
  Status Clean(const std::vector<int64_t>& label, int64_t b, int64_t classes, std::vector<int64_t>* clean) const {
    XPU_REQUIRE(!label.empty(), errors::InvalidArgument("Labels length is zero in batch ", b));
    const int64_t most = blank_first_ ? classes : classes - 1;
    bool finished = false;
    for (size_t i = 0; i < label.size(); ++i) {
      if (i > 0 && collapse_ && label[i] == label[i - 1]) continue;
      if (label[i] >= most) {
        finished = true;
        continue;
      }
      XPU_REQUIRE(!finished,
                  errors::InvalidArgument("Saw a non-null label (index >= num_classes - 1) following a null label, "
                                          "batch: ",
                                          b, " num_classes: ", classes, " labels: ", Join(label),
                                          " labels seen so far: ", Join(*clean)));
      clean->push_back(label[i]);
    }
    for (int64_t l : *clean) {
      XPU_REQUIRE(l >= 0, errors::InvalidArgument("All labels must be nonnegative integers, batch: ", b,
                                                  " labels: ", Join(*clean)));
    }
    return OkStatus();
  }

  Status MakeProblem(const Tensor& x, const std::vector<std::vector<int64_t>>& labels, const int32_t* lengths,
                     Problem* p) const {
    p->time = x.dim(0), p->batch = x.dim(1), p->classes = x.dim(2);
    std::vector<std::vector<int64_t>> clean(p->batch);
    size_t longest = 1;
    for (int64_t b = 0; b < p->batch; ++b) {
      XPU_RETURN_IF_ERROR(Clean(labels[b], b, p->classes, &clean[b]));
      const int64_t required = static_cast<int64_t>(labels[b].size());
      XPU_REQUIRE(ignore_longer_ || required <= lengths[b],
                  errors::InvalidArgument("Not enough time for target transition sequence (required: ", required,
                                          ", available: ", lengths[b], ")", b,
                                          "You can turn this error into a warning by using the flag "
                                          "ignore_longer_outputs_than_inputs"));
      longest = std::max(longest, clean[b].size());
    }
    p->states = 2 * static_cast<int64_t>(longest) + 1;
    const size_t all = p->batch * p->states;
    p->of_class.resize(all);
    for (auto* mask : {&p->start, &p->end, &p->stay, &p->from1, &p->to1, &p->from2, &p->to2}) {
      mask->assign(all, kNever);
    }
    p->is_last.assign(p->time * p->batch, 0);
    p->is_there.assign(p->time * p->batch, 0);
    p->counts.assign(p->batch, 0);
    const int64_t blank = blank_first_ ? 0 : p->classes - 1;
    for (int64_t b = 0; b < p->batch; ++b) {
      const int64_t own = 2 * static_cast<int64_t>(clean[b].size()) + 1;
      const auto class_of = [&](int64_t s) { return s % 2 == 1 && s < own ? clean[b][s / 2] : blank; };
      for (int64_t s = 0; s < p->states; ++s) {
        const int64_t i = b * p->states + s;
        p->of_class[i] = b * p->classes + class_of(s);
        if (s >= own) continue;
        if (s < 2) p->start[i] = 0;
        if (s >= own - 2) p->end[i] = 0;
        // Without merging, every step at a label is a label of its own.
        if (merge_ || class_of(s) == blank) p->stay[i] = 0;
        if (s >= 1) p->from1[i] = p->to1[i - 1] = 0;
        const bool over = s >= 2 && class_of(s) != blank && !(merge_ && class_of(s) == class_of(s - 2));
        if (over) p->from2[i] = p->to2[i - 2] = 0;
      }
      const int64_t length = lengths[b];
      const bool counts = length > 0 && !(ignore_longer_ && static_cast<int64_t>(labels[b].size()) > length);
      if (!counts) continue;
      p->counts[b] = 1;
      p->is_last[(length - 1) * p->batch + b] = 1;
      for (int64_t t = 0; t < length; ++t) p->is_there[t * p->batch + b] = 1;
    }
    return OkStatus();
  }

  Status UploadReals(Context& ctx, const std::vector<double>& values, Temporary* out) const {
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {static_cast<int64_t>(values.size())}, out));
    if (type_ == DType::kDouble) return ctx.CopyFromHost(out->data(), values.data(), values.size() * sizeof(double));
    const std::vector<float> floats(values.begin(), values.end());
    return ctx.CopyFromHost(out->data(), floats.data(), floats.size() * sizeof(float));
  }

  char* At(void* p, int64_t elements) const { return Beyond(p, elements, type_); }

  Status Solve(Context& ctx, const Problem& p, const Tensor& x, const Tensor& loss, const Tensor& gradient) const {
    const int64_t row = p.batch * p.states;  // of all states at one time
    const Dims each = {p.batch, p.states}, per_sequence = {1, 0};
    Temporary of_class, start, end, stay, from1, to1, from2, to2, is_last, is_there, counts;
    XPU_RETURN_IF_ERROR(Upload(ctx, p.of_class, DType::kInt64, &of_class));
    const std::pair<const std::vector<double>*, Temporary*> masks[] = {
        {&p.start, &start}, {&p.end, &end}, {&p.stay, &stay},       {&p.from1, &from1},       {&p.to1, &to1},
        {&p.from2, &from2}, {&p.to2, &to2}, {&p.is_last, &is_last}, {&p.is_there, &is_there}, {&p.counts, &counts}};
    for (const auto& [values, array] : masks) XPU_RETURN_IF_ERROR(UploadReals(ctx, *values, array));

    // The logarithms of probabilities: of classes, and of states.
    Temporary classes, y;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, x.dims(), &classes));
    SoftmaxDesc softmax;
    softmax.kind = SoftmaxKind::kLogSoftmax;
    softmax.type = type_;
    softmax.rows = p.time * p.batch;
    softmax.cols = softmax.logits_row_stride = p.classes;
    XPU_RETURN_IF_ERROR(ctx.Launch(softmax, {x.data()}, {classes.data()}));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {p.time, p.batch, p.states}, &y));
    GatherDesc gather;
    gather.element_size = SizeOf(type_);
    gather.outer = p.time;
    gather.dims = {p.batch * p.classes};
    gather.num_indices = row;
    XPU_RETURN_IF_ERROR(ctx.Launch(gather, {classes.data(), of_class.data()}, {y.data()}));

    // Steps from before the first state, or to beyond the last, read what lies there and make nothing of it: numbers.
    Temporary alphas, betas, later[2];
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {2 + p.time * row}, &alphas));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {p.time * row}, &betas));
    XPU_RETURN_IF_ERROR(ctx.Zero(alphas.data(), 2 * SizeOf(type_)));
    for (Temporary& array : later) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {row + 2}, &array));
      XPU_RETURN_IF_ERROR(ctx.Zero(array.data(), array.tensor().bytes()));
    }
    const auto alpha = [&](int64_t t) { return At(alphas.data(), 2 + t * row); };
    XPU_RETURN_IF_ERROR(RunOver(ctx, programs_.start, each, {{y.data()}, {start.data()}}, {alpha(0)}));
    for (int64_t t = 1; t < p.time; ++t) {
      char* before = alpha(t - 1);
      XPU_RETURN_IF_ERROR(RunOver(ctx, programs_.forward, each,
                                  {{At(y.data(), t * row)},
                                   {before},
                                   {At(before, -1)},
                                   {At(before, -2)},
                                   {stay.data()},
                                   {from1.data()},
                                   {from2.data()}},
                                  {alpha(t)}));
    }
    for (int64_t t = p.time - 1; t >= 0; --t) {
      void* after = later[(t + 1) % 2].data();
      XPU_RETURN_IF_ERROR(RunOver(ctx, programs_.backward, each,
                                  {{At(y.data(), t * row)},
                                   {after},
                                   {At(after, 1)},
                                   {At(after, 2)},
                                   {stay.data()},
                                   {to1.data()},
                                   {to2.data()},
                                   {At(is_last.data(), t * p.batch), per_sequence},
                                   {end.data()}},
                                  {At(betas.data(), t * row), later[t % 2].data()}));
    }

    const Dims first = {p.states};
    XPU_RETURN_IF_ERROR(RunOver(ctx, programs_.total, {p.batch},
                                {{alpha(0), first},
                                 {betas.data(), first},
                                 {At(alpha(0), 1), first},
                                 {At(betas.data(), 1), first},
                                 {counts.data()}},
                                {loss.mutable_data()}));

    // How likely each class is at each time, as [batch, class, time]: the sum over its states.
    Temporary of_states, of_classes;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {row, p.time}, &of_states));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {p.batch * p.classes, p.time}, &of_classes));
    XPU_RETURN_IF_ERROR(
        RunOver(ctx, programs_.occupation, {p.batch, p.states, p.time},
                {{alpha(0), {p.states, 1, row}}, {betas.data(), {p.states, 1, row}}, {loss.data(), {1, 0, 0}}},
                {of_states.data()}));
    XPU_RETURN_IF_ERROR(ctx.Zero(of_classes.data(), of_classes.tensor().bytes()));
    ScatterDesc scatter;
    scatter.kind = ScatterKind::kAdd;
    scatter.type = type_;
    scatter.num_indices = row;
    scatter.inner = p.time;
    scatter.dims = {p.batch * p.classes};
    XPU_RETURN_IF_ERROR(ctx.Launch(scatter, {of_class.data(), of_states.data()}, {of_classes.data()}));
    return RunOver(
        ctx, programs_.gradient, x.dims(),
        {{classes.data()}, {of_classes.data(), {1, p.classes * p.time, p.time}}, {is_there.data(), {p.batch, 1, 0}}},
        {gradient.mutable_data()});
  }

  const bool blank_first_, collapse_, merge_, ignore_longer_;
  const DType type_;
  const Programs programs_;
};

Need Solves(needs::TypeRef type) {
  return [=](Needs& n) {
    const DType t = type.In(n);
    const Programs p(t);
    for (const Program* program : {p.start, p.forward, p.backward, p.total, p.occupation, p.gradient}) {
      n.AskProgram(program, "a program of CTC did not build");
    }
    needs::Softmax(SoftmaxKind::kLogSoftmax, t)(n);
    needs::Gather(t, DType::kInt64)(n);
    needs::Scatter(ScatterKind::kAdd, t, DType::kInt64)(n);
  };
}

}  // namespace

void RegisterCtc(Registry& registry) {
  const std::vector<const char*> labels = {"labels_indices", "labels_values", "sequence_length"};
  registry.Op("CTCLoss")
      .Types("T", {DType::kFloat, DType::kDouble})
      .Host(labels)
      .Traits(OpTrait::kReadsNewNumbers)
      .Requires(Solves("T"))
      .Kernel<CtcKernel>(false);
  registry.Op("CTCLossV2")
      .Host(labels)
      .Traits(OpTrait::kReadsNewNumbers)
      .Requires(Solves(DType::kFloat))
      .Kernel<CtcKernel>(true);
}

}  // namespace xpu
