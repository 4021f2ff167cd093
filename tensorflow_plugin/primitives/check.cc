// The checks of what computes: programs, reductions, products, convolutions, pools, normalisation, softmax.
#include <utility>

#include "tensorflow_plugin/primitives/checking.h"

namespace xpu {

using namespace checking;  // NOLINT: what it is for

namespace {

constexpr const char* kReduceNames[] = {"Sum", "Mean", "Prod",          "Max",    "Min",
                                        "All", "Any",  "EuclideanNorm", "ArgMax", "ArgMin"};
constexpr const char* kDirectionNames[] = {"", " data gradient", " filter gradient", " filter's layout"};
constexpr const char* kSoftmaxNames[] = {"Softmax", "LogSoftmax", "softmax cross entropy",
                                         "sparse softmax cross entropy"};

// The inputs of a program over its shape, from one of them on.
Status CheckSource(const ElementwiseDesc& desc, Footprint* f, int first = 0) {
  const Program* const program = desc.program;
  XPU_REQUIRE(program != nullptr, errors::InvalidArgument("Elementwise: there is no program"));
  for (int i = first; i < program->num_inputs(); ++i) {
    XPU_RETURN_IF_ERROR(RequireRank("Elementwise: input strides", desc.in_strides[i], desc.shape));
    XPU_RETURN_IF_ERROR(
        View("Elementwise").Strided(desc.shape, desc.in_strides[i]).As(program->inputs()[i], NextIn(f)));
  }
  return OkStatus();
}

// The outputs of a program over its shape.
Status CheckResults(const ElementwiseDesc& desc, Footprint* f) {
  for (int i = 0; i < desc.program->num_outputs(); ++i) {
    XPU_RETURN_IF_ERROR(View("Elementwise").Dense(desc.shape).As(desc.program->output_type(i), NextOut(f)));
  }
  return OkStatus();
}

}  // namespace

Status Check(const ElementwiseDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(CheckSource(desc, f));
  return CheckResults(desc, f);
}

// A program builds only of instructions that are defined.
bool IsDefined(const ElementwiseDesc& desc) { return desc.program != nullptr; }

std::string Name(const ElementwiseDesc& desc) {
  if (desc.program == nullptr) return "a missing program";
  if (desc.program->instrs().empty()) return "a program without instructions";
  const std::vector<Instr>& instrs = desc.program->instrs();
  std::string names = instrs.size() == 1 ? "" : "the program ";
  for (const Instr& instr : instrs) {
    if (&instr != &instrs.front()) names += ", ";
    names += errors::Concat(Info(instr.op).name, " of ", Name(instr.type));
    if (instr.op == Opcode::kCast) names += errors::Concat(" to ", Name(instr.result));
  }
  return names;
}

Status Check(const ReduceDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(CheckSource(desc.source, f));
  XPU_REQUIRE(
      desc.source.program->num_outputs() == 1,
      errors::InvalidArgument("Reduce: the program has ", desc.source.program->num_outputs(), " outputs, expected 1"));
  const Dims& shape = desc.source.shape;
  XPU_REQUIRE(shape.rank() <= ReduceDesc::kMaxRank,
              errors::Unimplemented("Reduce: ", shape.rank(), " axes of the shape ", shape.ToString(),
                                    ", of which no neighbours are reduced or kept together, expected at most ",
                                    ReduceDesc::kMaxRank));
  XPU_REQUIRE((uint64_t{desc.axes} >> shape.rank()) == 0,
              errors::InvalidArgument("Reduce: the axes mask ", desc.axes, " names axes that the shape ",
                                      shape.ToString(), " does not have"));
  Operand all;
  XPU_RETURN_IF_ERROR(View("Reduce").Dense(shape).As(SourceType(desc), &all));
  View kept("Reduce");
  for (int i = 0; i < shape.rank(); ++i) {
    if (!(desc.axes >> i & 1)) kept.Dense({shape[i]});
  }
  if (IsArgKind(desc.kind)) {
    XPU_REQUIRE(__builtin_popcount(desc.axes) == 1,
                errors::InvalidArgument("Reduce: ArgMax and ArgMin need one axis, not the mask ", desc.axes));
    XPU_REQUIRE(IsInteger(desc.index_type),
                errors::InvalidArgument("Reduce: positions cannot be ", Name(desc.index_type)));
  }
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  return kept.Dense({1}).As(ResultType(desc), NextOut(f));
}

bool IsDefined(const ReduceDesc& desc) {
  if (desc.source.program == nullptr || desc.source.program->num_outputs() != 1) return false;
  const DType type = SourceType(desc);
  switch (desc.kind) {
    case ReduceKind::kSum:
    case ReduceKind::kMean:
    case ReduceKind::kProd:
    case ReduceKind::kEuclideanNorm:
      return type != DType::kBool;
    case ReduceKind::kMax:
    case ReduceKind::kMin:
      return !IsComplex(type);
    case ReduceKind::kAll:
    case ReduceKind::kAny:
      return type == DType::kBool;
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin:
      return !IsComplex(type) && IsInteger(desc.index_type);
  }
  return false;
}

std::string Name(const ReduceDesc& desc) {
  std::string name = errors::Concat("Reduce ", NameOf(kReduceNames, desc.kind), " of ");
  if (desc.source.program == nullptr) return name + "a missing program";
  if (desc.source.program->num_outputs() == 1) name += Name(SourceType(desc));
  return desc.source.program->instrs().empty() ? name : name + " from " + Name(desc.source);
}

namespace {

template <typename Desc>
const char* WithEpilogue(const Desc& desc) {
  return HasEpilogue(desc) ? " with an epilogue" : "";
}

// The epilogue of what `c` says.
template <typename Desc>
Status CheckEpilogue(const char* what, const Desc& product, const Operand& c, Footprint* f) {
  const ElementwiseDesc& desc = product.epilogue;
  const Program& p = *desc.program;
  XPU_REQUIRE(p.num_inputs() >= 1 && p.inputs()[0] == c.type && p.num_outputs() >= 1 &&
                  MayReplaceResult(product, c.type, p.output_type(0)),
              errors::InvalidArgument(what, ": the epilogue's first input and first output are not of ", Name(c.type)));
  XPU_REQUIRE(f->num_in + p.num_inputs() - 1 <= Program::kMaxInputs,
              errors::InvalidArgument(what, ": the epilogue has ", p.num_inputs(), " inputs, expected ",
                                      Program::kMaxInputs + 1 - f->num_in, " or fewer"));
  XPU_REQUIRE(!p.can_fail(), errors::InvalidArgument(what, ": the epilogue may fail"));
  XPU_RETURN_IF_ERROR(CheckSource(desc, f, 1));
  XPU_RETURN_IF_ERROR(CheckResults(desc, f));
  XPU_REQUIRE(f->out[0].elements == c.elements,
              errors::InvalidArgument(what, ": the epilogue's shape ", desc.shape.ToString(), " has ",
                                      f->out[0].elements, " elements, expected ", c.elements));
  return OkStatus();
}

}  // namespace

Status Check(const MatMulDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("MatMul", desc.type));
  XPU_RETURN_IF_ERROR(RequireRank("MatMul: batch strides of a", desc.a_batch_strides, desc.batch));
  XPU_RETURN_IF_ERROR(RequireRank("MatMul: batch strides of b", desc.b_batch_strides, desc.batch));
  const int64_t row_strides[] = {desc.lda, desc.ldb, desc.ldc};
  XPU_RETURN_IF_ERROR(RequireAtLeast(0, "MatMul: a row stride", row_strides, 3));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  const auto matrix = [&](const Dims& batch_strides, int64_t rows, int64_t columns, int64_t row_stride, DType type,
                          Operand* operand) {
    return View("MatMul")
        .Strided(desc.batch, batch_strides)
        .Strided(rows, row_stride != 0 ? row_stride : columns)
        .Strided(columns, 1)
        .As(type, operand);
  };
  const auto [a_rows, a_columns] = desc.transpose_a ? std::pair(desc.k, desc.m) : std::pair(desc.m, desc.k);
  const auto [b_rows, b_columns] = desc.transpose_b ? std::pair(desc.n, desc.k) : std::pair(desc.k, desc.n);
  XPU_RETURN_IF_ERROR(matrix(desc.a_batch_strides, a_rows, a_columns, desc.lda, desc.type, NextIn(f)));
  XPU_RETURN_IF_ERROR(matrix(desc.b_batch_strides, b_rows, b_columns, desc.ldb, TypeOfB(desc), NextIn(f)));
  const bool dense = desc.c_batch_strides.empty() && (desc.ldc == 0 || desc.ldc == desc.n);
  Operand c;
  if (dense) XPU_RETURN_IF_ERROR(View("MatMul").Dense(desc.batch).Dense({desc.m, desc.n}).As(TypeOfC(desc), &c));
  if (HasEpilogue(desc)) {
    XPU_REQUIRE(dense, errors::InvalidArgument("MatMul: c has strides, and an epilogue"));
    return CheckEpilogue("MatMul", desc, c, f);
  }
  if (dense) {
    *NextOut(f) = c;
    return OkStatus();
  }
  XPU_RETURN_IF_ERROR(RequireRank("MatMul: batch strides of c", desc.c_batch_strides, desc.batch));
  return matrix(desc.c_batch_strides, desc.m, desc.n, desc.ldc, TypeOfC(desc), NextOut(f));
}

