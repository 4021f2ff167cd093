// A failure that a copy has told is told once more to who asks for the same bytes, and to nobody else.
#include "tensorflow_plugin/device/told.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

TEST(Told, IsToldOnceMoreOfTheSameBytes) {
  int some = 0, others = 0;
  EXPECT_TRUE(TakeTold(&some).ok());
  NoteCopy(&some, errors::Internal("lost"));
  EXPECT_TRUE(TakeTold(&others).ok());
  EXPECT_TRUE(TakeTold(nullptr).ok());
  EXPECT_EQ(TakeTold(&some).message(), "lost");
  EXPECT_TRUE(TakeTold(&some).ok());
}

TEST(Told, IsForgottenOnceTheSameBytesAreCopiedWell) {
  int some = 0, others = 0;
  NoteCopy(&some, errors::Internal("lost"));
  NoteCopy(&others, OkStatus());
  NoteCopy(&some, OkStatus());
  EXPECT_TRUE(TakeTold(&some).ok());
}

TEST(Told, IsTheLastFailure) {
  int some = 0, others = 0;
  NoteCopy(&some, errors::Internal("lost"));
  NoteCopy(&others, errors::Internal("lost, too"));
  EXPECT_TRUE(TakeTold(&some).ok());
  EXPECT_EQ(TakeTold(&others).message(), "lost, too");
}

}  // namespace
}  // namespace xpu
