#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/cpu/convolution/depthwise.h"
#include "tensorflow_plugin/backends/cpu/convolution/few_channels.h"
#include "tensorflow_plugin/backends/cpu/convolution/panels.h"
#include "tensorflow_plugin/backends/cpu/convolution/pointwise.h"
#include "tensorflow_plugin/backends/cpu/convolution/products.h"
#include "tensorflow_plugin/backends/cpu/convolution/windows.h"
#include "tensorflow_plugin/backends/cpu/convolution/winograd.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/convert.h"
#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/onednn.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/host_runtime/float_mode.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"

namespace xpu::cpu {
namespace {

using dnnl::memory;
using host_runtime::SpatialStrides;
using host_runtime::ThreadTeam;

constexpr int64_t kShared = 1 << 22;  // multiplications below which a convolution stays on the calling thread

int64_t InputSize(const ConvolutionDesc& d) { return d.batch * d.in_channels * host_runtime::Cells(d.input); }
int64_t OutputSize(const ConvolutionDesc& d) { return d.batch * d.out_channels * host_runtime::Cells(d.output); }
int64_t FilterSize(const ConvolutionDesc& d) {
  return host_runtime::Cells(d.filter) * (d.in_channels / d.groups) * d.out_channels;
}

// The extent of the result, forward or to the data.
int64_t Outputs(const ConvolutionDesc& d) { return d.direction == Direction::kForward ? OutputSize(d) : InputSize(d); }

// The sizes of in[0], in[1] and out[0].
void Sizes(const ConvolutionDesc& d, int64_t* sizes) {
  const int64_t x = InputSize(d), y = OutputSize(d), w = FilterSize(d);
  sizes[0] = d.direction == Direction::kDataGradient ? w : x;
  sizes[1] = d.direction == Direction::kForward ? w : y;
  sizes[2] = d.direction == Direction::kForward ? y : d.direction == Direction::kDataGradient ? x : w;
}

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

// Multiplications that are worth a part.
constexpr int64_t kPartWork = 1 << 20;
// One thread may be held up, and the others take what would have been its parts.
constexpr int64_t kPartsPerThread = 2;
// Every part reads the whole filter, which should stay in a core's cache beside the data. Where the filter is larger,
// oneDNN's threads read a share of it each. Where it meets enough pixels of the output, each thread has one part.
constexpr int64_t kFilterOfParts = 1 << 17;  // elements
constexpr int64_t kPixelsOfPart = 128;

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

std::vector<ConvolutionPart> ShareOut(const ConvolutionDesc& d, int64_t wanted) {
  const int64_t images = Count(d.batch, std::min(wanted, d.batch));
  int64_t rows = d.output[0];
  // Rows next to each other read what lies next to each other.
  const bool has_rows = d.direction == Direction::kForward && d.order == ChannelOrder::kLast && d.batch < wanted;
  if (has_rows) rows = Count(d.output[0], std::min(Count(wanted, d.batch), d.output[0]));
  std::vector<ConvolutionPart> parts;
  for (int64_t image = 0; image < d.batch; image += images) {
    for (int64_t row = 0; row < d.output[0]; row += rows) {
      parts.push_back(PartOf(d, image, std::min(images, d.batch - image), row, std::min(rows, d.output[0] - row)));
      if (parts.back().desc.input[0] <= 0) return {};  // of nothing but padding
    }
  }
  return parts;
}

const void* At(const void* p, int64_t element, DType type) {
  return static_cast<const char*>(p) + element * static_cast<int64_t>(SizeOf(type));
}

// The filter as oneDNN wants it, in panels of output channels; a width of 0 if it is something else.
Panels PanelsOfFilter(const ConvolutionDesc& d, const memory::desc& wanted) {
  if (d.type != DType::kFloat || d.groups != 1) return {};
  std::vector<int> row;  // the filter's dimensions are output channels, input channels and pixels
  for (int i = 0; i < d.spatial_rank; ++i) row.push_back(2 + i);
  row.push_back(1);
  return PanelsOf(wanted, row, 0);
}

Status PackFilter(const ConvolutionDesc& d, OnednnPlan& layout, const void* filter, void* out, const ThreadTeam& team) {
  const Panels panels = PanelsOfFilter(d, layout.desc(1));
  if (panels.width == 0) return layout.Run({filter, out}, Alone());
  panels.Pack(static_cast<const float*>(filter), d.out_channels, static_cast<float*>(out), team);
  return OkStatus();
}

// Forward and data gradient: the filter is laid out once for all parts. The results of a part lie in one piece.
Status RunInParts(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team, int64_t wanted,
                  std::optional<FusedEpilogue>* epilogue, bool* done) {
  if (*epilogue) wanted = std::max(wanted, Outputs(d) / FusedEpilogue::kPartElements);
  const std::vector<ConvolutionPart> parts = ShareOut(d, wanted);
  if (parts.size() < 2) return OkStatus();
  const ThreadTeam& alone = Alone();
  const bool is_packed = d.packed_filter_bytes > 0;
  std::shared_ptr<OnednnPlan> layout;
  XPU_RETURN_IF_ERROR(FindLayout(is_packed ? d : parts[parts.size() / 2].desc, &layout));
  if (layout->num_memories() == 0) return OkStatus();
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
      if (ran.ok() && *epilogue) (*epilogue)->Run(forward ? part.y : part.x, Outputs(part.desc));
      status.Update(ran);
    }
  });
  *done = true;
  XPU_RETURN_IF_ERROR(status.get());
  epilogue->reset();
  return OkStatus();
}

