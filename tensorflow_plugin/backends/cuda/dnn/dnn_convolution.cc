#include "tensorflow_plugin/backends/cuda/dnn/dnn_convolution.h"

#include <algorithm>
#include <utility>

#include "tensorflow_plugin/backends/cuda/blas/blas_epilogue.h"
#include "tensorflow_plugin/backends/cuda/dnn/dnn_descriptor.h"
#include "tensorflow_plugin/backends/cuda/dnn/dnn_graph.h"
#include "tensorflow_plugin/backends/cuda/library_commands.h"
#include "tensorflow_plugin/backends/cuda/library_types.h"
#include "tensorflow_plugin/backends/cuda/machine.h"
#include "tensorflow_plugin/backends/cuda/nan_trial.h"
#include "tensorflow_plugin/backends/cuda/queue.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/determinism.h"
#include "tensorflow_plugin/primitives/float_precision.h"

namespace xpu::cuda {
namespace {

// No engine asks for more.
constexpr int64_t kMostAlignment = 16;

constexpr size_t kScratchAlignment = 256;
size_t Aligned(size_t bytes) { return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment; }

// False for gradients of float without TF32 that the kernels of backends/gpu compute better. On an H100 cuDNN 9.19 was
// hardly faster for filters, and rounded more than once. For images with strides it took a loop over all elements, 4 to
// 7 times as slow.
bool IsForCudnn(const ConvolutionDesc& desc, bool tf32) {
  if (desc.type != DType::kFloat || tf32 || desc.groups > 1) return true;
  if (desc.direction == Direction::kFilterGradient) return false;
  const bool has_strides = std::any_of(desc.stride, desc.stride + desc.spatial_rank, [](int64_t s) { return s != 1; });
  return desc.direction != Direction::kDataGradient || !has_strides;
}

// A gradient to the filter, with other padding before an axis than behind it. Engines without tensor cores gave wrong
// ones with cuDNN 9.19.
bool NeedsTensorCores(const ConvolutionDesc& desc) {
  return desc.direction == Direction::kFilterGradient &&
         !std::equal(desc.pad_before, desc.pad_before + desc.spatial_rank, desc.pad_after);
}

bool HasElements(const ConvolutionDesc& d) {
  if (d.batch <= 0 || d.in_channels <= 0 || d.out_channels <= 0) return false;
  for (int i = 0; i < d.spatial_rank; ++i) {
    if (d.input[i] <= 0 || d.filter[i] <= 0 || d.output[i] <= 0) return false;
  }
  return true;
}

// The filter as cuDNN has it, [out_channels, spatial..., channels] or [out_channels, channels, spatial...], from
// TensorFlow's [spatial..., channels, out_channels].
CopyStridedDesc TurnFilter(const ConvolutionDesc& desc) {
  const int64_t pixels = host_runtime::Pixels(desc.filter), channels = desc.in_channels / desc.groups;
  CopyStridedDesc copy;
  copy.element_size = SizeOf(desc.type);
  if (desc.order == ChannelOrder::kLast) {
    copy.shape = {desc.out_channels, pixels, channels};
    copy.src_strides = {1, channels * desc.out_channels, desc.out_channels};
  } else {
    copy.shape = {desc.out_channels, channels, pixels};
    copy.src_strides = {1, desc.out_channels, channels * desc.out_channels};
  }
  copy.dst_strides = DenseStrides(copy.shape);
  return copy;
}

size_t FilterBytes(const ConvolutionDesc& desc) {
  return static_cast<size_t>(TurnFilter(desc).shape.num_elements()) * SizeOf(desc.type);
}

const char* NameOf(Direction direction) {
  switch (direction) {
    case Direction::kDataGradient:
      return "a gradient to the images of a convolution";
    case Direction::kFilterGradient:
      return "a gradient to the filter of a convolution";
    default:
      return "a convolution";
  }
}

// The configurations of engines that cuDNN proposes, the one it expects to be the fastest first.
Status Propose(const DnnDescriptor& graph, DnnHeuristic mode, std::vector<DnnDescriptor>* configs) {
  DnnDescriptor heuristics;
  XPU_RETURN_IF_ERROR(heuristics.Create(kDnnHeuristics));
  XPU_RETURN_IF_ERROR(heuristics.Set(kDnnHeuristicsGraph, graph));
  XPU_RETURN_IF_ERROR(heuristics.Set(kDnnHeuristicsMode, kDnnTypeHeuristic, mode));
  XPU_RETURN_IF_ERROR(heuristics.Finalize());
  int64_t count = 0;
  XPU_RETURN_IF_ERROR(heuristics.Get(kDnnHeuristicsResults, kDnnTypeDescriptor, 0, nullptr, &count));
  configs->resize(static_cast<size_t>(std::max<int64_t>(0, count)));
  std::vector<DnnDescriptorHandle> handles;
  for (DnnDescriptor& config : *configs) {
    XPU_RETURN_IF_ERROR(config.Create(kDnnEngineConfig));
    handles.push_back(config.handle());
  }
  if (count <= 0) return OkStatus();
  XPU_RETURN_IF_ERROR(heuristics.Get(kDnnHeuristicsResults, kDnnTypeDescriptor, count, handles.data(), &count));
  // It proposes fewer than it says there may be.
  configs->resize(std::min(configs->size(), static_cast<size_t>(std::max<int64_t>(0, count))));
  return OkStatus();
}

struct EngineInfo {
  int64_t index = 0;
  std::vector<int> notes, behavior;
};

Status Describe(const DnnDescriptor& config, EngineInfo* info) {
  DnnDescriptor engine;
  XPU_RETURN_IF_ERROR(engine.Create(kDnnEngine));
  DnnDescriptorHandle handle = engine.handle();
  XPU_RETURN_IF_ERROR(config.Get(kDnnConfigEngine, kDnnTypeDescriptor, 1, &handle));
  XPU_RETURN_IF_ERROR(engine.Get(kDnnEngineIndex, kDnnTypeInt64, 1, &info->index));
  const auto get = [&](DnnAttribute attribute, DnnType type, std::vector<int>* notes) -> Status {
    notes->resize(kDnnNotes);
    int64_t count = 0;
    XPU_RETURN_IF_ERROR(engine.Get(attribute, type, kDnnNotes, notes->data(), &count));
    notes->resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, kDnnNotes)));
    return OkStatus();
  };
  XPU_RETURN_IF_ERROR(get(kDnnEngineNotes, kDnnTypeNote, &info->notes));
  return get(kDnnEngineBehavior, kDnnTypeBehavior, &info->behavior);
}

