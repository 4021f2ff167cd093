// The distinct elements and rows: UniqueV2, UniqueWithCounts, UniqueWithCountsV2. Also rows dealt out by numbers:
// DynamicPartition. Shapes of their results depend on data, so the kernels wait.
#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class UniqueKernel : public OpKernel {
 public:
  explicit UniqueKernel(Construction& c) : type_(c.Attr<DType>("T")), index_type_(c.Attr<DType>("out_idx")) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    int64_t axis = 0;
    bool has_axis = false;
    if (ctx.num_inputs() > 1) XPU_RETURN_IF_ERROR(ReadAxis(ctx.input(1), x, &has_axis, &axis));
    XPU_REQUIRE(has_axis || x.IsVector(), errors::InvalidArgument("unique expects a 1D vector."));
    const int a = static_cast<int>(axis);
    const int64_t outer = Product(x.dims(), 0, a), n = x.dim(a), inner = Product(x.dims(), a + 1, x.rank());

    Tensor numbers;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {n}, &numbers));
    const void* rows = x.data();
    Temporary transposed, firsts, count_on_device;
    if (outer > 1 && x.num_elements() > 0) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {n, outer, inner}, &transposed));
      const View from = {{inner, n * inner, 1}, 0};
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(type_), {n, outer, inner}, x.data(), from, transposed.data(),
                                   DenseView({n, outer, inner})));
      rows = transposed.data();
    }
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {n}, &firsts));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {1}, &count_on_device));
    UniqueDesc unique;
    unique.type = type_;
    unique.index_type = index_type_;
    unique.n = n;
    unique.inner = outer * inner;
    XPU_RETURN_IF_ERROR(ctx.Launch(unique, {rows}, {numbers.mutable_data(), firsts.data(), count_on_device.data()}));
    int64_t count = 0;
    XPU_RETURN_IF_ERROR(ctx.CopyToHost(&count, count_on_device.data(), sizeof(count)));

    Dims shape = x.dims();
    shape[a] = count;
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    GatherDesc gather;
    gather.element_size = SizeOf(type_);
    gather.outer = outer;
    gather.inner = inner;
    gather.num_indices = count;
    gather.dims = {n};
    if (y.num_elements() > 0) XPU_RETURN_IF_ERROR(ctx.Launch(gather, {x.data(), firsts.data()}, {y.mutable_data()}));
    return ctx.num_outputs() > 2 ? CountEach(ctx, numbers, count) : OkStatus();
  }

 private:
  static Status ReadAxis(const Tensor& arg, const Tensor& x, bool* has_axis, int64_t* axis) {
    XPU_REQUIRE(arg.IsVector(), errors::InvalidArgument("axis expects a 1D vector."));
    XPU_REQUIRE(arg.num_elements() <= 1,
                errors::InvalidArgument("axis does not support input tensors larger than 1 elements"));
    *has_axis = arg.num_elements() == 1;
    if (!*has_axis) return OkStatus();
    XPU_RETURN_IF_ERROR(HostInteger(arg, "axis", axis));
    if (*axis < 0) *axis += x.rank();
    XPU_REQUIRE(*axis >= 0 && *axis < x.rank(), errors::InvalidArgument("axis has to be between [0, ", x.rank(), ")"));
    return OkStatus();
  }

  Status CountEach(Context& ctx, const Tensor& numbers, int64_t count) {
    Tensor counts;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(2, {count}, &counts));
    XPU_RETURN_IF_ERROR(FillZero(ctx, counts));
    if (count == 0) return OkStatus();
    Temporary one;
    XPU_RETURN_IF_ERROR(Upload(ctx, {1}, index_type_, &one));
    ScatterDesc add;
    add.kind = ScatterKind::kAdd;
    add.type = add.index_type = index_type_;
    add.num_indices = numbers.num_elements();
    add.scalar_update = true;
    add.dims = {count};
    return ctx.Launch(add, {numbers.data(), one.data()}, {counts.mutable_data()});
  }

  const DType type_, index_type_;
};

// outputs[p] = the data[i..., :] whose partitions[i...] is p, in order.
class DynamicPartitionKernel : public OpKernel {
 public:
  explicit DynamicPartitionKernel(Construction& c) : num_partitions_(c.Attr<int64_t>("num_partitions")) {}

  Status Compute(Context& ctx) override {
    const Tensor data = ctx.input(0), partitions = ctx.input(1);
    bool starts = data.rank() >= partitions.rank();
    for (int i = 0; starts && i < partitions.rank(); ++i) starts = data.dim(i) == partitions.dim(i);
    XPU_REQUIRE(starts, errors::InvalidArgument("data.shape must start with partitions.shape, got data.shape = ",
                                                data.ShapeString(), ", partitions.shape = ", partitions.ShapeString()));
    std::vector<int64_t> numbers;
    XPU_RETURN_IF_ERROR(FetchIntegers(ctx, partitions, &numbers));
    std::vector<std::vector<int64_t>> rows(num_partitions_);
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < 0 || numbers[i] >= num_partitions_) {
        IndexNaming naming;
        naming.what = "partitions";
        return BadIndex(partitions.dims(), {num_partitions_}, naming)(OkStatus(), numbers);
      }
      rows[numbers[i]].push_back(static_cast<int64_t>(i));
    }
    GatherDesc gather;
    gather.element_size = SizeOf(data.dtype());
    gather.inner = Product(data.dims(), partitions.rank(), data.rank());
    gather.dims = {partitions.num_elements()};
    for (int64_t p = 0; p < num_partitions_; ++p) {
      Dims shape = {static_cast<int64_t>(rows[p].size())};
      Append(data.dims(), partitions.rank(), data.rank(), &shape);
      Tensor out;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(static_cast<int>(p), shape, &out));
      if (out.num_elements() == 0) continue;
      Temporary indices;
      XPU_RETURN_IF_ERROR(Upload(ctx, rows[p], DType::kInt64, &indices));
      gather.num_indices = shape[0];
      XPU_RETURN_IF_ERROR(ctx.Launch(gather, {data.data(), indices.data()}, {out.mutable_data()}));
    }
    return OkStatus();
  }

 private:
  const int64_t num_partitions_;
};

}  // namespace

void RegisterUnique(Registry& registry) {
  // int32 is in device memory, as on GPUs. Unique itself is TensorFlow's, in host memory.
  const TypeList types = Union(Union(kRealTypes, {DType::kBool}), {DType::kInt32});
  for (const char* op : {"UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"}) {
    auto entry = registry.Op(op);
    entry.Types("T", types).Types("out_idx", {DType::kInt32, DType::kInt64});
    if (op[std::char_traits<char>::length(op) - 1] == '2') {
      entry.Host({"axis"});
    }
    entry.Traits(OpTrait::kWaitsForDevice)
        .Requires([](Needs& n) {
          UniqueDesc desc;
          desc.type = n.type("T");
          desc.index_type = n.type("out_idx");
          n.Ask(desc);
        })
        .Requires(needs::Gather("T", DType::kInt64))
        .Requires(needs::Copy("T"))
        .Requires(needs::Scatter(ScatterKind::kAdd, "out_idx", "out_idx"))
        .Kernel<UniqueKernel>();
  }
  registry.Op("DynamicPartition")
      .Types("T", Union(kAllTypes, {DType::kInt32}))
      .Traits(OpTrait::kWaitsForDevice)
      .Requires(needs::Gather("T", DType::kInt64))
      .Kernel<DynamicPartitionKernel>();
}

}  // namespace xpu
