#include "muster/launch/far_home/far_message.h"

#include <gtest/gtest.h>

#include <string>

#include "muster/launch/testing/played_job_engine.h"

namespace muster::far_message_test {
namespace {

const FarMessage kMessage = {.head = {{"place", "records"}, {"bytes", 3}}, .bytes = std::string("a\0\n", 3)};

TEST(FarMessageTest, IsReadAsItWasWritten) {
  const auto read = ParseFarMessage(FarMessageText(kMessage));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->head, kMessage.head);
  EXPECT_EQ(read->bytes, kMessage.bytes);
}

TEST(FarMessageTest, OneThatIsCutAnywhereIsNone) {
  const std::string text = FarMessageText(kMessage);
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_TRUE(absl::IsDataLoss(ParseFarMessage(text.substr(0, length)).status())) << length;
  EXPECT_TRUE(absl::IsDataLoss(ParseFarMessage(text + "x").status()));
}

TEST(FarMessageTest, AChangedByteIsFound) {
  std::string text = FarMessageText(kMessage);
  text.back() = 'x';
  EXPECT_EQ(ParseFarMessage(text).status().message(), "the message has another checksum");
}

TEST(FarMessageTest, ALengthBeyondTheLimitIsRefused) {
  EXPECT_TRUE(absl::IsDataLoss(ParseFarMessage("muster-home 1 99999999 00\n").status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseFarMessage("muster-home 1 -1 00\n").status()));
}

TEST(FarMessageTest, WhatElseIsPrintedIsShown) {
  EXPECT_EQ(ParseFarMessage("sh: muster: not found\n").status().message(),
            "no answer of muster: sh: muster: not found\\x0a");
}

class AskFarTest : public ::testing::Test {
 protected:
  AskFarTest() {
    played_.ask = [this](const std::string&, const std::vector<std::string>& arguments, const std::string& input) {
      EXPECT_EQ(arguments, (std::vector<std::string>{"home", "parts", "4"}));
      EXPECT_TRUE(ParseFarMessage(input).ok());
      std::string text = FarMessageText(answer_);
      if (cut_-- > 0) text.pop_back();
      return absl::StatusOr<std::string>(text);
    };
  }
  absl::StatusOr<FarMessage> Ask() { return AskFar(engine_, "17", "parts", "4", kMessage); }

  FarMessage answer_ = {.bytes = "answer"};
  int cut_ = 0;
  PlayedJobs played_;
  PlayedJobEngine engine_{played_};
};

TEST_F(AskFarTest, ACutAnswerIsAskedForAgain) {
  cut_ = 2;
  const auto answer = Ask();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->bytes, "answer");
}

TEST_F(AskFarTest, AnswersThatAreAlwaysCutAreAnError) {
  cut_ = 3;
  const absl::Status status = Ask().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_F(AskFarTest, ARefusalIsAnErrorOfItsCode) {
  answer_ = FarRefusal(absl::NotFoundError("no such experiment"));
  EXPECT_EQ(Ask().status(), absl::NotFoundError("no such experiment"));
  answer_ = FarRefusal(absl::NotFoundError(std::string(100000, 'x')));
  EXPECT_LT(Ask().status().message().size(), 1100U);
  answer_ = {.head = {{"error", "x"}}};
  EXPECT_EQ(Ask().status().code(), absl::StatusCode::kUnknown);
}

}  // namespace
}  // namespace muster::far_message_test
