// MatMul and BatchMatMul: shapes and broadcasting; the work is one MatMul primitive.
#include <algorithm>

#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// How the leading dimensions of the two inputs relate.
enum class BatchRule : uint8_t {
  kNone,       // MatMul: there are none
  kEqual,      // BatchMatMul
  kBroadcast,  // BatchMatMulV2, V3
};

std::string BatchString(const Tensor& a, const Tensor& b) { return a.ShapeString() + " vs. " + b.ShapeString(); }

Status CheckRanks(const Tensor& a, const Tensor& b, BatchRule rule) {
  if (rule == BatchRule::kBroadcast) {
    XPU_REQUIRE(a.rank() >= 2, errors::InvalidArgument("In[0] ndims must be >= 2: ", a.rank()));
    XPU_REQUIRE(b.rank() >= 2, errors::InvalidArgument("In[1] ndims must be >= 2: ", b.rank()));
    return OkStatus();
  }
  XPU_REQUIRE(a.rank() == b.rank(),
              errors::InvalidArgument("In[0] and In[1] has different ndims: ", BatchString(a, b)));
  if (rule == BatchRule::kNone) {
    XPU_REQUIRE(a.rank() == 2,
                errors::InvalidArgument("In[0] and In[1] ndims must be == 2: ", a.rank(),
                                        ". In[0] is not a matrix. Instead it has shape ", a.ShapeString()));
    return OkStatus();
  }
  XPU_REQUIRE(a.rank() >= 2, errors::InvalidArgument("In[0] and In[1] ndims must be >= 2: ", a.rank()));
  for (int i = 0; i < a.rank() - 2; ++i) {
    XPU_REQUIRE(a.dim(i) == b.dim(i),
                errors::InvalidArgument("In[0].dim(", i, ") and In[1].dim(", i, ") must be the same: ", a.ShapeString(),
                                        " vs ", b.ShapeString()));
  }
  return OkStatus();
}

// The batch dimensions of the output, and the inputs' strides over them.
Status BroadcastBatch(const Tensor& a, const Tensor& b, MatMulDesc* desc) {
  const int rank = std::max(a.rank(), b.rank()) - 2;
  desc->batch = Dims(rank, 1);
  desc->a_batch_strides = Dims(rank, 0);
  desc->b_batch_strides = Dims(rank, 0);
  int64_t a_stride = desc->m * desc->k, b_stride = desc->n * desc->k;
  for (int i = rank - 1, ai = a.rank() - 3, bi = b.rank() - 3; i >= 0; --i, --ai, --bi) {
    const int64_t a_dim = ai >= 0 ? a.dim(ai) : 1, b_dim = bi >= 0 ? b.dim(bi) : 1;
    XPU_REQUIRE(a_dim == b_dim || a_dim == 1 || b_dim == 1,
                errors::InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ", BatchString(a, b)));
    desc->batch[i] = a_dim == 1 ? b_dim : a_dim;
    if (a_dim != 1) desc->a_batch_strides[i] = a_stride;
    if (b_dim != 1) desc->b_batch_strides[i] = b_stride;
    a_stride *= a_dim;
    b_stride *= b_dim;
  }
  return OkStatus();
}

// One large product is faster than many small ones: a batch that a walks densely and b not at all is more rows of a.
void FoldBatch(MatMulDesc* desc) {
  Dims* const strides[] = {&desc->a_batch_strides, &desc->b_batch_strides};
  MergeDims(&desc->batch, strides, 2);
  const int last = desc->batch.rank() - 1;
  if (last < 0) return;
  const bool single = desc->batch[last] == 1;
  if (!single &&
      (desc->transpose_a || desc->b_batch_strides[last] != 0 || desc->a_batch_strides[last] != desc->m * desc->k)) {
    return;
  }
  desc->m *= desc->batch[last];
  desc->batch.resize(last);
  desc->a_batch_strides.resize(last);
  desc->b_batch_strides.resize(last);
}

class MatMulKernel : public OpKernel {
 public:
  // With the attributes that have the matrices' types.
  MatMulKernel(Construction& c, BatchRule rule, const char* a_attr = "T", const char* b_attr = "T",
               const char* out_attr = "T")
      : rule_(rule), type_(c.Attr<DType>(a_attr)), b_type_(c.Attr<DType>(b_attr)), c_type_(c.Attr<DType>(out_attr)) {
    transpose_a_ = c.Attr<bool>(rule == BatchRule::kNone ? "transpose_a" : "adj_x");
    transpose_b_ = c.Attr<bool>(rule == BatchRule::kNone ? "transpose_b" : "adj_y");
  }

  Status Compute(Context& ctx) override {
    const Tensor a = ctx.input(0), b = ctx.input(1);
    XPU_RETURN_IF_ERROR(CheckRanks(a, b, rule_));
    const int64_t a_rows = a.dim(a.rank() - 2), a_cols = a.dim(a.rank() - 1);
    const int64_t b_rows = b.dim(b.rank() - 2), b_cols = b.dim(b.rank() - 1);

    MatMulDesc desc;
    desc.type = type_;
    desc.b_type = b_type_;
    desc.c_type = c_type_;
    desc.transpose_a = transpose_a_;
    desc.transpose_b = transpose_b_;
    // adj_x and adj_y mean the conjugate transpose.
    if (rule_ != BatchRule::kNone && IsComplex(type_)) {
      desc.conjugate_a = transpose_a_;
      desc.conjugate_b = transpose_b_;
    }
    desc.m = transpose_a_ ? a_cols : a_rows;
    desc.k = transpose_a_ ? a_rows : a_cols;
    desc.n = transpose_b_ ? b_rows : b_cols;
    const int64_t b_k = transpose_b_ ? b_cols : b_rows;
    if (rule_ != BatchRule::kNone) XPU_RETURN_IF_ERROR(BroadcastBatch(a, b, &desc));
    XPU_REQUIRE(desc.k == b_k, errors::InvalidArgument("Matrix size-incompatible: In[0]: ", a.ShapeString(),
                                                       ", In[1]: ", b.ShapeString()));

    Dims shape = desc.batch;
    shape.push_back(desc.m);
    shape.push_back(desc.n);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    FoldBatch(&desc);
    return ctx.Launch(desc, {a.data(), b.data()}, {out.mutable_data()});
  }

 private:
  const BatchRule rule_;
  const DType type_, b_type_, c_type_;
  bool transpose_a_, transpose_b_;
};

}  // namespace

