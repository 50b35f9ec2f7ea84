#include "muster/train/saving/lost_steps.h"

#include <gmock/gmock.h>

#include "muster/base/files/memory_file_system.h"

namespace muster::lost_steps_test {
namespace {

using ::testing::EndsWith, ::testing::HasSubstr, ::testing::Not;

std::string Said(bool is_chief, const std::string& directory) {
  MemoryFileSystem files;
  EXPECT_EQ(files.CreateDirectory("/empty"), absl::OkStatus());
  const absl::Status status =
      NamingLostSteps(absl::UnavailableError("worker:1 has died"), files, directory, 9, is_chief);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker:1 has died; at global step 9, of which "));
  return std::string(status.message());
}

TEST(LostSteps, TheChiefKnowsThatThereIsNoCheckpoint) {
  EXPECT_THAT(Said(true, ""), HasSubstr("all are lost"));
  EXPECT_THAT(Said(true, "/empty"), HasSubstr("all are lost"));
}

// The chief's folder may be on another host.
TEST(LostSteps, WhoSeesNoCheckpointDoesNotSayThatThereIsNone) {
  for (const std::string directory : {"", "/empty"}) {
    EXPECT_THAT(Said(false, directory), Not(HasSubstr("all are lost")));
    EXPECT_THAT(Said(false, directory), HasSubstr("those since the chief's last checkpoint are lost; this task "));
  }
  EXPECT_THAT(Said(false, ""), EndsWith("has no checkpoint_dir"));
  EXPECT_THAT(Said(false, "/empty"), EndsWith("sees none in /empty"));
}

}  // namespace
}  // namespace muster::lost_steps_test
