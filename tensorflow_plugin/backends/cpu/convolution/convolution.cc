#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/cpu/convolution/depthwise.h"
#include "tensorflow_plugin/backends/cpu/convolution/engine.h"
#include "tensorflow_plugin/backends/cpu/convolution/few_channels.h"
#include "tensorflow_plugin/backends/cpu/convolution/onednn_panels.h"
#include "tensorflow_plugin/backends/cpu/convolution/pointwise.h"
#include "tensorflow_plugin/backends/cpu/convolution/products.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/convolution/windows.h"
#include "tensorflow_plugin/backends/cpu/convolution/winograd.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/convert.h"
#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
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

memory::desc TensorDesc(const ConvolutionDesc& d, int64_t channels, const int64_t* extent) {
  const SpatialStrides s(d.order, channels, extent);
  memory::dims dims = {d.batch, channels}, strides = {s.n, s.c};
  for (int i = 0; i < d.spatial_rank; ++i) {
    dims.push_back(extent[i]);
    strides.push_back(s.s[i]);
  }
  return memory::desc(dims, DnnlType(d.type), strides);
}

memory::desc FilterDesc(const ConvolutionDesc& d) {
  const int64_t in_per_group = d.in_channels / d.groups, out_per_group = d.out_channels / d.groups;
  memory::dims dims = {out_per_group, in_per_group}, strides = {1, d.out_channels};
  if (d.groups > 1) {
    dims.insert(dims.begin(), d.groups);
    strides.insert(strides.begin(), out_per_group);
  }
  int64_t stride = in_per_group * d.out_channels;
  const size_t first = strides.size();
  for (int i = d.spatial_rank - 1; i >= 0; --i) {
    dims.insert(dims.begin() + first, d.filter[i]);
    strides.insert(strides.begin() + first, stride);
    stride *= d.filter[i];
  }
  return memory::desc(dims, DnnlType(d.type), strides);
}

memory::desc Any(const memory::desc& d) {
  return memory::desc(d.get_dims(), d.get_data_type(), memory::format_tag::any);
}

// A plan's treatment of the filter, which oneDNN wants in a layout of its own.
enum class FilterUse : int64_t {
  kReorders,  // lays it out anew, and convolves
  kOnly,      // lays it out, and nothing else
  kPacked,    // finds it packed
};

// The arguments of a convolution in oneDNN's terms, and the primitive that takes them.
struct Form {
  // `layout`: of the filter; as oneDNN likes it where that is empty.
  Form(const ConvolutionDesc& d, const memory::desc& layout)
      : x(TensorDesc(d, d.in_channels, d.input)), y(TensorDesc(d, d.out_channels, d.output)), w(FilterDesc(d)) {
    for (int i = 0; i < d.spatial_rank; ++i) {
      stride.push_back(d.stride[i]);
      dilation.push_back(d.dilation[i] - 1);
      before.push_back(d.pad_before[i]);
      // This padding makes the extents agree. It is less than pad_after, even negative, where the last stride does not
      // fit.
      const int64_t covered = (d.output[i] - 1) * d.stride[i] + (d.filter[i] - 1) * d.dilation[i] + 1;
      after.push_back(covered - d.input[i] - d.pad_before[i]);
    }
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    // With channels first, oneDNN's fast forms want another layout; channels last is fast as it is.
    const bool last = d.order == ChannelOrder::kLast;
    want_x = last ? x : Any(x), want_y = last ? y : Any(y), want_w = layout.is_zero() ? Any(w) : layout;
    const bool training = d.direction != Direction::kForward;
    forward = dnnl::convolution_forward::primitive_desc(
        Engine(), training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, kAlgorithm, want_x,
        want_w, want_y, stride, dilation, before, after, attr);
  }

  static constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  const memory::desc x, y, w;
  memory::desc want_x, want_y, want_w;
  memory::dims stride, dilation, before, after;
  dnnl::primitive_attr attr;
  dnnl::convolution_forward::primitive_desc forward;
};

// A hash that tells layouts apart.
int64_t Hash(const memory::desc& layout) {
  if (layout.is_zero()) return 0;
  PlanKey key;
  for (const memory::dims& values : {layout.get_strides(), layout.get_inner_blks(), layout.get_inner_idxs()}) {
    for (int64_t v : values) key.Add(v);
  }
  return static_cast<int64_t>(key.Hash());
}

// oneDNN's plain loops are slower than ours.
bool IsPlain(const char* implementation) { return std::string(implementation).find("ref") != std::string::npos; }

