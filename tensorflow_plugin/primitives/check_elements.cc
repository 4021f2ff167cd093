// The checks of what moves, picks and orders elements: copies, gathers, scatters, random numbers, scans, sorts,
// searches.
#include <algorithm>
#include <limits>
#include <utility>

#include "tensorflow_plugin/primitives/checking.h"

namespace xpu {

using namespace checking;  // NOLINT: what it is for

namespace {

constexpr const char* kScatterNames[] = {"update", "add", "sub", "mul", "div", "min", "max"};
constexpr const char* kRandomNames[] = {"uniform",       "uniform integer",  "uniform full-range integer",
                                        "normal",        "truncated normal", "gamma",
                                        "bounded normal"};
constexpr const char* kScanNames[] = {"sum", "product", "log-sum-exp"};

}  // namespace

Status Check(const CopyStridedDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireRank("CopyStrided: source strides", desc.src_strides, desc.shape));
  XPU_RETURN_IF_ERROR(RequireRank("CopyStrided: destination strides", desc.dst_strides, desc.shape));
  XPU_REQUIRE(desc.element_size > 0 && desc.element_size <= INT64_MAX,
              errors::InvalidArgument("CopyStrided: elements of ", desc.element_size, " bytes, expected 1 or more"));
  const int64_t size = static_cast<int64_t>(desc.element_size);
  XPU_RETURN_IF_ERROR(View("CopyStrided")
                          .Strided(desc.shape, desc.src_strides)
                          .Offset(desc.src_offset)
                          .As(DType::kInvalid, size, NextIn(f)));
  return View("CopyStrided")
      .Strided(desc.shape, desc.dst_strides)
      .Offset(desc.dst_offset)
      .As(DType::kInvalid, size, NextOut(f));
}

bool IsDefined(const CopyStridedDesc& desc) { return desc.element_size > 0; }
std::string Name(const CopyStridedDesc& desc) { return OfSize("CopyStrided", desc.element_size); }

Status Check(const GatherDesc& desc, Footprint* f) {
  XPU_REQUIRE(desc.element_size > 0 && desc.element_size <= INT64_MAX,
              errors::InvalidArgument("Gather: elements of ", desc.element_size, " bytes, expected 1 or more"));
  XPU_REQUIRE(IsInteger(desc.index_type), errors::InvalidArgument("Gather: indices cannot be ", Name(desc.index_type)));
  const int64_t size = static_cast<int64_t>(desc.element_size);
  XPU_RETURN_IF_ERROR(
      View("Gather").Dense({desc.batch, desc.outer, desc.inner}).Dense(desc.dims).As(DType::kInvalid, size, NextIn(f)));
  Operand* const indices = NextIn(f);
  XPU_RETURN_IF_ERROR(
      View("Gather").Dense({desc.batch, desc.num_indices, desc.dims.rank()}).As(desc.index_type, indices));
  f->must_run = desc.inner == 0 && indices->elements != 0;
  return View("Gather")
      .Dense({desc.batch, desc.outer, desc.num_indices, desc.inner})
      .As(DType::kInvalid, size, NextOut(f));
}

bool IsDefined(const GatherDesc& desc) { return desc.element_size > 0 && IsInteger(desc.index_type); }
std::string Name(const GatherDesc& desc) {
  return OfSize("Gather", desc.element_size) + " by indices of " + Name(desc.index_type);
}

Status Check(const ScatterDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Scatter", desc.type));
  XPU_REQUIRE(IsInteger(desc.index_type),
              errors::InvalidArgument("Scatter: indices cannot be ", Name(desc.index_type)));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  XPU_RETURN_IF_ERROR(View("Scatter").Dense({desc.num_indices, desc.dims.rank()}).As(desc.index_type, NextIn(f)));
  Operand updates, buffer;
  XPU_RETURN_IF_ERROR(View("Scatter").Dense({desc.num_indices, desc.inner}).As(desc.type, &updates));
  XPU_RETURN_IF_ERROR(View("Scatter").Dense(desc.dims).Dense({desc.inner}).As(desc.type, &buffer));
  // With an empty buffer every index is out of range, which only the kernel can say.
  f->must_run = updates.elements != 0;
  if (!f->must_run) XPU_RETURN_IF_ERROR(Nothing(desc.type, &buffer));
  if (f->must_run && desc.scalar_update) XPU_RETURN_IF_ERROR(View("Scatter").Dense({1}).As(desc.type, &updates));
  *NextIn(f) = updates;
  *NextOut(f) = buffer;
  return OkStatus();
}

