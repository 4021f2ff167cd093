#include "tensorflow_plugin/backends/cuda/blas/blas_matmul.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "tensorflow_plugin/backends/cuda/blas/blas_epilogue.h"
#include "tensorflow_plugin/backends/cuda/library_commands.h"
#include "tensorflow_plugin/backends/cuda/library_types.h"
#include "tensorflow_plugin/backends/cuda/machine.h"
#include "tensorflow_plugin/backends/cuda/nan_trial.h"
#include "tensorflow_plugin/backends/cuda/queue.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/canonical.h"
#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/float_precision.h"

namespace xpu::cuda {
namespace {

// No algorithm asks for more.
constexpr uint64_t kMostAlignment = 256;

// The fields of a key, in this order.
enum Field {
  kType,
  kM,
  kN,
  kK,
  kLda,
  kLdb,
  kLdc,
  kOperationA,
  kOperationB,
  kBatches,
  kStrideA,
  kStrideB,
  kStrideC,
  kAlignmentA,
  kAlignmentB,
  kAlignmentC,
  kTf32,
  kEpilogue,        // BlasEpilogueBits
  kAlignmentBias,   // 0: there is none
  kAlignmentAdded,  // 0: there is none
  kFields,
};

// cuBLASLt multiplies 8-bit integers where rows of all matrices are whole words, and where b is transposed, as a copy
// of it may be. The sums of so many terms fit into 32 bits, so that nobody sees what becomes of greater ones.
bool IsFor8Bit(const MatMulDesc& desc, const Args& args) {
  constexpr int64_t kMostTerms = (int64_t{1} << 17) - 1, kWord = 4;
  if (TypeOfB(desc) != DType::kInt8 || TypeOfC(desc) != DType::kInt32) return false;
  for (const void* matrix : {args.in[0], args.in[1], static_cast<const void*>(args.out[0])}) {
    if (AddressOf(matrix) % kWord != 0) return false;
  }
  return !desc.transpose_a && desc.k <= kMostTerms && desc.k % kWord == 0 && desc.n % kWord == 0 &&
         desc.lda % kWord == 0 && desc.ldc % kWord == 0 && (!desc.transpose_b || desc.ldb % kWord == 0);
}
// With fewer rows the product reads less than the copy of b.
constexpr int64_t kLeastRowsForCopy = 32;

template <typename T>
void Set(const CublasLt& blas, LayoutHandle layout, LayoutAttribute attribute, T value) {
  (void)blas.LayoutSet(layout, attribute, &value, sizeof(value));
}

}  // namespace

struct BlasMatmul::Plan {
  ~Plan() {
    const CublasLt& blas = *FindCublasLt(nullptr);
    if (desc != nullptr) (void)blas.DescDestroy(desc);
    for (LayoutHandle layout : {a, b, c}) {
      if (layout != nullptr) (void)blas.LayoutDestroy(layout);
    }
  }
  MatmulHandle desc = nullptr;
  LayoutHandle a = nullptr, b = nullptr, c = nullptr;
  MatmulHeuristic best{};
  bool is_usable = false;
  DType type = DType::kInvalid;
  std::string what;  // for messages
  // A call sets the bias in `desc`, which the library has read when the call returns.
  mutable std::mutex mutex;
};

BlasMatmul::BlasMatmul() = default;

BlasMatmul::~BlasMatmul() {
  plans_.clear();
  if (handle_ != nullptr) (void)FindCublasLt(nullptr)->Destroy(handle_);
}

std::unique_ptr<BlasMatmul::Plan> BlasMatmul::MakePlan(const Key& key) {
  const CublasLt& blas = *FindCublasLt(nullptr);
  auto plan = std::make_unique<Plan>();
  const auto type = static_cast<DType>(key[kType]);
  plan->type = type;
  plan->what = errors::Concat(key[kM], " x ", key[kK], " and ", key[kK], " x ", key[kN], " ", Name(type));
  const std::optional<BlasType> of_elements = BlasTypeOf(type);
  const bool is_8_bit = type == DType::kInt8;
  const std::optional<BlasType> of_sums = is_8_bit ? kR32I : BlasTypeOf(IsReducedFloat(type) ? DType::kFloat : type);
  if (!of_elements.has_value() || !of_sums.has_value()) return plan;
  const int compute = is_8_bit                             ? kCompute32I
                      : RealTypeOf(type) == DType::kDouble ? kCompute64F
                      : key[kTf32] != 0                    ? kCompute32FFastTf32
                                                           : kCompute32F;
  // cuBLASLt's matrices have their columns in a row: it sees ours transposed, and computes c' = b' a'.
  const auto make = [&](LayoutHandle* layout, BlasType of, int64_t rows, int64_t columns, int64_t leading,
                        int64_t stride) {
    if (blas.LayoutCreate(layout, of, static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), leading) != 0) {
      return false;
    }
    if (key[kBatches] > 1) {
      Set<int32_t>(blas, *layout, kLayoutBatchCount, static_cast<int32_t>(key[kBatches]));
      Set<int64_t>(blas, *layout, kLayoutBatchStride, stride);
    }
    return true;
  };
  const bool swaps_a = key[kOperationA] != kBlasN, swaps_b = key[kOperationB] != kBlasN;
  const int64_t m = key[kM], n = key[kN], k = key[kK];
  if (blas.DescCreate(&plan->desc, compute, *of_sums) != 0 ||
      !make(&plan->a, *of_elements, swaps_a ? k : m, swaps_a ? m : k, key[kLda], key[kStrideA]) ||
      !make(&plan->b, *of_elements, swaps_b ? n : k, swaps_b ? k : n, key[kLdb], key[kStrideB]) ||
      !make(&plan->c, is_8_bit ? *of_sums : *of_elements, m, n, key[kLdc], key[kStrideC])) {
    return plan;
  }
  const auto first = static_cast<int32_t>(key[kOperationB]), second = static_cast<int32_t>(key[kOperationA]);
  if (blas.DescSet(plan->desc, kMatmulTransA, &first, sizeof(first)) != 0 ||
      blas.DescSet(plan->desc, kMatmulTransB, &second, sizeof(second)) != 0) {
    return plan;
  }
  const auto epilogue = static_cast<int32_t>(key[kEpilogue]);
  if (epilogue != kEpilogueNone && blas.DescSet(plan->desc, kMatmulEpilogue, &epilogue, sizeof(epilogue)) != 0) {
    return plan;
  }
  if ((epilogue & kEpilogueBias) != 0) {
    // The search looks at the alignment of this address, and at nothing behind it.
    const auto bias = static_cast<uint64_t>(key[kAlignmentBias]);
    if (blas.DescSet(plan->desc, kMatmulBias, &bias, sizeof(bias)) != 0) return plan;
  }
  PreferenceHandle preference = nullptr;
  if (blas.PreferenceCreate(&preference) != 0) return plan;
  const uint64_t scratch = Queue::kScratchBytes;
  (void)blas.PreferenceSet(preference, kPreferenceWorkspaceBytes, &scratch, sizeof(scratch));
  // Parts of a sum that are rounded to 16 bits would make its error larger than that of one rounding.
  (void)blas.PreferenceSet(preference, kPreferenceReductionSchemes, &kReduceInTypeOfSums, sizeof(kReduceInTypeOfSums));
  int attribute = kPreferenceAlignmentA;
  for (Field field :
       {kAlignmentB, kAlignmentA, key[kAlignmentAdded] != 0 ? kAlignmentAdded : kAlignmentC, kAlignmentC}) {
    const auto alignment = static_cast<uint32_t>(key[field]);
    (void)blas.PreferenceSet(preference, attribute++, &alignment, sizeof(alignment));
  }
  int found = 0;
  plan->is_usable = blas.GetHeuristic(handle_, plan->desc, plan->b, plan->a, plan->c, plan->c, preference, 1,
                                      &plan->best, &found) == 0 &&
                    found > 0 && plan->best.state == 0;
  (void)blas.PreferenceDestroy(preference);
  return plan;
}

