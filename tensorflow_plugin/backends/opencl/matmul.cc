#include <string>

#include "tensorflow_plugin/backends/opencl/primitives.h"
#include "tensorflow_plugin/backends/opencl/product.h"
#include "tensorflow_plugin/backends/opencl/walk.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::opencl {
namespace {

const std::string kOperands =
#include "tensorflow_plugin/backends/opencl/matmul.cl.inc"
    ;

}  // namespace

bool Supports(const Abilities& abilities, const MatMulDesc& desc) {
  return HasRegister(abilities, desc.type) && desc.type != DType::kBool &&
         (!HasEpilogue(desc) || HasProgram(abilities, *desc.epilogue.program));
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

  std::vector<int64_t> table = WalkTable(batch, {&a, &b, &c});
  if (table.empty()) table.push_back(0);  // a buffer has at least a byte
  Products products{desc.type, desc.m, desc.n, desc.k, batch.num_elements()};
  products.kind = desc.transpose_a | desc.transpose_b << 1;
  products.key = errors::Concat("matmul ", Name(desc.type));
  products.operands = [] { return kOperands; };
  products.set_arguments = [&](Call& call) {
    for (int64_t stride : {desc.transpose_a ? 1 : lda, desc.transpose_a ? lda : 1, desc.transpose_b ? 1 : ldb,
                           desc.transpose_b ? ldb : 1, ldc}) {
      call.Value(static_cast<cl_long>(stride));
    }
    for (bool conjugate : {desc.conjugate_a, desc.conjugate_b}) {
      if (desc.type == DType::kComplex64) call.Value<cl_float>(conjugate ? -1 : 1);
      if (desc.type == DType::kComplex128) call.Value<cl_double>(conjugate ? -1 : 1);
    }
    call.Memory(args.in[0]).Memory(args.in[1]).Memory(args.out[0]);
    call.Value(static_cast<cl_int>(batch.rank())).Table(table);
  };
  return RunProducts(machine, queue, products, args, Epilogue(desc));
}

}  // namespace xpu::opencl