bool IsDefined(const ScatterDesc& desc) {
  return desc.type != DType::kInvalid && IsInteger(desc.index_type) && IsDefined(desc.kind, desc.type);
}
std::string Name(const ScatterDesc& desc) {
  return errors::Concat("Scatter ", NameOf(kScatterNames, desc.kind), " of ", Name(desc.type), " by indices of ",
                        Name(desc.index_type));
}

Status Check(const RandomDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Random", desc.type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  if (desc.start == RandomStart::kGiven) {
    XPU_RETURN_IF_ERROR(View("Random").Dense({1}).As(DType::kUint64, NextIn(f)));
  }
  if (desc.start != RandomStart::kHere) {
    XPU_RETURN_IF_ERROR(View("Random").Dense({2}).As(DType::kUint64, NextIn(f)));
  }
  if (const int inputs = ParameterInputs(desc.kind); inputs > 0) {
    XPU_REQUIRE(desc.parameters > 0 && desc.n % desc.parameters == 0,
                errors::InvalidArgument("Random: ", desc.n, " numbers of ", desc.parameters, " distributions"));
    for (int i = 0; i < inputs; ++i) {
      XPU_RETURN_IF_ERROR(View("Random").Dense({desc.parameters}).As(desc.type, NextIn(f)));
    }
  }
  XPU_RETURN_IF_ERROR(View("Random").Dense({desc.n}).As(desc.type, NextOut(f)));
  if (desc.kind == RandomKind::kUniformInt && desc.n > 0) {
    const bool ordered = IsUnsignedInteger(desc.type)
                             ? static_cast<uint64_t>(desc.low) < static_cast<uint64_t>(desc.high)
                             : desc.low < desc.high;
    XPU_REQUIRE(ordered, errors::InvalidArgument("Need minval < maxval, got ", desc.low, " >= ", desc.high));
  }
  return OkStatus();
}

bool IsDefined(const RandomDesc& desc) {
  const DType t = desc.type;
  const bool integer = desc.kind == RandomKind::kUniformInt || desc.kind == RandomKind::kUniformFullInt;
  return integer ? t == DType::kInt32 || t == DType::kInt64 || t == DType::kUint32 || t == DType::kUint64
                 : IsFloating(t);
}
std::string Name(const RandomDesc& desc) {
  return errors::Concat("random ", NameOf(kRandomNames, desc.kind), " numbers of ", Name(desc.type),
                        desc.start == RandomStart::kHere ? "" : " from a start on the device");
}

Status Check(const CompactDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Compact", desc.type));
  Operand* const x = NextIn(f);
  XPU_RETURN_IF_ERROR(View("Compact").Dense(desc.shape).Dense({1}).As(desc.type, x));
  // That none was counted is checked too.
  f->must_run = x->elements != 0;
  return View("Compact").Dense({desc.count, desc.shape.rank()}).As(DType::kInt64, NextOut(f));
}

bool IsDefined(const CompactDesc& desc) { return desc.type != DType::kInvalid; }
std::string Name(const CompactDesc& desc) { return errors::Concat("Compact of ", Name(desc.type)); }

namespace {

Status RequireIndexType(const char* what, DType type) {
  XPU_REQUIRE(type == DType::kInt32 || type == DType::kInt64 || type == DType::kInt16,
              errors::InvalidArgument(what, ": positions cannot be ", Name(type)));
  return OkStatus();
}

bool HasOrder(DType type) { return IsFloating(type) || IsInteger(type); }

}  // namespace

Status Check(const ScanDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Scan", desc.type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  Operand x;
  XPU_RETURN_IF_ERROR(View("Scan").Dense({desc.outer, desc.n, desc.inner}).As(desc.type, &x));
  *NextIn(f) = x;
  *NextOut(f) = x;
  return OkStatus();
}

bool IsDefined(const ScanDesc& desc) {
  return desc.kind == ScanKind::kLogSumExp ? IsFloating(desc.type) : desc.type >= DType::kInt8;
}
std::string Name(const ScanDesc& desc) {
  return errors::Concat("Scan ", NameOf(kScanNames, desc.kind), " of ", Name(desc.type));
}

