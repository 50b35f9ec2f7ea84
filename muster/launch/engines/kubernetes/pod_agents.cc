#include "muster/launch/engines/kubernetes/pod_agents.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::Status PodAgents::Begin(const Meeting& /*meeting*/, AgentStarterEvents& events) {
  events_ = &events;
  return absl::OkStatus();
}

absl::Status PodAgents::StartAgain(const std::string& host) {
  if (maker_ == nullptr)
    return absl::UnavailableError(absl::StrCat(
        "its pod is gone, and this job may not make it again: name a service_account that may create pods "
        "(kubernetes: ",
        "{service_account: …}) to have lost pods made again; `kubectl get pods --selector=muster/job=", job_,
        "` may say why it is gone"));
  const int number = ++made_[host];
  newest_[host] = number;
  maker_->Make(host, number, [this, host, number](const absl::Status& made) {
    if (const auto newest = newest_.find(host); newest != newest_.end() && newest->second == number) OnMade(host, made);
  });
  return absl::OkStatus();
}

void PodAgents::OnMade(const std::string& host, const absl::Status& made) {
  if (events_ == nullptr) return;
  if (made.ok())
    events_->OnWaits({host}, absl::StrCat(host, " waits for its pod, which is made again if it has ended"));
  else
    events_->OnEnded(host, std::string(made.message()));
}

absl::Status PodAgents::Explain(const std::string& host, const std::string& said) const {
  return absl::UnavailableError(absl::StrCat(host, ": its pod can't be made again: ", said));
}

}  // namespace muster
