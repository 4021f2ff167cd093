#include <algorithm>
#include <string>

#include "tensorflow_plugin/backends/gpu/codegen/parts.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/nn/normalize.cl.inc"
    ;

// As in normalize.cl.
enum Step : int32_t { kSums, kSquares, kChannels, kElements };
constexpr int64_t kOfChannel = 4 * sizeof(float);

// A processor's item adds up as many channels as its registers hold; all else has an item for each.
constexpr int kLanes = 8;
int LanesOf(const Hardware& hardware, const NormalizeDesc& desc) {
  return hardware.is_processor && desc.order == ChannelOrder::kLast ? kLanes : 1;
}

Parts PartsOf(const NormalizeDesc& desc) { return Parts::Of(desc.channels, desc.batch * desc.spatial); }

std::string Source(const NormalizeDesc& desc, int lanes) {
  const DType type = desc.type;
  return errors::Concat("#define LANES ", lanes, "\n#define GRADIENT ", desc.gradient ? 1 : 0, "\n#define LOAD_X(i) ",
                        Load(type, "x", "i"), "\n#define LOAD_DY(i) ", Load(type, "dy", "i"),
                        "\n#define STORE_Y(i, x) ", Store(type, "y", "i", "x"), kSource);
}

}  // namespace

bool Supports(const Abilities& abilities, const NormalizeDesc& desc) {
  return IsDefined(desc) && HasType(abilities, desc.type);
}

int64_t WorkspaceBytes(const NormalizeDesc& desc) {
  const int64_t of_parts = 2 * PartsOf(desc).count * static_cast<int64_t>(sizeof(float));
  return desc.channels * (of_parts + kOfChannel);
}

Status Enqueue(Machine& machine, Queue& queue, const NormalizeDesc& desc, const Args& args, const Footprint&) {
  const int64_t count = desc.batch * desc.spatial;
  const Parts parts = PartsOf(desc);
  const Parts::PartWalk walk = parts.WalkOn(machine.hardware(), count);
  const int lanes = LanesOf(machine.hardware(), desc);
  float* const sums = static_cast<float*>(args.workspace);
  float* const of_channels = sums + 2 * parts.count * desc.channels;

  const auto run = [&](Step step, int64_t items) -> Status {
    if (items == 0) return OkStatus();
    Call call(machine, queue,
              errors::Concat("normalize ", desc.gradient ? "gradient " : "", Name(desc.type), " ", lanes),
              [&] { return Source(desc, lanes); });
    call.Value(static_cast<int32_t>(step));
    for (int64_t value : {count, desc.channels, desc.spatial, parts.count, walk.first, walk.step, walk.span}) {
      call.Value(static_cast<uint64_t>(value));
    }
    call.Value(static_cast<int32_t>(desc.order == ChannelOrder::kLast)).Value(static_cast<int32_t>(desc.training));
    call.Value(desc.epsilon).Value(desc.factor);
    const bool forward = !desc.gradient, trains = forward && desc.training;
    const bool running = desc.gradient || !desc.training || desc.factor != 1.0f;
    call.Memory(args.in[forward ? 0 : 1]).Memory(forward ? nullptr : args.in[0]);
    call.Memory(args.in[forward ? 1 : 2]).Memory(forward ? args.in[2] : nullptr);
    for (int of_running : {3, 4}) call.Memory(running ? args.in[of_running] : nullptr);
    call.Memory(args.out[0]);
    for (int statistic : {1, 2, 3, 4}) call.Memory(trains ? args.out[statistic] : nullptr);
    for (int gradient : {1, 2}) call.Memory(forward ? nullptr : args.out[gradient]);
    return call.Memory(sums).Memory(of_channels).Run(items);
  };
  const int64_t of_parts = parts.count * ((desc.channels + lanes - 1) / lanes);
  if (desc.gradient || desc.training) XPU_RETURN_IF_ERROR(run(kSums, of_parts));
  if (!desc.gradient && desc.training) XPU_RETURN_IF_ERROR(run(kSquares, of_parts));
  XPU_RETURN_IF_ERROR(run(kChannels, desc.channels));
  return run(kElements, count * desc.channels);
}

}  // namespace xpu::gpu
