#include <string>

#include "tensorflow_plugin/backends/opencl/primitives.h"
#include "tensorflow_plugin/backends/opencl/walk.h"

namespace xpu::opencl {
namespace {

const std::string kGroups =
#include "tensorflow_plugin/backends/opencl/matmul.cl.inc"
    ;
const std::string kProcessor =
#include "tensorflow_plugin/backends/opencl/matmul_processor.cl.inc"
    ;

// Elements of a tile's side that an item computes; a group has as many items as every device's may have.
constexpr int kEach = 4;
// Of a processor's item: rows, and columns by the size of what is added up, so that sums and what they are made of are
// in registers.
constexpr int kRows = 6;
int WidthOf(size_t size) { return size == 8 ? 4 : 8; }

size_t SumSize(DType type) { return SizeOf(type) == 8 ? 8 : 4; }
// Integers wrap, which only unsigned ones do by themselves.
std::string SumOf(DType type) { return !IsInteger(type) ? RegisterOf(type) : SumSize(type) == 8 ? "ulong" : "uint"; }

std::string Elements(DType type) {
  return ExtensionsFor(type) + errors::Concat("#define T ", RegisterOf(type), "\n#define SUM ", SumOf(type),
                                              "\n#define LOAD_A(i) ", Load(type, "a", "i"), "\n#define LOAD_B(i) ",
                                              Load(type, "b", "i"), "\n#define STORE_C(i, x) ",
                                              Store(type, "c", "i", "x"));
}

std::string GroupSource(DType type, int side) {
  const std::string fused = IsInteger(type) ? "((x) * (y) + (z))" : "fma(x, y, z)";
  return Elements(type) + errors::Concat("#define SIDE ", side, "\n#define EACH ", kEach,
                                         "\n#define ADD_PRODUCT(x, y, z) ", fused, kGroups);
}

std::string ProcessorSource(DType type) {
  const int width = WidthOf(SumSize(type));
  const bool dense = SizeOf(type) == SumSize(type);
  return Elements(type) + errors::Concat("#define ROWS ", kRows, "\n#define WIDTH ", width, "\n#define VECTOR ",
                                         SumOf(type), width, "\n#define LOAD_VECTOR vload", width,
                                         "\n#define STORE_VECTOR vstore", width, "\n#define DENSE ", dense ? 1 : 0,
                                         kProcessor);
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

  const bool is_processor = machine.hardware().is_processor;
  const int side = machine.hardware().largest_group >= 256 ? 16 : 8;
  Call call(machine, queue, errors::Concat("matmul ", Name(desc.type)),
            [&] { return is_processor ? ProcessorSource(desc.type) : GroupSource(desc.type, side); });
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
  const auto tiles = [](int64_t extent, int64_t tile) { return static_cast<size_t>((extent + tile - 1) / tile); };
  const size_t batches = static_cast<size_t>(batch.num_elements());
  if (is_processor) {
    // Rows first: they read the same columns of b.
    const size_t groups[] = {tiles(desc.m, kRows), tiles(desc.n, 2 * WidthOf(SumSize(desc.type))), batches};
    const size_t local[] = {1, 1, 1};
    return call.RunGroups(groups, local);
  }
  const size_t groups[] = {tiles(desc.n, side * kEach), tiles(desc.m, side * kEach), batches};
  const size_t local[] = {static_cast<size_t>(side), static_cast<size_t>(side), 1};
  return call.RunGroups(groups, local);
}

}  // namespace xpu::opencl
