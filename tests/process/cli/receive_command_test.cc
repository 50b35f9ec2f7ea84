// `muster receive`: which folders of other jobs it removes from its host.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/agent_server/agent_folder.h"
#include "muster/launch/system/random_hex.h"
#include "tests/process/testing/process.h"

namespace muster::receive_command_test {
namespace {

class ReceiveCommand : public ::testing::Test {
 protected:
  void Receive() const {
    Process receive({BinFolder() + "/muster", "receive"},
                    {.environment = {{"XDG_CACHE_HOME", scratch_.path()}, {"HOME", scratch_.path()}}});
    EXPECT_EQ(receive.Wait(), 0) << receive.err;
  }
  // Returns the folder of this host's jobs, which the command makes.
  std::filesystem::path Works() const {
    Receive();
    return std::filesystem::directory_iterator(scratch_ / "muster/work")->path();
  }

  const ScratchFolder scratch_;
};

// A host may have several agents of a job: that of JOB-0 counts for the code of JOB.
TEST_F(ReceiveCommand, TheCodeOfAJobStaysAsLongAsAnyOfItsAgentsLives) {
  const std::string job = RandomHex(8), ended = RandomHex(8);
  const std::filesystem::path works = Works();
  for (const std::string& each : {job, ended}) std::filesystem::create_directory(works / each);
  auto agent = AgentFolder::Open(absl::StrCat(job, "-0"));
  ASSERT_TRUE(agent.ok()) << agent.status();
  ASSERT_TRUE(agent->Lock(absl::ZeroDuration()).ok());
  Receive();
  EXPECT_TRUE(std::filesystem::exists(works / job));
  EXPECT_FALSE(std::filesystem::exists(works / ended));
  agent->Remove(/*all=*/true);
  Receive();
  EXPECT_FALSE(std::filesystem::exists(works / job));
}

}  // namespace
}  // namespace muster::receive_command_test
