// Jobs of Kubernetes: bare pods that the user's own kubectl makes (docs/kubernetes_engine.md).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/engines/kubernetes/kubectl/kubectl.h"
#include "muster/launch/engines/kubernetes/pod_news.h"

namespace muster {

class KubernetesJobs final : public JobEngine {
 public:
  // `at`: as at(); empty: as the supervisor's pod says, in which this process is. `environment`: of this process,
  // "NAME=VALUE".
  // Borrows `clock`, which must outlive it.
  KubernetesJobs(const std::string& at, const std::vector<std::string>& environment, const Clock& clock = BootClock());

  std::string name() const override { return kKubernetesEngine; }
  std::string title() const override { return "Kubernetes"; }
  std::string at() const override { return kubectl_.place().text(); }
  JobTerms TermsOf(const HostSetting& setting) const override;
  // Another one each time: a job's name has random digits.
  std::string Script(const JobRequest& request) const override;
  std::string IdIn(const std::string& script) const override;
  std::string ScriptAnew(const std::string& script_text) const override;
  // Whatever it has made is taken away again if it can't make all.
  absl::StatusOr<std::string> Submit(const std::string& script, const std::string& after) override;
  absl::StatusOr<std::string> WouldTake(const std::string& script_text) override;
  // A job is late whose first pods haven't all started for its start_timeout since this object has seen it first, or
  // for 40 s if waiting doesn't change why, or at once if nothing is even tried again. One that is gone was cancelled
  // if End has done it, or if this object has seen that somebody was deleting the supervisor's pod. In the supervisor's
  // pod: NewsOfOwnPod.
  absl::StatusOr<std::map<std::string, JobNews>> Look(const std::vector<std::string>& ids) override;
  // kAsk: asks the supervisor, whose pod stays. kCancel: tells it that it was asked for, and deletes all pods, which
  // get their grace, and what else the job has; also after its end, whose pods stay until then. kGiveBack: without
  // telling it, and without grace.
  absl::Status End(const std::string& id, JobEnd how) override;
  absl::StatusOr<OwnJob> Own() override;
  bool EndLeftSteps(const std::string& /*id*/) override { return false; }
  // Kubernetes doesn't begin a job anew.
  absl::Status Requeue(const std::string& id) override;
  void Hasten(const std::string& /*id*/) override {}
  absl::Status Free(const std::string& /*id*/) override { return absl::OkStatus(); }
  std::optional<int> Restarts(const std::string& /*id*/) override { return 0; }
  std::optional<absl::Time> EndTime(const std::string& /*id*/) override { return std::nullopt; }
  // By `kubectl exec`. Unavailable: the supervisor's pod doesn't run. Internal: muster there has failed, or
  // kubectl here, with its words.
  absl::StatusOr<std::string> Ask(const std::string& id, const std::vector<std::string>& arguments,
                                  const std::string& input) override;

 private:
  void NoteIfLate(const PodFacts& supervisor, JobNews& news);
  std::string NameSpace() const;
  // Deletes a job that may have any number of pods.
  absl::Status DeleteAll(const std::string& job, bool at_once) const;
  // Returns why a job has no pods; "": unknown.
  std::string WhyNoPods() const;
  void NoteCancellation(const std::string& id, JobNews& news);
  absl::Status RunBesideSupervisor(const std::string& id, const std::string& program, absl::Duration patience) const;

  const std::vector<std::string> environment_;
  const Clock& clock_;
  Kubectl kubectl_;
  std::map<std::string, absl::Time> waits_since_;  // jobs whose pods haven't all started
  std::map<std::string, absl::Time> stuck_since_;  // those of them that waiting alone doesn't help
  ImageTroubles images_;
  std::set<std::string> cancelled_;  // jobs
};

// Returns where a job with this setting is, as JobEngine::at: with the context and namespace that kubectl has now.
// Blocks for a moment; asks no API. Errors are those of Kubectl::Resolve.
absl::StatusOr<std::string> PlaceOfKubernetes(const KubernetesSetting& setting,
                                              const std::vector<std::string>& environment);

}  // namespace muster