bool HasAny(const std::vector<int>& all, const std::vector<int>& wanted) {
  return std::find_first_of(all.begin(), all.end(), wanted.begin(), wanted.end()) != all.end();
}

}  // namespace

struct DnnConvolution::Plan {
  DnnDescriptor config, descriptor;
  size_t workspace_bytes = 0, scratch_bytes = 0;  // of the scratch, the filter's come first
  bool is_usable = false;
  std::string how;  // the engine, or why there is none
};

// All that a plan depends on.
struct DnnConvolution::Key {
  ConvolutionDesc desc;  // of its epilogue, nothing
  DnnSteps steps;
  int64_t alignments[kDnnTensors];
  bool tf32, deterministic;
  size_t most_scratch;
  std::vector<int64_t> numbers() const;
};

std::vector<int64_t> DnnConvolution::Key::numbers() const {
  std::vector<int64_t> all = {static_cast<int64_t>(desc.direction),
                              static_cast<int64_t>(desc.type),
                              static_cast<int64_t>(desc.order),
                              desc.spatial_rank,
                              desc.batch,
                              desc.in_channels,
                              desc.out_channels,
                              desc.groups,
                              steps.added,
                              steps.bias,
                              steps.relu,
                              tf32,
                              deterministic,
                              static_cast<int64_t>(most_scratch)};
  all.insert(all.end(), std::begin(alignments), std::end(alignments));
  for (const int64_t* extents :
       {desc.input, desc.filter, desc.output, desc.stride, desc.dilation, desc.pad_before, desc.pad_after}) {
    all.insert(all.end(), extents, extents + desc.spatial_rank);
  }
  return all;
}

DnnConvolution::DnnConvolution() = default;

DnnConvolution::~DnnConvolution() {
  plans_.clear();
  if (handle_ != nullptr) (void)FindCudnn(nullptr)->Destroy(handle_);
}

