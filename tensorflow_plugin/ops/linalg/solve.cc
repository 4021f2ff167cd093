// Systems of linear equations: MatrixSolve, MatrixInverse, MatrixTriangularSolve, TridiagonalSolve; TridiagonalMatMul.
#include <algorithm>
#include <cstring>

#include "tensorflow_plugin/ops/linalg/linalg.h"
#include "tensorflow_plugin/ops/math/broadcast.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

SolveDesc Describe(SolveKind kind, DType type, int64_t batch, int64_t n, int64_t columns) {
  SolveDesc desc;
  desc.kind = kind;
  desc.type = type;
  desc.batch = batch;
  desc.n = n;
  desc.columns = columns;
  return desc;
}

class MatrixSolveKernel : public OpKernel {
 public:
  explicit MatrixSolveKernel(Construction& c) : adjoint_(c.Attr<bool>("adjoint")) {}

  Status Compute(Context& ctx) override {
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadMatrices(ctx, 2, &m));
    const Tensor a = ctx.input(0), b = ctx.input(1);
    XPU_REQUIRE(m.rows == m.cols, errors::InvalidArgument("First input (lhs) must be a square matrix."));
    XPU_REQUIRE(b.dim(b.rank() - 2) == m.rows, errors::InvalidArgument("Input matrix and rhs are incompatible."));
    Tensor x;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, b, &x));
    if (x.num_elements() == 0) return OkStatus();
    SolveDesc desc = Describe(SolveKind::kGeneral, a.dtype(), m.batch, m.rows, b.dim(b.rank() - 1));
    desc.adjoint = adjoint_;
    return LaunchOrSay(ctx, desc, {a.data(), b.data()}, {x.mutable_data()}, "Input matrix is not invertible.");
  }

 private:
  const bool adjoint_;
};

class MatrixInverseKernel : public OpKernel {
 public:
  explicit MatrixInverseKernel(Construction& c) : adjoint_(c.Attr<bool>("adjoint")) {}

  Status Compute(Context& ctx) override {
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadSquare(ctx, &m));
    const Tensor a = ctx.input(0);
    Tensor x;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, a, &x));
    if (x.num_elements() == 0) return OkStatus();
    Temporary identity;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(a.dtype(), {m.batch, m.rows, m.rows}, &identity));
    XPU_RETURN_IF_ERROR(FillIdentity(ctx, m, identity.tensor()));
    SolveDesc desc = Describe(SolveKind::kGeneral, a.dtype(), m.batch, m.rows, m.rows);
    desc.adjoint = adjoint_;
    return LaunchOrSay(ctx, desc, {a.data(), identity.data()}, {x.mutable_data()}, "Input is not invertible.");
  }

 private:
  static Status FillIdentity(Context& ctx, const Matrices& m, const Tensor& t) {
    XPU_RETURN_IF_ERROR(FillZero(ctx, t));
    Temporary one;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(t.dtype(), {1}, &one));
    char value[16] = {};
    VisitType(t.dtype(), [&](auto tag) {
      const typename decltype(tag)::type v(1);
      std::memcpy(value, &v, sizeof v);
    });
    XPU_RETURN_IF_ERROR(Fill(ctx, value, one.tensor()));
    return CopyView(ctx, SizeOf(t.dtype()), {m.batch, m.rows}, one.data(), {{0, 0}, 0}, t.mutable_data(),
                    {{m.rows * m.rows, m.rows + 1}, 0});
  }

  const bool adjoint_;
};

// Batches broadcast.
class TriangularSolveKernel : public OpKernel {
 public:
  explicit TriangularSolveKernel(Construction& c) : lower_(c.Attr<bool>("lower")), adjoint_(c.Attr<bool>("adjoint")) {}

