// Tests what registrations ask of a backend.
#include "tensorflow_plugin/framework/needs.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace xpu {
namespace {

// Supports what it is told to, and notes what it was asked.
class Backend final : public Capabilities {
 public:
#define XPU_NOTE(name)                                   \
  bool Supports(const name##Desc& desc) const override { \
    asked.push_back(Name(desc));                         \
    return asked.back() != denied;                       \
  }
  XPU_PRIMITIVES(XPU_NOTE)
#undef XPU_NOTE
  std::string denied;
  mutable std::vector<std::string> asked;
};

const std::vector<TypeBinding> kTypes = {{"T", DType::kHalf}, {"Tidx", DType::kInt32}};

std::vector<std::string> Asked(const Need& need) {
  Backend backend;
  Needs needs(backend, kTypes);
  need(needs);
  EXPECT_TRUE(needs.supported()) << needs.problem();
  // Everything that was asked is needed.
  for (const std::string& denied : backend.asked) {
    Backend without;
    without.denied = denied;
    Needs again(without, kTypes);
    need(again);
    EXPECT_FALSE(again.supported()) << denied;
    EXPECT_EQ(again.problem(), "") << "that a backend denies something is no problem";
  }
  return backend.asked;
}

std::string Problem(const Need& need) {
  Backend backend;
  Needs needs(backend, kTypes);
  need(needs);
  EXPECT_FALSE(needs.supported());
  return needs.problem();
}

using Names = std::vector<std::string>;

TEST(Needs, AreDescriptorsOfTheRegisteredTypes) {
  EXPECT_EQ(Asked(needs::Op(Opcode::kAdd, "T")), Names{"Add of half"});
  EXPECT_EQ(Asked(needs::Op(Opcode::kAdd, DType::kUint64)), Names{"Add of uint64"});
  EXPECT_EQ(Asked(needs::Cast("Tidx", "T")), Names{"Cast of int32 to half"});
  EXPECT_EQ(Asked(needs::Identity("T")), Names{"a program without instructions"});
  EXPECT_EQ(Asked(needs::Reduce(ReduceKind::kArgMax, "T", "Tidx")), Names{"Reduce ArgMax of half"});
  EXPECT_EQ(Asked(needs::MatMul("T")), Names(4, "MatMul of half"));
  EXPECT_EQ(Asked(needs::Softmax(SoftmaxKind::kSparseCrossEntropy, "T", "Tidx")),
            Names{"sparse softmax cross entropy of half with labels of int32"});
  EXPECT_EQ(Asked(needs::Copy("T")), Names{"CopyStrided of elements of 2 bytes"});
  EXPECT_EQ(Asked(needs::Gather("T")), (Names{"Gather of elements of 2 bytes by indices of int32",
                                              "Gather of elements of 2 bytes by indices of int64"}));
  EXPECT_EQ(Asked(needs::Scatter(ScatterKind::kAdd, "T", "Tidx")), Names(2, "Scatter add of half by indices of int32"));
  EXPECT_EQ(Asked(needs::Random(RandomKind::kNormal, "T", true)), Names{"random normal numbers of half"});
}

// A backend that can do all but TensorFlow's own bits.
TEST(Needs, ExactRandomBitsAreAQuestion) {
  struct Inexact final : Capabilities {
    bool Supports(const RandomDesc& desc) const override { return !desc.exact; }
  };
  const Inexact backend;
  for (const bool exact : {false, true}) {
    Needs needs(backend, kTypes);
    needs::Random(RandomKind::kUniform, "T", exact)(needs);
    EXPECT_EQ(needs.supported(), !exact);
  }
}

TEST(Needs, QuestionsHaveOpenExtents) {
  struct Small final : Capabilities {
    bool Supports(const SoftmaxDesc& desc) const override { return desc.cols != kAny && desc.cols < 100; }
    bool Supports(const ElementwiseDesc& desc) const override { return desc.shape != Dims({kAny}); }
  };
  const Small backend;
  for (const Need& need : {needs::Softmax(SoftmaxKind::kSoftmax, "T"), needs::Op(Opcode::kAdd, "T")}) {
    Needs needs(backend, kTypes);
    need(needs);
    EXPECT_FALSE(needs.supported());
  }
}

// These are mistakes of the table that registers, whatever the backend.
TEST(Needs, ProgramsThatDoNotBuildAndMissingTypesAreProblems) {
  EXPECT_EQ(Problem(needs::Op(Opcode::kLogicalAnd, "T")), "its program does not build: there is no LogicalAnd of half");
  EXPECT_EQ(Problem(needs::Op(Opcode::kCast, "T")), "its program does not build: there is no Cast of half");
  EXPECT_EQ(Problem([](Needs& n) { n.AskProgram(nullptr, "too many inputs"); }),
            "its program does not build: too many inputs");
  EXPECT_EQ(Problem(needs::Copy("Tout")), "what it requires depends on the attribute Tout, which has no types");
}

}  // namespace
}  // namespace xpu