Status DnnConvolution::MakePlan(const Key& key, Plan* plan) {
  DnnGraph graph;
  XPU_RETURN_IF_ERROR(MakeDnnGraph(handle_, key.desc, key.steps, key.alignments, &graph));
  const size_t filter_bytes = Aligned(FilterBytes(key.desc));
  // Sums are of exact products, so that whole numbers have exact results and a NaN stays where it belongs. A filter
  // turned for Fourier's or Winograd's method has neither.
  std::vector<int> unwanted = {kDnnRoundsInputs, kDnnReducedSums, kDnnFft, kDnnWinograd};
  if (key.desc.type == DType::kFloat && !key.tf32) unwanted.push_back(kDnnTensorCores);
  if (key.deterministic) unwanted.push_back(kDnnNondeterministic);
  int proposed = 0, of_other_numbers = 0, too_large = 0;
  Status last;
  for (DnnHeuristic mode : {kDnnModeA, kDnnFallback}) {
    if (key.steps.any() && mode == kDnnFallback) break;
    std::vector<DnnDescriptor> configs;
    last = Propose(graph.graph, mode, &configs);
    for (DnnDescriptor& config : configs) {
      ++proposed;
      EngineInfo engine;
      last = Describe(config, &engine);
      if (!last.ok()) continue;
      if (HasAny(engine.notes, unwanted) || (NeedsTensorCores(key.desc) && !HasAny(engine.notes, {kDnnTensorCores}))) {
        ++of_other_numbers;
        continue;
      }
      // A kernel for the steps is better than an engine that is slow, or compiled for a second.
      if (key.steps.any() &&
          (!HasAny(engine.notes, {kDnnTensorCores}) || HasAny(engine.behavior, {kDnnCompiledAtRuntime}))) {
        continue;
      }
      DnnDescriptor descriptor;
      int64_t bytes = 0;
      last = [&] {
        XPU_RETURN_IF_ERROR(descriptor.Create(kDnnPlan));
        XPU_RETURN_IF_ERROR(descriptor.Set(kDnnPlanHandle, kDnnTypeHandle, handle_));
        XPU_RETURN_IF_ERROR(descriptor.Set(kDnnPlanConfig, config));
        XPU_RETURN_IF_ERROR(descriptor.Finalize());
        return descriptor.Get(kDnnPlanWorkspaceBytes, kDnnTypeInt64, 1, &bytes);
      }();
      if (!last.ok()) continue;
      if (filter_bytes + static_cast<size_t>(bytes) > key.most_scratch) {
        ++too_large;
        continue;
      }
      plan->config = std::move(config);
      plan->descriptor = std::move(descriptor);
      plan->workspace_bytes = static_cast<size_t>(bytes);
      plan->scratch_bytes = filter_bytes + plan->workspace_bytes;
      plan->how = errors::Concat("engine ", engine.index, " of cuDNN with ", bytes, " bytes of scratch memory, number ",
                                 proposed, " of those proposed", key.steps.any() ? ", with the epilogue" : "");
      return OkStatus();
    }
  }
  return errors::Unimplemented("cuDNN proposes ", proposed, " engines; ", of_other_numbers, " round in other ways, ",
                               too_large, " need more than ", key.most_scratch, " bytes of scratch memory",
                               last.ok() ? "" : ", and the last failure was: ", last.message());
}

// Relu has to keep NaN, or a kernel takes over.
Status DnnConvolution::TryOnNan(Machine& machine, const Key& key, const Plan& plan) {
  const ConvolutionDesc& desc = key.desc;
  const auto bytes = [&](int64_t channels, const int64_t* pixels) {
    return static_cast<size_t>(desc.batch * channels * host_runtime::Pixels(pixels)) * SizeOf(desc.type);
  };
  const size_t results = bytes(desc.out_channels, desc.output);
  const size_t operands = std::max({bytes(desc.in_channels, desc.input), results, FilterBytes(desc)});
  const bool keeps = KeepsNan(machine, desc.type, operands, results, plan.workspace_bytes,
                              [&](void* nan, void* out, void* scratch, StreamHandle stream) {
                                const std::vector<void*> pointers = {nan, nan, out, key.steps.bias ? nan : nullptr,
                                                                     key.steps.added ? nan : nullptr};
                                return Execute(plan, stream, pointers, scratch);
                              });
  return keeps ? OkStatus() : errors::Unimplemented("Relu loses NaN in ", plan.how);
}

