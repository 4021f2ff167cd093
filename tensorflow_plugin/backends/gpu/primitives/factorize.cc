#include <algorithm>
#include <string>

#include "tensorflow_plugin/backends/gpu/primitives/matrices.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kCholesky =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/factorize_cholesky.cl.inc"
    ;
const std::string kLu =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/factorize_lu.cl.inc"
    ;
const std::string kQr =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/factorize_qr.cl.inc"
    ;
const std::string kJacobi =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/matrix_jacobi.cl.inc"
    ;
const std::string kEigen =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/factorize_eigen.cl.inc"
    ;
const std::string kSvd =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/factorize_svd.cl.inc"
    ;

std::string KernelOf(FactorizeKind kind) {
  switch (kind) {
    case FactorizeKind::kCholesky:
      return kCholesky;
    case FactorizeKind::kLu:
      return kLuSource + kLu;
    case FactorizeKind::kQr:
      return kQr;
    case FactorizeKind::kEigen:
      return kJacobi + kEigen;
    case FactorizeKind::kSvd:
      return kJacobi + kSvd;
  }
  return "";
}

int64_t Least(const FactorizeDesc& d) { return std::min(d.rows, d.cols); }
int64_t ColumnsOfU(const FactorizeDesc& d) { return d.full ? d.rows : Least(d); }
int64_t ColumnsOfV(const FactorizeDesc& d) { return d.full ? d.cols : Least(d); }

// Elements of a matrix's scratch memory; the kernels' sources say what they are.
int64_t ScratchOf(const FactorizeDesc& d) {
  switch (d.kind) {
    case FactorizeKind::kCholesky:
    case FactorizeKind::kLu:
      return 0;
    case FactorizeKind::kQr:
      return d.rows * d.cols + Least(d) + std::max(d.cols, ColumnsOfU(d));
    case FactorizeKind::kEigen:
      return 2 * d.rows * d.rows;
    case FactorizeKind::kSvd:
      return d.rows * d.cols + Least(d) * Least(d) + Least(d);
  }
  return 0;
}

}  // namespace

bool Supports(const Abilities& abilities, const FactorizeDesc& desc) { return HasMatrices(abilities, desc.type); }

int64_t WorkspaceBytes(const FactorizeDesc& desc) {
  return desc.batch * ScratchOf(desc) * static_cast<int64_t>(SizeOf(desc.type));
}

Status Enqueue(Machine& machine, Queue& queue, const FactorizeDesc& desc, const Args& args, const Footprint&) {
  const Hardware& hardware = machine.hardware();
  const std::string key = errors::Concat("factorize ", static_cast<int>(desc.kind), " ", Name(desc.type));
  Call call(machine, queue, key, [&] { return MatrixSource(hardware, desc.type, KernelOf(desc.kind)); });
  const auto value = [&](int64_t x) { call.Value(static_cast<uint64_t>(x)); };
  const auto flag = [&](bool x) { call.Value(static_cast<int32_t>(x)); };
  const auto outputs = [&](int count) {
    call.Memory(args.in[0]);
    for (int i = 0; i < count; ++i) call.Memory(i == 0 || desc.vectors ? args.out[i] : nullptr);
  };
  switch (desc.kind) {
    case FactorizeKind::kCholesky:
      value(desc.rows);
      outputs(1);
      return RunMatrices(call, hardware, desc.batch);
    case FactorizeKind::kLu:
      value(desc.rows);
      flag(desc.regular);
      outputs(3);
      if (!desc.regular) {
        call.Memory(nullptr);
        return RunMatrices(call, hardware, desc.batch);
      }
      call.Report();
      break;
    case FactorizeKind::kQr:
      value(desc.rows);
      value(desc.cols);
      value(ColumnsOfU(desc));
      value(ScratchOf(desc));
      outputs(2);
      call.Memory(args.workspace);
      return RunMatrices(call, hardware, desc.batch);
    case FactorizeKind::kEigen:
      value(desc.rows);
      flag(desc.vectors);
      outputs(2);
      call.Memory(args.workspace).Report();
      break;
    case FactorizeKind::kSvd:
      value(desc.rows);
      value(desc.cols);
      value(ColumnsOfU(desc));
      value(ColumnsOfV(desc));
      flag(desc.vectors);
      outputs(3);
      call.Memory(args.workspace);
      return RunMatrices(call, hardware, desc.batch);
  }
  XPU_RETURN_IF_ERROR(RunMatrices(call, hardware, desc.batch));
  const std::string name = Name(desc);
  return call.Check(args, [name](uint32_t i) { return errors::InvalidArgument(name, ": matrix ", i, " has none"); });
}

}  // namespace xpu::gpu
