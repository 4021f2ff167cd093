// A convolution is a product whose one operand is never there: its elements are read from the source where they lie
// (convolution.cl says which). The gradient to the data is the same with the filter's channels exchanged. With few
// channels per group an item computes an element by itself.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/gpu/primitives/product.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kGeometry =
#include "tensorflow_plugin/backends/gpu/kernels/nn/convolution.cl.inc"
    ;
const std::string kDirect =
#include "tensorflow_plugin/backends/gpu/kernels/nn/convolution_direct.cl.inc"
    ;

// A product of fewer columns would compute mostly what nobody wants.
constexpr int64_t kFewColumns = 8;

struct ConvolutionPlan {
  // An item's rows, which `m` is to be a multiple of for each cell of the filter in a gradient to it; 1: no matter.
  explicit ConvolutionPlan(const ConvolutionDesc& desc, int64_t item_rows = 1);

  bool to_filter, to_data, direct;
  int64_t m, n, k;              // of a group's product
  int64_t parts = 1, step = 0;  // of a sum over `k` positions: how many, and positions in each but the last
  std::vector<int64_t> table;   // as convolution.cl reads it

  // Elements of the result.
  int64_t items = 0;
};

// Axes that a descriptor does not use have an extent of 1: the last one is to be one that it uses.
ConvolutionDesc WithLastAxis(ConvolutionDesc desc) {
  const int unused = ConvolutionDesc::kMaxSpatial - desc.spatial_rank;
  for (int64_t* of_axes : {desc.input, desc.filter, desc.output, desc.stride, desc.dilation, desc.pad_before}) {
    std::rotate(of_axes, of_axes + desc.spatial_rank, of_axes + ConvolutionDesc::kMaxSpatial);
  }
  std::fill_n(desc.stride, unused, 1);
  std::fill_n(desc.dilation, unused, 1);
  std::fill_n(desc.pad_before, unused, 0);
  return desc;
}

ConvolutionPlan::ConvolutionPlan(const ConvolutionDesc& as_given, int64_t item_rows)
    : to_filter(as_given.direction == Direction::kFilterGradient),
      to_data(as_given.direction == Direction::kDataGradient) {
  const ConvolutionDesc desc = WithLastAxis(as_given);
  const int64_t* const source = to_data ? desc.output : desc.input;
  const int64_t* const positions = to_data ? desc.input : desc.output;
  const int64_t source_channels = to_data ? desc.out_channels : desc.in_channels;
  const int64_t dense_channels = to_data ? desc.in_channels : desc.out_channels;
  const int64_t channels = source_channels / desc.groups, cells = host_runtime::Pixels(positions);
  const int64_t num_positions = desc.batch * cells, num_taps = host_runtime::Pixels(desc.filter) * channels;

  m = to_filter ? num_taps : num_positions;
  n = dense_channels / desc.groups;
  k = to_filter ? num_positions : num_taps;
  items = m * dense_channels;
  direct = n < kFewColumns;
  if (to_filter && items > 0) {
    // As many as keep a large device busy, each of a number of lines of positions. The shape alone decides, so that
    // results are the same on every device, and scratch memory is known early.
    constexpr int64_t kTile = 128, kTiles = 264, kItems = 16384, kShortest = 256;
    const auto tiles = [](int64_t extent) { return (extent + kTile - 1) / kTile; };
    const int64_t wanted = direct ? kItems / items : kTiles / (tiles(m) * tiles(n) * desc.groups);
    const int64_t most = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, k / kShortest));
    const int64_t lines = positions[2] == 0 ? 0 : k / positions[2];
    step = (lines + most - 1) / most * positions[2];
    parts = step == 0 ? 1 : (k + step - 1) / step;
  }

  const host_runtime::SpatialStrides of_source(desc.order, source_channels, source);
  const host_runtime::SpatialStrides dense(desc.order, dense_channels, positions);
  const auto add = [&](std::initializer_list<int64_t> numbers) { table.insert(table.end(), numbers); };
  for (const int64_t* extents : {positions, desc.filter, source}) add({extents[0], extents[1], extents[2]});
  for (int64_t stride : desc.stride) add({to_data ? 1 : stride});
  for (int64_t dilation : desc.dilation) add({to_data ? -dilation : dilation});
  for (int64_t pad : desc.pad_before) add({to_data ? pad : -pad});
  for (int64_t stride : desc.stride) add({to_data ? stride : 1});
  add({of_source.s[0], of_source.s[1], of_source.s[2], of_source.n, of_source.c, channels});
  add({cells, dense.n, dense.s[2], dense.c});
  const int64_t of_cell = desc.in_channels / desc.groups * desc.out_channels;
  if (to_data) {
    add({of_cell, 1, desc.out_channels, channels});
  } else {
    add({of_cell, desc.out_channels, 1, n});
  }
  const bool rows_of_one_cell = to_filter && !direct && channels >= item_rows;
  const int64_t row_channels = rows_of_one_cell ? (channels + item_rows - 1) / item_rows * item_rows : channels;
  if (channels > 0 && to_filter) m = m / channels * row_channels;
  add({row_channels, dense_channels});
}

