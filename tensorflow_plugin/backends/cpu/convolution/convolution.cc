#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/cpu/convolution/bytes/bytes.h"
#include "tensorflow_plugin/backends/cpu/convolution/depthwise.h"
#include "tensorflow_plugin/backends/cpu/convolution/direct.h"
#include "tensorflow_plugin/backends/cpu/convolution/engine.h"
#include "tensorflow_plugin/backends/cpu/convolution/onednn_panels.h"
#include "tensorflow_plugin/backends/cpu/convolution/onednn_plans.h"
#include "tensorflow_plugin/backends/cpu/convolution/parts.h"
#include "tensorflow_plugin/backends/cpu/convolution/pointwise.h"
#include "tensorflow_plugin/backends/cpu/convolution/products.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/convolution/windows.h"
#include "tensorflow_plugin/backends/cpu/convolution/winograd.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/convert.h"
#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/cpu/elementwise/quantized_chain.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/onednn.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/host_runtime/float_mode.h"
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"

namespace xpu::cpu {
namespace {

using dnnl::memory;
using host_runtime::SpatialStrides;
using host_runtime::ThreadTeam;

// ---- oneDNN ----

// float, or half and bfloat16 where oneDNN has them, on the threads of the team or, if those are OpenMP's, by oneDNN.
Status RunWhole(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  std::shared_ptr<OnednnPlan> plan;
  if (d.packed_filter_bytes > 0) {
    std::shared_ptr<OnednnPlan> layout;
    XPU_RETURN_IF_ERROR(FindLayout(d, &layout));
    XPU_RETURN_IF_ERROR(FindPlan(d, FilterUse::kPacked, layout->desc(1), team, &plan));
    if (plan->usable()) return plan->Run({args.in[0], args.in[2], args.out[0]}, team);
  }
  XPU_RETURN_IF_ERROR(FindPlan(d, FilterUse::kReorders, {}, team, &plan));
  if (plan->usable()) return plan->Run({args.in[0], args.in[1], args.out[0]}, team);
  if (d.type != DType::kFloat) return errors::Unimplemented("no oneDNN convolution of type ", Name(d.type));
  RunWindows<float>(d, args, team);
  return OkStatus();
}

// ---- In parts, each by oneDNN on one thread of the team ----
//
// oneDNN's own threads are OpenMP's, which all have to arrive at the end of each convolution. Where something else
// keeps a processor busy, Python for example, all wait for the one that it holds up. The next free thread takes the
// next part.

std::vector<ConvolutionPart> PartsOf(const ConvolutionDesc& d, const ConvolutionChoice& choice) {
  std::vector<ConvolutionPart> parts;
  for (int64_t image = 0; image < d.batch; image += choice.images) {
    for (int64_t row = 0; row < d.output[0]; row += choice.rows) {
      parts.push_back(
          PartOf(d, image, std::min(choice.images, d.batch - image), row, std::min(choice.rows, d.output[0] - row)));
    }
  }
  return parts;
}

const void* At(const void* p, int64_t element, DType type) {
  return static_cast<const char*>(p) + element * static_cast<int64_t>(SizeOf(type));
}

// The filter as oneDNN wants it, in panels of output channels; a width of 0 if it is something else.
OnednnPanels PanelsOfFilter(const ConvolutionDesc& d, const memory::desc& wanted) {
  if (d.type != DType::kFloat || d.groups != 1) return {};
  std::vector<int> row;  // the filter's dimensions are output channels, input channels and pixels
  for (int i = 0; i < d.spatial_rank; ++i) row.push_back(2 + i);
  row.push_back(1);
  return OnednnPanelsOf(wanted, row, 0);
}

Status PackFilter(const ConvolutionDesc& d, OnednnPlan& layout, const void* filter, void* out, const ThreadTeam& team) {
  const OnednnPanels panels = PanelsOfFilter(d, layout.desc(1));
  if (panels.width == 0) return layout.Run({filter, out}, Alone());
  panels.Pack(static_cast<const float*>(filter), d.out_channels, static_cast<float*>(out), team);
  return OkStatus();
}

// Forward and data gradient: the filter is laid out once for all parts. The results of a part lie in one piece.
Status RunInParts(const ConvolutionDesc& d, const ConvolutionChoice& choice, const Args& args, const ThreadTeam& team,
                  std::optional<FusedEpilogue>* epilogue) {
  const std::vector<ConvolutionPart> parts = PartsOf(d, choice);
  const ThreadTeam& alone = Alone();
  const bool is_packed = d.packed_filter_bytes > 0;
  std::shared_ptr<OnednnPlan> layout;
  XPU_RETURN_IF_ERROR(FindLayout(is_packed ? d : parts[parts.size() / 2].desc, &layout));
  if (layout->num_memories() == 0) return RunWhole(d, args, team);
  const bool forward = d.direction == Direction::kForward;
  const void* const filter = args.in[forward ? 1 : 0];
  const void* packed = is_packed ? args.in[2] : filter;
  ScratchFrame frame;
  if (layout->usable() && !is_packed) {
    void* const memory = frame.Bytes(layout->desc(1).get_size());
    XPU_RETURN_IF_ERROR(PackFilter(d, *layout, filter, memory, team));
    packed = memory;
  }
  host_runtime::SharedStatus status;
  team.ParallelFor(static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ConvolutionPart& part = parts[i];
      const void* const from = At(args.in[forward ? 0 : 1], forward ? part.x : part.y, d.type);
      void* const to = const_cast<void*>(At(args.out[0], forward ? part.y : part.x, d.type));
      std::shared_ptr<OnednnPlan> plan;
      Status ran = FindPlan(part.desc, FilterUse::kPacked, layout->desc(1), alone, &plan);
      if (ran.ok() && plan->usable()) {
        ran = forward ? plan->Run({from, packed, to}, alone) : plan->Run({packed, from, to}, alone);
      } else if (ran.ok()) {  // a part at the edge may have another form
        Args at{};
        at.in[forward ? 0 : 1] = from;
        at.in[forward ? 1 : 0] = filter;
        at.out[0] = to;
        ran = RunWhole(part.desc, at, alone);
      }
      if (ran.ok() && *epilogue) (*epilogue)->Run(forward ? part.y : part.x, ConvolutionSizes(part.desc).out);
      status.Update(ran);
    }
  });
  XPU_RETURN_IF_ERROR(status.get());
  epilogue->reset();
  return OkStatus();
}

