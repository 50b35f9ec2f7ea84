// The hosts that a run can do without (HostPlan::optional_hosts): which of them are left out, and how long the others
// wait for one. Not thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace muster {

class OptionalHosts {
 public:
  // How long all needed hosts wait for what is left once they are through. A host that is there at all needs no longer,
  // as each step takes all hosts about the same time.
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  explicit OptionalHosts(std::set<std::string> names) : names_(std::move(names)) {}

  const std::set<std::string>& names() const { return names_; }
  // Returns whether the host is optional and isn't left out yet.
  bool MayLeaveOut(const std::string& host) const { return names_.contains(host) && !left_out_.contains(host); }
  bool IsLeftOut(const std::string& host) const { return left_out_.contains(host); }
  void LeaveOut(const std::string& host, const std::string& why) { left_out_.try_emplace(host, why); }
  // Returns a line for the user: "h3 isn't used: WHY". The host must be left out.
  std::string WhyNotUsed(const std::string& host) const;

  // Must be called in each round: `only_optional` says whether nothing but optional hosts is waited for. Returns
  // whether that has been so for kPatience.
  bool IsPatienceOver(bool only_optional, absl::Time now);
  // Returns when it would be over.
  absl::Time deadline() const { return wait_until_; }

 private:
  const std::set<std::string> names_;
  std::map<std::string, std::string> left_out_;  // and why
  absl::Time wait_until_ = absl::InfiniteFuture();
};

}  // namespace muster
