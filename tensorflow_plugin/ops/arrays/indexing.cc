#include "tensorflow_plugin/ops/arrays/indexing.h"

namespace xpu {

BadIndices ReadBadIndicesPolicy(Construction& c) {
  const std::string policy = c.Attr<std::string>("bad_indices_policy");
  if (policy == "IGNORE") return BadIndices::kIgnore;
  if (c.status().ok() && policy != "" && policy != "DEFAULT" && policy != "ERROR") {
    c.Fail(errors::InvalidArgument("bad_indices_policy must be empty, DEFAULT, ERROR or IGNORE, got ", policy));
  }
  return BadIndices::kError;
}

Status FetchIntegers(Context& ctx, const Tensor& t, std::vector<int64_t>* values) {
  XPU_REQUIRE(IsInteger(t.dtype()), errors::InvalidArgument("expected integers, got ", Name(t.dtype())));
  std::vector<char> bytes(t.bytes());
  XPU_RETURN_IF_ERROR(ctx.CopyToHost(bytes.data(), t.data(), bytes.size()));
  *values = IntegersAt(bytes.data(), t.dtype(), t.num_elements());
  return OkStatus();
}

Status Explained(Context& ctx, const Status& failure, const Indices& indices, const DescribeError& explain) {
  std::vector<char> bytes(static_cast<size_t>(indices.n) * SizeOf(indices.type));
  XPU_RETURN_IF_ERROR(ctx.CopyToHost(bytes.data(), indices.data, bytes.size()));
  return explain(failure, IntegersAt(bytes.data(), indices.type, indices.n));
}

namespace {

// "[0,1]": element number `flat` of an array of shape `dims`.
std::string PositionString(const Dims& dims, int64_t flat) {
  Dims position(dims.rank(), 0);
  for (int i = dims.rank() - 1; i >= 0; --i) {
    position[i] = flat % dims[i];
    flat /= dims[i];
  }
  return dims.empty() ? "" : position.ToString();
}

std::string Join(const int64_t* values, int n) {
  std::string s;
  for (int i = 0; i < n; ++i) s += (i ? ", " : "") + std::to_string(values[i]);
  return s;
}

}  // namespace

DescribeError BadIndex(const Dims& shape, const Dims& dims, const IndexNaming& naming) {
  return [shape, dims, naming](const Status& failure, const std::vector<int64_t>& values) -> Status {
    Dims outer = shape;
    if (naming.nd) outer.resize(outer.rank() - 1);
    const int depth = dims.rank();
    for (int64_t j = 0; j < outer.num_elements(); ++j) {
      const int64_t* index = values.data() + j * depth;
      bool bad = false, negative = false;
      for (int d = 0; d < depth; ++d) {
        bad |= index[d] < 0 || index[d] >= dims[d];
        negative |= index[d] < 0;
      }
      if (!bad || (negative && naming.skip_negative)) continue;
      const std::string position = naming.what + PositionString(outer, j);
      if (!naming.nd) return errors::InvalidArgument(position, " = ", index[0], naming.range, dims[0], ")");
      return errors::InvalidArgument(position, " = [", Join(index, depth), "] does not index into ", naming.whole, " ",
                                     naming.whole_shape.ToString());
    }
    return failure;
  };
}

}  // namespace xpu