bool IsDefined(const MatMulDesc& desc) {
  const auto is_byte = [](DType type) { return type == DType::kInt8 || type == DType::kUint8; };
  if (!IsMixed(desc)) return desc.type >= DType::kInt8;
  return is_byte(desc.type) && is_byte(TypeOfB(desc)) && TypeOfC(desc) == DType::kInt32;
}

std::string Name(const MatMulDesc& desc) {
  std::string name = errors::Concat("MatMul of ", Name(desc.type));
  if (TypeOfB(desc) != desc.type) name += errors::Concat(" and ", Name(TypeOfB(desc)));
  if (TypeOfC(desc) != desc.type) name += errors::Concat(" to ", Name(TypeOfC(desc)));
  return name + WithEpilogue(desc);
}

namespace {

// Weights of 4 bits: their bytes, scales and zero points.
template <typename Desc>
Status CheckWeights(const char* what, const Desc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireAtLeast(1, errors::Concat(what, ": groups").c_str(), &desc.groups, 1));
  XPU_RETURN_IF_ERROR(View(what).Dense({desc.bytes}).As(DType::kInt8, NextIn(f)));
  XPU_RETURN_IF_ERROR(View(what).Dense({desc.groups, desc.n}).As(DType::kFloat, NextIn(f)));
  return View(what).Dense({desc.groups, desc.n}).As(DType::kInt8, NextIn(f));
}

