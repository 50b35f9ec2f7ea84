// A cluster on this machine whose processes a test starts one by one, as a user does in several terminals: its
// addresses, and the flags that tell each process its task.
#pragma once

#include <string>
#include <vector>

#include "muster/base/net/free_ports.h"
#include "muster/cluster/cluster_spec.h"
#include "tests/process/testing/process.h"

namespace muster {

class ByHand {
 public:
  // With `chief` the chief has its own job; otherwise it is worker 0.
  ByHand(int ps, int workers, bool chief = false);

  const std::string& ps_address(int index) const { return addresses_[static_cast<size_t>(index)]; }

  // Returns what a user types after the program: --ps_hosts, --worker_hosts, …, --job_name, --task_index. Frees the
  // port reserved for a ps (without ps, for a worker), so call it just before the start.
  std::vector<std::string> Flags(const std::string& job, int index);
  // Returns the same as a value of TF_CONFIG.
  std::string TfConfig(const std::string& job, int index, const std::string& model_dir = "");

 private:
  void ReleasePort(const std::string& job, int index);

  FreePorts ports_;
  std::vector<std::string> addresses_;  // ps, chief, workers
  const int first_worker_;              // index into addresses_, for clusters without ps
  const int ps_;
  std::vector<bool> held_;
  ClusterSpec cluster_;
};

// The stand-alone ps of a cluster; it serves once this is constructed.
class ServingPs : public Process {
 public:
  ServingPs(ByHand& cluster, int index, const std::vector<std::string>& flags = {}, const ProcessOptions& options = {});
};

// Returns `words` followed by `more`.
std::vector<std::string> Joined(std::vector<std::string> words, const std::vector<std::string>& more);

}  // namespace muster
