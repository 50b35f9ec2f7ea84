// The agents of a job of Kubernetes: their pods were made with the supervisor's, and connect to it by themselves
// (docs/kubernetes_engine.md). Used by the loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/engines/kubernetes/pod_maker.h"
#include "muster/launch/engines/listening/agent_starter.h"

namespace muster {

class PodAgents final : public AgentStarter {
 public:
  // `job`: its name, for what users read.
  PodAgents(std::string job, std::unique_ptr<PodMaker> maker) : job_(std::move(job)), maker_(std::move(maker)) {}

  absl::Status Begin(const Meeting& meeting, AgentStarterEvents& events) override;
  // Their pods are there, or come.
  absl::Status StartAll(const std::vector<std::string>& /*hosts*/) override { return absl::OkStatus(); }
  // Has the pod made again, if this job may.
  absl::Status StartAgain(const std::string& host) override;
  void EndStart(const std::string& /*host*/) override {}
  void Forget(const std::string& host) override { newest_.erase(host); }
  absl::Status Explain(const std::string& host, const std::string& said) const override;
  void OnTime() override {}

 private:
  void OnMade(const std::string& host, const absl::Status& made);

  const std::string job_;
  const std::unique_ptr<PodMaker> maker_;  // null: nobody may

  AgentStarterEvents* events_ = nullptr;  // from Begin on
  std::map<std::string, int> made_;       // how often, by host
  std::map<std::string, int> newest_;     // the start of which is told
};

}  // namespace muster
