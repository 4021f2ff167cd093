// Kernels of members, one after the other: what each reads, who owns a value, and parts of them.
#include "tensorflow_plugin/cluster/members.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/cluster/tests/members_testing.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

using tf::DT_FLOAT;
using tf::Tensor;

class MembersTest : public OnCpu {
 protected:
  // a + b, then (a + b) * a, then -b.
  Members Some(const std::vector<std::string>& results) {
    return MembersOf(
        {Op("AddV2", {":0", ":1"}, DT_FLOAT), Op("Mul", {"0:0", ":0"}, DT_FLOAT), Op("Neg", {":1"}, DT_FLOAT)},
        results);
  }
};

TEST_F(MembersTest, ValuesAreWrittenAsTexts) {
  for (const char* text : {":0", ":12", "0:0", "3:1"}) {
    ValueRef value;
    ASSERT_TRUE(ParseValueRef(text, &value).ok()) << text;
    EXPECT_EQ(ToString(value), text);
  }
  for (const char* text : {"", "3", ":", "3:", "x:0", "-1:0", "0:-1", ":x"}) {
    ValueRef value;
    EXPECT_EQ(ParseValueRef(text, &value).message(), "\"" + std::string(text) + "\" is no value of a cluster");
  }
}

TEST_F(MembersTest, EachReadsWhatItNames) {
  const std::vector<Tensor> results = Run(Some({"1:0", ":1", "2:0", "0:0"}), {Tensor(3.0f), Tensor(4.0f)});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(NumberIn<float>(results[0]), 21);
  EXPECT_EQ(NumberIn<float>(results[1]), 4);
  EXPECT_EQ(NumberIn<float>(results[2]), -4);
  EXPECT_EQ(NumberIn<float>(results[3]), 7);
}

TEST_F(MembersTest, ValuesThatAreNotThereAreErrors) {
  Members members;
  EXPECT_EQ(Create({Op("Neg", {"0:0"}, DT_FLOAT)}, {}, &members).message(),
            "node n0 reads 0:0, which is not computed before it");
  members = Members();
  EXPECT_EQ(Create({Op("Neg", {":0"}, DT_FLOAT), Op("Neg", {"0:1"}, DT_FLOAT)}, {}, &members).message(),
            "node n1 reads 0:1, which is not computed before it");
  members = Members();
  EXPECT_EQ(Create({Op("Neg", {":0"}, DT_FLOAT)}, {"1:0"}, &members).message(), "there is no value 1:0");
}

TEST_F(MembersTest, AnErrorNamesTheMember) {
  Members::Environment environment = With({Tensor(DT_FLOAT, {2}), Tensor(DT_FLOAT, {3})});
  std::vector<Tensor> results;
  const absl::Status status = Some({"2:0"}).RunAll(context_.get(), environment, &results);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("{{node n0}}"), std::string::npos) << status;
}

// The kernels are shared, the numbers of members are the part's.
TEST_F(MembersTest, APartHasWhatItsResultsNeed) {
  const Members all = Some({"1:0", "2:0"});
  const Members part = all.Part({{2, 0}});
  ASSERT_EQ(part.members().size(), 1u);
  EXPECT_EQ(part.members()[0].kernel, all.members()[2].kernel);
  EXPECT_EQ(ToString(part.results()[0]), "0:0");
  EXPECT_EQ(NumberIn<float>(Run(part, {Tensor(3.0f), Tensor(4.0f)})[0]), -4);

  const Members more = all.Part({{2, 0}}, /*also=*/{1});
  EXPECT_EQ(more.members().size(), 3u);

  // The sum is given, as argument 2.
  const Members given = all.Part({{1, 0}}, {}, {{{1, 0}, 2}});
  ASSERT_EQ(given.members().size(), 1u);
  EXPECT_EQ(NumberIn<float>(Run(given, {Tensor(3.0f), Tensor(4.0f), Tensor(10.0f)})[0]), 30);
}

// Kernels write into a value that nobody else holds, so it matters who does.
TEST_F(MembersTest, TheLastReaderOwnsAValue) {
  const Members members = Some({"0:0", "1:0", "0:0"});
  Members::Environment environment = With({Tensor(3.0f), Tensor(4.0f)});
  Members::Execution run(members, context_.get(), environment);
  ASSERT_TRUE(run.RunUntil(3, false).ok());
  EXPECT_FALSE(environment.arguments[0].IsInitialized() && environment.arguments[0].TotalBytes() > 0)
      << "nobody reads the arguments any more";
  const Tensor first = run.TakeValue({0, 0});
  EXPECT_FALSE(first.RefCountIsOne());
  EXPECT_TRUE(run.TakeValue({1, 0}).RefCountIsOne());
  const void* const address = first.data();
  const Tensor last = run.TakeValue({0, 0});
  EXPECT_EQ(last.data(), address);
}

TEST_F(MembersTest, ARunStartsOver) {
  const Members members = Some({"1:0"});
  Members::Environment environment = With({Tensor(3.0f), Tensor(4.0f)});
  Members::Execution run(members, context_.get(), environment, /*invariant_arguments=*/{0, 1});
  for (int i = 0; i < 3; ++i, run.StartOver()) {
    ASSERT_TRUE(run.RunUntil(1, false).ok());
    ASSERT_TRUE(run.RunUntil(3, false).ok());
    EXPECT_EQ(NumberIn<float>(run.TakeValue({1, 0})), 21);
  }
}

TEST_F(MembersTest, AnObserverSeesEachMemberAndValue) {
  std::vector<std::string> seen;
  std::vector<float> values;
  int64_t left = 5;
  {
    const CaptureObserver observer([&](const tf::OpKernel& kernel) { seen.push_back(kernel.name()); },
                                   [&](const Tensor& value) { values.push_back(value.scalar<float>()()); },
                                   [](CapturedLoop*) { return true; }, &left);
    EXPECT_EQ(CaptureObserver::Current(), &observer);
    Run(Some({"1:0"}), {Tensor(3.0f), Tensor(4.0f)});
  }
  EXPECT_EQ(CaptureObserver::Current(), nullptr);
  EXPECT_EQ(seen, (std::vector<std::string>{"n0", "n1", "n2"}));
  EXPECT_EQ(values, (std::vector<float>{7, 21, -4}));
}

}  // namespace
}  // namespace xpu::cluster
