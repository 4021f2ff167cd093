#include "tensorflow_plugin/ops/linalg/einsum_plan.h"

#include <algorithm>
#include <utility>

namespace xpu::einsum {
namespace {

Status ParseSubscripts(const std::string& term, const std::string& equation, Subscripts* out) {
  bool ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.compare(i, 3, "...") == 0) {
      XPU_REQUIRE(!ellipsis, errors::InvalidArgument("Expecting at most one ellipsis in each term of the equation '",
                                                     equation, "', but '", term, "' has more"));
      ellipsis = true;
      out->push_back(kEllipsis);
      i += 2;
      continue;
    }
    XPU_REQUIRE(term[i] != '.' && term[i] != ' ',
                errors::InvalidArgument("Unexpected character '", term[i], "' in the equation '", equation, "'"));
    out->push_back(static_cast<unsigned char>(term[i]));
  }
  return OkStatus();
}

// The labels of `subscripts` on a tensor of this rank, ellipsis expanded.
Status Expand(const Subscripts& subscripts, int rank, int input, Subscripts* labels) {
  const bool ellipsis = std::find(subscripts.begin(), subscripts.end(), kEllipsis) != subscripts.end();
  const int named = static_cast<int>(subscripts.size()) - ellipsis;
  XPU_REQUIRE(ellipsis ? rank >= named : rank == named,
              errors::InvalidArgument("Expected input ", input, " to have rank ", ellipsis ? "at least " : "", named,
                                      " but got: ", rank));
  labels->clear();
  for (int label : subscripts) {
    if (label != kEllipsis) {
      labels->push_back(label);
      continue;
    }
    for (int i = rank - named - 1; i >= 0; --i) labels->push_back(kEllipsis + i);
  }
  return OkStatus();
}

// `merged`, if `a` and `b` walk `axes` (outermost first) as one dimension, with its strides. A view may be null.
struct MergedAxis {
  int64_t extent = 1;
  int64_t stride[2] = {0, 0};
};
bool Merge(const std::vector<int>& labels, const View& a, const View* b, MergedAxis* run) {
  *run = MergedAxis();
  const View* views[] = {&a, b};
  for (size_t i = labels.size(); i-- > 0;) {
    for (int v = 0; v < 2 && views[v] != nullptr; ++v) {
      const int64_t stride = views[v]->Stride(labels[i]);
      if (run->extent == 1) {
        run->stride[v] = stride;
      } else if (stride != run->stride[v] * run->extent) {
        return false;
      }
    }
    run->extent *= a.Find(labels[i])->extent;
  }
  return true;
}

std::vector<int> ByStride(std::vector<int> labels, const View& view) {
  std::sort(labels.begin(), labels.end(), [&](int a, int b) { return view.Stride(a) > view.Stride(b); });
  return labels;
}

// Splits `labels` (free axes of `input`, in the output's order). The longest tail that both views walk as one goes to
// `run`; the rest becomes batch dimensions.
void InnerRun(const std::vector<int>& labels, const View& input, const View& output, MergedAxis* run,
              std::vector<int>* batch) {
  size_t first = labels.size();
  *run = MergedAxis();
  while (first > 0) {
    MergedAxis longer;
    const std::vector<int> tail(labels.begin() + first - 1, labels.end());
    if (!Merge(tail, input, &output, &longer)) break;
    *run = longer;
    --first;
  }
  batch->insert(batch->end(), labels.begin(), labels.begin() + first);
}

View Ordered(const View& extents, const std::vector<int>& a, const std::vector<int>& b, const std::vector<int>& c) {
  View view;
  for (const auto* group : {&a, &b, &c}) {
    for (int label : *group) view.Add(label, extents.Find(label)->extent, 0);
  }
  return Dense(view);
}

// Rows of fewer elements than this are not worth a product of their own: rather copy to larger ones.
constexpr int64_t kSmallRun = 16;

bool WorthPacking(const MergedAxis& run, int64_t all) { return run.extent < all && run.extent < kSmallRun; }

// A dense result needs no strides. Passes find more to do for a product without any.
void ForgetDenseStrides(MatMulDesc* d) {
  if (d->ldc != 0 && d->ldc != d->n) return;
  Dims dense = DenseStrides(d->batch);
  for (int i = 0; i < dense.rank(); ++i) dense[i] *= d->m * d->n;
  if (d->c_batch_strides != dense) return;
  d->c_batch_strides = Dims();
  d->ldc = 0;
}

}  // namespace

