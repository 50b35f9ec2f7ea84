#include "muster/transport/task_addresses.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

// Without the zone of a link-local address, "%eth0", which is a name of each host's own.
std::string WithoutZone(const std::string& endpoint) {
  const size_t begin = endpoint.find('%');
  const size_t end = endpoint.find(']');
  return begin < end && end != std::string::npos ? endpoint.substr(0, begin) + endpoint.substr(end) : endpoint;
}

}  // namespace

bool IsElsewhere(const TaskAddresses& tasks, std::string_view cluster_file_text, const std::string& address) {
  if (tasks.own.empty() || address == tasks.own) return false;
  if (std::ranges::find(tasks.others, address) != tasks.others.end()) return true;
  const std::vector<absl::string_view> words = absl::StrSplit(
      absl::string_view(cluster_file_text.data(), cluster_file_text.size()), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return std::ranges::find(words, absl::string_view(address)) != words.end();
}

Reached WhoIsReached(const TaskAddresses& tasks, std::string_view cluster_file_text, const Destination& destination,
                     const ConnectionEnds& ends) {
  if (IsElsewhere(tasks, cluster_file_text, destination.address)) return Reached::kAnotherTask;
  const bool same = WithoutZone(destination.ends.client) == WithoutZone(ends.client) &&
                    WithoutZone(destination.ends.server) == WithoutZone(ends.server);
  const bool is_own = !tasks.own.empty() && destination.address == tasks.own;
  return same || !is_own || tasks.allow_proxy ? Reached::kWhoWasMeant : Reached::kThroughAnother;
}

}  // namespace muster