Status Form(const char* what, Operand* operand) { return View(what).Dense({2}).As(DType::kInt64, operand); }

}  // namespace

Status Check(const FindWeightsDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  XPU_RETURN_IF_ERROR(View("FindWeights").Dense({desc.k, desc.n}).As(desc.type, NextIn(f)));
  XPU_RETURN_IF_ERROR(CheckWeights("FindWeights", desc, f));
  return Form("FindWeights", NextOut(f));
}

bool IsDefined(const FindWeightsDesc& desc) { return desc.type == DType::kFloat; }
std::string Name(const FindWeightsDesc& desc) { return errors::Concat("FindWeights of ", Name(desc.type)); }

Status Check(const WeightMatMulDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireAtLeast(0, "WeightMatMul: a row stride", &desc.lda, 1));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  XPU_RETURN_IF_ERROR(View("WeightMatMul")
                          .Strided(desc.m, desc.lda != 0 ? desc.lda : desc.k)
                          .Strided(desc.k, 1)
                          .As(desc.type, NextIn(f)));
  XPU_RETURN_IF_ERROR(CheckWeights("WeightMatMul", desc, f));
  XPU_RETURN_IF_ERROR(Form("WeightMatMul", NextIn(f)));
  Operand c;
  XPU_RETURN_IF_ERROR(View("WeightMatMul").Dense({desc.m, desc.n}).As(desc.type, &c));
  if (HasEpilogue(desc)) return CheckEpilogue("WeightMatMul", desc, c, f);
  *NextOut(f) = c;
  return OkStatus();
}