// The filter's gradient: each part adds up those of its images.
Status RunInPartialSums(const ConvolutionDesc& d, const ConvolutionChoice& choice, const Args& args,
                        const ThreadTeam& team) {
  const int64_t elements = FilterSize(d);
  const std::vector<ConvolutionPart> parts = PartsOf(d, choice);
  const ThreadTeam& alone = Alone();
  ScratchFrame frame;
  float* const sums = frame.Get<float>(static_cast<int64_t>(parts.size() - 1) * elements);
  float* const out = static_cast<float*>(args.out[0]);
  host_runtime::SharedStatus status;
  team.ParallelFor(static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Args at{};
      at.in[0] = At(args.in[0], parts[i].x, d.type);
      at.in[1] = At(args.in[1], parts[i].y, d.type);
      at.out[0] = i == 0 ? out : sums + (i - 1) * elements;
      status.Update(RunWhole(parts[i].desc, at, alone));
    }
  });
  constexpr int64_t kGrain = 1 << 14;
  team.ParallelFor(elements, kGrain, [&](int64_t begin, int64_t end) {
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const float* const sum = sums + static_cast<int64_t>(i) * elements;
      for (int64_t j = begin; j < end; ++j) out[j] += sum[j];
    }
  });
  return status.get();
}

Status Convolve(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team,
                std::optional<FusedEpilogue>* epilogue);

// half and bfloat16 by way of float.
Status RunConverted(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  const ConvolutionSizes sizes(d);
  ScratchFrame frame;
  Args buffers{};
  for (int i = 0; i < 2; ++i) {
    float* in = frame.Get<float>(sizes.in[i]);
    ToFloat(d.type, args.in[i], in, sizes.in[i], team);
    buffers.in[i] = in;
  }
  float* out = frame.Get<float>(sizes.out);
  buffers.out[0] = out;
  ConvolutionDesc in_float = d;
  in_float.type = DType::kFloat;
  in_float.packed_filter_bytes = 0;
  in_float.epilogue = {};  // it runs afterwards, since it reads results of 16 bits
  std::optional<FusedEpilogue> none;
  XPU_RETURN_IF_ERROR(Convolve(in_float, buffers, team, &none));
  FromFloat(d.type, out, args.out[0], sizes.out, team);
  return OkStatus();
}

