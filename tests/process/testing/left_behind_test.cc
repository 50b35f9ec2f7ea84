#include "tests/process/testing/left_behind.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/process/testing/killed_processes.h"

namespace muster::left_behind_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

class LeftBehindTest : public ::testing::Test {
 protected:
  // Starts a process that has made a file of that name and keeps it open.
  static pid_t StartOneThatMakes(const std::string& path) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t pid = Fork([&] {
      const int fd = open(path.c_str(), O_CREAT | O_RDWR, 0600);
      if (fd < 0 || write(ready[1], "y", 1) != 1) _exit(1);
      for (;;) pause();
    });
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
  }
  static void Kill(pid_t pid) {
    kill(pid, SIGKILL);
    EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  }

  const std::string name_ = "/dev/shm/left_behind_test-" + std::to_string(getpid());
};

TEST_F(LeftBehindTest, WhatADeadProcessHasMadeIsFoundAndWhatALivingOneHasOpenIsNot) {
  const std::string older = name_ + "-older";
  const pid_t first = StartOneThatMakes(older);
  Kill(first);
  {
    const LeftBehind left_behind;
    EXPECT_THAT(left_behind.Entries(), IsEmpty());
    const pid_t pid = StartOneThatMakes(name_);
    EXPECT_THAT(left_behind.Entries(), IsEmpty()) << "it may belong to another program";
    Kill(pid);
    EXPECT_THAT(left_behind.Entries(), ElementsAre(name_));
    unlink(name_.c_str());
  }
  unlink(older.c_str());
}

TEST_F(LeftBehindTest, WhatIsLeftInTheFolderForTemporaryFilesIsFound) {
  const std::string outside = testing::TempDir();
  {
    const LeftBehind left_behind;
    const std::string file = std::string(getenv("TMPDIR")) + "/file";
    Kill(StartOneThatMakes(file));
    EXPECT_THAT(left_behind.Entries(), ElementsAre(file));
    unlink(file.c_str());
  }
  EXPECT_EQ(testing::TempDir(), outside);
}

}  // namespace
}  // namespace muster::left_behind_test
