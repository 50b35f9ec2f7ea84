// A fixture for tests of experiments that must hold on every engine: the same test runs on this machine and on hosts by
// ssh, for which the experiment file says so and nothing else changes. The command runs on h0, and the hosts see
// neither the project nor MUSTER_HOME. Nothing may be left behind, on the hosts either.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/process/testing/experiments.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster {

class OnEveryEngine : public ExperimentsTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // The hosts are those of the whole suite.
  static void SetUpTestSuite() {}
  static void TearDownTestSuite();
  void SetUp() override;
  void TearDown() override;

  bool on_hosts() const { return std::string(GetParam()) != "local"; }
  // h1 to h4; on_hosts only.
  static SimulatedHosts& hosts() { return *OfSuite(); }
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
  static std::unique_ptr<SimulatedHosts>& OfSuite();

  std::string aside_;  // on_hosts only
  std::string file_hosts_ = "h1,h2", file_more_, file_grace_ = "10s";
};

// Returns the engines, for INSTANTIATE_TEST_SUITE_P.
inline auto EveryEngine() { return ::testing::Values("local", "ssh"); }
// Names a case by its engine.
std::string EngineName(const ::testing::TestParamInfo<const char*>& info);

}  // namespace muster
