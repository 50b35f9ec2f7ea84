#include "muster/launch/backends/hosts/host_waits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

constexpr size_t kMostAwaited = 8;

std::string Shortened(std::vector<std::string> items, const char* between) {
  const size_t more = items.size() - std::min(items.size(), kMostAwaited);
  items.resize(items.size() - more);
  return absl::StrCat(absl::StrJoin(items, between), more > 0 ? absl::StrCat(between, more, " more") : "");
}

}  // namespace

void HostWaits::OnTime(absl::Time now, absl::FunctionRef<std::vector<AwaitedHost>()> awaited) {
  if (!notices_.has_value() || !notices_->Due(now)) return;
  const std::vector<AwaitedHost> hosts = awaited();
  if (hosts.empty()) return;
  std::vector<std::string> names, heard;
  for (const AwaitedHost& host : hosts) {
    names.push_back(host.name);
    heard.push_back(hosts.size() == 1 ? host.heard : absl::StrCat(host.name, ": ", host.heard));
  }
  note_(absl::StrCat("waiting for ", Shortened(names, ", "), " ", notices_->Since(now), ": ", Shortened(heard, "; ")));
}

}  // namespace muster
