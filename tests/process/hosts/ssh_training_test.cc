// The digits example over several hosts, which learns there what it learns on one machine.
#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/hosts_run.h"

namespace muster::ssh_training_test {
namespace {

using ::testing::HasSubstr, ::testing::Not;

class SshTraining : public HostsRunTest {};

TEST_F(SshTraining, DigitsAreLearntOverTwoHosts) {
  const std::string report = Shared("report.json");
  const auto run = Run({"--ps", "2", "--workers", "2", "--model_dir", Shared("model")},
                       {BinFolder() + "/digits", "--csv=" + SourceFolder() + "/examples/data/digits.csv", "--steps=300",
                        "--report=" + report});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("first failure")));
  EXPECT_GE(nlohmann::json::parse(PosixFileSystem().ReadFile(report).value())["accuracy"], 0.9);
}

}  // namespace
}  // namespace muster::ssh_training_test