// By oneDNN, or by way of float if it has nothing for the type.
Status RunOnednn(const ConvolutionDesc& d, const ConvolutionChoice& choice, const Args& args, const ThreadTeam& team,
                 std::optional<FusedEpilogue>* epilogue) {
  Status status = choice.engine == ConvolutionEngine::kOnednnInParts  ? RunInParts(d, choice, args, team, epilogue)
                  : choice.engine == ConvolutionEngine::kOnednnInSums ? RunInPartialSums(d, choice, args, team)
                                                                      : RunWhole(d, args, team);
  if (d.type != DType::kFloat && status.code() == Code::kUnimplemented) return RunConverted(d, args, team);
  return status;
}

Status RunEngine(const ConvolutionDesc& d, const ConvolutionChoice& choice, const Args& args, const ThreadTeam& team,
                 std::optional<FusedEpilogue>* epilogue);

// If there is an infinity or a NaN among the results, another engine computes all again.
Status RunWinogradOrAnother(ConvolutionDesc d, const Args& args, const ThreadTeam& team,
                            std::optional<FusedEpilogue>* epilogue) {
  if (RunWinograd(d, args, team, epilogue)) return OkStatus();
  d.packed_filter_bytes = 0;  // its points say nothing to the others
  const ConvolutionChoice choice = ChooseEngineWithoutWinograd(d, Machine::Here(team.size()));
  return RunEngine(d, choice, args, team, epilogue);
}

Status RunEngine(const ConvolutionDesc& d, const ConvolutionChoice& choice, const Args& args, const ThreadTeam& team,
                 std::optional<FusedEpilogue>* epilogue) {
  switch (choice.engine) {
    case ConvolutionEngine::kNothing:
      return OkStatus();
    case ConvolutionEngine::kZeros:
      std::memset(args.out[0], 0, ConvolutionSizes(d).out * SizeOf(d.type));
      return OkStatus();
    case ConvolutionEngine::kWindows:
      RunWindows<double>(d, args, team);
      return OkStatus();
    case ConvolutionEngine::kDepthwise:
      RunDepthwise(d, args, team, epilogue);
      return OkStatus();
    case ConvolutionEngine::kPointwise:
      RunPointwise(d, args, team, epilogue);
      return OkStatus();
    case ConvolutionEngine::kWindowsInPanels:
      RunWindowsInPanels(d, args, team, epilogue);
      return OkStatus();
    case ConvolutionEngine::kWinograd:
      return RunWinogradOrAnother(d, args, team, epilogue);
    case ConvolutionEngine::kDirect:
      RunDirect(d, args, team, epilogue);
      return OkStatus();
    case ConvolutionEngine::kProduct:
      return RunProduct(d, args, team);
    case ConvolutionEngine::kOnednn:
    case ConvolutionEngine::kOnednnInParts:
    case ConvolutionEngine::kOnednnInSums:
      return RunOnednn(d, choice, args, team, epilogue);
    case ConvolutionEngine::kBytes:
      return errors::Internal("a convolution of bytes runs its epilogue itself");  // see CpuKernels::Run
    case ConvolutionEngine::kInFloat:
      return RunConverted(d, args, team);
  }
  return OkStatus();
}

// An epilogue that has been run is reset.
Status Convolve(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team,
                std::optional<FusedEpilogue>* epilogue) {
  const ConvolutionChoice choice = ChooseEngine(d, Machine::Here(team.size()));
  host_runtime::NoteEngine(choice.engine);
  return RunEngine(d, choice, args, choice.alone ? Alone() : team, epilogue);
}

