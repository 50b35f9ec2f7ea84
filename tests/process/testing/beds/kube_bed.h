// Pods of a stand-in for Kubernetes, as the tests for every engine need them. They see neither the project nor
// MUSTER_HOME of the test, but a folder of a volume, at the same path as the test; h0 reaches the API server alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/process/testing/beds/engine_bed.h"
#include "tests/process/testing/kube_cluster.h"

namespace muster {

class KubeBed : public EngineBed {
 public:
  KubeBed();

  SimulatedHosts& hosts() override { return hosts_; }
  std::string shared() override { return FolderOf("seen"); }
  std::vector<std::string> OnH0(const std::vector<std::string>& words, const std::string& index) override;
  std::string Lines(const Place& place) override;
  // Also no object of a job.
  void AwaitNothingLeft() override;

 private:
  // Returns the folder of a claim.
  std::string FolderOf(const std::string& claim) const;
  void MakeClaim(const std::string& name);

  SimulatedHosts hosts_{2};
  KubeCluster cluster_{hosts_, {{.cpus = "64", .memory = "64Gi"}, {.cpus = "48", .memory = "64Gi"}}};
  std::map<std::string, std::string> folders_;
};

}  // namespace muster
