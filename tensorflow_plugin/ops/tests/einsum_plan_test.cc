// Runs the plans of Einsum with plain loops and compares with the definition: a sum over all labels.
#include "tensorflow_plugin/ops/linalg/einsum_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

namespace xpu::einsum {
namespace {

using Values = std::vector<double>;

// Calls f(index of each label) for all combinations.
void ForEach(const std::vector<int>& labels, const std::map<int, int64_t>& extents,
             const std::function<void(const std::map<int, int64_t>&)>& f) {
  std::map<int, int64_t> at;
  int64_t total = 1;
  for (int l : labels) total *= extents.at(l);
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n;
    for (int l : labels) {
      at[l] = rest % extents.at(l);
      rest /= extents.at(l);
    }
    f(at);
  }
}

int64_t Offset(const View& view, const std::map<int, int64_t>& at) {
  int64_t offset = 0;
  for (const Axis& axis : view) offset += axis.stride * at.at(axis.label);
  return offset;
}

std::map<int, int64_t> Extents(const View& a, const View& b) {
  std::map<int, int64_t> extents;
  for (const View* v : {&a, &b}) {
    for (const Axis& axis : *v) extents[axis.label] = axis.extent;
  }
  return extents;
}

Values Define(const View& left, const View& right, const View& out, const Values& a, const Values& b, size_t size) {
  const auto extents = Extents(left, right);
  std::vector<int> labels;
  for (const auto& e : extents) labels.push_back(e.first);
  Values c(size, 0.0);
  ForEach(labels, extents, [&](const auto& at) { c[Offset(out, at)] += a[Offset(left, at)] * b[Offset(right, at)]; });
  return c;
}

Values Copy(const View& from, const View& to, const Values& x, size_t size) {
  std::vector<int> labels;
  for (const Axis& axis : to) labels.push_back(axis.label);
  Values y(size, 0.0);
  ForEach(labels, Extents(from, to), [&](const auto& at) { y[Offset(to, at)] = x[Offset(from, at)]; });
  return y;
}

// The contract of the primitive, and that its strides are ones every matrix library takes.
void RunMatMul(const MatMulDesc& d, const Values& a, const Values& b, Values* c) {
  const int64_t lda = d.lda ? d.lda : (d.transpose_a ? d.m : d.k);
  const int64_t ldb = d.ldb ? d.ldb : (d.transpose_b ? d.k : d.n);
  const int64_t ldc = d.ldc ? d.ldc : d.n;
  EXPECT_GE(lda, d.transpose_a ? d.m : d.k);
  EXPECT_GE(ldb, d.transpose_b ? d.k : d.n);
  EXPECT_GE(ldc, d.n);
  for (int64_t batch = 0; batch < d.batch.num_elements(); ++batch) {
    int64_t rest = batch, ao = 0, bo = 0, co = d.c_batch_strides.empty() ? batch * d.m * d.n : 0;
    for (int i = d.batch.rank() - 1; i >= 0; --i) {
      const int64_t at = rest % d.batch[i];
      rest /= d.batch[i];
      ao += at * d.a_batch_strides[i];
      bo += at * d.b_batch_strides[i];
      if (!d.c_batch_strides.empty()) co += at * d.c_batch_strides[i];
    }
    for (int64_t i = 0; i < d.m; ++i) {
      for (int64_t j = 0; j < d.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < d.k; ++k) {
          sum += a.at(ao + (d.transpose_a ? k * lda + i : i * lda + k)) *
                 b.at(bo + (d.transpose_b ? j * ldb + k : k * ldb + j));
        }
        c->at(co + i * ldc + j) = sum;
      }
    }
  }
}

struct Outcome {
  int copies = 0;
  MatMulDesc matmul;
};