bool IsDefined(const WeightMatMulDesc& desc) { return desc.type == DType::kFloat; }
std::string Name(const WeightMatMulDesc& desc) {
  return errors::Concat("WeightMatMul of ", Name(desc.type), WithEpilogue(desc));
}

Status Check(const QuantizeRowsDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  XPU_RETURN_IF_ERROR(RequireAtLeast(1, "QuantizeRows: columns", &desc.cols, 1));
  XPU_RETURN_IF_ERROR(View("QuantizeRows").Dense({desc.rows, desc.cols}).As(desc.type, NextIn(f)));
  for (int i = 0; i < 4; ++i) XPU_RETURN_IF_ERROR(View("QuantizeRows").Dense({1}).As(desc.type, NextIn(f)));
  XPU_RETURN_IF_ERROR(View("QuantizeRows").Dense({desc.rows, desc.cols}).As(DType::kInt8, NextOut(f)));
  return View("QuantizeRows").Dense({desc.rows}).As(desc.type, NextOut(f));
}

bool IsDefined(const QuantizeRowsDesc& desc) { return desc.type == DType::kFloat; }
std::string Name(const QuantizeRowsDesc& desc) { return errors::Concat("QuantizeRows of ", Name(desc.type)); }

namespace {

// The rank, and that the axes beyond it have extents of 1.
Status CheckAxes(const char* what, int rank, std::initializer_list<const int64_t*> extents) {
  XPU_REQUIRE(rank >= 1 && rank <= 3,
              errors::InvalidArgument(what, ": ", rank, " spatial dimensions, expected 1 to 3"));
  for (const int64_t* e : extents) {
    for (int d = rank; d < 3; ++d) {
      XPU_REQUIRE(e[d] == 1, errors::InvalidArgument(what, " of ", rank, " spatial dimensions: the extent of axis ", d,
                                                     " is ", e[d], ", expected 1"));
    }
  }
  return OkStatus();
}

}  // namespace

Status Check(const ConvolutionDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Convolution", desc.type));
  XPU_RETURN_IF_ERROR(CheckAxes("Convolution", desc.spatial_rank, {desc.input, desc.filter, desc.output}));
  XPU_RETURN_IF_ERROR(RequireAtLeast(1, "Convolution: a stride", desc.stride, 3));
  XPU_RETURN_IF_ERROR(RequireAtLeast(1, "Convolution: a dilation", desc.dilation, 3));
  XPU_RETURN_IF_ERROR(RequireAtLeast(1, "Convolution: groups", &desc.groups, 1));
  XPU_REQUIRE(desc.in_channels % desc.groups == 0 && desc.out_channels % desc.groups == 0,
              errors::InvalidArgument("Convolution: ", desc.in_channels, " input and ", desc.out_channels,
                                      " output channels do not split into ", desc.groups, " groups"));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  const auto x = [&](Operand* operand) {
    return View("Convolution").Dense({desc.batch, desc.in_channels}).Dense(desc.input, 3).As(desc.type, operand);
  };
  const auto filter = [&](Operand* operand) {
    return View("Convolution")
        .Dense({desc.in_channels / desc.groups, desc.out_channels})
        .Dense(desc.filter, 3)
        .As(TypeOfFilter(desc), operand);
  };
  const auto y = [&](Operand* operand) {
    return View("Convolution").Dense({desc.batch, desc.out_channels}).Dense(desc.output, 3).As(TypeOfY(desc), operand);
  };
  const auto packed = [&](Operand* operand) {
    return View("Convolution").Dense({desc.packed_filter_bytes}).As(DType::kUint8, operand);
  };
  XPU_RETURN_IF_ERROR(RequireAtLeast(0, "Convolution: the bytes of a filter's layout", &desc.packed_filter_bytes, 1));
  const bool to_layout = desc.direction == Direction::kPackFilter;
  XPU_REQUIRE(to_layout ? desc.packed_filter_bytes > 0 && !HasEpilogue(desc)
                        : desc.packed_filter_bytes == 0 || desc.direction != Direction::kFilterGradient,
              errors::InvalidArgument(Name(desc), ", ", desc.packed_filter_bytes,
                                      " bytes: expected a forward convolution, a data gradient, or a layout of bytes"));
  Operand out;
  switch (desc.direction) {
    case Direction::kForward:
      XPU_RETURN_IF_ERROR(x(NextIn(f)));
      XPU_RETURN_IF_ERROR(filter(NextIn(f)));
      if (IsMixed(desc)) {
        XPU_RETURN_IF_ERROR(View("Convolution").Dense({1}).As(DType::kInt32, NextIn(f)));
        XPU_RETURN_IF_ERROR(View("Convolution").Dense({desc.out_channels}).As(DType::kInt32, NextIn(f)));
      }
      if (desc.packed_filter_bytes > 0) XPU_RETURN_IF_ERROR(packed(NextIn(f)));
      XPU_RETURN_IF_ERROR(y(&out));
      break;
    case Direction::kPackFilter:
      XPU_RETURN_IF_ERROR(filter(NextIn(f)));
      return packed(NextOut(f));
    case Direction::kDataGradient:
      XPU_RETURN_IF_ERROR(filter(NextIn(f)));
      XPU_RETURN_IF_ERROR(y(NextIn(f)));
      if (desc.packed_filter_bytes > 0) XPU_RETURN_IF_ERROR(packed(NextIn(f)));
      XPU_RETURN_IF_ERROR(x(&out));
      break;
    case Direction::kFilterGradient:
      XPU_RETURN_IF_ERROR(x(NextIn(f)));
      XPU_RETURN_IF_ERROR(y(NextIn(f)));
      XPU_RETURN_IF_ERROR(filter(&out));
      break;
    default:
      return errors::InvalidArgument("Convolution: there is no direction ", static_cast<int>(desc.direction));
  }
  if (HasEpilogue(desc)) return CheckEpilogue("Convolution", desc, out, f);
  *NextOut(f) = out;
  return OkStatus();
}

