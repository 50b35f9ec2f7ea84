#include "muster/store/gates/presence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster {
namespace {

// A ps that was itself stopped finds every client silent until it has read what they sent meanwhile.
constexpr absl::Duration kReadFirst = absl::Milliseconds(500);

std::string WhyLost(const ClientTable::Client& client, const LeaseOptions& options, absl::Time now) {
  const bool broke = client.connections.empty() &&
                     client.disconnected_at + options.disconnect_grace < client.last_heard + options.lease;
  const absl::Duration silent =
      absl::Trunc(now - (broke ? client.disconnected_at : client.last_heard), absl::Seconds(1));
  return broke ? absl::StrCat("its connections broke ", absl::FormatDuration(silent), " ago")
               : absl::StrCat("it was not heard of for ", absl::FormatDuration(silent));
}

}  // namespace

void Presence::Recheck(absl::Time now, absl::FunctionRef<std::string()> effect) {
  if (ended_) return;
  for (size_t i = 0; i < states_.size(); ++i) {
    const ClientTable::Client& client = clients_.clients()[i];
    State& state = states_[i];
    if (client.incarnation == 0 || client.done) {
      state = {};
    } else if (clients_.Alive(client, now)) {
      if (state.said) LogInfo(client.task, " is back", effect());
      state = {};
    } else {
      state.dead_since = std::min(state.dead_since, now);
      if (state.said || now < state.dead_since + kReadFirst) continue;
      state.said = true;
      LogWarning(client.task, " is lost: ", WhyLost(client, clients_.options(), now), effect());
    }
  }
}

absl::Time Presence::NextCheck(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  if (ended_) return next;
  for (const State& state : states_)
    if (!state.said) next = std::min(next, state.dead_since + kReadFirst);
  return std::min(next, clients_.NextDeath(now));
}

}  // namespace muster
