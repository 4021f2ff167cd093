// How often a loop will run, and its counting as a program of numbers.
#include "tensorflow_plugin/cluster/loop_counter.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/cluster/number_program.h"
#include "tensorflow_plugin/cluster/tests/members_testing.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

using tf::Tensor;

template <typename T>
class Counting : public OnCpu {
 protected:
  static constexpr tf::DataType kType = tf::DataTypeToEnum<T>::value;

  // while (i < n) i = `next`; members are 0: the step, 1: the condition, 2: the next i. Arguments are i and n.
  Members Loop(T step, const Node& next) {
    return MembersOf({Constant(step), Op("Less", {":0", ":1"}, kType), next}, {"1:0", "2:0"});
  }
  Members Loop(T step) { return Loop(step, Op("AddV2", {":0", "0:0"}, kType)); }
  int64_t Count(const Members& members, T from, T to, int64_t most = 1000, int num_host = 2) {
    return LoopCounter(members, /*variables=*/{0}, num_host)
        .CountIterations(context_.get(), With({Tensor(from), Tensor(to)}), most);
  }
};

using Types = ::testing::Types<int32_t, int64_t, float, double>;
TYPED_TEST_SUITE(Counting, Types);

TYPED_TEST(Counting, GivesTheNumberOfIterations) {
  const Members members = this->Loop(3);
  EXPECT_EQ(this->Count(members, 0, 10), 4);
  EXPECT_EQ(this->Count(members, 0, 9), 3);
  EXPECT_EQ(this->Count(members, 10, 0), 0);
  EXPECT_EQ(this->Count(members, 0, 60, /*most=*/20), 20);
  EXPECT_EQ(this->Count(members, 0, 61, /*most=*/20), 21) << "more than it counts";
}

// Where no program can say it, the members' kernels count.
TYPED_TEST(Counting, DoesSoByKernels) {
  const Members members = this->Loop(2, this->Op("Square", {":0"}, this->kType));
  NumberProgram program;
  EXPECT_FALSE(program.Make(members, {0}));
  EXPECT_EQ(this->Count(members, 2, 200), 3);
  EXPECT_EQ(this->Count(members, 2, 200, /*most=*/3), 3);
  EXPECT_EQ(this->Count(members, 2, 200, /*most=*/2), 3);
}

TYPED_TEST(Counting, NeedsAllNumbersInHostMemory) {
  EXPECT_EQ(this->Count(this->Loop(3), 0, 10, 1000, /*num_host=*/1), LoopCounter::kUnknown);
  EXPECT_EQ(this->Count(this->Loop(3), 0, 10, 1000, /*num_host=*/0), LoopCounter::kUnknown);
}

TYPED_TEST(Counting, KnowsNothingOfRandomSteps) {
  if (std::is_integral_v<TypeParam>) return;
  const auto type = this->Attribute(this->kType);
  const Members members =
      this->MembersOf({this->Op("Shape", {":0"}, this->kType),
                       {"RandomUniform", {"0:0"}, {{"T", this->Attribute(tf::DT_INT32)}, {"dtype", type}}},
                       this->Op("Less", {":0", ":1"}, this->kType),
                       this->Op("AddV2", {":0", "1:0"}, this->kType)},
                      {"2:0", "3:0"});
  EXPECT_EQ(this->Count(members, 0, 10), LoopCounter::kUnknown);
}