// For dilated filters' gradients in 16 bits, oneDNN 3.2 leaves the last channels unwritten in some cases. It does so if
// the input's channels fill 16 lanes more than once and not evenly.
bool LosesChannels(const ConvolutionDesc& d) {
  const int64_t channels = d.in_channels / d.groups;
  const bool dilated = std::any_of(d.dilation, d.dilation + d.spatial_rank, [](int64_t by) { return by > 1; });
  return d.direction == Direction::kFilterGradient && d.type != DType::kFloat && dilated && channels > 16 &&
         channels % 16 != 0;
}

// The filter as the primitive wants it, made from the caller's next buffer.
int Filter(const memory::desc& given, const memory::desc& wanted, FilterUse use, OnednnPlan* plan) {
  return use == FilterUse::kPacked ? plan->Buffer(wanted) : plan->Reordered(plan->Buffer(given), wanted);
}

// A plan that lays a filter out, its memory 0, as its memory 1, and does nothing else: not usable where both are alike.
void PlanLayout(const memory::desc& given, const memory::desc& wanted, OnednnPlan* plan) {
  const int from = plan->Buffer(given), to = plan->Buffer(wanted);
  if (given != wanted) plan->CopyBack(from, to);
}

void BuildPlan(const ConvolutionDesc& d, FilterUse use, const memory::desc& layout, OnednnPlan* plan) {
  if (LosesChannels(d)) return;
  const Form form(d, layout);
  switch (d.direction) {
    case Direction::kForward: {
      const auto& forward = form.forward;
      if (IsPlain(forward.impl_info_str())) return;
      if (use == FilterUse::kOnly) return PlanLayout(form.w, forward.weights_desc(), plan);
      const int src = plan->Buffer(form.x), filter_in = Filter(form.w, forward.weights_desc(), use, plan);
      const int dst = plan->Buffer(form.y);
      const int src_in = plan->Reordered(src, forward.src_desc());
      const int dst_out = plan->WriteLike(dst, forward.dst_desc());
      plan->Add(dnnl::convolution_forward(forward), forward.scratchpad_desc(),
                {{DNNL_ARG_SRC, src_in}, {DNNL_ARG_WEIGHTS, filter_in}, {DNNL_ARG_DST, dst_out}});
      return plan->CopyBack(dst_out, dst);
    }
    case Direction::kDataGradient: {
      const dnnl::convolution_backward_data::primitive_desc backward(
          Engine(), Form::kAlgorithm, form.want_x, form.want_w, form.want_y, form.stride, form.dilation, form.before,
          form.after, form.forward, form.attr);
      if (IsPlain(backward.impl_info_str())) return;
      if (use == FilterUse::kOnly) return PlanLayout(form.w, backward.weights_desc(), plan);
      const int filter_in = Filter(form.w, backward.weights_desc(), use, plan);
      const int dy = plan->Buffer(form.y), dx = plan->Buffer(form.x);
      const int dy_in = plan->Reordered(dy, backward.diff_dst_desc());
      const int dx_out = plan->WriteLike(dx, backward.diff_src_desc());
      plan->Add(dnnl::convolution_backward_data(backward), backward.scratchpad_desc(),
                {{DNNL_ARG_WEIGHTS, filter_in}, {DNNL_ARG_DIFF_DST, dy_in}, {DNNL_ARG_DIFF_SRC, dx_out}});
      return plan->CopyBack(dx_out, dx);
    }
    case Direction::kFilterGradient: {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          Engine(), Form::kAlgorithm, form.want_x, form.want_w, form.want_y, form.stride, form.dilation, form.before,
          form.after, form.forward, form.attr);
      if (IsPlain(backward.impl_info_str())) return;
      const int src = plan->Buffer(form.x), dy = plan->Buffer(form.y), dfilter = plan->Buffer(form.w);
      const int src_in = plan->Reordered(src, backward.src_desc());
      const int dy_in = plan->Reordered(dy, backward.diff_dst_desc());
      const int dfilter_out = plan->WriteLike(dfilter, backward.diff_weights_desc());
      plan->Add(dnnl::convolution_backward_weights(backward), backward.scratchpad_desc(),
                {{DNNL_ARG_SRC, src_in}, {DNNL_ARG_DIFF_DST, dy_in}, {DNNL_ARG_DIFF_WEIGHTS, dfilter_out}});
      return plan->CopyBack(dfilter_out, dfilter);
    }
    case Direction::kPackFilter:
      return;  // see FilterUse
  }
}

