#include "muster/launch/experiment/supervisor_pulse.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "muster/launch/registry/files/requests.h"

namespace muster {

SupervisorPulse::SupervisorPulse(const Home& home, const ExperimentId& id, Registry& registry, const Clock& clock)
    : requests_(home.requests(id)),
      id_(id),
      registry_(registry),
      clock_(clock),
      renew_at_(clock.Now() + Registry::kRenewEvery),
      look_at_(clock.Now()) {}

absl::Time SupervisorPulse::deadline() const { return std::min(renew_at_, look_at_); }

void SupervisorPulse::OnTime() {
  const absl::Time now = clock_.Now();
  if (now >= renew_at_) {
    renew_at_ = now + Registry::kRenewEvery;
    // What can't be written now is older for others until it can.
    static_cast<void>(registry_.Renew(id_));
  }
  if (now < look_at_) return;
  look_at_ = now + kLookEvery;
  if (std::string mark = WatchedMark(requests_); mark != watched_mark_) {
    watched_mark_ = std::move(mark);
    watched_until_ = now + kWatchedFor;
  }
  for (const KillRequest& request : AnswerRequests(requests_)) {
    was_asked_to_end_ = true;
    kill(getpid(), SIGTERM);
    if (request.now) kill(getpid(), SIGINT);
  }
}

}  // namespace muster
