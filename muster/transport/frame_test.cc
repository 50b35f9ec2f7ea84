#include "muster/transport/frame.h"

#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::frame_test {
namespace {

using ::testing::HasSubstr;

FrameHeader Request() {
  FrameHeader header;
  header.type = FrameType::kRequest;
  header.method = 0x0102;
  header.request_id = 0x1112131415161718;
  header.time_left = absl::Microseconds(0x2122);
  header.control_bytes = 0x414243;
  header.bulk_bytes = 0x51525354;
  return header;
}

TEST(FrameTest, TheBytesAreThoseOfTheDocument) {
  FrameHeaderBytes bytes;
  EncodeFrameHeader(Request(), bytes);
  const std::string expected(
      "MSF1\x01\x00\x02\x01"
      "\x18\x17\x16\x15\x14\x13\x12\x11"
      "\x22\x21\x00\x00\x00\x00\x00\x00"
      "\x43\x42\x41\x00\x00\x00\x00\x00"
      "\x54\x53\x52\x51\x00\x00\x00\x00",
      40);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), expected);
}

TEST(FrameTest, EveryTypeComesBack) {
  FrameHeader reply;
  reply.type = FrameType::kReply;
  reply.request_id = 7;
  reply.bulk_bytes = 100;
  FrameHeader error;
  error.type = FrameType::kError;
  error.request_id = 7;
  error.code = absl::StatusCode::kDataLoss;
  error.control_bytes = 10;
  FrameHeader cancel;
  cancel.type = FrameType::kCancel;
  cancel.request_id = 7;
  FrameHeader ping;
  ping.type = FrameType::kPing;
  FrameHeader pong;
  pong.type = FrameType::kPong;
  FrameHeader endless = Request();
  endless.time_left = absl::InfiniteDuration();
  for (const FrameHeader& header : {Request(), endless, reply, error, cancel, ping, pong}) {
    FrameHeaderBytes bytes;
    EncodeFrameHeader(header, bytes);
    const absl::StatusOr<FrameHeader> decoded = DecodeFrameHeader(bytes, {});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->type, header.type);
    EXPECT_EQ(decoded->method, header.method);
    EXPECT_EQ(decoded->request_id, header.request_id);
    EXPECT_EQ(decoded->control_bytes, header.control_bytes);
    EXPECT_EQ(decoded->code, header.code);
    EXPECT_EQ(decoded->bulk_bytes, header.bulk_bytes);
    if (header.type == FrameType::kRequest) {
      EXPECT_EQ(decoded->time_left, header.time_left);
    }
  }
}

TEST(FrameTest, ADeadlineThatHasPassedIsZeroLeft) {
  FrameHeader header = Request();
  header.time_left = -absl::Seconds(1);
  FrameHeaderBytes bytes;
  EncodeFrameHeader(header, bytes);
  EXPECT_EQ(DecodeFrameHeader(bytes, {})->time_left, absl::ZeroDuration());
}

// Changes one byte at a time.
TEST(FrameTest, WhatCantBeIsRefused) {
  struct Change {
    FrameType type;
    size_t at;
    uint8_t to;
    const char* why;
  };
  for (const Change& change :
       {Change{FrameType::kRequest, 0, 'm', "magic"}, Change{FrameType::kRequest, 4, 0, "type"},
        Change{FrameType::kRequest, 4, 8, "type"}, Change{FrameType::kRequest, 5, 2, "place"},
        Change{FrameType::kRequest, 28, 1, "error code"}, Change{FrameType::kReply, 6, 1, "method"},
        Change{FrameType::kReply, 16, 1, "deadline"}, Change{FrameType::kReply, 8, 0, "request id"},
        Change{FrameType::kError, 28, 0, "error code"}, Change{FrameType::kError, 28, 17, "error code"},
        Change{FrameType::kError, 32, 1, "no such part"}, Change{FrameType::kCancel, 24, 1, "no such part"},
        Change{FrameType::kPing, 8, 1, "request id"}, Change{FrameType::kPing, 32, 1, "no such part"}}) {
    FrameHeader header;
    header.type = change.type;
    header.request_id = change.type == FrameType::kPing ? 0 : 1;
    if (change.type == FrameType::kError) header.code = absl::StatusCode::kInternal;
    FrameHeaderBytes bytes;
    EncodeFrameHeader(header, bytes);
    ASSERT_TRUE(DecodeFrameHeader(bytes, {}).ok());
    bytes[change.at] = std::byte{change.to};
    const absl::Status status = DecodeFrameHeader(bytes, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << change.at;
    EXPECT_THAT(std::string(status.message()), HasSubstr(change.why));
  }
}

TEST(FrameTest, BulkIsBesideTheStreamOnlyWhereThereIsSharedMemory) {
  FrameHeader header = Request();
  header.beside = true;
  FrameHeaderBytes bytes;
  EncodeFrameHeader(header, bytes);
  EXPECT_FALSE(DecodeFrameHeader(bytes, {}).ok());
  ASSERT_TRUE(DecodeFrameHeader(bytes, {.beside = true}).ok());
  EXPECT_TRUE(DecodeFrameHeader(bytes, {.beside = true})->beside);
  header.bulk_bytes = 0;
  EncodeFrameHeader(header, bytes);
  EXPECT_FALSE(DecodeFrameHeader(bytes, {.beside = true}).ok()) << "nothing can't be anywhere";
}

TEST(FrameTest, LengthsOverTheLimitAreRefused) {
  FrameHeader header = Request();
  FrameHeaderBytes bytes;
  EncodeFrameHeader(header, bytes);
  const FrameLimits exact{.max_control_bytes = 0x414243, .max_bulk_bytes = 0x51525354};
  EXPECT_TRUE(DecodeFrameHeader(bytes, exact).ok());
  EXPECT_FALSE(DecodeFrameHeader(bytes, {.max_control_bytes = 0x414242, .max_bulk_bytes = 0x51525354}).ok());
  EXPECT_FALSE(DecodeFrameHeader(bytes, {.max_control_bytes = 0x414243, .max_bulk_bytes = 0x51525353}).ok());
  header.control_bytes = 0xffffffff;
  EncodeFrameHeader(header, bytes);
  EXPECT_FALSE(DecodeFrameHeader(bytes, {}).ok());
}

}  // namespace
}  // namespace muster::frame_test
