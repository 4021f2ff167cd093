#include <algorithm>
#include <string>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/gpu/primitives/product.h"
#include "tensorflow_plugin/primitives/canonical.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kOperands =
#include "tensorflow_plugin/backends/gpu/kernels/matmul/matmul.cl.inc"
    ;

// Gradients to weights are sums of many terms for few elements. Parts of those, as many as keep a large device busy,
// are products of a batch, which are added up. By the shape alone, so that scratch memory is known early; 1: no parts.
int64_t PartsOf(const MatMulDesc& desc) {
  constexpr int64_t kTile = 128, kTiles = 264, kShortest = 512;
  const bool is_dense = desc.batch.num_elements() == 1 && (desc.ldc == 0 || desc.ldc == desc.n);
  if (!desc.transpose_a || desc.transpose_b || !is_dense || HasEpilogue(desc) || desc.m <= 0 || desc.n <= 0) return 1;
  if (desc.type != DType::kFloat && desc.type != DType::kDouble) return 1;
  const auto tiles = [](int64_t extent) { return (extent + kTile - 1) / kTile; };
  int64_t parts = std::min(kTiles / (tiles(desc.m) * tiles(desc.n)), desc.k / kShortest);
  while (parts > 1 && desc.k % parts != 0) --parts;
  return std::max<int64_t>(1, parts);
}

Status EnqueueParts(Machine& machine, Queue& queue, const MatMulDesc& desc, const Args& args, int64_t count) {
  MatMulDesc parts = desc;
  const MatMulLayout layout(desc);
  parts.k = desc.k / count;
  parts.batch = {count};
  parts.a_batch_strides = {parts.k * layout.lda};
  parts.b_batch_strides = {parts.k * layout.ldb};
  parts.c_batch_strides = {desc.m * desc.n};
  Args of_parts = args;
  of_parts.out[0] = args.workspace;
  XPU_RETURN_IF_ERROR(Enqueue(machine, queue, parts, of_parts, Footprint()));
  return AddParts(machine, queue, desc.type, desc.m * desc.n, count, args, KernelEpilogue(desc.type));
}

}  // namespace

int64_t WorkspaceBytes(const Abilities& abilities, const MatMulDesc& desc) {
  const int64_t parts = abilities.only_processors ? 1 : PartsOf(desc);
  return parts == 1 ? 0 : parts * desc.m * desc.n * static_cast<int64_t>(SumSize(desc.type));
}

bool Supports(const Abilities& abilities, const MatMulDesc& desc) {
  return HasRegister(abilities, desc.type) && HasRegister(abilities, TypeOfB(desc)) &&
         HasRegister(abilities, TypeOfC(desc)) && desc.type != DType::kBool &&
         (!HasEpilogue(desc) || HasProgram(abilities, *desc.epilogue.program));
}

Status Enqueue(Machine& machine, Queue& queue, const MatMulDesc& desc, const Args& args, const Footprint&) {
  if (const int64_t parts = PartsOf(desc); parts > 1 && !machine.hardware().is_processor) {
    return EnqueueParts(machine, queue, desc, args, parts);
  }
  const MatMulLayout layout(desc);
  const Dims& batch = layout.batch;
  std::vector<int64_t> table = WalkTable(batch, {&layout.a_strides, &layout.b_strides, &layout.c_strides});
  if (table.empty()) table.push_back(0);  // a buffer has at least a byte
  Products products{};
  products.type = TypeOfC(desc);
  products.a_type = desc.type;
  products.b_type = TypeOfB(desc);
  products.m = desc.m;
  products.n = desc.n;
  products.k = desc.k;
  products.batches = batch.num_elements();
  products.kind = desc.transpose_a | desc.transpose_b << 1 | IsMixed(desc) << 3;
  products.a_dense = !desc.transpose_a;
  products.b_dense = !desc.transpose_b;
  products.key = errors::Concat("matmul ", Name(desc.type), " ", Name(products.b_type), " ", Name(products.type));
  products.operands = [] { return kOperands; };
  products.set_arguments = [&](Call& call) {
    const int64_t lda = layout.lda, ldb = layout.ldb;
    for (int64_t stride : {desc.transpose_a ? 1 : lda, desc.transpose_a ? lda : 1, desc.transpose_b ? 1 : ldb,
                           desc.transpose_b ? ldb : 1, layout.ldc}) {
      call.Value(static_cast<int64_t>(stride));
    }
    for (bool conjugate : {desc.conjugate_a, desc.conjugate_b}) {
      if (desc.type == DType::kComplex64) call.Value<float>(conjugate ? -1 : 1);
      if (desc.type == DType::kComplex128) call.Value<double>(conjugate ? -1 : 1);
    }
    call.Memory(args.in[0]).Memory(args.in[1]).Memory(args.out[0]);
    call.Value(static_cast<int32_t>(batch.rank())).Table(table);
  };
  return RunProducts(machine, queue, products, args, KernelEpilogue(desc));
}

}  // namespace xpu::gpu
