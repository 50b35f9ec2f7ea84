#include "muster/launch/agent/frame_stream.h"

#include <algorithm>
#include <utility>

#include "muster/base/status_macros.h"

namespace muster {
namespace {

FrameDirection Opposite(FrameDirection direction) {
  return direction == FrameDirection::kToAgent ? FrameDirection::kToSupervisor : FrameDirection::kToAgent;
}

uint64_t Micros(absl::Time time) { return static_cast<uint64_t>(std::max<int64_t>(1, absl::ToUnixMicros(time))); }

}  // namespace

FrameStream::FrameStream(FrameDirection outgoing, absl::Time now, const std::optional<FrameMac>& mac)
    : outgoing_(outgoing), mac_(mac), reader_(Opposite(outgoing), mac), last_made_(now) {}

void FrameStream::Add(ByteSpan bytes) { reader_.Add(bytes); }

absl::StatusOr<std::optional<AgentFrame>> FrameStream::Next() {
  ASSIGN_OR_RETURN(std::optional<AgentFrame> frame, reader_.Next());
  if (!frame) return frame;
  const uint64_t echo = frame->envelope.echo;
  if (echo > newest_sent_at_) return absl::InvalidArgumentError("a frame answers one that wasn't sent");
  if (echo > 0) answered_ = std::max(answered_, absl::FromUnixMicros(static_cast<int64_t>(echo)));
  newest_received_at_ = std::max(newest_received_at_, frame->envelope.sent_at);
  unacknowledged_ += frame->body.size();
  return frame;
}

std::string FrameStream::Make(absl::Time now, const HasTaken& has, EntryKind kind, uint64_t entry, std::string body) {
  newest_sent_at_ = std::max(newest_sent_at_, Micros(now));
  last_made_ = now;
  unacknowledged_ = 0;
  const AgentFrame frame{.number = ++made_,
                         .kind = kind,
                         .envelope = {.entry = entry,
                                      .acknowledged = has.acknowledged,
                                      .sent_at = newest_sent_at_,
                                      .echo = newest_received_at_,
                                      .received = has.received},
                         .body = std::move(body)};
  return EncodeAgentFrame(frame, outgoing_, mac_ ? &*mac_ : nullptr);
}

}  // namespace muster
