// A real Spark on simulated hosts: a standalone master on h1, and a worker on each host, with as many cores as the test
// says. What it writes is in the hosts' own /tmp, and ends with them; its log is beside that of the other hosts in the
// folder that all see. Drivers run on h0. Used by one thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/testing/process.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster {

class SparkCluster {
 public:
  // As SimulatedHosts::WhyNot.
  static std::string WhyNot();
  // Returns why there is no Spark on this machine, with or without simulated hosts; "" where there is one.
  static std::string WhyNoSpark();
  // A program that has pyspark, on all hosts.
  static std::string python();
  // A master, as `spark: {address: …}` takes it.
  static std::string address() { return "spark://" + SimulatedHosts::AddressOf("h1") + ":7077"; }
  static std::string address_with_secret() { return "spark://" + SimulatedHosts::AddressOf("h1") + ":7078"; }

  // `cores`: of h1, h2, …; the hosts must outlive it. `gpus`: names of devices by host, which Spark gives away though
  // there are none. Returns when the master has all workers.
  SparkCluster(const SimulatedHosts& hosts, const std::vector<int>& cores,
               const std::map<std::string, std::vector<std::string>>& gpus = {});
  ~SparkCluster();
  SparkCluster(const SparkCluster&) = delete;
  SparkCluster& operator=(const SparkCluster&) = delete;

  // Returns lines of muster.yml for a job with so many executors.
  static std::string Lines(size_t nodes);
  // Returns the variables of a command on h0, "NAME=VALUE". All that its jobs start there has them, too.
  std::vector<std::string> Variables() const;
  // Kills the master, and starts it again, with the workers and applications that it had.
  void KillMaster();
  void StartMaster();
  // Starts another master on h1, without workers, which takes only applications that have this secret. Returns when it
  // serves; it must be ended before KillMaster.
  std::unique_ptr<Process> StartMasterWithSecret(const std::string& secret) const;
  void EndMasterWithSecret(Process& master) const;
  // Returns what runs on h0 for jobs and has `text` among its words.
  std::vector<pid_t> OnH0(const std::string& text) const;
  // Kills that. Returns how many processes that are.
  int KillOnH0(const std::string& text) const;
  // Waits until no job's process is left on h0 and nothing but sshd and Spark itself runs on the other hosts, and no
  // file of an agent is left there.
  void AwaitNothingElse() const;

 private:
  // Starts a program of Spark on a host, with more variables.
  std::unique_ptr<Process> Begin(const std::string& host, const std::vector<std::string>& words,
                                 const std::vector<std::string>& variables = {}) const;
  void BeginMaster();
  void StartWorker(const std::string& host, int cores, const std::vector<std::string>& gpus);
  // Waits until a master has so many workers. `web_port`: of its page.
  void AwaitWorkers(int web_port, size_t count) const;
  void AwaitNothingElseOn(const std::string& host) const;
  std::string Mark() const { return "SPARK_TEST_MARK=" + hosts_.shared(); }

  const SimulatedHosts& hosts_;
  std::unique_ptr<Process> master_;
  std::vector<std::unique_ptr<Process>> workers_;
};

}  // namespace muster