// Filters up to this size are summed up from parts: elements of all parts together.
constexpr int64_t kSumElements = 1 << 23;

// The filter's gradient: each part adds up those of its images.
Status RunInPartialSums(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team, int64_t wanted,
                        bool* done) {
  const int64_t elements = FilterSize(d);
  wanted = std::min(wanted, kSumElements / elements);
  if (d.type != DType::kFloat || wanted < team.size() || d.batch < team.size()) return OkStatus();
  const std::vector<ConvolutionPart> parts = ShareOut(d, wanted);
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
  *done = true;
  return status.get();
}

// float, or half and bfloat16 where oneDNN has them. An epilogue that has been run is taken away.
Status RunFloating(ConvolutionDesc d, const Args& args, const ThreadTeam& team,
                   std::optional<FusedEpilogue>* epilogue) {
  const ThreadTeam& alone = Alone();
  const int64_t multiplications = OutputSize(d) * (d.in_channels / d.groups) * host_runtime::Cells(d.filter);
  const bool shared = team.size() > 1 && multiplications >= kShared;
  if (IsDepthwise(d)) {
    RunDepthwise(d, args, team, epilogue);
    return OkStatus();
  }
  if (HasFewChannels(d)) {
    RunFewChannels(d, args, team, epilogue);
    return OkStatus();
  }
  if (d.packed_filter_bytes > 0 && PointwisePays(d)) {
    RunPointwise(d, args, shared ? team : alone, epilogue);
    return OkStatus();
  }
  if (WinogradPays(d, team)) {
    if (RunWinograd(d, args, shared ? team : alone, epilogue)) return OkStatus();
    d.packed_filter_bytes = 0;  // its points say nothing to the others
  }
  if (ProductPays(d)) return RunProduct(d, args, shared ? team : alone);
  if (!shared) return RunWhole(d, args, alone);
  const bool large = FilterSize(d) > kFilterOfParts;
  const int64_t pixels = d.batch * host_runtime::Cells(d.output);
  if (large && (d.direction != Direction::kForward || pixels < kPixelsOfPart * team.size())) {
    return RunWhole(d, args, team);
  }
  // A thread reads a large filter once.
  const int64_t wanted =
      large ? team.size() : std::min<int64_t>(multiplications / kPartWork, kPartsPerThread * team.size());
  bool done = false;
  XPU_RETURN_IF_ERROR(d.direction == Direction::kFilterGradient ? RunInPartialSums(d, args, team, wanted, &done)
                                                                : RunInParts(d, args, team, wanted, epilogue, &done));
  return done ? OkStatus() : RunWhole(d, args, team);
}

