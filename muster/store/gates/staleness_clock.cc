#include "muster/store/gates/staleness_clock.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {

uint64_t StalenessClock::Slowest(absl::Time now, int but) const {
  uint64_t slowest = std::numeric_limits<uint64_t>::max();
  for (size_t i = 0; i < clients_.clients().size(); ++i)
    if (static_cast<int>(i) != but && IsWaitedFor(i, now)) slowest = std::min(slowest, ClockOf(static_cast<int>(i)));
  return slowest;
}

uint64_t StalenessClock::NeededFor(uint64_t clock) const {
  const uint64_t bound = arena_->model().clock_limit - 1;
  return clock - std::min(clock, bound);
}

void StalenessClock::Join(int client, absl::Time now) {
  // In the workers' order the client is waited for, and catches up.
  if (arena_->model().ordered) return;
  const uint64_t slowest = Slowest(now, client);
  if (slowest == std::numeric_limits<uint64_t>::max() || slowest <= ClockOf(client)) return;
  Arena::Counted counted{client, arena_->client(client).numbers, arena_->header().counters, arena_->header().gate};
  counted.numbers.clock = slowest;
  arena_->Count(counted);
}

void StalenessClock::Answer(ConnectionId connection, const PushPullRequest& message, const PushPullReply& reply,
                            absl::Time now, Responder responder) {
  held_.push_back({{connection, now, PullOf(message), std::move(responder)}, reply});
  Recheck(now);
}

void StalenessClock::Recheck(absl::Time now) {
  if (held_.empty()) return;
  const uint64_t slowest = Slowest(now);
  std::vector<Ahead> all = std::exchange(spare_, {});
  all.swap(held_);
  for (Ahead& ahead : all) {
    if (slowest < NeededFor(ahead.held.pull.clock)) {
      held_.push_back(std::move(ahead));
    } else {
      answer_(ahead.held.pull, ahead.reply, std::move(ahead.held.responder));
    }
  }
  all.clear();
  spare_ = std::move(all);
}

void StalenessClock::Disconnect(ConnectionId connection) {
  std::erase_if(held_, [&](const Ahead& ahead) { return ahead.held.connection == connection; });
}

void StalenessClock::FailAll(const absl::Status& status) {
  for (Ahead& ahead : std::exchange(held_, {})) ahead.held.responder.Fail(status);
}

void StalenessClock::Describe(absl::Time now, std::vector<WaitingFor>& waiting) const {
  for (const Ahead& ahead : held_) {
    const uint64_t needed = NeededFor(ahead.held.pull.clock);
    std::vector<std::string> slow;
    for (size_t i = 0; i < clients_.clients().size(); ++i)
      if (IsWaitedFor(i, now) && ClockOf(static_cast<int>(i)) < needed)
        slow.push_back(absl::StrCat(clients_.clients()[i].task, " (at ", ClockOf(static_cast<int>(i)), ")"));
    waiting[ahead.held.client()] = {absl::StrCat("clock ", needed, " of ", absl::StrJoin(slow, ", ")),
                                    ahead.held.since};
  }
}

}  // namespace muster
