#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/codegen/walk.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/nn/pool.cl.inc"
    ;

// As in pool.cl.
enum Step { kForward, kPositions, kCells, kGradient };

// The least finite value, which maxima start from.
std::string LowestOf(DType type) {
  switch (type) {
    case DType::kHalf:
      return "-65504.0f";
    case DType::kBFloat16:
      return "-0x1.fep127f";
    case DType::kDouble:
      return "-DBL_MAX";
    case DType::kFloat:
      return "-FLT_MAX";
    default:
      return Extreme(type, /*highest=*/false);
  }
}

// Channels that an item computes as a vector: where they are neighbours, and as many as fill vectors.
int WidthOf(const Hardware& hardware, const PoolDesc& desc, Step step) {
  const bool has_vectors = desc.type == DType::kFloat || desc.type == DType::kDouble;
  if (!has_vectors || desc.order != ChannelOrder::kLast || step == kPositions) return 1;
  for (int width = hardware.is_processor ? 8 : 4; width > 2; width /= 2) {
    if (desc.channels % width == 0) return width;
  }
  return 1;
}

// The operands, by elements or by vectors.
std::string Elements(DType type, int width) {
  const std::string reg = RegisterOf(type), sum = IsInteger(type) ? "long" : reg;
  if (width == 1) {
    return errors::Concat(
        "#define T ", reg, "\n#define SUM ", sum, "\n#define CELL int\n#define LOAD_X(i) ", Load(type, "x", "i"),
        "\n#define LOAD_DY(i) ", Load(type, "dy", "i"), "\n#define STORE_Y(i, x) ", Store(type, "y", "i", "x"),
        "#define LOAD_CELL(i) AT(int, positions)[i]\n", "#define STORE_CELL(i, x) AT(int, positions)[i] = (x)\n");
  }
  const char* const cell = SizeOf(type) == 8 ? "long" : "int";
  return errors::Concat("#define T ", reg, width, "\n#define SUM ", reg, width, "\n#define CELL ", cell, width,
                        "\n#define LOAD_X(i) vload", width, "(i, AT(", reg, ", x))\n#define LOAD_DY(i) vload", width,
                        "(i, AT(", reg, ", dy))\n#define STORE_Y(i, v) vstore", width, "(v, i, AT(", reg,
                        ", y))\n#define LOAD_CELL(i) convert_", cell, width, "(vload", width,
                        "(i, AT(int, positions)))\n#define STORE_CELL(i, v) vstore", width, "(convert_int", width,
                        "(v), i, AT(int, positions))\n");
}

std::string Source(const PoolDesc& desc, Step step, int width, const char* index_type) {
  return errors::Concat(Elements(desc.type, width), "#define POSITION ",
                        desc.positions_type == DType::kInt32 ? "int" : "long", "\n#define LOWEST ", LowestOf(desc.type),
                        "\n#define AVERAGE ", desc.kind == PoolKind::kAverage ? 1 : 0, "\n#define STEP ",
                        static_cast<int>(step), "\n#define INDEX ", index_type, "\n", kSource);
}

int64_t Items(const PoolDesc& desc, Step step) {
  return desc.batch * desc.channels * host_runtime::Pixels(step == kGradient ? desc.input : desc.output);
}

}  // namespace

// Kernels count the cells of an image, and padding, in 31 bits.
bool Supports(const Abilities& abilities, const PoolDesc& desc) {
  constexpr int64_t kMost = int64_t{1} << 29;
  int64_t inputs = 1, outputs = 1;
  for (int d = 0; d < PoolDesc::kMaxSpatial; ++d) {
    const int64_t input = std::max<int64_t>(desc.input[d], 1), output = std::max<int64_t>(desc.output[d], 1);
    if (input > kMost / inputs || output > kMost / outputs) return false;
    inputs *= input;
    outputs *= output;
    if (output > kMost / std::max<int64_t>(desc.stride[d], 1)) return false;
    if (desc.window[d] > kMost || desc.pad_before[d] > kMost || desc.pad_after[d] > kMost) return false;
  }
  return IsDefined(desc) && HasType(abilities, desc.type);
}

int64_t WorkspaceBytes(const PoolDesc& desc) {
  const bool finds_cells = desc.gradient && desc.kind == PoolKind::kMax;
  return finds_cells ? Items(desc, kCells) * static_cast<int64_t>(sizeof(int32_t)) : 0;
}

Status Enqueue(Machine& machine, Queue& queue, const PoolDesc& desc, const Args& args, const Footprint&) {
  std::vector<int64_t> table;
  for (const int64_t* of_axes : {desc.input, desc.window, desc.output, desc.stride, desc.pad_before}) {
    table.insert(table.end(), of_axes, of_axes + PoolDesc::kMaxSpatial);
  }
  const bool is_max = desc.kind == PoolKind::kMax;
  const auto run = [&](Step step, const void* x, const void* dy, const void* y, const void* positions) -> Status {
    const int width = WidthOf(machine.hardware(), desc, step);
    const int64_t items = Items(desc, step) / width;
    if (items == 0) return OkStatus();
    const char* const index_type = IndexType(std::max(Items(desc, kForward), Items(desc, kGradient)));
    const std::string key =
        errors::Concat("pool ", static_cast<int>(desc.kind), " ", static_cast<int>(step), " ", Name(desc.type), " ",
                       step == kPositions ? Name(desc.positions_type) : "", " ", width, " ", index_type);
    Call call(machine, queue, key, [&] { return Source(desc, step, width, index_type); });
    call.Value(static_cast<uint64_t>(items)).Value(static_cast<uint32_t>(desc.channels / width));
    call.Value(static_cast<int32_t>(desc.order == ChannelOrder::kLast));
    return call.Memory(x).Memory(dy).Memory(y).Memory(positions).Table(table).Run(items);
  };
  if (!desc.gradient) {
    if (desc.positions_type == DType::kInvalid) return run(kForward, args.in[0], nullptr, args.out[0], nullptr);
    return run(kPositions, args.in[0], nullptr, args.out[0], args.out[1]);
  }
  if (is_max) XPU_RETURN_IF_ERROR(run(kCells, args.in[0], nullptr, nullptr, args.workspace));
  return run(kGradient, nullptr, args.in[is_max ? 2 : 0], args.out[0], args.workspace);
}

}  // namespace xpu::gpu
