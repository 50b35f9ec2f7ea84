#include "muster/launch/backends/hosts/optional_hosts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster {

std::string OptionalHosts::WhyNotUsed(const std::string& host) const {
  return absl::StrCat(host, " isn't used: ", absl::StrReplaceAll(left_out_.at(host), {{"\n", "; "}}));
}

bool OptionalHosts::IsPatienceOver(bool only_optional, absl::Time now) {
  if (!only_optional) {
    wait_until_ = absl::InfiniteFuture();
    return false;
  }
  wait_until_ = std::min(wait_until_, now + kPatience);
  if (now < wait_until_) return false;
  wait_until_ = absl::InfiniteFuture();
  return true;
}

}  // namespace muster