// Kernels count the cells of all images, the elements of one, and taps in 31 bits.
bool FitsKernels(const ConvolutionDesc& desc) {
  constexpr int64_t kMost = int64_t{1} << 30;
  // True if a product is no more than that; it is left at the first factor's place. Open extents count as 1.
  const auto fits = [](int64_t* total, int64_t factor) {
    if (factor > 0 && *total > kMost / factor) return false;
    *total *= std::max<int64_t>(factor, 1);
    return true;
  };
  int64_t inputs = 1, outputs = 1, taps = 1;
  for (int d = 0; d < ConvolutionDesc::kMaxSpatial; ++d) {
    int64_t last_window = std::max<int64_t>(desc.output[d], 1), reach = std::max<int64_t>(desc.filter[d], 1);
    if (!fits(&inputs, desc.input[d]) || !fits(&outputs, desc.output[d]) || !fits(&taps, desc.filter[d])) return false;
    if (!fits(&last_window, desc.stride[d]) || !fits(&reach, desc.dilation[d])) return false;
    if (desc.pad_before[d] > kMost || desc.pad_after[d] > kMost) return false;
  }
  for (const int64_t cells : {inputs, outputs}) {
    int64_t all = cells, of_image = cells;
    if (!fits(&all, desc.batch) || !fits(&of_image, std::max(desc.in_channels, desc.out_channels))) return false;
  }
  return fits(&taps, std::max(desc.in_channels, desc.out_channels));
}

// The part of the geometry that a kernel is made for.
std::string Definitions(const Hardware& hardware, const ConvolutionDesc& desc) {
  const bool has_strides = std::any_of(desc.stride, desc.stride + desc.spatial_rank, [](int64_t s) { return s != 1; });
  // A processor's items look at axes once for a segment, and kernels take long to compile there.
  return errors::Concat("#define TO_FILTER ", desc.direction == Direction::kFilterGradient ? 1 : 0,
                        "\n#define DIVIDES ", desc.direction == Direction::kDataGradient && has_strides ? 1 : 0,
                        "\n#define AXES ",
                        hardware.is_processor ? ConvolutionDesc::kMaxSpatial : std::max(1, desc.spatial_rank), "\n");
}

// [cells, of_source, groups, of_dense], out of [cells, of_dense, groups, of_source].
CopyStridedDesc ExchangeChannels(const ConvolutionDesc& desc) {
  const int64_t in = desc.in_channels / desc.groups, out = desc.out_channels / desc.groups;
  CopyStridedDesc copy;
  copy.element_size = SizeOf(desc.type);
  copy.shape = {host_runtime::Pixels(desc.filter), out, desc.groups, in};
  copy.src_strides = {in * desc.out_channels, 1, out, desc.out_channels};
  copy.dst_strides = DenseStrides(copy.shape);
  return copy;
}

int64_t PartialsBytes(const ConvolutionPlan& plan, DType type) {
  return plan.parts == 1 ? 0 : plan.parts * plan.items * static_cast<int64_t>(SumSize(type));
}

}  // namespace

