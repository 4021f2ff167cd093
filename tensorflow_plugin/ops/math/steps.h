// The common part of ops that go through a sequence step by step: programs over views of arrays, products of matrices.
#ifndef TENSORFLOW_PLUGIN_OPS_MATH_STEPS_H_
#define TENSORFLOW_PLUGIN_OPS_MATH_STEPS_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/framework/context.h"
#include "tensorflow_plugin/ops/math/formula.h"

namespace xpu {

// A program that `make` writes on `n` inputs of `type`, which it gets in the type to compute in (ComputedIn). It
// returns the outputs, which are stored in `type`.
template <typename F>
const Program* WriteProgram(DType type, int n, F&& make) {
  ProgramBuilder builder;
  std::vector<FormulaValue> in;
  for (int i = 0; i < n; ++i) in.push_back({&builder, builder.Input(type)});
  for (FormulaValue& v : in) v = Cast(v, ComputedIn(type));
  for (const FormulaValue& out : make(in)) builder.Output(Cast(out, type).reg);
  return builder.Build();
}

// An address that a program reads from, and the strides over the program's shape; none: dense.
struct ProgramInput {
  const void* address;
  Dims strides;
};

inline Status RunOver(Context& ctx, const Program* program, const Dims& shape, const std::vector<ProgramInput>& in,
                      const std::vector<void*>& out) {
  ElementwiseDesc desc;
  desc.program = program;
  desc.shape = shape;
  Args args;
  for (size_t i = 0; i < in.size(); ++i) {
    desc.in_strides[i] = in[i].strides.rank() == 0 ? DenseStrides(shape) : in[i].strides;
    args.in[i] = in[i].address;
  }
  for (size_t i = 0; i < out.size(); ++i) args.out[i] = out[i];
  return ctx.LaunchElementwise(desc, args);
}

// The address `elements` of a type beyond another.
inline char* Beyond(const void* p, int64_t elements, DType type) {
  return static_cast<char*>(const_cast<void*>(p)) + elements * static_cast<int64_t>(SizeOf(type));
}

// c = a b, of [m, k] and [k, n], each perhaps transposed. With nothing to add up, zeros.
inline Status Multiply(Context& ctx, DType type, int64_t m, int64_t n, int64_t k, const void* a, bool transpose_a,
                       const void* b, bool transpose_b, void* c) {
  if (m == 0 || n == 0) return OkStatus();
  MatMulDesc d;
  d.type = type;
  d.m = m, d.n = n, d.k = k;
  d.transpose_a = transpose_a, d.transpose_b = transpose_b;
  return ctx.Launch(d, {a, b}, {c});
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_MATH_STEPS_H_
