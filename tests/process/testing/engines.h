// A fixture for tests of experiments that must hold on every engine: the same test runs on this machine, on hosts by
// ssh, and in jobs of a real Slurm and a real Ray, for which the experiment file says so and nothing else changes. The
// command runs on h0. Hosts by ssh see neither the project nor MUSTER_HOME. Nodes of Slurm and of Ray see both, but no
// processes of h0, which they can't reach either, Ray's head excepted, where the dashboard is; they have different
// numbers of CPUs, and an index of their own. Nothing may be left behind, on the hosts either.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/process/testing/experiments.h"
#include "tests/process/testing/not_on_hosts.h"
#include "tests/process/testing/ray_cluster.h"
#include "tests/process/testing/simulated_hosts.h"
#include "tests/process/testing/slurm_cluster.h"

namespace muster {

class OnEveryEngine : public ExperimentsTest, public ::testing::WithParamInterface<const char*> {
 protected:
  OnEveryEngine() : ExperimentsTest(BaseOf(GetParam())) {}
  // The hosts are those of the whole suite.
  static void SetUpTestSuite() {}
  static void TearDownTestSuite();
  void SetUp() override;
  void TearDown() override;

  bool on_hosts() const { return std::string(GetParam()) != "local"; }
  bool has(NotOnHosts) const { return !on_hosts(); }
  // Whether the supervisor is where the command is.
  bool is_supervised_here() const { return !on_hosts() || std::string(GetParam()) == "ssh"; }
  // Whether tasks get the variables of the command's shell: sbatch takes all of them.
  bool takes_shell() const { return !on_hosts() || std::string(GetParam()) == "slurm"; }
  // Whether the tasks are on the hosts that RunOn names, in that order. Ray takes as many of its nodes, in any order.
  bool takes_named_hosts() const { return on_hosts() && std::string(GetParam()) != "ray"; }
  // on_hosts only: h1 to h4, and h5 for the controller of Slurm. Those of Ray are others: h1, its head, and h2.
  static SimulatedHosts& hosts() { return std::string(GetParam()) == "ray" ? *OfSuite().ray_hosts : *OfSuite().hosts; }
  // Says on which of them the next muster.yml runs, more of its lines, and how long tasks go on without a supervisor;
  // h1 and h2 unless called.
  void RunOn(const std::string& hosts, const std::string& more = "", const std::string& grace = "10s") {
    file_hosts_ = hosts;
    file_more_ = more;
    file_grace_ = grace;
  }

  std::string Aside(const std::string& name) const override;
  std::vector<std::string> Command(const std::vector<std::string>& arguments) const override;
  std::string MoreOfFile() const override;

 private:
  struct Suite {
    std::unique_ptr<SimulatedHosts> hosts;
    std::unique_ptr<SlurmCluster> slurm;  // ends first
    std::unique_ptr<SimulatedHosts> ray_hosts;
    std::unique_ptr<RayCluster> ray;  // ends first
    int tests = 0;
  };
  static Suite& OfSuite();
  static void StartRay();
  // Starts what the engine needs. Returns the folder of a test; "" for one of its own.
  static std::string BaseOf(const std::string& engine);
  static std::string WhyNot(const std::string& engine);

  std::string aside_;  // on_hosts only
  std::string file_hosts_ = "h1,h2", file_more_, file_grace_ = "10s";
};

// Returns the engines, for INSTANTIATE_TEST_SUITE_P.
inline auto EveryEngine() { return ::testing::Values("local", "ssh", "slurm", "ray"); }
// Names a case by its engine.
std::string EngineName(const ::testing::TestParamInfo<const char*>& info);

}  // namespace muster