Status Parse(const std::string& text, Equation* equation) {
  const size_t arrow = text.find("->");
  XPU_REQUIRE(arrow != std::string::npos && text.find("->", arrow + 2) == std::string::npos,
              errors::InvalidArgument("Expecting exactly one '->' in einsum equation: ", text));
  const std::string left = text.substr(0, arrow);
  size_t begin = 0;
  while (true) {
    const size_t comma = left.find(',', begin);
    Subscripts term;
    XPU_RETURN_IF_ERROR(ParseSubscripts(
        left.substr(begin, comma == std::string::npos ? std::string::npos : comma - begin), text, &term));
    equation->inputs.push_back(std::move(term));
    if (comma == std::string::npos) break;
    begin = comma + 1;
  }
  XPU_REQUIRE(equation->inputs.size() <= 2, errors::InvalidArgument("Expecting 1 or 2 input subscripts in equation '",
                                                                    text, "' but got: ", equation->inputs.size()));
  XPU_RETURN_IF_ERROR(ParseSubscripts(text.substr(arrow + 2), text, &equation->output));
  for (int label : equation->output) {
    bool found = label == kEllipsis;
    for (const Subscripts& input : equation->inputs) {
      found = found || std::find(input.begin(), input.end(), label) != input.end();
    }
    XPU_REQUIRE(found, errors::InvalidArgument("Label '", static_cast<char>(label), "' of the output of equation '",
                                               text, "' is in none of its inputs"));
  }
  return OkStatus();
}

const Axis* View::Find(int label) const {
  for (const Axis& axis : *this) {
    if (axis.label == label) return &axis;
  }
  return nullptr;
}

int64_t View::Stride(int label) const {
  const Axis* axis = Find(label);
  return axis == nullptr ? 0 : axis->stride;
}

void View::Add(int label, int64_t extent, int64_t stride) {
  if (extent == 1) return;
  for (Axis& axis : axes_) {
    if (axis.label == label) {
      axis.stride += stride;
      return;
    }
  }
  axes_.push_back({label, extent, stride});
}

Dims View::Shape() const {
  Dims shape;
  for (const Axis& axis : *this) shape.push_back(axis.extent);
  return shape;
}

int64_t View::num_elements() const {
  int64_t n = 1;
  for (const Axis& axis : *this) n *= axis.extent;
  return n;
}

View Dense(const View& view) {
  View dense;
  int64_t stride = view.num_elements();
  for (const Axis& axis : view) {
    stride = axis.extent == 0 ? 0 : stride / axis.extent;
    dense.Add(axis.label, axis.extent, stride);
  }
  return dense;
}

Status Resolve(const Equation& equation, const Dims* shapes, int num_inputs, Problem* problem) {
  XPU_REQUIRE(static_cast<int>(equation.inputs.size()) == num_inputs,
              errors::InvalidArgument("Expected ", equation.inputs.size(), " inputs but got: ", num_inputs));
  int longest = 0;
  for (int input = 0; input < num_inputs; ++input) longest = std::max(longest, shapes[input].rank());
  SmallVector<int64_t, kEllipsis + 16> extents;  // by label
  extents.resize(kEllipsis + longest, -1);
  int ellipsis_rank = 0;
  Subscripts labels[2];
  for (int input = 0; input < num_inputs; ++input) {
    const Dims& shape = shapes[input];
    XPU_RETURN_IF_ERROR(Expand(equation.inputs[input], shape.rank(), input, &labels[input]));
    for (int i = 0; i < shape.rank(); ++i) {
      const int label = labels[input][i];
      int64_t& extent = extents[label];
      if (label >= kEllipsis) {
        ellipsis_rank = std::max(ellipsis_rank, label - kEllipsis + 1);
        XPU_REQUIRE(extent < 0 || extent == 1 || shape[i] == 1 || shape[i] == extent,
                    errors::InvalidArgument("Broadcasting dimensions of the inputs of einsum must be equal or 1: ",
                                            shapes[0].ToString(), " vs. ", shapes[num_inputs - 1].ToString()));
        if (extent < 0 || extent == 1) extent = shape[i];
        continue;
      }
      XPU_REQUIRE(extent < 0 || extent == shape[i],
                  errors::InvalidArgument("Expected dimension ", extent, " at axis ", i, " of the input shaped ",
                                          shape.ToString(), " but got dimension ", shape[i]));
      extent = shape[i];
    }
  }
  for (int input = 0; input < num_inputs; ++input) {
    const Dims strides = DenseStrides(shapes[input]);
    for (int i = 0; i < strides.rank(); ++i) {
      problem->inputs[input].Add(labels[input][i], shapes[input][i], strides[i]);
    }
  }

  const bool output_ellipsis =
      std::find(equation.output.begin(), equation.output.end(), kEllipsis) != equation.output.end();
  XPU_REQUIRE(output_ellipsis || ellipsis_rank == 0,
              errors::InvalidArgument("Output contains ", ellipsis_rank,
                                      " broadcasting dimension(s) but no ellipsis "
                                      "(...) was found in the output subscripts."));
  Subscripts output;
  const int output_rank = static_cast<int>(equation.output.size()) + (output_ellipsis ? ellipsis_rank - 1 : 0);
  XPU_RETURN_IF_ERROR(Expand(equation.output, output_rank, 0, &output));
  for (int label : output) problem->output_shape.push_back(extents[label]);
  const Dims strides = DenseStrides(problem->output_shape);
  for (int i = 0; i < output_rank; ++i) problem->output.Add(output[i], problem->output_shape[i], strides[i]);
  problem->output_has_diagonal = problem->output.num_elements() != problem->output_shape.num_elements();
  return OkStatus();
}