// Direction::kPackFilter.
Status RunPackFilter(const ConvolutionDesc& desc, const Args& args, const ThreadTeam& team) {
  const ConvolutionDesc d = ReaderOf(desc);
  const ConvolutionEngine engine = ChooseEngine(d, Machine::Here(1)).engine;  // as PackedFilterBytes does
  host_runtime::NoteEngine(engine);
  if (engine == ConvolutionEngine::kBytes) return PackBytesFilter(d, args.in[0], args.out[0]);
  const auto* const filter = static_cast<const float*>(args.in[0]);
  if (engine == ConvolutionEngine::kDirect) {
    PackDirectFilter(d, filter, static_cast<float*>(args.out[0]));
    return OkStatus();
  }
  if (engine == ConvolutionEngine::kPointwise || engine == ConvolutionEngine::kWindowsInPanels) {
    PackPointwiseFilter(d, filter, static_cast<float*>(args.out[0]));
    return OkStatus();
  }
  if (engine == ConvolutionEngine::kWinograd) {
    WinogradFilter(d, filter, static_cast<float*>(args.out[0]), team);
    return OkStatus();
  }
  std::shared_ptr<OnednnPlan> layout;
  XPU_RETURN_IF_ERROR(FindLayout(d, &layout));
  return PackFilter(d, *layout, filter, args.out[0], team);
}

}  // namespace

int64_t CpuKernels::PackedFilterBytes(const ConvolutionDesc& desc) const {
  const ConvolutionDesc d = ReaderOf(desc);
  const ConvolutionEngine engine = ChooseEngine(d, Machine::Here(1)).engine;
  if (engine == ConvolutionEngine::kDirect) return DirectFilterBytes(d);
  if (d.direction != Direction::kForward) return 0;  // the other engines have filters for those alone
  switch (engine) {
    case ConvolutionEngine::kPointwise:
    case ConvolutionEngine::kWindowsInPanels:
      return PointwiseFilterBytes(d);
    case ConvolutionEngine::kWinograd:
      return WinogradFilterBytes(d);
    case ConvolutionEngine::kBytes:
      return BytesFilterBytes(d);
    case ConvolutionEngine::kOnednn:
      break;
    default:
      return 0;  // the others read the filter as it is
  }
  if (IsPointwise(d)) return 0;  // oneDNN's layout gains nothing there
  std::shared_ptr<OnednnPlan> layout;
  if (!FindLayout(d, &layout).ok() || !layout->usable()) return 0;
  return static_cast<int64_t>(layout->desc(1).get_size());
}

bool CpuKernels::BytesPay(const ConvolutionDesc& desc) const { return HasBytes(desc); }

EpilogueWay CpuKernels::WayOfEpilogue(const ConvolutionDesc& desc) const {
  const bool forward = desc.direction == Direction::kForward;
  switch (ChooseEngine(desc, Machine::Here(1)).engine) {
    case ConvolutionEngine::kDirect:
      if (IsChainOfRows(desc.epilogue, forward ? desc.out_channels : desc.in_channels))
        return EpilogueWay::kInRegisters;
      return forward ? EpilogueWay::kPartByPart : EpilogueWay::kAfterwards;
    case ConvolutionEngine::kDepthwise:
      return IsChainOfRows(desc.epilogue, desc.out_channels) ? EpilogueWay::kInRegisters : EpilogueWay::kPartByPart;
    case ConvolutionEngine::kPointwise:
    case ConvolutionEngine::kWindowsInPanels:
      if (IsChainOfRows(desc.epilogue, desc.out_channels)) return EpilogueWay::kInRegisters;
      return HasFewRows(desc) ? EpilogueWay::kAfterwards : EpilogueWay::kPartByPart;
    case ConvolutionEngine::kBytes:
      return IsQuantizedChainOfRows(desc.epilogue, desc.out_channels) ? EpilogueWay::kInRegisters
                                                                      : EpilogueWay::kAfterwards;
    case ConvolutionEngine::kWinograd:
      return EpilogueWay::kPartByPart;
    default:  // oneDNN has parts only for several threads
      return EpilogueWay::kAfterwards;
  }
}

Status CpuKernels::Run(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) const {
  const host_runtime::ScopedFloatMode mode(host_runtime::FloatMode::OfProducts());
  try {
    if (d.direction == Direction::kPackFilter) return RunPackFilter(d, args, team);
    if (IsMixed(d)) {  // it runs its epilogue itself
      host_runtime::NoteEngine(ConvolutionEngine::kBytes);
      return RunBytes(d, args, team);
    }
    return WithEpilogue(d, args, team, [&](auto* epilogue) { return Convolve(d, args, team, epilogue); });
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for the temporaries of a convolution");
  }
}

}  // namespace xpu::cpu