const BlasMatmul::Plan* BlasMatmul::FindPlan(Machine& machine, Queue& queue, const Key& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (is_absent_) return nullptr;
  if (handle_ == nullptr) {
    const CublasLt* const blas = FindCublasLt(nullptr);
    is_absent_ = blas == nullptr || blas->Create(&handle_) != 0;
    if (is_absent_) return nullptr;
  }
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second->is_usable ? found->second.get() : nullptr;
  const bool has_relu = (key[kEpilogue] & kEpilogueRelu) != 0;
  if (has_relu && queue.is_capturing()) return nullptr;  // nothing can be tried now
  std::unique_ptr<Plan> plan = MakePlan(key);
  if (plan->is_usable && has_relu) plan->is_usable = KeepsNan(machine, key, *plan);
  const Plan* const made = plan.get();
  plans_[key] = std::move(plan);
  return made->is_usable ? made : nullptr;
}

bool BlasMatmul::KeepsNan(Machine& machine, const Key& key, const Plan& plan) {
  // The product with the extents that it will have. All operands but the result are one block of NaN.
  const auto bytes = [&](int64_t rows, int64_t leading, Field stride) {
    const int64_t elements = rows * leading + (key[kBatches] - 1) * key[stride];
    return static_cast<size_t>(elements) * SizeOf(plan.type);
  };
  const size_t of_a = bytes(key[kOperationA] == kBlasN ? key[kM] : key[kK], key[kLda], kStrideA);
  const size_t of_b = bytes(key[kOperationB] == kBlasN ? key[kK] : key[kN], key[kLdb], kStrideB);
  const size_t of_c = bytes(key[kM], key[kLdc], kStrideC), size = std::max({of_a, of_b, of_c});
  return xpu::cuda::KeepsNan(machine, plan.type, size, of_c, plan.best.workspace_bytes,
                             [&](void* nan, void* out, void* scratch, StreamHandle stream) {
                               const Operands operands = {nan, nan, key[kAlignmentBias] != 0 ? nan : nullptr,
                                                          key[kAlignmentAdded] != 0 ? nan : nullptr, out};
                               return Run(plan, operands, scratch, stream);
                             });
}

