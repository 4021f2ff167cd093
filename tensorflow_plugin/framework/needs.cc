#include "tensorflow_plugin/framework/needs.h"

#include <cstring>

namespace xpu {

DType Needs::type(const char* attr) {
  for (const auto& [name, type] : types_) {
    if (std::strcmp(name, attr) == 0) return type;
  }
  Fail(errors::Concat("what it requires depends on the attribute ", attr, ", which has no types"));
  return DType::kInvalid;
}

void Needs::AskProgram(const Program* program, const std::string& error) {
  if (program == nullptr) return Fail("its program does not build: " + error);
  ElementwiseDesc desc;
  desc.program = program;
  Ask(desc);
}

void Needs::Fail(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
}

namespace needs {

Need Op(Opcode op, TypeRef type) {
  return [=](Needs& n) {
    const DType t = type.In(n);
    if (t == DType::kInvalid) return;
    n.AskProgram(IsDefined(op, t) && op != Opcode::kCast ? SingleOpProgram(op, t) : nullptr,
                 errors::Concat("there is no ", Info(op).name, " of ", xpu::Name(t)));
  };
}

Need Identity(TypeRef type) {
  return [=](Needs& n) { n.AskProgram(IdentityProgram(type.In(n))); };
}

Need Cast(TypeRef from, TypeRef to) {
  return [=](Needs& n) { n.AskProgram(CastProgram(from.In(n), to.In(n))); };
}

Need Reduce(ReduceKind kind, TypeRef type, TypeRef index_type) {
  return [=](Needs& n) {
    ReduceDesc desc;
    desc.kind = kind;
    desc.source.program = IdentityProgram(type.In(n));
    desc.index_type = index_type.In(n);
    n.Ask(desc);
  };
}

Need MatMul(TypeRef type) { return MatMul(type, DType::kInvalid, DType::kInvalid); }

Need MatMul(TypeRef type, TypeRef b_type, TypeRef c_type) {
  return [=](Needs& n) {
    MatMulDesc desc;
    desc.type = type.In(n);
    desc.b_type = b_type.In(n);
    desc.c_type = c_type.In(n);
    for (bool a : {false, true}) {
      for (bool b : {false, true}) {
        desc.transpose_a = a;
        desc.transpose_b = b;
        desc.conjugate_a = a && IsComplex(desc.type);
        desc.conjugate_b = b && IsComplex(desc.type);
        n.Ask(desc);
      }
    }
  };
}

Need Softmax(SoftmaxKind kind, TypeRef type, TypeRef label_type) {
  return [=](Needs& n) {
    SoftmaxDesc desc;
    desc.kind = kind;
    desc.type = type.In(n);
    desc.label_type = label_type.In(n);
    n.Ask(desc);
  };
}

Need Copy(TypeRef type) {
  return [=](Needs& n) {
    CopyStridedDesc desc;
    desc.element_size = SizeOf(type.In(n));
    n.Ask(desc);
  };
}

Need Gather(TypeRef type, TypeRef index_type) {
  return [=](Needs& n) {
    GatherDesc desc;
    desc.element_size = SizeOf(type.In(n));
    desc.index_type = index_type.In(n);
    n.Ask(desc);
  };
}

Need Scatter(ScatterKind kind, TypeRef type, TypeRef index_type) {
  return [=](Needs& n) {
    ScatterDesc desc;
    desc.kind = kind;
    desc.type = type.In(n);
    desc.index_type = index_type.In(n);
    for (bool skip_negative : {false, true}) {
      desc.skip_negative = skip_negative;
      n.Ask(desc);
    }
  };
}

namespace {
Need Both(Need a, Need b) {
  return [a = std::move(a), b = std::move(b)](Needs& n) {
    a(n);
    b(n);
  };
}
}  // namespace

Need Gather(TypeRef type) { return Both(Gather(type, DType::kInt32), Gather(type, DType::kInt64)); }
Need Scatter(ScatterKind kind, TypeRef type) {
  return Both(Scatter(kind, type, DType::kInt32), Scatter(kind, type, DType::kInt64));
}

Need Random(RandomKind kind, TypeRef type, bool exact, RandomStart start) {
  return [=](Needs& n) {
    RandomDesc desc;
    desc.kind = kind;
    desc.type = type.In(n);
    desc.exact = exact;
    desc.start = start;
    n.Ask(desc);
  };
}

}  // namespace needs
}  // namespace xpu