// Labels are letters; extents by letter. Checks numbers; says how many copies were needed.
Outcome Check(const std::string& text, std::map<char, int64_t> extents) {
  SCOPED_TRACE(text);
  Outcome outcome;
  Equation equation;
  EXPECT_TRUE(Parse(text, &equation).ok());
  Dims shapes[2];
  for (int i = 0; i < 2; ++i) {
    for (int label : equation.inputs[i]) shapes[i].push_back(extents.at(static_cast<char>(label)));
  }
  Problem problem;
  const Status status = Resolve(equation, shapes, 2, &problem);
  EXPECT_TRUE(status.ok()) << status.message();
  std::mt19937 random(1);
  View left = problem.inputs[0], right = problem.inputs[1], out = problem.output;
  Values a(shapes[0].num_elements()), b(shapes[1].num_elements());
  for (double& v : a) v = static_cast<int>(random() % 19) - 9;
  for (double& v : b) v = static_cast<int>(random() % 19) - 9;
  const size_t size = problem.output_shape.num_elements();
  const Values expected = Define(left, right, out, a, b, size);

  Contraction plan;
  bool through_copy = false;
  for (;; ++outcome.copies) {
    EXPECT_LE(outcome.copies, 3);
    if (outcome.copies > 3) return outcome;
    plan = Contraction();
    const Obstacle obstacle = PlanContraction(left, right, out, &plan);
    if (obstacle == Obstacle::kNone) break;
    if (obstacle == Obstacle::kLeft) {
      a = Copy(left, plan.packed, a, plan.packed.num_elements());
      left = plan.packed;
    } else if (obstacle == Obstacle::kRight) {
      b = Copy(right, plan.packed, b, plan.packed.num_elements());
      right = plan.packed;
    } else {
      out = plan.packed;
      through_copy = true;
    }
  }
  Values c(size, 0.0);
  RunMatMul(plan.matmul, plan.swapped ? b : a, plan.swapped ? a : b, &c);
  if (through_copy) c = Copy(out, problem.output, c, size);
  EXPECT_EQ(c, expected);
  outcome.matmul = plan.matmul;
  return outcome;
}

TEST(EinsumPlan, LayersOfAttentionNeedNoCopy) {
  const std::map<char, int64_t> e = {{'a', 2}, {'b', 17}, {'c', 3}, {'d', 18}, {'e', 19}};
  for (const char* equation :
       {"abc,cde->abde", "aecd,abcd->acbe", "acbe,aecd->abcd", "abcd,cde->abe",  // forward
        "abde,cde->abc", "abc,abde->cde",                                        // gradients of the projections
        "acbe,abcd->aecd", "acbe,aecd->abcd", "abcd,aecd->acbe", "abcd,acbe->aecd", "abe,cde->abcd", "abcd,abe->cde"}) {
    EXPECT_EQ(Check(equation, e).copies, 0) << equation;
  }
}

TEST(EinsumPlan, ProductOfStackedRowsIsOneMatrix) {
  const Outcome outcome = Check("abc,cd->abd", {{'a', 5}, {'b', 2}, {'c', 3}, {'d', 4}});
  EXPECT_EQ(outcome.copies, 0);
  EXPECT_EQ(outcome.matmul.m, 10);
  EXPECT_EQ(outcome.matmul.batch.num_elements(), 1);
}

TEST(EinsumPlan, DenseResultsNeedNoStrides) {
  const std::map<char, int64_t> e = {{'a', 2}, {'b', 17}, {'c', 3}, {'d', 18}, {'e', 19}};
  for (const char* equation : {"aecd,abcd->acbe", "abc,cd->abd", "abc,cde->abde"}) {
    const MatMulDesc matmul = Check(equation, e).matmul;
    EXPECT_TRUE(matmul.c_batch_strides.empty()) << equation;
    EXPECT_EQ(matmul.ldc, 0) << equation;
  }
  EXPECT_FALSE(Check("acbe,aecd->abcd", e).matmul.c_batch_strides.empty());
}

