// Says for which hosts a run waits before its tasks start, or after they have ended, and what was heard of each: for
// the first time after 10 s, and again as WaitNotices. Told the time, so that tests move it. Not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/base/wait_notices.h"

namespace muster {

// A host that is waited for, and what was heard of it last, or what it is to do.
struct AwaitedHost {
  std::string name;
  std::string heard;
};

class HostWaits {
 public:
  static constexpr absl::Duration kFirstNotice = absl::Seconds(10);

  // `note` takes a line for the user.
  explicit HostWaits(std::function<void(const std::string& line)> note) : note_(std::move(note)) {}

  // A wait begins, in the place of the one before, and ends.
  void Begin(absl::Time now) { notices_.emplace(now, kFirstNotice); }
  void End() { notices_.reset(); }
  // InfiniteFuture: nothing is waited for.
  absl::Time deadline() const { return notices_.has_value() ? notices_->next() : absl::InfiniteFuture(); }
  // Says a line if one is due and `awaited` returns a host.
  void OnTime(absl::Time now, absl::FunctionRef<std::vector<AwaitedHost>()> awaited);

 private:
  const std::function<void(const std::string& line)> note_;
  std::optional<WaitNotices> notices_;
};

}  // namespace muster
