// A real Ray on three simulated hosts, for the benchmark of what an experiment there takes beyond Ray itself. Needs
// root. Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/support/process.h"
#include "tests/process/testing/ray_cluster.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster::bench {

inline constexpr int kNodesOfRay = 3;

class OnRay {
 public:
  // `greeting`: what each task prints. Returns when all nodes are there.
  explicit OnRay(const std::string& greeting);
  OnRay(const OnRay&) = delete;
  OnRay& operator=(const OnRay&) = delete;

  // Returns the milliseconds from before the fork of `ray job submit` until its program has had an answer of an actor
  // on each node.
  absl::StatusOr<double> OfRayItself() const;
  // Returns the command of an experiment with a task on each node, and what it runs with.
  std::vector<std::string> Train(const std::string& muster) const;
  EnvironmentChanges environment() const { return {{"MUSTER_HOME", hosts_.shared() + "/home"}}; }

 private:
  const SimulatedHosts hosts_;
  const RayCluster ray_;
  const std::string project_;
};

}  // namespace muster::bench