const DnnConvolution::Plan* DnnConvolution::FindPlan(Machine& machine, Queue& queue, const Key& key, std::string* why) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (handle_ == nullptr && why_absent_.empty()) {
    const Cudnn* const dnn = FindCudnn(&why_absent_);
    if (dnn != nullptr) {
      const Status created = ToDnnStatus(dnn->Create(&handle_), "cudnnCreate");
      if (!created.ok()) {
        handle_ = nullptr;
        why_absent_ = created.message();
      }
    }
  }
  if (handle_ == nullptr) {
    *why = why_absent_;
    return nullptr;
  }
  std::vector<int64_t> numbers = key.numbers();
  const auto found = plans_.find(numbers);
  if (found != plans_.end()) return found->second.get();
  if (key.steps.relu && queue.is_capturing()) {
    *why = "nothing can be tried while commands are captured";
    return nullptr;
  }
  auto plan = std::make_unique<Plan>();
  Status status = MakePlan(key, plan.get());
  if (status.ok() && key.steps.relu) status = TryOnNan(machine, key, *plan);
  plan->is_usable = status.ok();
  if (!status.ok()) plan->how = status.message();
  return (plans_[std::move(numbers)] = std::move(plan)).get();
}

Status DnnConvolution::FindPlanAndScratch(Machine& machine, Queue& queue, Key* key, const Plan** plan, void** scratch,
                                          std::string* how) {
  // Where memory is scarce, engines that need little of it may do.
  for (size_t most : {Queue::kMostScratchBytes, Queue::kScratchBytes}) {
    key->most_scratch = most;
    *plan = FindPlan(machine, queue, *key, how);
    if (*plan == nullptr) return OkStatus();
    *how = (*plan)->how;
    if (!(*plan)->is_usable) break;
    const Status status = queue.Scratch((*plan)->scratch_bytes, scratch);
    if (status.ok()) return status;
    if (most == Queue::kScratchBytes) return status;
  }
  *plan = nullptr;
  return OkStatus();
}

Status DnnConvolution::Execute(const Plan& plan, StreamHandle stream, const std::vector<void*>& pointers,
                               void* workspace) {
  DnnDescriptor pack;
  std::vector<int64_t> ids;
  std::vector<void*> of_ids;
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (pointers[i] == nullptr) continue;
    ids.push_back(static_cast<int64_t>(i) + 1);
    of_ids.push_back(pointers[i]);
  }
  XPU_RETURN_IF_ERROR(pack.Create(kDnnVariantPack));
  XPU_RETURN_IF_ERROR(pack.Set(kDnnPackIds, kDnnTypeInt64, ids));
  XPU_RETURN_IF_ERROR(pack.Set(kDnnPackPointers, kDnnTypePointer, of_ids));
  XPU_RETURN_IF_ERROR(pack.Set(kDnnPackWorkspace, kDnnTypePointer, workspace));
  XPU_RETURN_IF_ERROR(pack.Finalize());
  const Cudnn& dnn = *FindCudnn(nullptr);
  XPU_RETURN_IF_ERROR(ToDnnStatus(dnn.SetStream(handle_, stream), "cudnnSetStream"));
  return ToDnnStatus(dnn.Execute(handle_, plan.descriptor.handle(), pack.handle()), "cudnnBackendExecute");
}

