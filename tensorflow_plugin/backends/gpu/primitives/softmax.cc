#include <string>

#include "tensorflow_plugin/backends/gpu/codegen/parts.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/nn/softmax.cl.inc"
    ;
const std::string kRows =
#include "tensorflow_plugin/backends/gpu/kernels/nn/softmax_rows.cl.inc"
    ;

const std::string kGroups =
#include "tensorflow_plugin/backends/gpu/kernels/nn/softmax_group.cl.inc"
    ;

// The kernel's runs, by the steps that they do.
constexpr int32_t kAllSteps = 7;
constexpr int32_t kSteps[] = {1, 2, 4};
constexpr int64_t kPartialNumbers = 4;

bool IsSparse(const SoftmaxDesc& desc) { return desc.kind == SoftmaxKind::kSparseCrossEntropy; }

// Elements of a row's vectors, for which rows have to be dense, and long enough; 0: there are none.
int WidthOf(const Hardware& hardware, const SoftmaxDesc& desc) {
  if (desc.type != DType::kFloat && desc.type != DType::kDouble) return 0;
  if (desc.kind == SoftmaxKind::kCrossEntropy) {
    for (int64_t row : {desc.logits_row_stride, desc.labels_row_stride}) {
      if (row != desc.cols) return 0;
    }
    if (desc.logits_col_stride != 1 || desc.labels_col_stride != 1) return 0;
  }
  const int width = hardware.is_processor ? 8 : 4;
  return desc.cols >= width ? width : 0;
}

std::string Operands(const SoftmaxDesc& desc) {
  const DType type = desc.type;
  return errors::Concat("#define KIND ", static_cast<int>(desc.kind), "\n#define REAL ", RegisterOf(type),
                        "\n#define LABEL_INDEX ", IsSparse(desc) ? StorageOf(desc.label_type) : "int",
                        "\n#define LOAD_LOGIT(i) ", Load(type, "logits", "i"), "\n#define LOAD_LABEL(i) ",
                        Load(type, "labels", "i"), "\n#define STORE_FIRST(i, x) ", Store(type, "first_out", "i", "x"),
                        "\n#define STORE_BACKPROP(i, x) ", Store(type, "backprop", "i", "x"));
}

// Items of a group that has a row. If it is 0, items have rows, or parts of them. That is so on processors, and where
// rows are short or too few for groups to keep a device busy.
int64_t GroupOf(const Hardware& hardware, const SoftmaxDesc& desc, const Parts& parts) {
  constexpr int64_t kSmall = 64, kLarge = 256, kEnoughRows = 256;
  if (hardware.is_processor || desc.cols < kSmall || (parts.count > 1 && desc.rows < kEnoughRows)) return 0;
  return desc.cols < 8 * kLarge || hardware.largest_group < kLarge ? kSmall : kLarge;
}

struct Strides {
  int64_t logits_row, logits_col, labels_row, labels_col;
};

Strides StridesOf(const SoftmaxDesc& desc) {
  const bool strided = desc.kind == SoftmaxKind::kCrossEntropy;
  return {strided ? desc.logits_row_stride : desc.cols, strided ? desc.logits_col_stride : 1, desc.labels_row_stride,
          desc.labels_col_stride};
}

// Elements of a row that an item of its group has in registers; 0: they are too many.
int64_t HeldOf(const SoftmaxDesc& desc, int64_t items) {
  for (int64_t held : {4, 8, 16}) {
    if (desc.cols <= items * held) return held;
  }
  return 0;
}