ConvolutionDesc PackingOf(ConvolutionDesc desc) {
  desc.packed_for = desc.direction;
  desc.direction = Direction::kPackFilter;
  desc.epilogue = {};
  return desc;
}

bool IsDefined(const ConvolutionDesc& desc) {
  if (!IsMixed(desc)) return IsFloating(desc.type);
  return desc.type == DType::kUint8 && TypeOfFilter(desc) == DType::kInt8 && TypeOfY(desc) == DType::kInt32 &&
         (desc.direction == Direction::kForward || desc.direction == Direction::kPackFilter) &&
         desc.order == ChannelOrder::kLast;
}
std::string Name(const ConvolutionDesc& desc) {
  std::string types = Name(desc.type);
  if (TypeOfFilter(desc) != desc.type) types += errors::Concat(" and ", Name(TypeOfFilter(desc)));
  if (TypeOfY(desc) != desc.type) types += errors::Concat(" to ", Name(TypeOfY(desc)));
  return errors::Concat("Convolution", NameOf(kDirectionNames, desc.direction), " of ", types, WithEpilogue(desc));
}

Status Check(const PoolDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Pool", desc.type));
  XPU_RETURN_IF_ERROR(CheckAxes("Pool", desc.spatial_rank, {desc.input, desc.window, desc.output}));
  XPU_RETURN_IF_ERROR(RequireAtLeast(1, "Pool: a stride", desc.stride, 3));
  XPU_RETURN_IF_ERROR(RequireAtLeast(1, "Pool: a window extent", desc.window, 3));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  Operand x, y;
  XPU_RETURN_IF_ERROR(View("Pool").Dense({desc.batch, desc.channels}).Dense(desc.input, 3).As(desc.type, &x));
  XPU_RETURN_IF_ERROR(View("Pool").Dense({desc.batch, desc.channels}).Dense(desc.output, 3).As(desc.type, &y));
  if (!desc.gradient) {
    *NextIn(f) = x;
    *NextOut(f) = y;
    if (desc.positions_type == DType::kInvalid) return OkStatus();
    return View("Pool").Dense({desc.batch, desc.channels}).Dense(desc.output, 3).As(desc.positions_type, NextOut(f));
  }
  if (desc.kind == PoolKind::kMax) {
    *NextIn(f) = x;
    *NextIn(f) = y;
  }
  *NextIn(f) = y;
  *NextOut(f) = x;
  return OkStatus();
}

