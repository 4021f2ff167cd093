// A profile says which way the epilogue of a product was computed.
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"
#include "tensorflow_plugin/trace/labels.h"

namespace xpu::cpu {
namespace {

constexpr char kNone[] = "MatMul of float", kInRegisters[] = "MatMul of float with an epilogue in registers",
               kPartByPart[] = "MatMul of float with an epilogue part by part",
               kAfterwards[] = "MatMul of float with an epilogue afterwards";

MatMulDesc Product(int64_t m, int64_t n, int64_t k) {
  MatMulDesc desc;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  return desc;
}

MatMulDesc With(Opcode opcode, MatMulDesc desc) {
  ProgramBuilder builder;
  const ProgramBuilder::Reg sum = builder.Input(DType::kFloat);
  builder.Output(opcode == Opcode::kMaximum ? builder.Apply(opcode, sum, builder.Const(DType::kFloat, 0))
                                            : builder.Apply(opcode, sum));
  desc.epilogue.program = builder.Build();
  desc.epilogue.shape = {desc.m, desc.n};
  desc.epilogue.in_strides[0] = {desc.n, 1};
  return desc;
}

// The names of the products' events, which run one after the other on this thread.
std::vector<std::string> NamesOf(const std::vector<MatMulDesc>& products) {
  const host_runtime::ThreadTeam alone(1);
  trace::Line line;
  EXPECT_TRUE(trace::Start());
  for (const MatMulDesc& desc : products) {
    Footprint footprint;
    EXPECT_TRUE(Check(desc, &footprint).ok());
    const std::vector<float> a(desc.m * desc.k), b(desc.k * desc.n), columns(desc.n);
    std::vector<float> c(desc.m * desc.n);
    Args args{};
    args.in[0] = a.data();
    args.in[1] = b.data();
    args.in[2] = columns.data();
    args.out[0] = c.data();
    const trace::Label label = trace::LabelOf(desc, footprint);
    const host_runtime::KernelSpan span(line, label);
    EXPECT_TRUE(Kernels().Run(desc, args, alone).ok());
  }
  std::vector<std::string> names;
  for (const trace::Event& event : trace::Stop().events) {
    const std::string name = trace::TextOf(event.label.what);
    names.push_back(name.substr(0, name.find(": ")));  // without the engine
  }
  return names;
}

TEST(EpilogueNotes, NameTheWayOfEachProduct) {
  const bool has_own_kernel = ActiveIsa() != Isa::kBaseline;
  const MatMulDesc large = Product(128, 64, 64), small = Product(3, 4, 5);
  EXPECT_EQ(
      NamesOf({With(Opcode::kMaximum, large), large, With(Opcode::kTanh, large), small, With(Opcode::kTanh, small)}),
      (std::vector<std::string>{has_own_kernel ? kInRegisters : kAfterwards, kNone,
                                has_own_kernel ? kPartByPart : kAfterwards, kNone, kAfterwards}));
}

// The passes ask for the way before there are any addresses.
TEST(EpilogueNotes, NameTheWayThatIsForetold) {
  const auto with_columns = [](MatMulDesc desc, bool twice) {
    ProgramBuilder builder;
    const ProgramBuilder::Reg sum = builder.Input(DType::kFloat), columns = builder.Input(DType::kFloat);
    const ProgramBuilder::Reg scaled = builder.Apply(Opcode::kMul, sum, columns);
    const ProgramBuilder::Reg shifted = builder.Apply(Opcode::kAdd, scaled, columns);
    builder.Output(twice ? builder.Apply(Opcode::kAdd, shifted, builder.Apply(Opcode::kMul, sum, scaled)) : shifted);
    desc.epilogue.program = builder.Build();
    desc.epilogue.shape = {desc.m, desc.n};
    desc.epilogue.in_strides[0] = {desc.n, 1};
    desc.epilogue.in_strides[1] = {0, 1};
    return desc;
  };
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (!HasIsa(isa)) continue;
    const ScopedIsa use(isa);
    for (const MatMulDesc& product :
         {Product(128, 64, 64), Product(200, 60, 80), Product(30, 40, 50), Product(8, 64, 64), Product(1, 300, 900),
          Product(90, 1, 70), Product(90, 10, 70), Product(3, 4, 5)}) {
      for (bool twice : {false, true}) {
        const MatMulDesc desc = with_columns(product, twice);
        const char* const foretold[] = {kInRegisters, kPartByPart, kAfterwards};
        EXPECT_EQ(NamesOf({desc}).at(0), foretold[static_cast<int>(Kernels().WayOfEpilogue(desc))])
            << desc.m << "x" << desc.k << " by " << desc.n << (twice ? ", no chain, " : ", a chain, ") << Name(isa);
      }
    }
  }
}

// One that ran while nobody listened names no later command.
TEST(EpilogueNotes, AreOfTheCommandAlone) {
  NamesOf({With(Opcode::kTanh, Product(3, 4, 5))});
  trace::Line line;
  ASSERT_TRUE(trace::Start());
  trace::Label label;
  label.what = trace::Intern(kNone);
  {
    const host_runtime::KernelSpan span(line, label);
  }
  EXPECT_EQ(trace::TextOf(trace::Stop().events.at(0).label.what), kNone);
}

}  // namespace
}  // namespace xpu::cpu