// A group for each row.
Status EnqueueGroups(Machine& machine, Queue& queue, const SoftmaxDesc& desc, const Args& args,
                     const Footprint& footprint, int64_t items) {
  const int64_t held = HeldOf(desc, items);
  const std::string key = errors::Concat("softmax of groups ", items, " ", held, " ", static_cast<int>(desc.kind), " ",
                                         Name(desc.type), " ", IsSparse(desc) ? Name(desc.label_type) : "");
  Call call(machine, queue, key, [&] {
    return errors::Concat(Operands(desc), "#define ITEMS ", items, "\n#define HELD ", held, "\n", kGroups);
  });
  const Strides strides = StridesOf(desc);
  call.Value(static_cast<uint64_t>(desc.cols));
  for (int64_t stride : {strides.logits_row, strides.logits_col, strides.labels_row, strides.labels_col}) {
    call.Value(static_cast<int64_t>(stride));
  }
  call.Memory(args.in[0]).Memory(footprint.num_in > 1 ? args.in[1] : nullptr);
  call.Memory(args.out[0]).Memory(footprint.num_out > 1 ? args.out[1] : nullptr);
  const size_t groups[] = {static_cast<size_t>(desc.rows), 1, 1}, local[] = {static_cast<size_t>(items), 1, 1};
  return call.RunGroups(groups, local);
}

// An item for each row.
Status EnqueueRows(Machine& machine, Queue& queue, const SoftmaxDesc& desc, const Args& args,
                   const Footprint& footprint, int width) {
  const std::string key = errors::Concat("softmax of rows ", static_cast<int>(desc.kind), " ", Name(desc.type), " ",
                                         IsSparse(desc) ? Name(desc.label_type) : "");
  Call call(machine, queue, key, [&] {
    return errors::Concat(Operands(desc), "#define WIDTH ", width, "\n#define NUMBERS ", RegisterOf(desc.type), width,
                          "\n", kRows);
  });
  call.Value(static_cast<uint64_t>(desc.rows)).Value(static_cast<uint64_t>(desc.cols));
  call.Memory(args.in[0]).Memory(footprint.num_in > 1 ? args.in[1] : nullptr);
  call.Memory(args.out[0]).Memory(footprint.num_out > 1 ? args.out[1] : nullptr);
  return call.Run(desc.rows);
}

}  // namespace

bool Supports(const Abilities& abilities, const SoftmaxDesc& desc) {
  return IsDefined(desc) && HasType(abilities, desc.type);
}

int64_t WorkspaceBytes(const SoftmaxDesc& desc) {
  const int64_t parts = Parts::Of(desc.rows, desc.cols).count;
  const size_t real = desc.type == DType::kDouble ? sizeof(double) : sizeof(float);
  return parts == 1 ? 0 : parts * desc.rows * kPartialNumbers * static_cast<int64_t>(real);
}

Status Enqueue(Machine& machine, Queue& queue, const SoftmaxDesc& desc, const Args& args, const Footprint& footprint) {
  const Parts parts = Parts::Of(desc.rows, desc.cols);
  if (const int64_t items = GroupOf(machine.hardware(), desc, parts); items != 0) {
    return EnqueueGroups(machine, queue, desc, args, footprint, items);
  }
  if (const int width = WidthOf(machine.hardware(), desc); width != 0 && parts.count == 1) {
    return EnqueueRows(machine, queue, desc, args, footprint, width);
  }
  const Parts::PartWalk walk = parts.WalkOn(machine.hardware(), desc.cols);
  const Strides strides = StridesOf(desc);
  const std::string key = errors::Concat("softmax ", static_cast<int>(desc.kind), " ", Name(desc.type), " ",
                                         IsSparse(desc) ? Name(desc.label_type) : "");
  for (const int32_t step : kSteps) {
    Call call(machine, queue, key, [&] { return Operands(desc) + kSource; });
    for (int64_t value : {desc.rows, desc.cols, parts.count, walk.first, walk.step, walk.span}) {
      call.Value(static_cast<uint64_t>(value));
    }
    call.Value(parts.count == 1 ? kAllSteps : step);
    for (int64_t stride : {strides.logits_row, strides.logits_col, strides.labels_row, strides.labels_col}) {
      call.Value(static_cast<int64_t>(stride));
    }
    call.Memory(args.in[0]).Memory(footprint.num_in > 1 ? args.in[1] : nullptr).Memory(args.workspace);
    call.Memory(args.out[0]).Memory(footprint.num_out > 1 ? args.out[1] : nullptr);
    XPU_RETURN_IF_ERROR(call.Run(desc.rows * parts.count));
    if (parts.count == 1) break;
  }
  return OkStatus();
}

}  // namespace xpu::gpu
