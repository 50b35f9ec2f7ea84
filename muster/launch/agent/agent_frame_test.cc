#include "muster/launch/agent/agent_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/transport/hmac.h"

namespace muster::agent_frame_test {
namespace {

using ::testing::HasSubstr;

ByteSpan Bytes(std::string_view text) { return AsBytes(text.data(), text.size()); }

AgentFrame NoteFrame(uint64_t number) {
  return {.number = number,
          .kind = EntryKind::kNote,
          .envelope = {.entry = 7, .acknowledged = 3, .sent_at = 1000, .echo = 900},
          .body = *EncodeEntry(NoteEntry{"a line"})};
}

std::string Encoded(const AgentFrame& frame, const FrameMac* mac = nullptr) {
  return EncodeAgentFrame(frame, FrameDirection::kToSupervisor, mac);
}

std::string ErrorOf(const std::string& bytes, std::optional<FrameMac> mac = std::nullopt,
                    FrameDirection direction = FrameDirection::kToSupervisor) {
  AgentFrameReader reader(direction, std::move(mac));
  reader.Add(Bytes(bytes));
  return std::string(reader.Next().status().message());
}

TEST(AgentFrameTest, FramesAreFoundInPiecesOfAnySize) {
  const FrameMac mac("secret", "hellos");
  for (const FrameMac* used : {static_cast<const FrameMac*>(nullptr), &mac}) {
    const std::string bytes =
        absl::StrCat(Encoded(NoteFrame(1), used), Encoded({.number = 2}, used), Encoded(NoteFrame(3), used));
    for (const size_t piece : {1, 5, 40, 1000}) {
      AgentFrameReader reader(FrameDirection::kToSupervisor, used ? std::optional(mac) : std::nullopt);
      std::vector<AgentFrame> frames;
      for (size_t at = 0; at < bytes.size(); at += piece) {
        reader.Add(Bytes(std::string_view(bytes).substr(at, piece)));
        while (true) {
          auto frame = reader.Next();
          ASSERT_TRUE(frame.ok()) << frame.status();
          if (!frame->has_value()) break;
          frames.push_back(**frame);
        }
      }
      ASSERT_EQ(frames.size(), 3u);
      EXPECT_EQ(frames[0].kind, EntryKind::kNote);
      EXPECT_EQ(frames[0].envelope.entry, 7u);
      EXPECT_EQ(frames[0].envelope.acknowledged, 3u);
      EXPECT_EQ(frames[0].envelope.sent_at, 1000u);
      EXPECT_EQ(frames[0].envelope.echo, 900u);
      EXPECT_EQ(DecodeEntry<NoteEntry>(frames[0].body)->line, "a line");
      EXPECT_EQ(frames[1].kind, EntryKind::kNone);
      EXPECT_EQ(frames[2].number, 3u);
    }
  }
}

TEST(AgentFrameTest, TheMacIsThatOfTheDocument) {
  const std::string key = HmacSha256("secret", absl::StrCat("muster agent frames 1", std::string(1, '\0'), "hellos"));
  const std::string place("\x02\x05\0\0\0\0\0\0\0", 9);
  EXPECT_EQ(FrameMac("secret", "hellos").Of(FrameDirection::kToSupervisor, 5, "frame"),
            HmacSha256(key, place + "frame").substr(0, 16));
}

TEST(AgentFrameTest, AFrameThatIsntFromThisPlaceOfThisStreamIsRefused) {
  const FrameMac mac("secret", "hellos");
  const std::string good = Encoded(NoteFrame(1), &mac);
  EXPECT_EQ(ErrorOf(good, mac), "");
  for (size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    AgentFrameReader reader(FrameDirection::kToSupervisor, mac);
    reader.Add(Bytes(changed));
    const auto frame = reader.Next();
    EXPECT_TRUE(!frame.ok() || !frame->has_value()) << "byte " << at;
  }
  const std::string refused = "isn't from this stream's other side";
  EXPECT_THAT(ErrorOf(Encoded(NoteFrame(2), &mac), mac), HasSubstr(refused));          // out of its order
  EXPECT_THAT(ErrorOf(good, FrameMac("secret", "other hellos")), HasSubstr(refused));  // of another stream
  EXPECT_THAT(ErrorOf(good, FrameMac("other secret", "hellos")), HasSubstr(refused));
  EXPECT_THAT(ErrorOf(good, mac, FrameDirection::kToAgent), HasSubstr(refused));  // sent back to its sender
}

TEST(AgentFrameTest, WhatBreaksARuleIsRefused) {
  AgentFrame frame = NoteFrame(2);
  EXPECT_THAT(ErrorOf(Encoded(frame)), HasSubstr("frame 2 comes after frame 0"));
  frame = NoteFrame(1);
  frame.envelope.entry = 0;
  EXPECT_THAT(ErrorOf(Encoded(frame)), HasSubstr("number of an entry is missing"));
  frame = {.number = 1, .envelope = {.entry = 1}};
  EXPECT_THAT(ErrorOf(Encoded(frame)), HasSubstr("number of an entry is missing or out of place"));
  frame = {.number = 1, .body = "x"};
  EXPECT_THAT(ErrorOf(Encoded(frame)), HasSubstr("has bytes of one"));
  frame = {.number = 1, .kind = EntryKind::kStop, .envelope = {.entry = 1}};
  EXPECT_THAT(ErrorOf(Encoded(frame)), HasSubstr("goes the wrong way"));
  EXPECT_EQ(ErrorOf(Encoded(frame), std::nullopt, FrameDirection::kToAgent), "");
  frame = {.number = 1, .kind = static_cast<EntryKind>(99)};
  EXPECT_THAT(ErrorOf(Encoded(frame)), HasSubstr("no entry of kind 99"));
  frame = {.number = 1, .body = std::string(kMaxEntryBytes + 1, 'x')};
  EXPECT_THAT(ErrorOf(Encoded(frame)), HasSubstr("bulk length 262145 is over the limit of 262144"));
  EXPECT_THAT(ErrorOf(std::string(40, 'x')), HasSubstr("not the magic of a frame"));
}

}  // namespace
}  // namespace muster::agent_frame_test
