// The header of a frame, as bytes and as a struct (docs/wire_format.md, section 2). This code neither reads nor
// allocates: a header that decodes has passed every limit. Thread-safe: free functions over values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

enum class FrameType : uint8_t {
  kRequest = 1,
  kReply = 2,
  kError = 3,
  kCancel = 4,
  kPing = 5,
  kPong = 6,
  kShmAddress = 7
};

struct FrameHeader {
  FrameType type = FrameType::kRequest;
  uint16_t method = 0;
  uint64_t request_id = 0;
  absl::Duration time_left = absl::InfiniteDuration();  // requests; microseconds on the wire
  uint32_t control_bytes = 0;
  absl::StatusCode code = absl::StatusCode::kOk;  // error replies
  uint64_t bulk_bytes = 0;
  bool beside = false;  // the bulk isn't in the stream; 8 bytes in its place say where it is
};

struct FrameLimits {
  uint64_t max_control_bytes = uint64_t{16} << 20;
  uint64_t max_bulk_bytes = uint64_t{4} << 30;
  bool beside = false;  // bulk may be beside the stream, in shared memory (docs/shared_memory.md)
};

inline constexpr size_t kFrameHeaderBytes = 40;
inline constexpr size_t kFrameBesideByte = 5;  // where FrameHeader::beside is, set just before sending
inline constexpr size_t kPlaceBytes = 8;
using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

// A negative duration is sent as zero.
void EncodeFrameHeader(const FrameHeader& header, FrameHeaderBytes& bytes);

// InvalidArgument says which field is invalid.
absl::StatusOr<FrameHeader> DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                              const FrameLimits& limits);

}  // namespace muster