Status BlasMatmul::Run(const Plan& plan, const Operands& operands, void* scratch, StreamHandle stream) const {
  // Numbers of the type of sums, 16 bytes at most.
  const double one_double[2] = {1, 0}, zero[2] = {0, 0};
  const float one_float[2] = {1, 0};
  const int32_t one_integer = 1;
  const void* const one = RealTypeOf(plan.type) == DType::kDouble ? static_cast<const void*>(one_double)
                          : plan.type == DType::kInt8             ? &one_integer
                                                                  : static_cast<const void*>(one_float);
  const bool has_added = operands.added != nullptr;
  const CublasLt& blas = *FindCublasLt(nullptr);
  std::lock_guard<std::mutex> lock(plan.mutex);
  int error = 0;
  if (operands.bias != nullptr) error = blas.DescSet(plan.desc, kMatmulBias, &operands.bias, sizeof(operands.bias));
  if (error == 0) {
    error = blas.Matmul(handle_, plan.desc, one, operands.b, plan.b, operands.a, plan.a,
                        has_added ? one : static_cast<const void*>(zero), has_added ? operands.added : operands.out,
                        plan.c, operands.out, plan.c, &plan.best.algorithm, scratch, plan.best.workspace_bytes, stream);
  }
  return error == 0 ? OkStatus()
                    : errors::Internal("cublasLtMatmul of ", plan.what, " failed with cublasStatus_t ", error);
}

namespace {

// The epilogue, over the elements where the matmul has left them.
Status EnqueueEpilogue(Machine& machine, Queue& queue, const MatMulDesc& desc, const Args& args) {
  ElementwiseDesc elements = desc.epilogue;
  elements.in_strides[0] = DenseStrides(elements.shape);
  Args of_elements = args;
  of_elements.in[0] = args.out[0];
  for (int i = 1; i < elements.program->num_inputs(); ++i) of_elements.in[i] = args.in[i + 1];
  Footprint footprint;
  XPU_RETURN_IF_ERROR(Check(elements, &footprint));
  return gpu::Enqueue(machine, queue, elements, of_elements, footprint);
}

}  // namespace