  Status Compute(Context& ctx) override {
    const Tensor a = ctx.input(0), b = ctx.input(1);
    XPU_REQUIRE(a.rank() >= 2, errors::InvalidArgument("In[0] ndims must be >= 2: ", a.rank()));
    XPU_REQUIRE(b.rank() >= 2, errors::InvalidArgument("In[1] ndims must be >= 2: ", b.rank()));
    const int64_t n = a.dim(a.rank() - 1), columns = b.dim(b.rank() - 1);
    XPU_REQUIRE(a.dim(a.rank() - 2) == n,
                errors::InvalidArgument("In[0] matrices in the last dimensions must be square (", n,
                                        " =/= ", a.dim(a.rank() - 2), ")"));
    Dims batch;
    XPU_REQUIRE(BroadcastBatch(a, b, &batch),
                errors::InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ", a.ShapeString(),
                                        " vs. ", b.ShapeString()));
    XPU_REQUIRE(b.dim(b.rank() - 2) == n,
                errors::InvalidArgument("In[0] mismatch In[1] shape: ", n, " vs. ", b.dim(b.rank() - 2), ": ",
                                        a.ShapeString(), " ", b.ShapeString(), " ", lower_, " ", adjoint_));
    const auto with = [&batch](int64_t rows, int64_t cols) {
      Dims shape = batch;
      shape.push_back(rows);
      shape.push_back(cols);
      return shape;
    };
    Tensor x;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, with(n, columns), &x));
    if (x.num_elements() == 0) return OkStatus();
    Temporary whole_a, whole_b;
    const void *a_data, *b_data;
    XPU_RETURN_IF_ERROR(Whole(ctx, a, with(n, n), &whole_a, &a_data));
    XPU_RETURN_IF_ERROR(Whole(ctx, b, x.dims(), &whole_b, &b_data));
    SolveDesc desc =
        Describe(lower_ ? SolveKind::kLower : SolveKind::kUpper, a.dtype(), batch.num_elements(), n, columns);
    desc.adjoint = adjoint_;
    return ctx.Launch(desc, {a_data, b_data}, {x.mutable_data()});
  }

 private:
  static bool BroadcastBatch(const Tensor& a, const Tensor& b, Dims* batch) {
    const int rank = std::max(a.rank(), b.rank()) - 2;
    *batch = Dims(rank, 1);
    for (int i = rank - 1, at_a = a.rank() - 3, at_b = b.rank() - 3; i >= 0; --i, --at_a, --at_b) {
      const int64_t of_a = at_a >= 0 ? a.dim(at_a) : 1, of_b = at_b >= 0 ? b.dim(at_b) : 1;
      if (of_a != of_b && of_a != 1 && of_b != 1) return false;
      (*batch)[i] = of_a == 1 ? of_b : of_a;
    }
    return true;
  }

  // t as it is, if it has that shape, else repeated.
  static Status Whole(Context& ctx, const Tensor& t, const Dims& shape, Temporary* whole, const void** data) {
    *data = t.data();
    if (t.num_elements() == shape.num_elements()) return OkStatus();
    Dims strides;
    XPU_REQUIRE(BroadcastStrides(t.dims(), shape, &strides), errors::Internal("no broadcast to ", shape.ToString()));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(t.dtype(), shape, whole));
    *data = whole->data();
    return CopyView(ctx, SizeOf(t.dtype()), shape, t.data(), {strides, 0}, whole->data(), DenseView(shape));
  }

  const bool lower_, adjoint_;
};

class TridiagonalSolveKernel : public OpKernel {
 public:
  explicit TridiagonalSolveKernel(Construction& c)
      : pivoting_(c.Attr<bool>("partial_pivoting")), perturb_(c.Attr<bool>("perturb_singular")) {
    if (perturb_ && !pivoting_) {
      c.Fail(errors::InvalidArgument("Setting perturb_singular requires also setting partial_pivoting."));
    }
  }

  Status Compute(Context& ctx) override {
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadMatrices(ctx, 2, &m));
    const Tensor a = ctx.input(0), b = ctx.input(1);
    XPU_REQUIRE(m.rows == 3, errors::InvalidArgument("Expected diagonals to be provided as a matrix with 3 rows, got ",
                                                     m.rows, " rows."));
    XPU_REQUIRE(b.dim(b.rank() - 2) == m.cols,
                errors::InvalidArgument("Expected the same number of left-hand sides and right-hand sides, got ",
                                        m.cols, " and ", b.dim(b.rank() - 2), "."));
    Tensor x;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, b, &x));
    if (x.num_elements() == 0) return OkStatus();
    SolveDesc desc = Describe(SolveKind::kTridiagonal, a.dtype(), m.batch, m.cols, b.dim(b.rank() - 1));
    desc.pivoting = pivoting_;
    desc.perturb = perturb_;
    return ctx.Launch(desc, {a.data(), b.data()}, {x.mutable_data()});
  }

 private:
  const bool pivoting_, perturb_;
};

// d x, and y + d x.
const Program* Product(DType type, bool add) {
  ProgramBuilder b;
  const auto d = b.Input(type), x = b.Input(type);
  const auto product = b.Apply(Opcode::kMul, d, x);
  b.Output(add ? b.Apply(Opcode::kAdd, b.Input(type), product) : product);
  return b.Build();
}

