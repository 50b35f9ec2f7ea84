#include "muster/store/gates/presence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster {
namespace {

// A process that is started again at once isn't worth two lines.
constexpr absl::Duration kSayAfter = absl::Milliseconds(500);

std::string WhyLost(const ClientTable::Client& client, const LeaseOptions& options, absl::Time now) {
  if (!client.excluded.empty()) return client.excluded;
  const absl::Duration grace = client.on_this_host ? absl::ZeroDuration() : options.disconnect_grace;
  const bool broke = client.connections.empty() && client.disconnected_at + grace < client.last_heard + options.lease;
  const auto ago = [now](absl::Time since) { return absl::FormatDuration(absl::Trunc(now - since, absl::Seconds(1))); };
  if (broke && client.on_this_host) return "its process has closed its connections without a goodbye";
  if (broke) return absl::StrCat("its connections broke ", ago(client.disconnected_at), " ago");
  if (client.deaf_since < client.last_heard)
    return absl::StrCat("it is heard, but has heard nothing of this ps for ", ago(client.deaf_since),
                        ": the link to it is dead in that direction");
  return absl::StrCat("it was not heard of for ", ago(client.last_heard));
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
      if (state.said || now < state.dead_since + kSayAfter) continue;
      state.said = true;
      LogWarning(client.task, " is lost: ", WhyLost(client, clients_.options(), now), effect());
    }
  }
}

absl::Time Presence::NextCheck(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  if (ended_) return next;
  for (const State& state : states_)
    if (!state.said) next = std::min(next, state.dead_since + kSayAfter);
  return std::min(next, clients_.NextDeath(now));
}

}  // namespace muster