Status BlasMatmul::Enqueue(Machine& machine, Queue& queue, const MatMulDesc& desc, const Args& args, bool* enqueued) {
  *enqueued = false;
  if (!BlasTypeOf(desc.type).has_value()) return OkStatus();
  // There are no conjugates of matrices that are not transposed.
  if ((desc.conjugate_a && !desc.transpose_a) || (desc.conjugate_b && !desc.transpose_b)) return OkStatus();
  const MatMulLayout layout(desc);
  const Dims &batch = layout.batch, &of_c = layout.c_strides;
  if (batch.rank() > 1) return OkStatus();
  const bool is_batched = batch.rank() == 1 && batch[0] != 1, has_epilogue = HasEpilogue(desc);
  const bool is_dense = layout.ldc == desc.n && (!is_batched || of_c[0] == desc.m * desc.n);
  if (has_epilogue && !is_dense) return OkStatus();
  const bool is_8_bit = desc.type == DType::kInt8, turns_b = is_8_bit && !desc.transpose_b;
  if (is_8_bit && (is_batched || !IsFor8Bit(desc, args))) return OkStatus();
  const size_t turned_bytes = turns_b ? static_cast<size_t>(desc.k) * static_cast<size_t>(desc.n) : 0;
  if (turns_b && (desc.m < kLeastRowsForCopy || turned_bytes > Queue::kMostScratchBytes - Queue::kScratchBytes)) {
    return OkStatus();
  }

  void* const out = args.out[0];
  Key key(kFields);
  key[kType] = static_cast<int64_t>(desc.type);
  key[kM] = desc.m;
  key[kN] = desc.n;
  key[kK] = desc.k;
  key[kLda] = layout.lda;
  key[kLdb] = layout.ldb;
  key[kLdc] = layout.ldc;
  key[kOperationA] = desc.conjugate_a ? kBlasC : desc.transpose_a ? kBlasT : kBlasN;
  key[kOperationB] = desc.conjugate_b ? kBlasC : desc.transpose_b ? kBlasT : kBlasN;
  key[kBatches] = is_batched ? batch[0] : 1;
  key[kStrideA] = is_batched ? layout.a_strides[0] : 0;
  key[kStrideB] = is_batched ? layout.b_strides[0] : 0;
  key[kStrideC] = is_batched ? of_c[0] : 0;
  key[kAlignmentA] = AlignmentOf(args.in[0], kMostAlignment);
  key[kAlignmentB] = AlignmentOf(args.in[1], kMostAlignment);
  key[kAlignmentC] = AlignmentOf(out, kMostAlignment);
  key[kTf32] = desc.type == DType::kFloat && AllowsTf32();
  key[kEpilogue] = kEpilogueNone;
  if (turns_b) {
    key[kOperationB] = kBlasT;
    key[kLdb] = desc.k;
    key[kAlignmentB] = kMostAlignment;
  }
  XPU_RETURN_IF_ERROR(queue.Enter());

  Operands operands = {args.in[0], args.in[1], nullptr, nullptr, out};
  const Plan* plan = nullptr;
  bool applies = false;  // the library the epilogue
  if (BlasEpilogue epilogue; has_epilogue && FindBlasEpilogue(desc.type, desc.n, desc.epilogue, &epilogue)) {
    Key with = key;
    const int64_t steps = (epilogue.bias != 0 ? kEpilogueBias : 0) | (epilogue.relu ? kEpilogueRelu : 0);
    if (steps != 0) with[kEpilogue] = steps;
    // Input i of the program is argument i + 1.
    const void* const bias = epilogue.bias != 0 ? args.in[epilogue.bias + 1] : nullptr;
    const void* const added = epilogue.added != 0 ? args.in[epilogue.added + 1] : nullptr;
    if (bias != nullptr) with[kAlignmentBias] = AlignmentOf(bias, kMostAlignment);
    if (added != nullptr) with[kAlignmentAdded] = AlignmentOf(added, kMostAlignment);
    plan = FindPlan(machine, queue, with);
    applies = plan != nullptr;
    if (applies) operands = {args.in[0], args.in[1], bias, added, out};
  }
  if (plan == nullptr) plan = FindPlan(machine, queue, key);
  if (plan == nullptr) return OkStatus();

  void* scratch = nullptr;
  const std::unique_lock<std::mutex> turn = queue.TakeScratchTurn();
  XPU_RETURN_IF_ERROR(queue.Scratch(Queue::kScratchBytes + turned_bytes, &scratch));
  if (turns_b) {
    char* const turned = static_cast<char*>(scratch) + Queue::kScratchBytes;
    CopyStridedDesc transpose;
    transpose.element_size = 1;
    transpose.shape = {desc.n, desc.k};
    transpose.src_strides = {1, desc.ldb != 0 ? desc.ldb : desc.n};
    transpose.dst_strides = DenseStrides(transpose.shape);
    XPU_RETURN_IF_ERROR(EnqueueCopy(machine, queue, transpose, operands.b, turned));
    operands.b = turned;
  }
  XPU_RETURN_IF_ERROR(queue.SubmitCommand(
      [this, plan, operands, scratch, stream = queue.stream()] { return Run(*plan, operands, scratch, stream); }));
  *enqueued = true;
  return has_epilogue && !applies ? EnqueueEpilogue(machine, queue, desc, args) : OkStatus();
}

}  // namespace xpu::cuda