Status DnnConvolution::Enqueue(Machine& machine, Queue& queue, const ConvolutionDesc& desc, const Args& args,
                               bool* enqueued, std::string* how) {
  *enqueued = false;
  std::string unused;
  if (how == nullptr) how = &unused;
  if (!DnnNumberOf(desc.type).has_value() || !HasElements(desc) || desc.packed_filter_bytes != 0 ||
      desc.direction == Direction::kPackFilter) {
    *how = "cuDNN has no such convolution";
    return OkStatus();
  }
  const bool tf32 = desc.type == DType::kFloat && AllowsTf32();
  if (!IsForCudnn(desc, tf32)) {
    *how = "gradients of float without TF32 are for the plugin's kernels";
    return OkStatus();
  }
  const bool to_data = desc.direction == Direction::kDataGradient;
  const bool to_filter = desc.direction == Direction::kFilterGradient;
  // In the order of DnnGraphTensor. The filter is not the one that cuDNN reads or writes.
  std::vector<void*> pointers(kDnnTensors, nullptr);
  pointers[0] = const_cast<void*>(args.in[0]);
  pointers[2] = args.out[0];
  if (to_data) {
    pointers[0] = args.out[0];
    pointers[2] = const_cast<void*>(args.in[1]);
  } else if (to_filter) {
    pointers[2] = const_cast<void*>(args.in[1]);
  }
  Key key{};
  key.desc = desc;
  key.desc.epilogue = ElementwiseDesc();
  key.tf32 = tf32;
  key.deterministic = RequiresDeterminism();
  const auto align = [&] {
    for (int i = 0; i < kDnnTensors; ++i)
      key.alignments[i] = pointers[i] == nullptr ? kMostAlignment : AlignmentOf(pointers[i], kMostAlignment);
  };
  align();
  XPU_RETURN_IF_ERROR(queue.Enter());
  const Plan* plan = nullptr;
  void* scratch = nullptr;
  bool applies = false;  // cuDNN the epilogue
  if (BlasEpilogue epilogue; HasEpilogue(desc) && desc.direction == Direction::kForward &&
                             desc.order == ChannelOrder::kLast &&
                             FindBlasEpilogue(desc.type, desc.out_channels, desc.epilogue, &epilogue)) {
    key.steps.bias = epilogue.bias != 0;
    key.steps.added = epilogue.added != 0;
    key.steps.relu = epilogue.relu;
    // Input i of the program is argument i + 1.
    if (key.steps.bias) pointers[kDnnBias - 1] = const_cast<void*>(args.in[epilogue.bias + 1]);
    if (key.steps.added) pointers[kDnnAdded - 1] = const_cast<void*>(args.in[epilogue.added + 1]);
    align();
    XPU_RETURN_IF_ERROR(FindPlanAndScratch(machine, queue, &key, &plan, &scratch, how));
    applies = plan != nullptr;
    if (!applies) {
      key.steps = DnnSteps();
      pointers[kDnnBias - 1] = pointers[kDnnAdded - 1] = nullptr;
      align();
    }
  }
  if (plan == nullptr) XPU_RETURN_IF_ERROR(FindPlanAndScratch(machine, queue, &key, &plan, &scratch, how));
  if (plan == nullptr) return OkStatus();
  void* const filter = scratch;
  void* const workspace = static_cast<char*>(scratch) + Aligned(FilterBytes(desc));
  pointers[1] = filter;

  std::unique_lock<std::mutex> turn_of_scratch = queue.TakeScratchTurn();
  CopyStridedDesc turn = TurnFilter(desc);
  if (!to_filter) XPU_RETURN_IF_ERROR(EnqueueCopy(machine, queue, turn, args.in[to_data ? 0 : 1], filter));
  XPU_RETURN_IF_ERROR(queue.SubmitCommand([this, plan, pointers, workspace, type = desc.type,
                                           direction = desc.direction, batch = desc.batch, in = desc.in_channels,
                                           out = desc.out_channels, stream = queue.stream()] {
    std::lock_guard<std::mutex> lock(mutex_);
    const Status status = Execute(*plan, stream, pointers, workspace);
    if (status.ok()) return status;
    return Status(status.code(), errors::Concat(NameOf(direction), " of ", batch, " images with ", in, " channels to ",
                                                out, ", ", Name(type), ": ", status.message(), "; ", plan->how));
  }));
  *enqueued = true;
  if (to_filter) {
    std::swap(turn.src_strides, turn.dst_strides);
    XPU_RETURN_IF_ERROR(EnqueueCopy(machine, queue, turn, filter, args.out[0]));
  }
  turn_of_scratch.unlock();
  if (!HasEpilogue(desc) || applies) return OkStatus();
  const plain::EpilogueCommand rest = plain::EpilogueOf(desc, args);
  Footprint footprint;
  XPU_RETURN_IF_ERROR(Check(rest.desc, &footprint));
  return gpu::Enqueue(machine, queue, rest.desc, rest.args, footprint);
}

}  // namespace xpu::cuda
