// What experiments keep on the disk is their owner's alone, and no secret of the user's shell is in it.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "muster/base/files/file_system.h"
#include "tests/process/testing/experiments.h"

namespace muster::experiment_private_test {
namespace {

using ::testing::Contains, ::testing::HasSubstr;

// The files are this machine's, whatever runs the tasks. On hosts nothing of the shell reaches the tasks
// (SshRun.OnlyWhatEnvNamesTravelsAndArrivesAsItIs).
class ExperimentPrivate : public ExperimentsTest {
 protected:
  // Returns the paths below MUSTER_HOME for which `is` is true.
  template <typename Is>
  std::vector<std::string> Below(Is is) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(home()))
      if (is(entry)) found.push_back(entry.path().lexically_relative(home()));
    return found;
  }
  std::vector<std::string> Holding(const std::string& secret) const {
    return Below([&secret](const auto& entry) {
      return entry.is_regular_file() && !entry.is_symlink() &&
             absl::StrContains(PosixFileSystem().ReadFile(entry.path()).value(), secret);
    });
  }
};

constexpr char kSecret[] = "verysecret";

TEST_F(ExperimentPrivate, ASecretOfTheShellReachesTheTasksButNoFile) {
  environment_ = {"AWS_SECRET_ACCESS_KEY=verysecret-key", "MUSTER_JOB_TOKEN=verysecret-job-token-of-this-test"};
  WriteExperiment(
      "parameters: {x: [1, 2]}\ninstall: echo built\n"
      "run: echo $X ${#AWS_SECRET_ACCESS_KEY} ${#MUSTER_JOB_TOKEN}");
  EXPECT_THAT(LinesOf(Out({"train"}), "1.2.master"), Contains("2 14 33"));
  EXPECT_THAT(LinesOf(Out({"rerun", "1.2"}), "2.master"), Contains("2 14 33")) << "of the shell that calls rerun";
  EXPECT_THAT(Holding(kSecret), ::testing::IsEmpty());
  environment_ = {"AWS_SECRET_ACCESS_KEY=other"};
  EXPECT_THAT(LinesOf(Out({"rerun", "2"}), "3.master"), Contains("2 5 64"));
}

TEST_F(ExperimentPrivate, HarmlessVariablesAreThoseOfTheFirstShell) {
  environment_ = {"OMP_NUM_THREADS=3", "NOTED=no"};
  WriteExperiment("run: echo $OMP_NUM_THREADS $NOTED");
  Out({"train"});
  environment_ = {"OMP_NUM_THREADS=5", "NOTED=now"};
  EXPECT_THAT(LinesOf(Out({"rerun", "1"}), "2.master"), Contains("3 now"));
}

TEST_F(ExperimentPrivate, AllFilesAreTheOwnersAloneInAFolderThatIsOpen) {
  std::filesystem::create_directory(home());
  std::filesystem::permissions(home(), std::filesystem::perms(0755));
  Write("program", "#!/bin/sh\numask\n");
  std::filesystem::permissions(project() + "/program", std::filesystem::perms(0755));
  WriteExperiment("parameters: {x: [1, 2]}\ninstall: touch built\nrun: ./program");
  const mode_t before = umask(022);
  const std::string shown = Out({"train"});
  const std::string again = Out({"train", "--experiment", "1.1"});
  umask(before);
  EXPECT_THAT(LinesOf(shown, "1.2.master"), Contains("0022")) << "the tasks have the user's own";
  EXPECT_THAT(LinesOf(again, "1.1.master"), Contains("0022"));
  const auto open = Below([this](const auto& entry) {
    const std::string path = entry.path().lexically_relative(home());
    // OUTPUT_DIR is for the user to share; what tasks and `install` make is theirs.
    const bool users = absl::StrContains(path, "/output") || absl::EndsWith(path, "/built");
    return !users &&
           (entry.symlink_status().permissions() & std::filesystem::perms(077)) != std::filesystem::perms::none;
  });
  EXPECT_THAT(open, ::testing::IsEmpty());
}

TEST_F(ExperimentPrivate, AHomeInWhichOthersMayWriteIsRefused) {
  std::filesystem::create_directory(home());
  std::filesystem::permissions(home(), std::filesystem::perms(0775));
  WriteExperiment("run: echo hello");
  EXPECT_THAT(Mistake({"train"}), HasSubstr("can be written by other users"));
  std::filesystem::permissions(home(), std::filesystem::perms(0755));
  Out({"train"});
}

}  // namespace
}  // namespace muster::experiment_private_test