TEST(EinsumPlan, AnyOrderOfAnyAxes) {
  std::mt19937 random(7);
  int copied = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string left, right, out;
    std::map<char, int64_t> extents;
    const int labels = 2 + random() % 5;
    for (int i = 0; i < labels; ++i) {
      const char label = 'a' + i;
      extents[label] = 1 + random() % 4;
      if (random() % 8 == 0) extents[label] = 17;
      const int kind = random() % 4;
      if (kind != 1) left += label;
      if (kind != 0) right += label;
      if (kind != 3) out += label;
    }
    if (!left.empty() && random() % 6 == 0) left += left[random() % left.size()];  // diagonals
    if (!right.empty() && random() % 6 == 0) right += right[random() % right.size()];
    if (!out.empty() && random() % 6 == 0) out += out[random() % out.size()];
    std::shuffle(left.begin(), left.end(), random);
    std::shuffle(right.begin(), right.end(), random);
    std::shuffle(out.begin(), out.end(), random);
    copied += Check(left + "," + right + "->" + out, extents).copies > 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(copied, 100);  // else the copying ways were not tested
}

TEST(EinsumPlan, RepeatedLabelsWalkTheDiagonal) {
  Equation equation;
  ASSERT_TRUE(Parse("aab,bc->acc", &equation).ok());
  const Dims shapes[] = {{4, 4, 3}, {3, 5}};
  Problem problem;
  ASSERT_TRUE(Resolve(equation, shapes, 2, &problem).ok());
  EXPECT_EQ(problem.inputs[0].size(), 2);
  EXPECT_EQ(problem.inputs[0].Stride('a'), 12 + 3);
  EXPECT_EQ(problem.output_shape, (Dims{4, 5, 5}));
  EXPECT_EQ(problem.output.Stride('c'), 5 + 1);
  EXPECT_TRUE(problem.output_has_diagonal);
}

TEST(EinsumPlan, EllipsisBroadcasts) {
  Equation equation;
  ASSERT_TRUE(Parse("...ab,...bc->...ac", &equation).ok());
  const Dims shapes[] = {{4, 1, 2, 3}, {5, 3, 6}};
  Problem problem;
  ASSERT_TRUE(Resolve(equation, shapes, 2, &problem).ok());
  EXPECT_EQ(problem.output_shape, (Dims{4, 5, 2, 6}));
  EXPECT_EQ(problem.inputs[0].Stride(kEllipsis), 0);
  EXPECT_EQ(problem.inputs[0].Stride(kEllipsis + 1), 6);
  EXPECT_EQ(problem.inputs[1].Stride(kEllipsis), 18);
}

TEST(EinsumPlan, BadEquationsAreNamed) {
  const struct {
    const char *equation, *message;
  } cases[] = {{"ab,bc", "exactly one '->'"}, {"ab->b->a", "exactly one '->'"}, {"a,b,c->abc", "1 or 2 input"},
               {"ab->abz", "Label 'z'"},      {"...a...->a", "one ellipsis"},   {"a..b->ab", "character '.'"},
               {"a b->ab", "character ' '"}};
  for (const auto& c : cases) {
    Equation equation;
    EXPECT_NE(Parse(c.equation, &equation).message().find(c.message), std::string::npos)
        << Parse(c.equation, &equation).message();
  }
}

TEST(EinsumPlan, BadShapesAreNamed) {
  const struct {
    const char* equation;
    Dims a, b;
    const char* message;
  } cases[] = {
      {"ab,bc->ac", {2, 3}, {4, 5}, "Expected dimension 3 at axis 0 of the input shaped [4,5] but got dimension 4"},
      {"ab,bc->ac", {2, 3, 4}, {4, 5}, "Expected input 0 to have rank 2 but got: 3"},
      {"a...b,b->a...", {2}, {3}, "Expected input 0 to have rank at least 2 but got: 1"},
      {"...a,...a->...", {2, 3}, {3, 3}, "[2,3] vs. [3,3]"},
      {"a...,a->a", {2, 3}, {2}, "Output contains 1 broadcasting dimension(s)"},
  };
  for (const auto& c : cases) {
    Equation equation;
    ASSERT_TRUE(Parse(c.equation, &equation).ok());
    Problem problem;
    const Dims shapes[] = {c.a, c.b};
    const Status status = Resolve(equation, shapes, 2, &problem);
    EXPECT_NE(status.message().find(c.message), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace xpu::einsum
