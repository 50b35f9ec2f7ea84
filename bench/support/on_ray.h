// A real Ray on three simulated hosts, for the benchmark of what an experiment there takes beyond Ray itself. Needs
// root. Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/support/on_engine.h"
#include "tests/process/testing/ray_cluster.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster::bench {

inline constexpr int kNodesOfRay = 3;

class OnRay final : public OnEngine {
 public:
  // `greeting`: what each task prints. Returns when all nodes are there.
  explicit OnRay(const std::string& greeting);
  OnRay(const OnRay&) = delete;
  OnRay& operator=(const OnRay&) = delete;

  int tasks() const override { return kNodesOfRay; }
  // From before the fork of `ray job submit` until its program has had an answer of an actor on each node.
  absl::StatusOr<double> OfItself() const override;
  std::vector<std::string> Train(const std::string& muster) const override;
  EnvironmentChanges environment() const override { return {{"MUSTER_HOME", hosts_.shared() + "/home"}}; }

 private:
  const SimulatedHosts hosts_;
  const RayCluster ray_;
  const std::string project_;
};

}  // namespace muster::bench