// Each row of x times its element of the diagonal, then each with the next row's, and with the one's before.
class TridiagonalMatMulKernel : public OpKernel {
 public:
  explicit TridiagonalMatMulKernel(Construction& c) {
    const DType type = c.Attr<DType>("T");
    if (!c.status().ok()) return;
    product_ = Product(type, false);
    add_product_ = Product(type, true);
  }

  Status Compute(Context& ctx) override {
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadMatrices(ctx, 4, &m));
    const Tensor x = ctx.input(3);
    const int64_t n = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1);
    static const char* const kNames[] = {"superdiagonal", "main diagonal", "subdiagonal"};
    for (int i = 0; i < 3; ++i) {
      const Tensor d = ctx.input(i);
      XPU_REQUIRE(d.dim(d.rank() - 2) == 1 && d.dim(d.rank() - 1) == n,
                  errors::InvalidArgument("Invalid ", kNames[i], " shape."));
    }
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &y));
    if (y.num_elements() == 0) return OkStatus();
    ElementwiseDesc desc;
    desc.program = product_;
    desc.shape = {m.batch, n, columns};
    desc.in_strides[0] = {n, 1, 0};
    desc.in_strides[1] = {n * columns, columns, 1};
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {ctx.input(1).data(), x.data()}, {y.mutable_data()}));
    if (n == 1) return OkStatus();
    // The computation is dense, as outputs are: the rows next to the ends apart.
    for (const bool above : {true, false}) {
      Temporary sum;
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(x.dtype(), {m.batch, n - 1, columns}, &sum));
      desc.program = add_product_;
      desc.shape = {m.batch, n - 1, columns};
      desc.in_strides[2] = desc.in_strides[1];
      const auto at = [&](const void* data, int64_t elements) {
        return static_cast<const char*>(data) + elements * static_cast<int64_t>(SizeOf(x.dtype()));
      };
      const void* d = above ? ctx.input(0).data() : at(ctx.input(2).data(), 1);
      const int64_t to = above ? 0 : columns, from = above ? columns : 0;
      XPU_RETURN_IF_ERROR(ctx.Launch(desc, {d, at(x.data(), from), at(y.data(), to)}, {sum.data()}));
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(x.dtype()), {m.batch, n - 1, columns}, sum.data(), DenseView(desc.shape),
                                   y.mutable_data(), {desc.in_strides[1], to}));
    }
    return OkStatus();
  }

 private:
  const Program *product_ = nullptr, *add_product_ = nullptr;
};

}  // namespace

void RegisterLinalgSolve(Registry& registry) {
  registry.Op("MatrixSolve")
      .Types("T", kMatrixTypes)
      .Requires(needs::Solve(SolveKind::kGeneral, "T"))
      .Requires(needs::Solve(SolveKind::kGeneral, "T", true))
      .Kernel<MatrixSolveKernel>();
  registry.Op("MatrixInverse")
      .Types("T", kMatrixTypes)
      .Requires(needs::Copy("T"))
      .Requires(needs::Solve(SolveKind::kGeneral, "T"))
      .Requires(needs::Solve(SolveKind::kGeneral, "T", true))
      .Kernel<MatrixInverseKernel>();
  registry.Op("MatrixTriangularSolve")
      .Types("T", kMatrixTypes)
      .Requires(needs::Copy("T"))
      .Requires([](Needs& n) {
        for (SolveKind kind : {SolveKind::kLower, SolveKind::kUpper}) {
          for (bool adjoint : {false, true}) needs::Solve(kind, "T", adjoint)(n);
        }
      })
      .Kernel<TriangularSolveKernel>();
  registry.Op("TridiagonalSolve")
      .Types("T", kMatrixTypes)
      .Requires(needs::Solve(SolveKind::kTridiagonal, "T"))
      .Requires(needs::Solve(SolveKind::kTridiagonal, "T", false, true))
      .Kernel<TridiagonalSolveKernel>();
  registry.Op("TridiagonalMatMul")
      .Types("T", kMatrixTypes)
      .Requires(needs::Copy("T"))
      .Requires([](Needs& n) {
        n.AskProgram(Product(n.type("T"), false));
        n.AskProgram(Product(n.type("T"), true));
      })
      .Kernel<TridiagonalMatMulKernel>();
}

}  // namespace xpu
