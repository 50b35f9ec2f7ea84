// The agents of a job of Kubernetes: their pods were made with the supervisor's, and connect to it by themselves
// (docs/kubernetes_engine.md). Used by the loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/engines/kubernetes/pod_maker.h"
#include "muster/launch/engines/listening/agent_starter.h"

namespace muster {

class PodAgents final : public AgentStarter {
 public:
  // A node that has died is noticed late: until then its pods seem to run. Whether one must be made is asked so often.
  static constexpr absl::Duration kAskForPodEvery = absl::Seconds(30);

  // `job`: its name, for what users read. Borrows `clock`, which must outlive it.
  PodAgents(std::string job, std::unique_ptr<PodMaker> maker, const Clock& clock)
      : job_(std::move(job)), maker_(std::move(maker)), clock_(clock) {}

  absl::Status Begin(const Meeting& meeting, AgentStarterEvents& events) override;
  // Their pods are there, or come.
  absl::Status StartAll(const std::vector<std::string>& /*hosts*/) override { return absl::OkStatus(); }
  // Has the pod made again, if this job may, as soon as the one before is known to be gone; Aborted if it may not.
  absl::Status StartAgain(const std::string& host) override;
  void EndStart(const std::string& /*host*/) override {}
  void NoteArrival(const std::string& host) override { ask_at_.erase(host); }
  void Forget(const std::string& host) override {
    newest_.erase(host);
    ask_at_.erase(host);
  }
  absl::Status Explain(const std::string& host, const std::string& said) const override;
  absl::Time deadline() const override;
  void OnTime() override;

 private:
  void Ask(const std::string& host, int number, bool is_first);
  void OnMade(const std::string& host, const absl::Status& made, bool is_first);

  const std::string job_;
  const std::unique_ptr<PodMaker> maker_;  // null: nobody may
  const Clock& clock_;

  AgentStarterEvents* events_ = nullptr;      // from Begin on
  std::map<std::string, int> made_;           // how often, by host
  std::map<std::string, int> newest_;         // the start of which is told
  std::map<std::string, absl::Time> ask_at_;  // again, while no agent has come
};

}  // namespace muster
