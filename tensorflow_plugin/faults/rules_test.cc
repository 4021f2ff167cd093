#include "tensorflow_plugin/faults/rules.h"

#include "gtest/gtest.h"

namespace xpu {
namespace {

FaultRule Only(const std::string& text) {
  std::vector<FaultRule> rules;
  EXPECT_TRUE(ParseFaultRules(text, &rules)) << text;
  EXPECT_EQ(rules.size(), 1u);
  return rules.empty() ? FaultRule() : rules[0];
}

TEST(FaultRules, SayWhatWhichAndWhere) {
  constexpr uint64_t kEver = std::numeric_limits<uint64_t>::max();
  const FaultRule third = Only("alloc:fail@3");
  EXPECT_EQ(third.call, FaultRule::kAllocation);
  EXPECT_TRUE(third.fail);
  EXPECT_EQ(third.first, 3u);
  EXPECT_EQ(third.last, 3u);
  EXPECT_EQ(third.device, -1);
  EXPECT_EQ(third.text, "alloc:fail@3");
  const FaultRule slow = Only("copy:delay=20ms");
  EXPECT_EQ(slow.call, FaultRule::kCopy);
  EXPECT_FALSE(slow.fail);
  EXPECT_EQ(slow.delay, std::chrono::milliseconds(20));
  EXPECT_EQ(slow.first, 1u);
  EXPECT_EQ(slow.last, kEver);
  EXPECT_EQ(Only("command:delay=7us").delay, std::chrono::microseconds(7));
  EXPECT_EQ(Only("command:delay=2s").delay, std::chrono::seconds(2));
  const FaultRule some = Only("xpu:12/command:fail@10-12");
  EXPECT_EQ(some.call, FaultRule::kCommand);
  EXPECT_EQ(some.device, 12);
  EXPECT_EQ(some.first, 10u);
  EXPECT_EQ(some.last, 12u);
  EXPECT_EQ(Only("command:fail@5-").first, 5u);
  EXPECT_EQ(Only("command:fail@5-").last, kEver);
  EXPECT_EQ(Only("command:fail").primitive, -1);
  const FaultRule zeros = Only("xpu:2/command=MatMul:result=zeros@7-");
  EXPECT_EQ(zeros.call, FaultRule::kCommand);
  EXPECT_EQ(zeros.primitive, static_cast<int>(Primitive::kMatMul));
  EXPECT_EQ(zeros.result, FaultRule::kZeros);
  EXPECT_FALSE(zeros.fail);
  EXPECT_EQ(zeros.device, 2);
  EXPECT_EQ(zeros.first, 7u);
  EXPECT_EQ(Only("command:result=scale").result, FaultRule::kScale);
  EXPECT_EQ(Only("command:result=one").result, FaultRule::kOne);
  EXPECT_EQ(Only("command:result=last").result, FaultRule::kLast);
  EXPECT_EQ(Only("command=Compact:result=stale").primitive, static_cast<int>(Primitive::kCompact));
  EXPECT_EQ(Only("command=Elementwise:delay=7us").result, FaultRule::kRight);
  EXPECT_EQ(Only("command:workspace=300B").workspace, 300);
  EXPECT_EQ(Only("command=MatMul:workspace=64KiB").workspace, 64 << 10);
  EXPECT_EQ(Only("xpu:1/command:workspace=999999999MiB").workspace, int64_t{999999999} << 20);
  EXPECT_FALSE(Only("command:workspace=1B").fail);
  std::vector<FaultRule> rules;
  EXPECT_TRUE(ParseFaultRules("alloc:fail@3,copy:delay=20ms@2-,xpu:0/command:fail", &rules));
  EXPECT_EQ(rules.size(), 3u);
}

TEST(FaultRules, LiesToHooksAreNoneOfDevices) {
  std::vector<FaultRule> rules;
  ASSERT_TRUE(ParseFaultRules("internal=jit:lie", &rules));
  EXPECT_TRUE(rules.empty());
  ASSERT_TRUE(ParseFaultRules("internal=tf32:lie@12,copy:fail,internal=direct_copies:lie", &rules));
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].call, FaultRule::kCopy);
}

TEST(FaultRules, OfAnyOtherFormAreNone) {
  for (const char* text : {"",
                           ",",
                           "alloc",
                           "alloc:",
                           "alloc:fail@",
                           "alloc:fail@0",
                           "alloc:fail@-3",
                           "alloc:fail@3.5",
                           "alloc:fail@5-4",
                           "alloc:fail@x",
                           "alloc:fails",
                           "alloc: fail",
                           "free:fail",
                           "alloc:result=zeros",
                           "copy:result=zeros",
                           "command:result",
                           "command:result=",
                           "command:result=wrong",
                           "alloc:workspace=1B",
                           "copy:workspace=1B",
                           "command:workspace",
                           "command:workspace=0B",
                           "command:workspace=1",
                           "command:workspace=1KB",
                           "command:workspace=1MiB@3",
                           "command=:fail",
                           "command=Memset:fail",
                           "command=matmul:fail",
                           "copy=MatMul:fail",
                           "copy:delay",
                           "copy:delay=",
                           "copy:delay=20",
                           "copy:delay=-1ms",
                           "copy:delay=1h",
                           "copy:delay=9999999999s",
                           "gpu:0/copy:fail",
                           "xpu/copy:fail",
                           "xpu:-1/copy:fail",
                           "copy:fail,",
                           ",copy:fail",
                           "copy:fail;alloc:fail",
                           "copy:fail@1@2",
                           "internal=:lie",
                           "internal=jit",
                           "internal=jit:fail",
                           "internal=jit:lie@0",
                           "xpu:0/internal=jit:lie",
                           "copy:fail@99999999999999999999"}) {
    std::vector<FaultRule> rules(1);
    EXPECT_FALSE(ParseFaultRules(text, &rules)) << text;
    EXPECT_TRUE(rules.empty());
  }
}

}  // namespace
}  // namespace xpu
