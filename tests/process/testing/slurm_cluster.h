// A real Slurm on simulated hosts: slurmctld on h0, a slurmd on each node, with as many CPUs as the test says, and a
// munge of its own. All of it is below a folder that the hosts share, and ends with this object; what steps have left
// on a host ends with the host. Used by one thread.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/process/testing/process.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster {

struct SlurmFeatures {
  std::set<std::string> gpu_hosts = {};  // each has two GPUs that are none
  bool counts_memory = false;     // a job and a step take memory, all of the node's where they don't say how much
  bool binds_cores = false;       // a step has its cores alone; for nodes that have all CPUs of this machine
  std::string controller = "h0";  // the host of slurmctld
};

class SlurmCluster {
 public:
  // As SimulatedHosts::WhyNot.
  static std::string WhyNot();

  // `cpus`: of h1, h2, …, which are the nodes; the hosts must outlive it. Returns when the controller answers; jobs
  // wait for the nodes.
  SlurmCluster(const SimulatedHosts& hosts, const std::vector<int>& cpus, const SlurmFeatures& features = {});
  ~SlurmCluster();
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  // Returns the words that run `words` on a host as a user of this cluster, for Process.
  std::vector<std::string> On(const std::string& host, const std::vector<std::string>& words) const;
  // Returns the variable by which commands find the cluster, "SLURM_CONF=…".
  std::string variable() const { return "SLURM_CONF=" + File("slurm.conf"); }
  // Runs a client on h0 and returns what it has printed, both streams together.
  std::string Ask(const std::vector<std::string>& words) const;

  // Starts the slurmd of a node, which has been restarted.
  void StartNode(const std::string& node);
  // Gets all nodes for a new job, and returns its number.
  std::string Allocate() const;
  void Cancel(const std::string& job) const;
  // Returns the environment that salloc gives to the shell of such a job: "NAME=VALUE".
  std::vector<std::string> ShellOf(const std::string& job) const;
  // Waits until nothing but sshd and the daemons of Slurm runs on a host, as SimulatedHosts::AwaitNothingOn.
  void AwaitNothingElseOn(const std::string& host) const;
  // Returns the steps of the job that run.
  std::string StepsOf(const std::string& job) const;

 private:
  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  void WriteSettings() const;
  void Start(const std::string& host, const std::vector<std::string>& words, const std::string& until);

  const SimulatedHosts& hosts_;
  const std::vector<int> cpus_;
  const std::vector<std::string> nodes_;
  const SlurmFeatures features_;
  const std::string folder_;
  std::vector<std::unique_ptr<Process>> daemons_;
};

}  // namespace muster
