// A gradient of images is what a Scatter adds up: for each point four updates of a pixel each, in the points' order.
#include <cstdint>
#include <string>

#include "tensorflow_plugin/backends/gpu/primitives/indices.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::gpu {
namespace {

const std::string kSource =
#include "tensorflow_plugin/backends/gpu/kernels/nn/sample.cl.inc"
    ;

enum Stage : int32_t { kCompute, kCheck };  // in sample.cl

constexpr int64_t kCorners = 4;

// The numbers of which an update of a pixel is made.
struct Updates {
  explicit Updates(const SampleDesc& d)
      : type(SizeOf(d.type) == 2 ? DType::kFloat : d.type),
        count(kCorners * d.batch * d.out_h * d.out_w),
        bytes(count * d.channels * static_cast<int64_t>(SizeOf(type))),
        sums(d.images * d.height * d.width * d.channels) {
    scatter.kind = ScatterKind::kAdd;
    scatter.type = type;
    scatter.index_type = DType::kInt64;
    scatter.num_indices = count;
    scatter.inner = d.channels;
    scatter.skip_negative = true;  // what lies outside
    scatter.dims = {d.images * d.height * d.width};
  }

  DType type;  // sums of half and bfloat16 are made in float, beside the result
  int64_t count, bytes, sums;
  ScatterDesc scatter;
};

// Where they lie in scratch memory, in bytes from its begin.
struct Places {
  Places(const SampleDesc& d, const Updates& u) {
    const auto next = [this](int64_t size) {
      const int64_t here = bytes;
      bytes += (size + 255) / 256 * 256;
      return here;
    };
    pixels = next(u.count * static_cast<int64_t>(sizeof(int64_t)));
    updates = next(u.bytes);
    if (u.type != d.type) sums = next(u.sums * static_cast<int64_t>(SizeOf(u.type)));
    scatter = next(WorkspaceBytes(u.scatter));
  }
  int64_t bytes = 0, pixels, updates, sums = -1, scatter;
};

std::string Source(const SampleDesc& d) {
  const Updates updates(d);
  const bool is_forward = d.direction == SampleDirection::kForward;
  const DType filled = is_forward ? d.result_type : d.type;
  const DType stored = is_forward ? d.result_type : updates.type;
  return errors::Concat(
      "CUT(float)\n#define NEAREST ", d.kind == SampleKind::kNearest ? 1 : 0, "\n#define OUTSIDE ",
      static_cast<int>(d.outside), "\n#define DIRECTION ", static_cast<int>(d.direction), "\n#define LOAD_PIXEL(i) ",
      Load(d.type, "images", "i"), "\n#define LOAD_GRADIENT(i) ", Load(d.result_type, "gradient", "i"),
      "\n#define FILL(x) ", Cast(DType::kFloat, filled, "(x)"), "\n#define RESULT ", RegisterOf(stored),
      "\n#define RESULT_OF(x) ", Cast(DType::kFloat, stored, "(x)"), "\n#define RESULT_OF_PIXEL(x) ",
      Cast(d.type, stored, "(x)"), "\n#define STORE_RESULT(i, x) ", Store(stored, "out", "i", "x"), kSource);
}

}  // namespace

bool Supports(const Abilities& abilities, const SampleDesc& desc) {
  if (!IsDefined(desc) || !HasType(abilities, desc.type) || !HasType(abilities, desc.result_type)) return false;
  if (!FitsReport(desc.batch)) return false;
  if (desc.direction != SampleDirection::kImageGradient) return true;
  return FitsReport(desc.images, desc.height) && FitsReport(desc.images * desc.height, desc.width) &&
         FitsReport(kCorners * desc.batch, desc.out_h);
}

int64_t WorkspaceBytes(const SampleDesc& desc) {
  if (desc.direction != SampleDirection::kImageGradient) return 0;
  return Places(desc, Updates(desc)).bytes;
}

