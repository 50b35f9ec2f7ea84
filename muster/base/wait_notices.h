// When a long wait is mentioned in the log: for the first time after a while, then 10 s, 20 s and 40 s later, and from
// then on every minute, so that a reader sees soon what is missing and a wait of hours doesn't fill the log. Not
// thread-safe.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/retry_pause.h"

namespace muster {

class WaitNotices {
 public:
  // The wait begins at `began`; the first notice is due `first` later.
  WaitNotices(absl::Time began, absl::Duration first) : began_(began), next_(began + first) {}

  absl::Time next() const { return next_; }
  // Whether a notice is due. If so, the next one is due only after a longer pause.
  bool Due(absl::Time now) {
    if (now < next_) return false;
    next_ = now + pause_.Next();
    return true;
  }
  // For how long the wait has lasted, in whole seconds: "since 40s".
  std::string Since(absl::Time now) const {
    return absl::StrCat("since ", absl::FormatDuration(absl::Trunc(now - began_, absl::Seconds(1))));
  }

 private:
  const absl::Time began_;
  absl::Time next_;
  RetryPause pause_{absl::Seconds(10), absl::Minutes(1)};
};

}  // namespace muster
