// Frames between a supervisor and an agent (docs/agents.md, "The stream"): the header of docs/wire_format.md with
// limits of their own, an envelope as the control part, an entry as the bulk part, and over TCP a MAC. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/launch/agent/entries.h"
#include "muster/transport/messages/fields.h"

namespace muster {

enum class FrameDirection : uint8_t { kToAgent = 1, kToSupervisor = 2 };

// The control part of every frame.
struct Envelope {
  uint64_t entry = 0;         // the entry's number; 0: it has none
  uint64_t acknowledged = 0;  // the highest entry that the sender has taken in
  uint64_t sent_at = 0;       // the sender's clock, in microseconds; means nothing to the other side
  uint64_t echo = 0;          // the newest `sent_at` that the sender has received on this stream; 0: none yet
  uint64_t received = 0;      // the highest entry that has come, as far as it hasn't been taken in yet; 0: none
  using Fields = FieldList<Field<1, &Envelope::entry>, Field<2, &Envelope::acknowledged>, Field<3, &Envelope::sent_at>,
                           Field<4, &Envelope::echo>, Field<5, &Envelope::received>>;
};

struct AgentFrame {
  uint64_t number = 0;  // on its stream, from 1
  EntryKind kind = EntryKind::kNone;
  Envelope envelope;
  std::string body;  // of the entry
};

inline constexpr size_t kFrameMacBytes = 16;

// Makes the MACs of one stream's frames. Thread-safe.
class FrameMac {
 public:
  // `hellos`: Handshake::hellos().
  FrameMac(std::string_view secret, std::string_view hellos);
  // Returns kFrameMacBytes bytes.
  std::string Of(FrameDirection direction, uint64_t number, std::string_view frame) const;

 private:
  const std::string key_;
};

// `mac` may be null: the stream has none.
std::string EncodeAgentFrame(const AgentFrame& frame, FrameDirection direction, const FrameMac* mac);

// Finds the frames in what arrives on one stream. Holds no more than what was added and not yet taken.
class AgentFrameReader {
 public:
  // `direction`: of the frames that it reads. No `mac`: they have none.
  explicit AgentFrameReader(FrameDirection direction, std::optional<FrameMac> mac = std::nullopt)
      : direction_(direction), mac_(std::move(mac)) {}

  void Add(ByteSpan bytes);
  // Returns the next frame; nullopt if more bytes are needed. InvalidArgument: not such a frame; PermissionDenied: its
  // MAC doesn't verify. After an error the stream must be closed.
  absl::StatusOr<std::optional<AgentFrame>> Next();

 private:
  absl::Status CheckPlace(const AgentFrame& frame) const;

  const FrameDirection direction_;
  const std::optional<FrameMac> mac_;
  std::string received_;
  size_t used_ = 0;           // of `received_`
  uint64_t last_number_ = 0;  // of a frame
};

}  // namespace muster