bool IsDefined(const PoolDesc& desc) {
  const bool numbers = IsFloating(desc.type) || IsInteger(desc.type);
  if (desc.positions_type == DType::kInvalid) return numbers;
  return numbers && desc.kind == PoolKind::kMax && !desc.gradient && desc.order == ChannelOrder::kLast &&
         (desc.positions_type == DType::kInt32 || desc.positions_type == DType::kInt64);
}
std::string Name(const PoolDesc& desc) {
  return errors::Concat("Pool ", desc.kind == PoolKind::kMax ? "maximum" : "average",
                        desc.positions_type != DType::kInvalid ? " with positions" : "",
                        desc.gradient ? " gradient of " : " of ", Name(desc.type));
}

Status Check(const NormalizeDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Normalize", desc.type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  Operand x, channels, nothing;
  XPU_RETURN_IF_ERROR(View("Normalize").Dense({desc.batch, desc.spatial, desc.channels}).As(desc.type, &x));
  XPU_RETURN_IF_ERROR(View("Normalize").Dense({desc.channels}).As(DType::kFloat, &channels));
  XPU_RETURN_IF_ERROR(Nothing(DType::kFloat, &nothing));
  if (desc.gradient) {
    for (const Operand& o : {x, x, channels, channels, channels}) *NextIn(f) = o;
    for (const Operand& o : {x, channels, channels}) *NextOut(f) = o;
    return OkStatus();
  }
  for (const Operand& o : {x, channels, channels}) *NextIn(f) = o;
  // The running statistics are read only where they enter the result.
  const bool running = !desc.training || desc.factor != 1.0f;
  for (int i = 0; i < 2; ++i) *NextIn(f) = running ? channels : nothing;
  *NextOut(f) = x;
  if (desc.training) {
    for (int i = 0; i < 4; ++i) *NextOut(f) = channels;
  }
  return OkStatus();
}

bool IsDefined(const NormalizeDesc& desc) { return desc.type == DType::kFloat || IsReducedFloat(desc.type); }
std::string Name(const NormalizeDesc& desc) {
  return errors::Concat("Normalize", desc.gradient ? " gradient" : "", desc.training ? " in training" : " in inference",
                        " of ", Name(desc.type));
}

Status Check(const SoftmaxDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Softmax", desc.type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  Operand all, rows;
  XPU_RETURN_IF_ERROR(View("Softmax").Dense({desc.rows, desc.cols}).As(desc.type, &all));
  XPU_RETURN_IF_ERROR(View("Softmax").Dense({desc.rows}).As(desc.type, &rows));
  const auto strided = [&](int64_t row_stride, int64_t col_stride) {
    return View("Softmax").Strided(desc.rows, row_stride).Strided(desc.cols, col_stride).As(desc.type, NextIn(f));
  };
  switch (desc.kind) {
    case SoftmaxKind::kSoftmax:
    case SoftmaxKind::kLogSoftmax:
      *NextIn(f) = all;
      *NextOut(f) = all;
      return OkStatus();
    case SoftmaxKind::kCrossEntropy:
      XPU_RETURN_IF_ERROR(strided(desc.logits_row_stride, desc.logits_col_stride));
      XPU_RETURN_IF_ERROR(strided(desc.labels_row_stride, desc.labels_col_stride));
      break;
    case SoftmaxKind::kSparseCrossEntropy:
      *NextIn(f) = all;
      XPU_RETURN_IF_ERROR(View("Softmax").Dense({desc.rows}).As(desc.label_type, NextIn(f)));
      break;
  }
  *NextOut(f) = rows;
  *NextOut(f) = all;
  return OkStatus();
}

bool IsDefined(const SoftmaxDesc& desc) {
  const bool sparse = desc.kind == SoftmaxKind::kSparseCrossEntropy;
  return IsFloating(desc.type) && (!sparse || desc.label_type == DType::kInt32 || desc.label_type == DType::kInt64);
}
std::string Name(const SoftmaxDesc& desc) {
  const std::string name = errors::Concat(NameOf(kSoftmaxNames, desc.kind), " of ", Name(desc.type));
  return desc.kind == SoftmaxKind::kSparseCrossEntropy ? name + " with labels of " + Name(desc.label_type) : name;
}

}  // namespace xpu
