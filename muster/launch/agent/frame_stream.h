// One end of one stream between a supervisor and an agent: makes frames and reads them, numbers them, and carries the
// clocks by which an agent knows that its supervisor has heard it (docs/agents.md, "Limits"). Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/agent/agent_frame.h"

namespace muster {

// What an end has of the other's entries.
struct HasTaken {
  uint64_t acknowledged = 0;  // Envelope::acknowledged
  uint64_t received = 0;      // Envelope::received
};

class FrameStream {
 public:
  // `outgoing`: of the frames that this end makes. `now`: its beginning.
  FrameStream(FrameDirection outgoing, absl::Time now, const std::optional<FrameMac>& mac);

  void Add(ByteSpan bytes);
  // As AgentFrameReader::Next. InvalidArgument also if the frame echoes a time at which this end has sent nothing.
  absl::StatusOr<std::optional<AgentFrame>> Next();

  // Returns the next frame. `entry`: its number, 0: it has none.
  std::string Make(absl::Time now, const HasTaken& has, EntryKind kind = EntryKind::kNone, uint64_t entry = 0,
                   std::string body = "");

  // When this end has sent the newest frame that the other one has answered; InfinitePast: none yet.
  absl::Time answered() const { return answered_; }
  absl::Time last_made() const { return last_made_; }
  // Bytes of entries that have come since the last frame was made.
  size_t unacknowledged() const { return unacknowledged_; }

 private:
  const FrameDirection outgoing_;
  const std::optional<FrameMac> mac_;
  AgentFrameReader reader_;
  uint64_t made_ = 0;                // frames
  uint64_t newest_sent_at_ = 0;      // of this end
  uint64_t newest_received_at_ = 0;  // of the other end: what this one echoes
  absl::Time answered_ = absl::InfinitePast();
  absl::Time last_made_;
  size_t unacknowledged_ = 0;
};

}  // namespace muster
