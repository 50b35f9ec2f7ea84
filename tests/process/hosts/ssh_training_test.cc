// The digits example over several hosts, which learns there what it learns on one machine.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/hosts_run.h"

namespace muster::ssh_training_test {
namespace {

using ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not;

std::string SixOf(const std::string& host) { return "fd77::1" + host.substr(1); }

class SshTraining : public HostsRunTest {
 protected:
  // Gives h0 and the hosts an address of IPv6 each beside the other one. Skips the test where there is no IPv6.
  void AddSix() {
    for (const std::string host : {"h0", "h1", "h2"}) {
      Process add(hosts().On(host, {"ip", "addr", "add", SixOf(host) + "/64", "dev", "eth0", "nodad"}));
      if (add.Wait() != 0) GTEST_SKIP() << NoTestBecause("this machine has no IPv6: " + add.err);
    }
  }
  // Trains for a few steps on h1 and h2, which ssh reaches at these addresses.
  std::unique_ptr<Process> TrainAt(const std::map<std::string, std::string>& addresses) {
    const std::string config = Shared("ssh_config");
    std::ofstream file(config);
    for (const auto& [host, address] : addresses)
      file << "Host " << host << "\nHostName " << address << "\nHostKeyAlias " << host << "\n";
    file << "Host *\nInclude " << hosts().ssh_config() << "\n";
    file.close();
    return Run(
        {"--hosts", "h1,h2", "--ssh-config", config, "--ps", "1", "--workers", "2", "--model_dir", Shared("model")},
        {BinFolder() + "/digits", "--csv=" + SourceFolder() + "/examples/data/digits.csv", "--steps=20"});
  }
};

TEST_F(SshTraining, DigitsAreLearntOverTwoHosts) {
  const std::string report = Shared("report.json");
  const auto run = Run({"--ps", "2", "--workers", "2", "--model_dir", Shared("model")},
                       {BinFolder() + "/digits", "--csv=" + SourceFolder() + "/examples/data/digits.csv", "--steps=300",
                        "--report=" + report});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("first failure")));
  EXPECT_GE(nlohmann::json::parse(PosixFileSystem().ReadFile(report).value())["accuracy"], 0.9);
}

// Two tasks that compute and the ps share one host's processors, the third has the other host's for itself.
TEST_F(SshTraining, TheTasksOfEachHostShareItsProcessors) {
  const auto run = Run(
      {"--ps", "1", "--workers", "3", "--model_dir", Shared("model")},
      {BinFolder() + "/digits", "--csv=" + SourceFolder() + "/examples/data/digits.csv", "--steps=20", "--threads=0"});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  for (const std::string worker : {"0", "2"})
    EXPECT_THAT(run->err, ContainsRegex("\\[worker:" + worker + "\\] .*tasks on this host: 2 computing, 1 ps"));
  EXPECT_THAT(run->err, ContainsRegex("\\[worker:1\\] .*tasks on this host: 1 computing, 0 ps"));
}

TEST_F(SshTraining, HostsThatHaveNothingButIPv6TrainTogether) {
  AddSix();
  if (IsSkipped()) return;
  for (const std::string host : {"h0", "h1", "h2"}) {
    Process flush(hosts().On(host, {"ip", "-4", "addr", "flush", "dev", "eth0"}));
    EXPECT_EQ(flush.Wait(), 0) << flush.err;
  }
  const auto run = TrainAt({{"h1", SixOf("h1")}, {"h2", SixOf("h2")}});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, ContainsRegex("worker:1 is process [0-9]+ on h2 at \\[fd77::12\\]:[0-9]+\n"));
}

// Each host is told at the address at which ssh reaches it, and the tasks of both reach each other there.
TEST_F(SshTraining, HostsOfBothFamiliesTrainTogether) {
  AddSix();
  if (IsSkipped()) return;
  const auto run = TrainAt({{"h1", SixOf("h1")}, {"h2", SimulatedHosts::AddressOf("h2")}});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, ContainsRegex("ps:0 is process [0-9]+ on h1 at \\[fd77::11\\]:[0-9]+\n"));
  EXPECT_THAT(run->err, ContainsRegex("worker:1 is process [0-9]+ on h2 at 10\\.77\\.0\\.12:[0-9]+\n"));
}

class SshRoles : public HostsRunTest {
 protected:
  SshRoles() : HostsRunTest(/*hosts=*/4) {}
};

// The chief's host has the ps, too; the workers and the evaluator have hosts of their own.
TEST_F(SshRoles, AnEvaluatorOnAnotherHostSeesTheCheckpointsOfASharedFolder) {
  const auto run = Run(
      {"--hosts", "h1,h2,h3,h4", "--ssh-config", hosts().ssh_config(), "--ps", "1", "--chief", "1", "--workers", "2",
       "--evaluator", "--model_dir", Shared("model")},
      {BinFolder() + "/train_and_evaluate", "--csv=" + SourceFolder() + "/examples/data/digits.csv", "--steps=2000"});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, HasSubstr("evaluator:0 is process"));
  const size_t said = run->err.rfind("accuracy = ");
  ASSERT_NE(said, std::string::npos) << run->err;
  const double accuracy = std::stod(run->err.substr(said + 11));
  EXPECT_GE(accuracy, 0.98) << run->err;
}

}  // namespace
}  // namespace muster::ssh_training_test
