// Tells whether the kernel has lately killed a process because memory had run out: of this process's own control group
// (a container's, a batch job's), or of the machine. Limits of single tasks are Cgroups' own concern. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster {

class OomKills {
 public:
  // What is longer ago than that, and up to twice as long, isn't lately any more.
  static constexpr absl::Duration kLately = absl::Seconds(10);

  // `proc`: with self/mountinfo, self/cgroup and vmstat. Borrows `clock`, which must outlive it.
  explicit OomKills(const Clock& clock, const std::string& proc = "/proc");

  // When OnTime is to be called next.
  absl::Time deadline() const { return read_ + kLately; }
  // Must be called at deadline(), so that old events are forgotten; cheap.
  void OnTime();
  // `elsewhere`: a process that was moved to another control group than this process's, whose own counter doesn't count
  // it; then the machine's is asked.
  bool WereThereLately(bool elsewhere) const;

 private:
  struct Counts {
    std::optional<int64_t> group;  // unset: not to be found
    int64_t machine = 0;
  };
  Counts Read() const;

  const Clock& clock_;
  const std::string group_file_, machine_file_;
  Counts before_, latest_;  // latest_ is at most kLately old after OnTime
  absl::Time read_;         // latest_
};

}  // namespace muster
