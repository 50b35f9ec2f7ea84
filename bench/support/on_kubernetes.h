// The stand-in for Kubernetes on two simulated hosts, with the real kubectl, for the benchmark of what an experiment
// there takes beyond pods themselves. Needs root. Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/support/on_engine.h"
#include "tests/process/testing/kube_cluster.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster::bench {

inline constexpr int kNodesOfKubernetes = 2;

class OnKubernetes final : public OnEngine {
 public:
  // `greeting`: what each task prints. `muster`: the program in the pods.
  OnKubernetes(const std::string& greeting, const std::string& muster);
  OnKubernetes(const OnKubernetes&) = delete;
  OnKubernetes& operator=(const OnKubernetes&) = delete;

  int tasks() const override { return kNodesOfKubernetes; }
  // From before the fork of the kubectl that makes a pod for each task until another one has said that all have ended
  // well.
  absl::StatusOr<double> OfItself() const override;
  std::vector<std::string> Train(const std::string& muster) const override;
  EnvironmentChanges environment() const override { return {{"MUSTER_HOME", hosts_.shared() + "/home"}}; }

 private:
  const SimulatedHosts hosts_;
  const KubeCluster cluster_;
  const std::string project_;
};

}  // namespace muster::bench
