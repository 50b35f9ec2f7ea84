#include "muster/transport/frame.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/transport/little_endian.h"

namespace muster {
namespace {

constexpr uint32_t kFrameMagic = 0x3146534D;  // "MSF1" in memory
constexpr uint64_t kNoDeadline = ~uint64_t{0};

uint64_t MicrosecondsLeft(const FrameHeader& header) {
  if (header.type != FrameType::kRequest) return 0;
  if (header.time_left == absl::InfiniteDuration()) return kNoDeadline;
  return static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Microseconds(header.time_left)));
}

absl::Status CheckFields(const FrameHeader& header, uint64_t time_left, uint32_t code, const FrameLimits& limits) {
  const bool request = header.type == FrameType::kRequest;
  const bool error = header.type == FrameType::kError;
  const bool bare =
      header.type == FrameType::kCancel || header.type == FrameType::kPing || header.type == FrameType::kPong;
  const bool address = header.type == FrameType::kShmAddress;
  const bool numbered = header.type != FrameType::kPing && header.type != FrameType::kPong && !address;
  if (header.control_bytes > limits.max_control_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("control length ", header.control_bytes, " is over the limit of ", limits.max_control_bytes));
  }
  if (header.bulk_bytes > limits.max_bulk_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("bulk length ", header.bulk_bytes, " is over the limit of ", limits.max_bulk_bytes));
  }
  if (!request && (header.method != 0 || time_left != 0)) {
    return absl::InvalidArgumentError("only a request has a method and a deadline");
  }
  if (numbered != (header.request_id != 0)) return absl::InvalidArgumentError("request id missing or out of place");
  if (error ? code < 1 || code > 16 : code != 0) {
    return absl::InvalidArgumentError(absl::StrCat("error code ", code, " doesn't exist"));
  }
  if ((bare && header.control_bytes != 0) || ((bare || error || address) && header.bulk_bytes != 0)) {
    return absl::InvalidArgumentError("a frame of this type has no such part");
  }
  if (header.beside && (!limits.beside || header.bulk_bytes == 0)) {
    return absl::InvalidArgumentError("this frame can't have its bulk beside the stream");
  }
  return absl::OkStatus();
}

}  // namespace

void EncodeFrameHeader(const FrameHeader& header, FrameHeaderBytes& bytes) {
  StoreLittleEndian(kFrameMagic, &bytes[0]);
  StoreLittleEndian(static_cast<uint8_t>(header.type), &bytes[4]);
  StoreLittleEndian(static_cast<uint8_t>(header.beside), &bytes[kFrameBesideByte]);
  StoreLittleEndian(header.method, &bytes[6]);
  StoreLittleEndian(header.request_id, &bytes[8]);
  StoreLittleEndian(MicrosecondsLeft(header), &bytes[16]);
  StoreLittleEndian(header.control_bytes, &bytes[24]);
  StoreLittleEndian(static_cast<uint32_t>(header.code), &bytes[28]);
  StoreLittleEndian(header.bulk_bytes, &bytes[32]);
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                              const FrameLimits& limits) {
  if (LoadLittleEndian<uint32_t>(&bytes[0]) != kFrameMagic)
    return absl::InvalidArgumentError("not the magic of a frame");
  const uint8_t type = LoadLittleEndian<uint8_t>(&bytes[4]);
  if (type < static_cast<uint8_t>(FrameType::kRequest) || type > static_cast<uint8_t>(FrameType::kShmAddress)) {
    return absl::InvalidArgumentError(absl::StrCat("no frame has type ", type));
  }
  const uint8_t beside = LoadLittleEndian<uint8_t>(&bytes[kFrameBesideByte]);
  if (beside > 1) return absl::InvalidArgumentError(absl::StrCat("bulk can't be in place ", beside));

  FrameHeader header;
  header.beside = beside == 1;
  header.type = static_cast<FrameType>(type);
  header.method = LoadLittleEndian<uint16_t>(&bytes[6]);
  header.request_id = LoadLittleEndian<uint64_t>(&bytes[8]);
  const uint64_t time_left = LoadLittleEndian<uint64_t>(&bytes[16]);
  header.control_bytes = LoadLittleEndian<uint32_t>(&bytes[24]);
  const uint32_t code = LoadLittleEndian<uint32_t>(&bytes[28]);
  header.bulk_bytes = LoadLittleEndian<uint64_t>(&bytes[32]);
  RETURN_IF_ERROR(CheckFields(header, time_left, code, limits));
  header.code = static_cast<absl::StatusCode>(code);
  // 2^62 microseconds are 146,000 years: longer times, which a Duration may be unable to hold, mean no deadline.
  if (header.type == FrameType::kRequest && time_left < (uint64_t{1} << 62)) {
    header.time_left = absl::Microseconds(static_cast<int64_t>(time_left));
  }
  return header;
}

}  // namespace muster
