// A failure that a copy has told is told once more to who reads the same bytes again, and to nobody else.
#include "tensorflow_plugin/device/told.h"

#include <gtest/gtest.h>

#include <thread>

namespace xpu {
namespace {

TEST(Told, IsToldOnceMoreOfTheSameBytes) {
  int some = 0, others = 0;
  const ReadingAgain again;
  EXPECT_TRUE(TellAgain(&some).ok());
  NoteCopy(&some, errors::Internal("lost"));
  EXPECT_TRUE(TellAgain(&others).ok());
  EXPECT_TRUE(TellAgain(nullptr).ok());
  EXPECT_EQ(TellAgain(&some).message(), "lost");
  EXPECT_TRUE(TellAgain(&some).ok());
}

TEST(Told, IsForTheThreadThatReadsAgain) {
  int some = 0;
  NoteCopy(&some, errors::Internal("lost"));
  EXPECT_TRUE(TellAgain(&some).ok());
  {
    const ReadingAgain again;
    const ReadingAgain within;
    std::thread([&] { EXPECT_TRUE(TellAgain(&some).ok()); }).join();
  }
  EXPECT_TRUE(TellAgain(&some).ok());
  const ReadingAgain again;
  EXPECT_EQ(TellAgain(&some).message(), "lost");
}

TEST(Told, IsForgottenOnceTheSameBytesAreCopiedWell) {
  int some = 0, others = 0;
  const ReadingAgain again;
  NoteCopy(&some, errors::Internal("lost"));
  NoteCopy(&others, OkStatus());
  NoteCopy(&some, OkStatus());
  EXPECT_TRUE(TellAgain(&some).ok());
}

TEST(Told, IsTheLastFailureOfThoseBytes) {
  int some = 0, others = 0;
  const ReadingAgain again;
  NoteCopy(&some, errors::Internal("lost"));
  NoteCopy(&others, errors::Internal("lost, too"));
  NoteCopy(&some, errors::Internal("lost again"));
  EXPECT_EQ(TellAgain(&some).message(), "lost again");
  EXPECT_TRUE(TellAgain(&some).ok());
  EXPECT_EQ(TellAgain(&others).message(), "lost, too");
}

TEST(Told, IsOneOfTheLastFew) {
  int bytes[100];
  const ReadingAgain again;
  for (int& one : bytes) NoteCopy(&one, errors::Internal("lost"));
  EXPECT_TRUE(TellAgain(&bytes[0]).ok());
  for (int i = 90; i < 100; ++i) EXPECT_FALSE(TellAgain(&bytes[i]).ok());
}

}  // namespace
}  // namespace xpu
