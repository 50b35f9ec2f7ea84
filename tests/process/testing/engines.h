// A fixture for tests of experiments that must hold on every engine: the same test runs on this machine, on hosts by
// ssh or by a user's own commands, in jobs of a real Slurm, a real Ray and a real Spark, and in pods of a stand-in for
// Kubernetes, for which the experiment file says so and nothing else changes. The command runs on h0. Hosts by ssh,
// executors of Spark and pods see neither the project nor MUSTER_HOME. Nodes of Slurm and of Ray see both, but no
// processes of h0, which they can't reach either, Ray's head excepted, where the dashboard is; they have different
// numbers of CPUs, and an index of their own. With Slurm the suite runs once more with the command on a terminal of a
// node (slurm_pty). Nothing may be left behind, on the hosts either.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/process/testing/beds/engine_bed.h"
#include "tests/process/testing/experiments.h"
#include "tests/process/testing/not_on_engine.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster {

class OnEveryEngine : public ExperimentsTest, public ::testing::WithParamInterface<const char*> {
 protected:
  OnEveryEngine() : ExperimentsTest(NewFolder()) {}
  // The hosts are those of the whole suite.
  static void SetUpTestSuite() {}
  static void TearDownTestSuite() { EndBeds(); }
  void SetUp() override;
  void TearDown() override;

  static std::string engine() { return EngineOf(GetParam()); }
  bool on_hosts() const { return engine() != "local"; }
  bool has(NotOnEngine what) const { return !IsLeftOut(what, engine()); }
  // Whether tasks get the variables of the command's shell: sbatch takes all of them.
  bool takes_shell() const { return !on_hosts() || engine() == "slurm"; }
  // Whether the tasks are on the hosts that RunOn names, in that order. Others take as many, in any order.
  bool takes_named_hosts() const { return engine() == "ssh" || engine() == "command" || engine() == "slurm"; }
  // Whether the hosts share the folder in which `setup` leaves what it makes, where the test names it.
  bool shares_setups() const { return takes_shell() || engine() == "kubernetes"; }
  // Returns MUSTER_HOME where the supervisor is.
  std::string supervisors_home() const { return engine() == "kubernetes" ? "/muster/home" : home(); }
  // on_hosts only: h1 to h4, and h5 for the controller of Slurm. Ray, Spark and Kubernetes have others: h1 and h2.
  static SimulatedHosts& hosts() { return bed()->hosts(); }
  // Says on which of them the next muster.yml runs, more of its lines, and how long tasks go on without a supervisor;
  // h1 and h2 unless called.
  void RunOn(const std::string& hosts, const std::string& more = "", const std::string& grace = "10s") {
    file_hosts_ = hosts;
    file_more_ = more;
    file_grace_ = grace;
  }
  // From the next muster.yml on, builds and setups stay for later experiments also where pods take all with them.
  void KeepForLater() { keeps_ = true; }
  // Returns what `train` says at its start of what becomes of the tasks when this machine sleeps; "" if they are here.
  std::string AboutSleep() const;
  // Returns a line for `train` by which OUTPUT_DIR stays for another attempt; "" where it does anyway.
  std::string OutputThatStays() const;

  std::string Aside(const std::string& name) const override;
  std::vector<std::string> Command(const std::vector<std::string>& arguments) const override;
  std::string MoreOfFile() const override;

 private:
  // Null on this machine.
  static EngineBed* bed() { return BedOf(GetParam()); }
  // Makes what the engine needs. Returns the folder of a test; "" for one of its own.
  static std::string NewFolder();

  std::string aside_;  // on_hosts only
  std::string file_hosts_ = "h1,h2", file_more_, file_grace_ = "10s";
  bool keeps_ = false;
};

// Names a case by its engine, or by another place of its command.
std::string EngineName(const ::testing::TestParamInfo<const char*>& info);

}  // namespace muster
