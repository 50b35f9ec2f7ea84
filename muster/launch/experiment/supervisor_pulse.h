// By what other machines see that a supervisor lives, and how they reach it: renews state.json of its run, and looks
// for their requests. Not thread-safe.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

class SupervisorPulse {
 public:
  static constexpr absl::Duration kLookEvery = absl::Seconds(1);
  // How long somebody is taken to watch after he has said so.
  static constexpr absl::Duration kWatchedFor = absl::Seconds(15);

  // Drops requests to earlier attempts. Borrows `registry` and `clock`, which must outlive it.
  SupervisorPulse(const Home& home, const ExperimentId& id, Registry& registry, const Clock& clock);

  // When OnTime has something to do.
  absl::Time deadline() const;
  // Does what is due. A request to end the run becomes a signal to this process, as `muster kill` on its own machine
  // sends it.
  void OnTime();
  // Returns whether a request has asked for the run's end.
  bool was_asked_to_end() const { return was_asked_to_end_; }
  // Returns whether somebody watches the run's usage, or has until a moment ago.
  bool IsWatched() const { return clock_.Now() < watched_until_; }

 private:
  const std::string requests_;
  const ExperimentId id_;
  Registry& registry_;
  const Clock& clock_;

  absl::Time renew_at_;
  absl::Time look_at_;
  bool was_asked_to_end_ = false;
  std::string watched_mark_;
  absl::Time watched_until_ = absl::InfinitePast();
};

}  // namespace muster