Status FindPlan(const ConvolutionDesc& d, FilterUse use, const memory::desc& layout, const ThreadTeam& team,
                std::shared_ptr<OnednnPlan>* plan) {
  PlanKey key{static_cast<int64_t>(Primitive::kConvolution),
              static_cast<int64_t>(use),
              Hash(layout),
              static_cast<int64_t>(d.direction),
              static_cast<int64_t>(d.type),
              static_cast<int64_t>(d.order),
              d.spatial_rank,
              d.batch,
              d.in_channels,
              d.out_channels,
              d.groups};
  key.Add(d.input);
  key.Add(d.filter);
  key.Add(d.output);
  key.Add(d.stride);
  key.Add(d.dilation);
  key.Add(d.pad_before);
  key.Add(d.pad_after);
  return GetPlan(key, team, [&](OnednnPlan* p) { BuildPlan(d, use, layout, p); }, plan);
}

const ThreadTeam& Alone() {
  static const ThreadTeam alone(1);
  return alone;
}

// How the filter of a forward convolution is laid out for all its runs, and the plan that does it.
Status FindLayout(const ConvolutionDesc& d, std::shared_ptr<OnednnPlan>* layout) {
  return FindPlan(d, FilterUse::kOnly, {}, Alone(), layout);
}

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

// Some images of a convolution or, of one image, some rows of the output; where its x and y begin, in elements.
struct ConvolutionPart {
  ConvolutionDesc desc;
  int64_t x, y;
};

// Rows [row, row + rows) of the output of some images from `image` on.
ConvolutionPart PartOf(const ConvolutionDesc& d, int64_t image, int64_t images, int64_t row, int64_t rows) {
  const SpatialStrides x(d.order, d.in_channels, d.input), y(d.order, d.out_channels, d.output);
  ConvolutionPart part{d, image * x.n, image * y.n};
  part.desc.epilogue = {};
  part.desc.packed_filter_bytes = 0;
  part.desc.batch = images;
  if (rows == d.output[0]) return part;
  const int64_t begin = row * d.stride[0] - d.pad_before[0];
  const int64_t end = begin + (rows - 1) * d.stride[0] + (d.filter[0] - 1) * d.dilation[0] + 1;
  const int64_t first = std::clamp<int64_t>(begin, 0, d.input[0]);
  part.desc.input[0] = std::min(end, d.input[0]) - first;
  part.desc.pad_before[0] = first - begin;
  part.desc.pad_after[0] = 0;  // the plan looks at the others
  part.desc.output[0] = rows;
  part.x += first * x.s[0];
  part.y += row * y.s[0];
  return part;
}

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
    case ConvolutionEngine::kFewChannels:
      RunFewChannels(d, args, team, epilogue);
      return OkStatus();
    case ConvolutionEngine::kOnePixel:
      RunPointwise(d, args, team, epilogue);
      return OkStatus();
    case ConvolutionEngine::kWindowsInPanels:
      RunWindowsInPanels(d, args, team, epilogue);
      return OkStatus();
    case ConvolutionEngine::kWinograd:
      return RunWinogradOrAnother(d, args, team, epilogue);
    case ConvolutionEngine::kProduct:
      return RunProduct(d, args, team);
    case ConvolutionEngine::kOnednn:
    case ConvolutionEngine::kOnednnInParts:
    case ConvolutionEngine::kOnednnInSums:
      return RunOnednn(d, choice, args, team, epilogue);
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
  const ConvolutionDesc d = ForwardOf(desc);
  const ConvolutionEngine engine = ChooseEngine(d, Machine::Here(1)).engine;  // as PackedFilterBytes does
  host_runtime::NoteEngine(engine);
  const auto* const filter = static_cast<const float*>(args.in[0]);
  if (engine == ConvolutionEngine::kOnePixel || engine == ConvolutionEngine::kWindowsInPanels) {
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
  const ConvolutionDesc d = ForwardOf(desc);
  switch (ChooseEngine(d, Machine::Here(1)).engine) {
    case ConvolutionEngine::kOnePixel:
    case ConvolutionEngine::kWindowsInPanels:
      return PointwiseFilterBytes(d);
    case ConvolutionEngine::kWinograd:
      return WinogradFilterBytes(d);
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

EpilogueWay CpuKernels::WayOfEpilogue(const ConvolutionDesc& desc) const {
  switch (ChooseEngine(desc, Machine::Here(1)).engine) {
    case ConvolutionEngine::kDepthwise:
    case ConvolutionEngine::kFewChannels:
    case ConvolutionEngine::kOnePixel:
    case ConvolutionEngine::kWindowsInPanels:
      return IsChainOfRows(desc.epilogue, desc.out_channels) ? EpilogueWay::kInRegisters : EpilogueWay::kPartByPart;
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
    return WithEpilogue(d, args, team, [&](auto* epilogue) { return Convolve(d, args, team, epilogue); });
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for the temporaries of a convolution");
  }
}

}  // namespace xpu::cpu
