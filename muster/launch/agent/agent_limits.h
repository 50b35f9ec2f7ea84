// The limits of the protocol between a supervisor and its agents (docs/agents.md, "Numbers" and "Limits"). Plain
// values.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

struct AgentLimits {
  size_t kept_bytes = size_t{4} << 20;               // in one direction, not acknowledged; then the source is paused
  size_t in_flight_bytes = size_t{1} << 20;          // of these, how much is on its way at once
  size_t acknowledge_bytes = size_t{256} << 10;      // an acknowledgement goes as soon as this much has come
  size_t unanswered_commands = 1024;                 // of one supervisor
  size_t open_commands = 4096;                       // of all supervisors, in an agent's journal
  absl::Duration silence = absl::Milliseconds(500);  // an empty frame goes after this long without another
  absl::Duration suspect = absl::Seconds(3);
  absl::Duration grace = absl::Seconds(30);
  absl::Duration first = absl::ZeroDuration();  // an agent waits for its first supervisor so long, if not for `grace`
  absl::Duration ending = absl::Seconds(3);     // from asking tasks to end to killing them, once the grace is over
  // Likewise after a signal to the agent, but not beyond the end that the grace brings; no less than `ending`.
  absl::Duration signalled = absl::Seconds(3);
  absl::Duration lost_margin = absl::Seconds(5);  // an agent is lost at `grace` + this
  absl::Duration number_age = absl::Seconds(1);   // a supervisor writes no frame this long after it has read its number

  // The limit after which a supervisor that hears nothing of an agent takes its tasks for ended.
  absl::Duration lost() const { return grace + lost_margin; }
};

// InvalidArgument if a limit isn't in its place, naming both.
[[nodiscard]] absl::Status CheckAgentLimits(const AgentLimits& limits);

}  // namespace muster
