#include "tensorflow_plugin/backends/cpu/simd/isa.h"

#include <string>

#include "gtest/gtest.h"

namespace xpu::cpu {
namespace {

TEST(Isa, ChoosesByName) {
  std::string warning;
  EXPECT_EQ(ChooseIsa("baseline", &warning), Isa::kBaseline);
  EXPECT_EQ(warning, "");
  const Isa best = ChooseIsa(nullptr, &warning);
  EXPECT_TRUE(HasIsa(best));
  EXPECT_EQ(ChooseIsa("", &warning), best);
  EXPECT_EQ(warning, "");
  EXPECT_EQ(ChooseIsa("sse9", &warning), best);
  EXPECT_NE(warning.find("sse9"), std::string::npos);
  EXPECT_NE(warning.find("baseline, avx2, avx512, avx512_vnni or amx"), std::string::npos);
}

}  // namespace
}  // namespace xpu::cpu
