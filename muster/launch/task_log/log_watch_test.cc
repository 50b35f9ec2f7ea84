#include "muster/launch/task_log/log_watch.h"

#include <gmock/gmock.h>

#include "muster/base/testing/scratch_folder.h"

namespace muster::log_watch_test {
namespace {

using ::testing::Contains;

TEST(LogWatchTest, AFolderOfALocalDiskIsWatched) {
  const ScratchFolder scratch;
  LogWatch watch;
  EXPECT_EQ(watch.Add(scratch.path(), 7, /*files=*/true), LogWatch::Seen::kWatched);
  EXPECT_EQ(watch.Add(scratch.path() + "/later/logs", 8, /*files=*/false), LogWatch::Seen::kNotThere);
  scratch.Write("later/file", "");
  std::vector<size_t> changed;
  EXPECT_TRUE(watch.Changed(changed));
  EXPECT_THAT(changed, Contains(7));
  EXPECT_THAT(changed, Contains(8));
}

// inotify takes these folders, too, and says nothing of what other hosts write.
TEST(LogWatchTest, OneThatOtherHostsMayWriteIsNotTakenForWatched) {
  LogWatch watch;
  EXPECT_EQ(watch.Add("/proc/self", 7, /*files=*/true), LogWatch::Seen::kCannotWatch);
  EXPECT_EQ(watch.Add("/proc/self/later/logs", 8, /*files=*/true), LogWatch::Seen::kCannotWatch)
      << "the folder above it is such a one";
}

}  // namespace
}  // namespace muster::log_watch_test
