// A fixture for tests of `muster train --on kubernetes` with the real kubectl and a stand-in for a cluster of two
// nodes, which all tests share. Pods see neither the project nor MUSTER_HOME of the test.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/process/testing/job_experiments.h"
#include "tests/process/testing/kube_cluster.h"

namespace muster {

class KubernetesExperiment : public JobExperiments {
 protected:
  KubernetesExperiment() : JobExperiments(NewFolder()) {}
  static void TearDownTestSuite() { OfSuite().reset(); }
  void SetUp() override {
    if (const std::string why = KubeCluster::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  }
  // Takes all faults away, and waits until nothing of a job is left.
  void TearDown() override;

  static SimulatedHosts& hosts() { return OfSuite()->hosts; }
  static KubeCluster& cluster() { return OfSuite()->cluster; }

  std::vector<std::string> Command(const std::vector<std::string>& arguments) const override {
    return cluster().OnH0(ExperimentsTest::Command(arguments));
  }
  std::string MoreOfFile() const override;
  // Sets faults; TearDown takes these away.
  static void SetFaults(const std::string& json) { cluster().Script("faults", json); }
  // Has this befall a pod of experiment 1: "evict", "kill", "oom", "preempt". `suffix`: "-h0"; "" is the supervisor's.
  void Strike(const std::string& how, const std::string& suffix);
  // Makes the service account "trainer", which may make pods.
  static void MakeTrainer();
  // Returns the names of all objects that a job has made, with their kinds, in lines.
  static std::string LeftOfJobs();
  // Waits until this experiment has found no room so often.
  void AwaitTries(const std::string& id, int count);
  // Waits until there are no more of them.
  static void AwaitNothingLeft();
  // Waits until there is no object of a kind any more, and returns the names of those that stay.
  static std::string AwaitNone(const std::string& kind);
  // Runs a line of shell in a pod of experiment 1.
  std::string InPod(const std::string& suffix, const std::string& line);
  // Lets the tasks end that wait for it.
  void LetEnd() const;

  // Returns a name of this test's own, and where this machine sees a file of the claim "gate", which is /gate in pods.
  static std::string Gate();
  static std::string InClaim(const std::string& name);
  // What a task does until LetEnd. It has a child of another session without a variable, which may not outlive it.
  std::string UntilStop() const;

  std::string pods_ = "nodes: 2";  // more keys of `kubernetes`

 private:
  struct Suite {
    Suite();
    SimulatedHosts hosts{2};
    KubeCluster cluster{hosts, {{.gpus = "2"}, {.gpus = "2"}}};
    std::string claim;  // the folder of the claim "gate", which all pods see
    int tests = 0;
  };
  static std::unique_ptr<Suite>& OfSuite();
  static std::string NewFolder();
};

}  // namespace muster