void RegisterMatMul(Registry& registry) {
  TypeList types = Union(kFloatTypes, kComplexTypes);
  types.push_back(DType::kInt64);
  registry.Op("MatMul")
      .Types("T", types)
      .AllHostFor(DType::kInt32, {"a", "b", "product"})
      .Requires(needs::MatMul("T"))
      .Kernel<MatMulKernel>(BatchRule::kNone);
  registry.Op("BatchMatMul")
      .Types("T", types)
      .AllHostFor(DType::kInt32, {"x", "y", "output"})
      .Requires(needs::MatMul("T"))
      .Kernel<MatMulKernel>(BatchRule::kEqual);
  registry.Op("BatchMatMulV2")
      .Types("T", Union(types, {DType::kInt16}))
      .AllHostFor(DType::kInt32, {"x", "y", "output"})
      .Requires(needs::MatMul("T"))
      .Kernel<MatMulKernel>(BatchRule::kBroadcast);
  // All three types are the same, or bytes make integers.
  for (DType type : Union(types, {DType::kInt16, DType::kInt32})) {
    const bool host = type == DType::kInt32;
    auto entry = registry.Op("BatchMatMulV3");
    entry.Types("Ta", host ? TypeList{} : TypeList{type}).Types("Tb", {type}).Types("Tout", {type});
    if (host) entry.AllHostFor(type, {"x", "y", "output"});
    entry.Requires(needs::MatMul("Ta")).Kernel<MatMulKernel>(BatchRule::kBroadcast, "Ta", "Tb", "Tout");
  }
  registry.Op("BatchMatMulV3")
      .Types("Ta", {DType::kInt8, DType::kUint8})
      .Types("Tb", {DType::kInt8, DType::kUint8})
      .Types("Tout", {DType::kInt32})
      .Requires(needs::MatMul("Ta", "Tb", "Tout"))
      .Kernel<MatMulKernel>(BatchRule::kBroadcast, "Ta", "Tb", "Tout");
}

}  // namespace xpu