Status Check(const SortDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Sort", desc.type));
  XPU_RETURN_IF_ERROR(RequireIndexType("Sort", desc.index_type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  XPU_RETURN_IF_ERROR(View("Sort").Dense({desc.rows, desc.n}).As(desc.type, NextIn(f)));
  XPU_REQUIRE(desc.k <= desc.n, errors::InvalidArgument("Sort: the first ", desc.k, " elements of rows of ", desc.n));
  XPU_RETURN_IF_ERROR(View("Sort").Dense({desc.rows, desc.k}).As(desc.type, NextOut(f)));
  return View("Sort").Dense({desc.rows, desc.k}).As(desc.index_type, NextOut(f));
}

bool IsDefined(const SortDesc& desc) { return HasOrder(desc.type) && IsSignedInteger(desc.index_type); }
std::string Name(const SortDesc& desc) {
  return errors::Concat("Sort of ", Name(desc.type), " with positions of ", Name(desc.index_type));
}

Status Check(const SearchDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Search", desc.type));
  XPU_RETURN_IF_ERROR(RequireIndexType("Search", desc.index_type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  XPU_RETURN_IF_ERROR(View("Search").Dense({desc.rows, desc.n}).As(desc.type, NextIn(f)));
  XPU_RETURN_IF_ERROR(View("Search").Dense({desc.rows, desc.m}).As(desc.type, NextIn(f)));
  return View("Search").Dense({desc.rows, desc.m}).As(desc.index_type, NextOut(f));
}

bool IsDefined(const SearchDesc& desc) { return HasOrder(desc.type) && IsSignedInteger(desc.index_type); }
std::string Name(const SearchDesc& desc) {
  return errors::Concat("Search of ", Name(desc.type), " for positions of ", Name(desc.index_type));
}

Status Check(const UniqueDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Unique", desc.type));
  XPU_RETURN_IF_ERROR(RequireIndexType("Unique", desc.index_type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  XPU_RETURN_IF_ERROR(View("Unique").Dense({desc.n, desc.inner}).As(desc.type, NextIn(f)));
  XPU_RETURN_IF_ERROR(View("Unique").Dense({desc.n}).As(desc.index_type, NextOut(f)));
  XPU_RETURN_IF_ERROR(View("Unique").Dense({desc.n}).As(DType::kInt64, NextOut(f)));
  return View("Unique").Dense({1}).As(DType::kInt64, NextOut(f));
}

bool IsDefined(const UniqueDesc& desc) { return desc.type != DType::kInvalid && IsSignedInteger(desc.index_type); }
std::string Name(const UniqueDesc& desc) {
  return errors::Concat("Unique of ", Name(desc.type), " with numbers of ", Name(desc.index_type));
}

Status Check(const SuppressDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(View("Suppress").Dense({desc.n, desc.pairs ? desc.n : 4}).As(DType::kFloat, NextIn(f)));
  return View("Suppress").Dense({desc.n}).As(DType::kBool, NextOut(f));
}

bool IsDefined(const SuppressDesc&) { return true; }
std::string Name(const SuppressDesc& desc) {
  return desc.pairs ? "suppression by given overlaps" : "suppression of boxes";
}

Status Check(const SelectBoxesDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  const auto floats = [](Dims dims, Operand* operand) {
    return View("SelectBoxes").Dense(std::move(dims)).As(DType::kFloat, operand);
  };
  if (desc.box_sets != 1 && desc.box_sets != desc.classes) {
    return errors::InvalidArgument("SelectBoxes: ", desc.box_sets, " sets of boxes for ", desc.classes, " classes");
  }
  XPU_RETURN_IF_ERROR(floats({desc.batch, desc.n, desc.box_sets, 4}, NextIn(f)));
  XPU_RETURN_IF_ERROR(floats({desc.batch, desc.n, desc.classes}, NextIn(f)));
  XPU_RETURN_IF_ERROR(floats({desc.batch, desc.rows, 4}, NextOut(f)));
  XPU_RETURN_IF_ERROR(floats({desc.batch, desc.rows}, NextOut(f)));
  XPU_RETURN_IF_ERROR(floats({desc.batch, desc.rows}, NextOut(f)));
  return View("SelectBoxes").Dense({desc.batch}).As(DType::kInt32, NextOut(f));
}

bool IsDefined(const SelectBoxesDesc& desc) {
  return std::max(desc.n, desc.classes) <= std::numeric_limits<int32_t>::max();
}
std::string Name(const SelectBoxesDesc&) { return "selection of boxes"; }

}  // namespace xpu
