#include "tensorflow_plugin/backends/cpu/convolution/onednn_plans.h"

#include <algorithm>
#include <string>

#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::cpu {
namespace {

using dnnl::memory;
using host_runtime::SpatialStrides;
using host_runtime::ThreadTeam;

memory::desc TensorDesc(const ConvolutionDesc& d, DType type, int64_t channels, const int64_t* extent) {
  const SpatialStrides s(d.order, channels, extent);
  memory::dims dims = {d.batch, channels}, strides = {s.n, s.c};
  for (int i = 0; i < d.spatial_rank; ++i) {
    dims.push_back(extent[i]);
    strides.push_back(s.s[i]);
  }
  return memory::desc(dims, DnnlType(type), strides);
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
  return memory::desc(dims, DnnlType(TypeOfFilter(d)), strides);
}

memory::desc Any(const memory::desc& d) {
  return memory::desc(d.get_dims(), d.get_data_type(), memory::format_tag::any);
}

// The arguments of a convolution in oneDNN's terms, and the primitive that takes them.
struct Form {
  // `layout`: of the filter; as oneDNN likes it where that is empty.
  Form(const ConvolutionDesc& d, const memory::desc& layout)
      : x(TensorDesc(d, d.type, d.in_channels, d.input)),
        y(TensorDesc(d, TypeOfY(d), d.out_channels, d.output)),
        w(FilterDesc(d)) {
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

}  // namespace

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

Status FindLayout(const ConvolutionDesc& d, std::shared_ptr<OnednnPlan>* layout) {
  return FindPlan(d, FilterUse::kOnly, {}, Alone(), layout);
}

}  // namespace xpu::cpu