Obstacle PlanContraction(const View& left, const View& right, const View& output, Contraction* out) {
  std::vector<int> batch, contracted, free_left, free_right;
  for (const Axis& axis : output) {
    const bool in_left = left.Has(axis.label), in_right = right.Has(axis.label);
    (in_left && in_right ? batch : in_left ? free_left : free_right).push_back(axis.label);
  }
  for (const Axis& axis : left) {
    if (!output.Has(axis.label)) contracted.push_back(axis.label);
  }

  // Contracted axes must be one dimension in both inputs, in the same order.
  MergedAxis inner;
  const std::vector<int> left_order = ByStride(contracted, left), right_order = ByStride(contracted, right);
  if (Merge(left_order, left, &right, &inner)) {
    contracted = left_order;
  } else {
    MergedAxis alone;
    const bool left_merges = Merge(left_order, left, nullptr, &alone);
    const bool right_merges = Merge(right_order, right, nullptr, &alone);
    const bool pack_left = right_merges && (!left_merges || left.num_elements() < right.num_elements());
    if (pack_left || !left_merges) {
      out->packed = Ordered(left, batch, free_left, right_order);
      return Obstacle::kLeft;
    }
    out->packed = Ordered(right, batch, free_right, left_order);
    return Obstacle::kRight;
  }

  if (inner.extent == 1) inner.stride[0] = inner.stride[1] = 1;  // nothing to sum: an outer product

  // Rows of the product come from one input, columns from the other.
  MergedAxis rows, columns;
  std::vector<int> outer;
  InnerRun(free_left, left, output, &rows, &outer);
  InnerRun(free_right, right, output, &columns, &outer);
  const struct {
    const View& view;
    const MergedAxis& run;
    const std::vector<int>& free;
    Obstacle obstacle;
  } sides[] = {{left, rows, free_left, Obstacle::kLeft}, {right, columns, free_right, Obstacle::kRight}};
  for (const auto& side : sides) {
    MergedAxis alone;
    int64_t all = 1;
    for (int label : side.free) all *= side.view.Find(label)->extent;
    const bool unaligned =
        side.run.extent > 1 && side.run.stride[0] != 1 && inner.stride[side.obstacle == Obstacle::kRight] != 1;
    const bool scattered = WorthPacking(side.run, all) && !Merge(side.free, side.view, nullptr, &alone);
    if (unaligned || scattered) {
      out->packed = Ordered(side.view, batch, side.free, contracted);
      return side.obstacle;
    }
    if (WorthPacking(side.run, all)) {
      out->packed = Ordered(output, batch, free_left, free_right);
      return Obstacle::kOutput;
    }
  }

  // A row of the product is dense in the output.
  const auto is_row = [](const MergedAxis& run) { return run.extent == 1 || run.stride[1] == 1; };
  out->swapped = !is_row(columns);
  if (out->swapped && !is_row(rows)) {
    out->packed = Ordered(output, batch, free_left, free_right);
    return Obstacle::kOutput;
  }
  const View *a = &left, *b = &right;
  int64_t a_inner = inner.stride[0], b_inner = inner.stride[1];
  if (out->swapped) {
    std::swap(a, b);
    std::swap(rows, columns);
    std::swap(a_inner, b_inner);
  }

  MatMulDesc& d = out->matmul;
  d.m = rows.extent;
  d.n = columns.extent;
  d.k = inner.extent;
  d.transpose_a = a_inner != 1;
  d.lda = d.transpose_a ? a_inner : d.m > 1 ? rows.stride[0] : 0;
  d.transpose_b = d.n == 1 ? b_inner == 1 : columns.stride[0] != 1;
  d.ldb = d.transpose_b ? (d.n > 1 ? columns.stride[0] : 0) : d.k > 1 ? b_inner : 0;
  d.ldc = d.m > 1 ? rows.stride[1] : 0;

  batch.insert(batch.end(), outer.begin(), outer.end());
  // In the output's order, so that neighbours merge.
  batch = ByStride(std::move(batch), output);
  for (int label : batch) {
    d.batch.push_back(output.Find(label)->extent);
    d.a_batch_strides.push_back(a->Stride(label));
    d.b_batch_strides.push_back(b->Stride(label));
    d.c_batch_strides.push_back(output.Stride(label));
  }
  Dims* const strides[] = {&d.a_batch_strides, &d.b_batch_strides, &d.c_batch_strides};
  MergeDims(&d.batch, strides, 3);
  ForgetDenseStrides(&d);
  return Obstacle::kNone;
}

}  // namespace xpu::einsum
