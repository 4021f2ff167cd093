// Einstein summation, apart from TensorFlow: parsing an equation, naming the axes of strided views, and finding the
// MatMul that a contraction is.
#ifndef TENSORFLOW_PLUGIN_OPS_LINALG_EINSUM_PLAN_H_
#define TENSORFLOW_PLUGIN_OPS_LINALG_EINSUM_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/descriptors.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::einsum {

// Labels are characters of the equation, and kEllipsis + i for the dimension of an ellipsis that is i-th from its
// right end.
inline constexpr int kEllipsis = 256;

// One term of an equation. An ellipsis is the label kEllipsis here.
using Subscripts = std::vector<int>;

struct Equation {
  std::vector<Subscripts> inputs;
  Subscripts output;
};
Status Parse(const std::string& text, Equation* equation);

// The axes of a tensor by label, each label once. A repeated label is a walk along the diagonal, whose stride is the
// sum of the strides. Axes of extent 1 are left out: they neither move nor multiply.
struct Axis {
  int label;
  int64_t extent, stride;
};
class View {
 public:
  int size() const { return axes_.size(); }
  const Axis& operator[](int i) const { return axes_[i]; }
  const Axis* begin() const { return axes_.begin(); }
  const Axis* end() const { return axes_.end(); }
  const Axis* Find(int label) const;
  bool Has(int label) const { return Find(label) != nullptr; }
  // The stride along a label, 0 where the view does not move.
  int64_t Stride(int label) const;
  // Appends an axis, or adds to the stride of the one with that label.
  void Add(int label, int64_t extent, int64_t stride);
  Dims Shape() const;
  int64_t num_elements() const;

 private:
  SmallVector<Axis, 16> axes_;
};

// The same labels in the same order, dense.
View Dense(const View& view);

// Everything that shapes say: the extent of each label, the inputs and the output as views, the output's shape.
struct Problem {
  View inputs[2];
  View output;
  Dims output_shape;
  bool output_has_diagonal = false;  // a repeated label: elements off the diagonal are zeros
};
Status Resolve(const Equation& equation, const Dims* shapes, int num_inputs, Problem* problem);

// The obstacle between two views and one MatMul.
enum class Obstacle : uint8_t { kNone, kLeft, kRight, kOutput };

struct Contraction {
  MatMulDesc matmul;
  bool swapped = false;  // the second input is matmul's `a`
  // For kLeft and kRight (of the inputs as given, not as swapped): the dense view to copy that input to.
  // For kOutput: the dense view to compute to first.
  View packed;
};
// Fills in `out->matmul` such that it computes `output` from `left` and `right`, or says which tensor must be in
// another order first. Every label of the output is in an input, and every label that is in one input alone is in
// `output`. After at most one copy of each there is no obstacle.
Obstacle PlanContraction(const View& left, const View& right, const View& output, Contraction* out);

}  // namespace xpu::einsum

#endif  // TENSORFLOW_PLUGIN_OPS_LINALG_EINSUM_PLAN_H_
