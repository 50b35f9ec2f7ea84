#include "muster/launch/engines/ssh/host_contacts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

namespace muster {

HostContacts::HostContacts(std::vector<std::string> hosts, const ContactOptions& options, FdLoop& loop,
                           const Clock& clock)
    : hosts_(std::move(hosts)), options_(options), loop_(loop), clock_(clock) {
  DialMore();
}

absl::Time HostContacts::deadline() const {
  absl::Time first = absl::InfiniteFuture();
  for (const auto& contact : contacts_) first = std::min(first, contact->deadline());
  return first;
}

void HostContacts::OnTime() {
  for (const auto& contact : contacts_) contact->OnTime();
  std::erase_if(contacts_, [](const auto& contact) { return contact->done(); });
  DialMore();
}

void HostContacts::DialMore() {
  for (; next_ < hosts_.size() && contacts_.size() < kAtOnce; ++next_) {
    contacts_.push_back(std::make_unique<HostContact>(hosts_[next_], options_, loop_, clock_,
                                                      [this, host = hosts_[next_]](absl::StatusOr<AgentStream> stream) {
                                                        results_.emplace(host, std::move(stream));
                                                      }));
    contacts_.back()->OnTime();
  }
}

absl::StatusOr<std::map<std::string, AgentStream>> HostContacts::Take() {
  std::vector<std::string> failures;
  std::map<std::string, AgentStream> streams;
  for (const std::string& host : hosts_) {
    absl::StatusOr<AgentStream>& result = results_.at(host);
    if (result.ok())
      streams.emplace(host, *std::move(result));
    else
      failures.push_back(std::string(result.status().message()));
  }
  if (failures.empty()) return streams;
  return absl::UnavailableError(absl::StrJoin(failures, "\n"));
}

}  // namespace muster
