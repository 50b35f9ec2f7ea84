#include "muster/launch/agent/agent_frame.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/transport/frame.h"
#include "muster/transport/hmac.h"
#include "muster/transport/little_endian.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

constexpr FrameLimits kLimits = {.max_control_bytes = uint64_t{64} << 10, .max_bulk_bytes = kMaxEntryBytes};

// The length includes the terminating zero byte, which is part of the signed text.
constexpr char kLabel[] = "muster agent frames 1";

absl::string_view Text(const FrameHeaderBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

FrameMac::FrameMac(std::string_view secret, std::string_view hellos)
    : key_(HmacSha256(secret, absl::StrCat(absl::string_view(kLabel, sizeof kLabel), AbslView(hellos)))) {}

std::string FrameMac::Of(FrameDirection direction, uint64_t number, std::string_view frame) const {
  std::array<std::byte, 9> place;
  place[0] = static_cast<std::byte>(direction);
  StoreLittleEndian(number, &place[1]);
  const absl::string_view text(reinterpret_cast<const char*>(place.data()), place.size());
  return HmacSha256(key_, absl::StrCat(text, AbslView(frame))).substr(0, kFrameMacBytes);
}

std::string EncodeAgentFrame(const AgentFrame& frame, FrameDirection direction, const FrameMac* mac) {
  const std::string control = Encode(frame.envelope);
  FrameHeaderBytes header;
  EncodeFrameHeader({.type = FrameType::kRequest,
                     .method = static_cast<uint16_t>(frame.kind),
                     .request_id = frame.number,
                     .control_bytes = static_cast<uint32_t>(control.size()),
                     .bulk_bytes = frame.body.size()},
                    header);
  std::string bytes = absl::StrCat(Text(header), control, frame.body);
  if (mac != nullptr) bytes += mac->Of(direction, frame.number, bytes);
  return bytes;
}

void AgentFrameReader::Add(ByteSpan bytes) {
  if (used_ > 0) received_.erase(0, std::exchange(used_, 0));
  received_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

absl::StatusOr<std::optional<AgentFrame>> AgentFrameReader::Next() {
  const std::string_view left = std::string_view(received_).substr(used_);
  if (left.size() < kFrameHeaderBytes) return std::nullopt;
  const auto* bytes = reinterpret_cast<const std::byte*>(left.data());
  ASSIGN_OR_RETURN(const FrameHeader header,
                   DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes>(bytes, kFrameHeaderBytes), kLimits));
  if (header.type != FrameType::kRequest || header.time_left != absl::InfiniteDuration())
    return absl::InvalidArgumentError("not a frame between a supervisor and an agent");
  if (header.method >= kEntryKinds)
    return absl::InvalidArgumentError(absl::StrCat("there is no entry of kind ", header.method));
  const size_t size = kFrameHeaderBytes + header.control_bytes + header.bulk_bytes;
  const size_t mac_bytes = mac_ ? kFrameMacBytes : 0;
  if (left.size() < size + mac_bytes) return std::nullopt;
  const std::string_view mac = left.substr(size, mac_bytes);
  if (mac_ && !EqualInConstantTime(mac_->Of(direction_, last_number_ + 1, left.substr(0, size)), mac))
    return absl::PermissionDeniedError("a frame isn't from this stream's other side, or was changed on its way");

  AgentFrame frame{.number = header.request_id, .kind = static_cast<EntryKind>(header.method)};
  RETURN_IF_ERROR(Decode(std::string(left.substr(kFrameHeaderBytes, header.control_bytes)), frame.envelope));
  frame.body = std::string(left.substr(kFrameHeaderBytes + header.control_bytes, header.bulk_bytes));
  RETURN_IF_ERROR(CheckPlace(frame));
  ++last_number_;
  used_ += size + mac_bytes;
  return std::optional<AgentFrame>(std::move(frame));
}

absl::Status AgentFrameReader::CheckPlace(const AgentFrame& frame) const {
  if (frame.number != last_number_ + 1)
    return absl::InvalidArgumentError(absl::StrCat("frame ", frame.number, " comes after frame ", last_number_));
  if (frame.kind != EntryKind::kNone && IsForAgent(frame.kind) != (direction_ == FrameDirection::kToAgent))
    return absl::InvalidArgumentError("an entry goes the wrong way");
  if (IsNumbered(frame.kind) != (frame.envelope.entry != 0))
    return absl::InvalidArgumentError("the number of an entry is missing or out of place");
  if (frame.kind == EntryKind::kNone && !frame.body.empty())
    return absl::InvalidArgumentError("a frame without an entry has bytes of one");
  return absl::OkStatus();
}

}  // namespace muster