// half and bfloat16 by way of float.
Status RunConverted(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  int64_t sizes[3];
  Sizes(d, sizes);
  ScratchFrame frame;
  Args buffers{};
  for (int i = 0; i < 2; ++i) {
    float* in = frame.Get<float>(sizes[i]);
    ToFloat(d.type, args.in[i], in, sizes[i], team);
    buffers.in[i] = in;
  }
  float* out = frame.Get<float>(sizes[2]);
  buffers.out[0] = out;
  ConvolutionDesc in_float = d;
  in_float.type = DType::kFloat;
  in_float.packed_filter_bytes = 0;
  std::optional<FusedEpilogue> none;
  XPU_RETURN_IF_ERROR(RunFloating(in_float, buffers, team, &none));
  FromFloat(d.type, out, args.out[0], sizes[2], team);
  return OkStatus();
}

Status Convolve(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team,
                std::optional<FusedEpilogue>* epilogue) {
  int64_t sizes[3];
  Sizes(d, sizes);
  if (sizes[2] == 0) return OkStatus();
  if (sizes[0] == 0 || sizes[1] == 0) {  // sums of nothing
    std::memset(args.out[0], 0, sizes[2] * SizeOf(d.type));
    return OkStatus();
  }
  if (d.type == DType::kDouble) {
    RunWindows<double>(d, args, team);
    return OkStatus();
  }
  if (d.type == DType::kFloat) return RunFloating(d, args, team, epilogue);
  if (HasNative(d.type)) {
    Status status = RunFloating(d, args, team, epilogue);
    if (status.code() != Code::kUnimplemented) return status;
  }
  return RunConverted(d, args, team);
}

// The forward convolution of a packed filter.
ConvolutionDesc ForwardOf(ConvolutionDesc d) {
  d.direction = Direction::kForward;
  d.epilogue = {};
  d.packed_filter_bytes = 1;  // as WinogradPays has to know
  return d;
}

// Direction::kPackFilter.
Status RunPackFilter(const ConvolutionDesc& desc, const Args& args, const ThreadTeam& team) {
  const ConvolutionDesc d = ForwardOf(desc);
  if (PointwisePays(d)) {
    PackPointwiseFilter(d, static_cast<const float*>(args.in[0]), static_cast<float*>(args.out[0]));
    return OkStatus();
  }
  if (WinogradPays(d, team)) {
    WinogradFilter(d, static_cast<const float*>(args.in[0]), static_cast<float*>(args.out[0]), team);
    return OkStatus();
  }
  std::shared_ptr<OnednnPlan> layout;
  XPU_RETURN_IF_ERROR(FindLayout(d, &layout));
  return PackFilter(d, *layout, args.in[0], args.out[0], team);
}

}  // namespace

int64_t CpuKernels::PackedFilterBytes(const ConvolutionDesc& desc) const {
  const ConvolutionDesc d = ForwardOf(desc);
  if (InputSize(d) == 0 || OutputSize(d) == 0 || FilterSize(d) == 0) return 0;
  if (IsDepthwise(d) || HasFewChannels(d)) return 0;  // they read the filter as it is
  if (IsPointwise(d)) return PointwisePays(d) ? PointwiseFilterBytes(d) : 0;
  if (WinogradPays(d, Alone())) return WinogradFilterBytes(d);
  if (ProductPays(d) || (d.type != DType::kFloat && !HasNative(d.type))) return 0;
  std::shared_ptr<OnednnPlan> layout;
  if (!FindLayout(d, &layout).ok() || !layout->usable()) return 0;
  return static_cast<int64_t>(layout->desc(1).get_size());
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