Status Enqueue(Machine& machine, Queue& queue, const SampleDesc& desc, const Args& args, const Footprint& footprint) {
  const bool to_images = desc.direction == SampleDirection::kImageGradient;
  const bool to_points = desc.direction == SampleDirection::kPointGradient;
  const Updates updates(desc);
  const Places places(desc, updates);
  const auto scratch = [&](int64_t place) -> void* { return static_cast<char*>(args.workspace) + place; };
  const auto in = [&](int i) { return footprint.in[i].elements == 0 ? nullptr : args.in[i]; };
  const int first = to_points ? 2 : 1;  // of the points
  const void* const numbers = desc.numbered ? in(first + 2) : nullptr;
  const int64_t points = desc.batch * desc.out_h * desc.out_w;
  const std::string key =
      errors::Concat("sample ", static_cast<int>(desc.kind), " ", static_cast<int>(desc.outside), " ",
                     static_cast<int>(desc.direction), " ", Name(desc.type), " ", Name(desc.result_type));
  const auto set = [&](Call& call, Stage step, int64_t items) {
    call.Value(static_cast<int32_t>(step)).Value(static_cast<uint64_t>(items));
    for (int64_t value : {desc.images, desc.height, desc.width, desc.channels, desc.batch, desc.out_h, desc.out_w}) {
      call.Value(static_cast<int64_t>(value));
    }
    for (const Dims* strides : {&desc.y_strides, &desc.x_strides}) {
      for (int64_t stride : *strides) call.Value(static_cast<int64_t>(stride));
    }
    call.Value(static_cast<int32_t>(desc.numbered)).Value(static_cast<float>(desc.fill));
    call.Memory(desc.direction == SampleDirection::kForward ? in(0) : to_points ? in(1) : nullptr);
    call.Memory(desc.direction == SampleDirection::kForward ? nullptr : in(0));
    call.Memory(in(first)).Memory(in(first + 1)).Memory(numbers);
    call.Memory(to_images ? scratch(places.updates) : args.out[0]).Memory(to_points ? args.out[1] : nullptr);
    call.Memory(to_images ? scratch(places.pixels) : nullptr);
  };
  const int64_t items = to_points ? points : points * desc.channels;
  if (items > 0) {
    Call call(machine, queue, key, [&] { return Source(desc); });
    set(call, kCompute, items);
    XPU_RETURN_IF_ERROR(call.Memory(nullptr).Run(items));
  }
  if (to_images && updates.sums > 0) {
    Args add{};
    add.in[0] = scratch(places.pixels);
    add.in[1] = scratch(places.updates);
    add.out[0] = places.sums < 0 ? args.out[0] : scratch(places.sums);
    add.workspace = scratch(places.scatter);
    XPU_RETURN_IF_ERROR(queue.Memset(add.out[0], 0, static_cast<size_t>(updates.sums) * SizeOf(updates.type)));
    if (items > 0) XPU_RETURN_IF_ERROR(Enqueue(machine, queue, updates.scatter, add, Footprint()));
    if (places.sums >= 0) {
      ElementwiseDesc round;
      round.program = CastProgram(updates.type, desc.type);
      round.shape = {updates.sums};
      round.in_strides[0] = {1};
      Args of_sums{};
      of_sums.in[0] = add.out[0];
      of_sums.out[0] = args.out[0];
      XPU_RETURN_IF_ERROR(Enqueue(machine, queue, round, of_sums, Footprint()));
    }
  }
  if (!desc.numbered || desc.batch == 0) return OkStatus();
  Call check(machine, queue, key, [&] { return Source(desc); });
  set(check, kCheck, desc.batch);
  check.Report();
  return check.RunChecked(desc.batch, args, [&machine, numbers, images = desc.images](uint32_t b) {
    int32_t number = 0;
    XPU_RETURN_IF_ERROR(machine.Read(&number, static_cast<const int32_t*>(numbers) + b, sizeof(number)));
    return errors::InvalidArgument("image number ", b, " is ", number, ", which is not in [0, ", images, ")");
  });
}

}  // namespace xpu::gpu
