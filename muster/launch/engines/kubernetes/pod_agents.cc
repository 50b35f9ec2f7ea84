#include "muster/launch/engines/kubernetes/pod_agents.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::Status PodAgents::Begin(const Meeting& /*meeting*/, AgentStarterEvents& events) {
  events_ = &events;
  return absl::OkStatus();
}

absl::Status PodAgents::StartAgain(const std::string& host) {
  if (maker_ == nullptr)
    return absl::AbortedError(absl::StrCat(
        "its pod is gone, and this job may not make it again: name a service_account that may create pods "
        "(kubernetes: ",
        "{service_account: …}) to have lost pods made again; `kubectl get pods --selector=muster/job=", job_,
        "` may say why it is gone"));
  const int number = ++made_[host];
  newest_[host] = number;
  ask_at_.erase(host);
  Ask(host, number, /*is_first=*/true);
  return absl::OkStatus();
}

void PodAgents::Ask(const std::string& host, int number, bool is_first) {
  maker_->Make(host, number, [this, host, number, is_first](const absl::Status& made) {
    if (const auto newest = newest_.find(host); newest != newest_.end() && newest->second == number)
      OnMade(host, made, is_first);
  });
}

// Only the first answer begins the time that the agent has to come.
void PodAgents::OnMade(const std::string& host, const absl::Status& made, bool is_first) {
  if (events_ == nullptr) return;
  if (!made.ok()) return events_->OnEnded(host, std::string(made.message()));
  ask_at_[host] = clock_.Now() + kAskForPodEvery;
  if (is_first) events_->OnWaits({host}, absl::StrCat(host, " waits for its pod, which is made again if it has ended"));
}

absl::Time PodAgents::deadline() const {
  absl::Time first = absl::InfiniteFuture();
  for (const auto& [host, at] : ask_at_) first = std::min(first, at);
  return first;
}

void PodAgents::OnTime() {
  for (auto due = ask_at_.begin(); due != ask_at_.end();) {
    const auto [host, at] = *due;
    if (clock_.Now() < at) {
      ++due;
      continue;
    }
    due = ask_at_.erase(due);
    Ask(host, newest_.at(host), /*is_first=*/false);
  }
}

absl::Status PodAgents::Explain(const std::string& host, const std::string& said) const {
  return absl::UnavailableError(absl::StrCat(host, ": its pod can't be made again: ", said));
}

}  // namespace muster
