// The questions of the tests of checks to a descriptor.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_TESTS_CHECK_TESTING_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_TESTS_CHECK_TESTING_H_

#include <string>

#include "gtest/gtest.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::check_testing {

inline constexpr int64_t kHuge = int64_t{1} << 40;

template <typename Desc>
Footprint FootprintOf(const Desc& desc) {
  Footprint footprint;
  const Status status = Check(desc, &footprint);
  EXPECT_TRUE(status.ok()) << status.message();
  return footprint;
}

template <typename Desc>
std::string Refusal(const Desc& desc, Code code = Code::kInvalidArgument) {
  Footprint footprint;
  const Status status = Check(desc, &footprint);
  EXPECT_EQ(status.code(), code) << status.message();
  return status.message();
}

inline void Expect(const Operand& o, DType type, int64_t elements) {
  EXPECT_EQ(o.type, type);
  EXPECT_EQ(o.elements, elements);
  EXPECT_EQ(o.end, elements * static_cast<int64_t>(SizeOf(type)));
  EXPECT_TRUE(o.dense());
}

}  // namespace xpu::check_testing

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_TESTS_CHECK_TESTING_H_
