// A real Ray on simulated hosts: the head on h1, a node on each other one, with as many CPUs as the test says. What it
// writes is in the hosts' own /tmp, and ends with them. Used by one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/testing/process.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster {

struct RayFeatures {
  // PATH of all on the nodes, where no python has Ray.
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  // CUDA_VISIBLE_DEVICES of hosts, "GPU-a,GPU-b": Ray gives these away under their names, though there are none.
  std::map<std::string, std::string> gpus = {};
};

class RayCluster {
 public:
  // As SimulatedHosts::WhyNot.
  static std::string WhyNot();
  // A program that has Ray, on all hosts.
  static std::string python();

  // `cpus`: of h1, h2, …; the hosts must outlive it. Returns when the dashboard answers and all nodes are there.
  RayCluster(const SimulatedHosts& hosts, const std::vector<int>& cpus, const RayFeatures& features = {});
  ~RayCluster();
  RayCluster(const RayCluster&) = delete;
  RayCluster& operator=(const RayCluster&) = delete;

  // Returns the dashboard's.
  static std::string address() { return "http://" + SimulatedHosts::AddressOf("h1") + ":8265"; }
  // Kills all of Ray on a host, and what it doesn't end itself stays.
  void KillOn(const std::string& host);
  // Kills the raylet of a host, and waits until Ray has noticed and ended itself there.
  void KillRayletOn(const std::string& host);
  // Starts Ray on hosts anew, the head first, and waits until the cluster has them. `settings`: more of Ray's
  // variables, "NAME=VALUE".
  void StartOn(const std::vector<std::string>& hosts, const std::vector<std::string>& settings = {});
  // Runs Ray's command on h0 and returns what it has printed, both streams together.
  std::string Ask(const std::vector<std::string>& words) const;
  // Waits until nothing but sshd and Ray itself runs on a host, and no file of an agent is left there.
  void AwaitNothingElseOn(const std::string& host) const;

 private:
  // Whether a process is one of Ray that stays when no job runs.
  static bool IsRay(const std::string& words);
  void Begin(const std::string& host, const std::vector<std::string>& settings);
  void AwaitNodes(size_t count, const std::vector<std::string>& settings) const;

  const SimulatedHosts& hosts_;
  const std::vector<int> cpus_;
  const RayFeatures features_;
  std::map<std::string, std::unique_ptr<Process>> nodes_;
};

}  // namespace muster
