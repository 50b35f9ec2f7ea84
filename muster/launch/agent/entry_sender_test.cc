#include "muster/launch/agent/entry_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::entry_sender_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<uint64_t> Send(EntrySender& sender) {
  std::vector<uint64_t> sent;
  while (const EntrySender::Entry* entry = sender.Next()) sent.push_back(entry->number);
  return sent;
}

std::vector<uint64_t> Acknowledge(EntrySender& sender, uint64_t number) {
  std::vector<uint64_t> done;
  EXPECT_TRUE(sender.Acknowledge(number, [&](const auto& entry) { done.push_back(entry.number); }).ok());
  return done;
}

std::string RefusedAt(EntrySender& sender, uint64_t number) {
  return std::string(sender.Acknowledge(number, [](const auto&) {}).message());
}

TEST(EntrySenderTest, ANewStreamGetsWhatIsntAcknowledged) {
  EntrySender sender(1 << 20);
  for (int i = 0; i < 4; ++i) sender.Add(EntryKind::kNote, "x");
  EXPECT_THAT(Send(sender), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Send(sender), IsEmpty());
  EXPECT_THAT(Acknowledge(sender, 2), ElementsAre(1, 2));
  sender.Rewind();
  sender.Add(EntryKind::kNote, "y");
  EXPECT_THAT(Send(sender), ElementsAre(3, 4, 5));
  EXPECT_THAT(Acknowledge(sender, 5), ElementsAre(3, 4, 5));
  EXPECT_TRUE(sender.empty());
  EXPECT_EQ(sender.kept_bytes(), 0u);
}

// An acknowledgement of the old stream may come, by `attached`, after the new stream has begun.
TEST(EntrySenderTest, WhatAnEarlierStreamSentMayBeAcknowledged) {
  EntrySender sender(1 << 20);
  for (int i = 0; i < 3; ++i) sender.Add(EntryKind::kNote, "x");
  Send(sender);
  sender.Rewind();
  EXPECT_THAT(Acknowledge(sender, 2), ElementsAre(1, 2));
  EXPECT_THAT(Send(sender), ElementsAre(3));
}

TEST(EntrySenderTest, AnAcknowledgementThatCantBeIsRefused) {
  EntrySender sender(1 << 20);
  EXPECT_THAT(RefusedAt(sender, 1), HasSubstr("only 0 were sent"));
  sender.Add(EntryKind::kNote, "x");
  EXPECT_THAT(RefusedAt(sender, 1), HasSubstr("only 0 were sent"));
  Send(sender);
  EXPECT_THAT(Acknowledge(sender, 1), ElementsAre(1));
  EXPECT_THAT(Acknowledge(sender, 1), IsEmpty());
  EXPECT_THAT(RefusedAt(sender, 0), HasSubstr("after entry 1"));
}

TEST(EntrySenderTest, OnlySoMuchIsOnItsWay) {
  EntrySender sender(1000);
  for (int i = 0; i < 3; ++i) sender.Add(EntryKind::kOutput, std::string(400, 'x'));
  sender.Add(EntryKind::kOutput, std::string(5000, 'x'));
  EXPECT_THAT(Send(sender), ElementsAre(1));
  EXPECT_THAT(Acknowledge(sender, 1), ElementsAre(1));
  EXPECT_THAT(Send(sender), ElementsAre(2));
  Acknowledge(sender, 2);
  EXPECT_THAT(Send(sender), ElementsAre(3));
  Acknowledge(sender, 3);
  EXPECT_THAT(Send(sender), ElementsAre(4));  // one entry always
  EXPECT_GT(sender.kept_bytes(), 5000u);
}

// They make room for others, but come again on the next stream.
TEST(EntrySenderTest, WhatHasComeIsNotOnItsWayAnyMore) {
  EntrySender sender(600);  // two of these
  for (int i = 0; i < 4; ++i) sender.Add(EntryKind::kNote, std::string(100, 'x'));
  EXPECT_THAT(Send(sender), ElementsAre(1, 2));
  EXPECT_TRUE(sender.NoteReceived(1).ok());
  EXPECT_THAT(Send(sender), ElementsAre(3));
  EXPECT_THAT(Acknowledge(sender, 1), ElementsAre(1));
  EXPECT_TRUE(sender.NoteReceived(3).ok());
  EXPECT_TRUE(sender.NoteReceived(2).ok()) << "an old one says nothing new";
  EXPECT_THAT(Send(sender), ElementsAre(4));
  EXPECT_FALSE(sender.NoteReceived(5).ok());
  sender.Rewind();
  EXPECT_THAT(Send(sender), ElementsAre(2, 3));
  EXPECT_THAT(Acknowledge(sender, 4), ElementsAre(2, 3, 4));
  EXPECT_EQ(sender.kept_bytes(), 0u);
}

}  // namespace
}  // namespace muster::entry_sender_test
