#include <string>

#include "tensorflow_plugin/backends/opencl/primitives.h"
#include "tensorflow_plugin/backends/opencl/walk.h"

namespace xpu::opencl {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/opencl/matmul.cl.inc"
    ;

// Elements of a tile's side that an item computes; a group has as many items as every device's may have.
constexpr int kEach = 4;

std::string Source(DType type, int side) {
  // Integers wrap, which only unsigned ones do by themselves.
  const std::string sum = !IsInteger(type) ? RegisterOf(type) : SizeOf(type) == 8 ? "ulong" : "uint";
  const std::string fused = IsInteger(type) ? "((x) * (y) + (z))" : "fma(x, y, z)";
  return ExtensionsFor(type) + errors::Concat("#define T ", RegisterOf(type), "\n#define SUM ", sum, "\n#define SIDE ",
                                              side, "\n#define EACH ", kEach, "\n#define ADD_PRODUCT(x, y, z) ", fused,
                                              "\n#define LOAD_A(i) ", Load(type, "a", "i"), "\n#define LOAD_B(i) ",
                                              Load(type, "b", "i"), "\n#define STORE_C(i, x) ",
                                              Store(type, "c", "i", "x"), kSource);
}

}  // namespace

bool Supports(const Abilities& abilities, const MatMulDesc& desc) {
  return HasType(abilities, desc.type) && desc.type != DType::kBool && desc.epilogue.program == nullptr;
}

Status Enqueue(Machine& machine, Queue& queue, const MatMulDesc& desc, const Args& args, const Footprint&) {
  Dims batch = desc.batch, a = desc.a_batch_strides, b = desc.b_batch_strides, c = desc.c_batch_strides;
  if (c.empty()) {
    c = DenseStrides(batch);
    for (int i = 0; i < c.rank(); ++i) c[i] *= desc.m * desc.n;
  }
  Dims* const strides[] = {&a, &b, &c};
  MergeDims(&batch, strides, 3);
  const int64_t lda = desc.lda != 0 ? desc.lda : desc.transpose_a ? desc.m : desc.k;
  const int64_t ldb = desc.ldb != 0 ? desc.ldb : desc.transpose_b ? desc.k : desc.n;
  const int64_t ldc = desc.ldc != 0 ? desc.ldc : desc.n;

  const int side = machine.hardware().largest_group >= 256 ? 16 : 8;
  Call call(machine, queue, errors::Concat("matmul ", Name(desc.type)), [&] { return Source(desc.type, side); });
  for (int64_t extent : {desc.m, desc.n, desc.k}) call.Value(static_cast<cl_ulong>(extent));
  for (int64_t stride : {desc.transpose_a ? 1 : lda, desc.transpose_a ? lda : 1, desc.transpose_b ? 1 : ldb,
                         desc.transpose_b ? ldb : 1, ldc}) {
    call.Value(static_cast<cl_long>(stride));
  }
  call.Memory(args.in[0]).Memory(args.in[1]).Memory(args.out[0]);
  call.Value(static_cast<cl_int>(batch.rank()));
  std::vector<int64_t> table = WalkTable(batch, {&a, &b, &c});
  if (table.empty()) table.push_back(0);  // a buffer has at least a byte
  call.Table(table);
  const auto tiles = [&](int64_t extent) { return static_cast<size_t>((extent + side * kEach - 1) / (side * kEach)); };
  const size_t local[] = {static_cast<size_t>(side), static_cast<size_t>(side), 1};
  const size_t groups[] = {tiles(desc.n), tiles(desc.m), static_cast<size_t>(batch.num_elements())};
  return call.RunGroups(groups, local);
}

}  // namespace xpu::opencl