// Whatever the members compute, the program has the same bits.
TYPED_TEST(Counting, AProgramComputesWhatTheKernelsDo) {
  using T = TypeParam;
  const tf::DataType type = this->kType;
  std::vector<std::string> ops = {"AddV2", "Sub", "Mul"};
  if (std::is_integral_v<T>) ops.insert(ops.end(), {"Maximum", "Minimum"});
  const T most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::lowest();
  const std::vector<T> numbers = {0, 1, static_cast<T>(-3), static_cast<T>(2.5), most, least};
  for (const std::string& op : ops) {
    for (const char* comparison : {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"}) {
      const Members members = this->MembersOf(
          {this->Op(op, {":0", ":1"}, type), this->Op(comparison, {"0:0", ":1"}, type)}, {"1:0", "0:0"});
      NumberProgram program;
      ASSERT_TRUE(program.Make(members, {0})) << op << " " << comparison;
      for (const T a : numbers) {
        for (const T b : numbers) {
          const std::vector<Tensor> expected = this->Run(members, {Tensor(a), Tensor(b)});
          NumberProgram::Run run;
          ASSERT_TRUE(run.Begin(program, this->context_.get(), this->With({Tensor(a), Tensor(b)})));
          EXPECT_EQ(run.Compute(), NumberIn<bool>(expected[0])) << a << " " << op << " " << b << " " << comparison;
          run.Next();
          EXPECT_EQ(ToTensor(run[0], run.TypeOf(0)).tensor_data(), expected[1].tensor_data())
              << a << " " << op << " " << b;
        }
      }
    }
  }
}

class NumberProgramTest : public OnCpu {};

TEST_F(NumberProgramTest, VariablesMayTakeEachOthersValues) {
  // (a, b) becomes (b, a) while a flag holds, which is the third variable and becomes its opposite.
  const Members members = MembersOf({{"LogicalNot", {":2"}, {}}}, {":2", ":1", ":0", "0:0"});
  NumberProgram program;
  ASSERT_TRUE(program.Make(members, {0, 1, 2}));
  NumberProgram::Run run;
  ASSERT_TRUE(run.Begin(program, context_.get(), With({Tensor(int32_t{3}), Tensor(int32_t{4}), Tensor(true)})));
  EXPECT_TRUE(run.Compute());
  run.Next();
  EXPECT_EQ(run[0].i, 4);
  EXPECT_EQ(run[1].i, 3);
  EXPECT_FALSE(run.Compute());
}

TEST_F(NumberProgramTest, CastsToIntegersAreOfIntegersAlone) {
  const auto cast = [&](tf::DataType from, tf::DataType to) {
    NumberProgram program;
    return program.Make(MembersOf({{"Cast", {":0"}, {{"SrcT", Attribute(from)}, {"DstT", Attribute(to)}}},
                                   {"Cast", {"0:0"}, {{"SrcT", Attribute(to)}, {"DstT", Attribute(from)}}}},
                                  {"1:0"}),
                        {0});
  };
  EXPECT_TRUE(cast(tf::DT_INT32, tf::DT_INT64));
  EXPECT_TRUE(cast(tf::DT_FLOAT, tf::DT_DOUBLE));
  EXPECT_FALSE(cast(tf::DT_FLOAT, tf::DT_INT32)) << "what is out of range is the processor's affair";
}

TEST_F(NumberProgramTest, OtherValuesAreNotItsBusiness) {
  NumberProgram program;
  EXPECT_FALSE(program.Make(MembersOf({Op("Sin", {":0"}, tf::DT_FLOAT)}, {"0:0"}), {0}));
  // Invariants may be of any op, but are single numbers.
  NumberProgram sum;
  ASSERT_TRUE(sum.Make(MembersOf({Op("Sin", {":1"}, tf::DT_FLOAT), Op("AddV2", {":0", "0:0"}, tf::DT_FLOAT),
                                  Op("Less", {":0", ":1"}, tf::DT_FLOAT)},
                                 {"2:0", "1:0"}),
                       {0}));
  NumberProgram::Run run;
  EXPECT_TRUE(run.Begin(sum, context_.get(), With({Tensor(1.0f), Tensor(2.0f)})));
  EXPECT_FALSE(run.Begin(sum, context_.get(), With({Tensor(1.0f), Tensor(tf::DT_FLOAT, {1})})));
}

}  // namespace
}  // namespace xpu::cluster