bool Supports(const Abilities& abilities, const ConvolutionDesc& desc) {
  return IsDefined(desc) && !IsMixed(desc) && HasType(abilities, desc.type) && FitsKernels(desc) &&
         desc.packed_filter_bytes == 0 && (!HasEpilogue(desc) || HasProgram(abilities, *desc.epilogue.program));
}

int64_t WorkspaceBytes(const ConvolutionDesc& desc) {
  const ConvolutionPlan plan(desc);
  if (plan.to_data && !plan.direct)
    return ExchangeChannels(desc).shape.num_elements() * static_cast<int64_t>(SizeOf(desc.type));
  return PartialsBytes(plan, desc.type);
}

Status Enqueue(Machine& machine, Queue& queue, const ConvolutionDesc& desc, const Args& args, const Footprint&) {
  const ConvolutionPlan plan(desc, ItemRows(machine.hardware()));
  if (plan.k == 0) {  // sums of nothing
    XPU_RETURN_IF_ERROR(queue.Memset(args.out[0], 0, static_cast<size_t>(plan.items) * SizeOf(desc.type)));
    if (!HasEpilogue(desc)) return OkStatus();
    const plain::EpilogueCommand as_command = plain::EpilogueOf(desc, args);
    return Enqueue(machine, queue, as_command.desc, as_command.args, Footprint());
  }
  // If there are parts, their sum has the epilogue.
  const KernelEpilogue none(desc.type), whole(desc);
  const KernelEpilogue& epilogue = plan.parts == 1 ? whole : none;
  const std::string definitions = Definitions(machine.hardware(), desc);
  const std::string key = errors::Concat("convolution ", plan.direct ? "direct " : "", definitions, Name(desc.type));
  const void *source = args.in[0], *other = args.in[1];
  if (plan.to_data) {
    std::swap(source, other);
    if (!plan.direct) {
      Args copy;
      copy.in[0] = other;
      copy.out[0] = args.workspace;
      XPU_RETURN_IF_ERROR(Enqueue(machine, queue, ExchangeChannels(desc), copy, Footprint()));
      other = args.workspace;
    }
  }
  const auto operands = [&](Call& call) {
    call.Memory(source).Memory(other).Memory(args.out[0]).Memory(plan.parts == 1 ? nullptr : args.workspace);
    call.Value(static_cast<uint32_t>(plan.parts)).Value(static_cast<uint32_t>(plan.step)).Table(plan.table);
  };
  if (plan.direct) {
    Call call(machine, queue, key + epilogue.Key(),
              [&] { return ProductElements(desc.type) + epilogue.Text() + definitions + kGeometry + kDirect; });
    call.Value(static_cast<uint64_t>(plan.items));
    for (int64_t value : {plan.n, desc.groups, plan.k}) call.Value(static_cast<uint32_t>(value));
    operands(call);
    epilogue.SetArguments(call, args);
    XPU_RETURN_IF_ERROR(call.Run(plan.items * plan.parts));
  } else {
    Products products{};
    products.type = desc.type;
    products.m = plan.m;
    products.n = plan.n;
    products.k = plan.k;
    products.batches = desc.groups * plan.parts;
    // A gradient to the filter has its taps as rows, and channels are taps.
    const bool channels_last = desc.order == ChannelOrder::kLast;
    products.a_dense = plan.to_filter != channels_last;
    products.b_dense = !plan.to_filter || channels_last;
    products.kind = 4 | (plan.to_filter ? 1 : 0) | (desc.order == ChannelOrder::kFirst ? 2 : 0);
    products.key = key;
    products.operands = [&] { return definitions + kGeometry; };
    products.set_arguments = operands;
    XPU_RETURN_IF_ERROR(RunProducts(machine, queue, products, args, epilogue));
  }
  if (plan.parts == 1) return OkStatus();
  return AddParts(machine, queue, desc.type, plan.items, plan.parts, args, whole);
}

}  // namespace xpu::gpu
