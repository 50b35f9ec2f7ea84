#include "muster/launch/engines/slurm/job_script.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/program_output.h"

namespace muster::job_script_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

constexpr absl::Duration kPatience = absl::Minutes(1);

class JobScriptTest : public ::testing::Test {
 protected:
  // Runs the script with a supervisor that does this, in a folder that the script knows as $folder.
  ProgramOutput Run(const std::string& supervisor, const std::string& path = "/usr/bin:/bin") {
    scratch_.Write("muster", absl::StrCat("#!/bin/bash\nfolder=", scratch_.path(), "\n", supervisor, "\n"));
    chmod((scratch_ / "muster").c_str(), 0700);
    scratch_.Write("job.sh", JobScript(Request()));
    return *RunToItsEnd({"bash", scratch_ / "job.sh"}, {"PATH=" + path}, kPatience);
  }
  JobRequest Request(const SbatchOptions& options = {{"nodes", "2"}, {"signal", "B:USR2@60"}},
                     const std::vector<std::string>& extra = {}) const {
    JobRequest request{.experiment = "4.2",
                       .project = "toy",
                       .muster = scratch_ / "muster",
                       .home = scratch_ / "home",
                       .folder = "folder",
                       .output_file = "out",
                       .over_file = scratch_ / "over",
                       .notice_file = scratch_ / "notice",
                       .users_umask = 027};
    request.setting.slurm = {.options = options, .extra = extra};
    return request;
  }

  const ScratchFolder scratch_;
};

TEST_F(JobScriptTest, ItsLinesHaveTheOptionsInAFormThatSbatchReads) {
  const std::string script =
      JobScript(Request({{"comment", "two \"words\""}, {"exclusive", ""}, {"nodes", "2-4"}}, {"--gres=gpu:2"}));
  EXPECT_THAT(script, AllOf(HasSubstr("#SBATCH \"--comment=two \\\"words\\\"\"\n"), HasSubstr("#SBATCH --exclusive\n"),
                            HasSubstr("#SBATCH --nodes=2-4\n"), HasSubstr("#SBATCH --gres=gpu:2\n")));
}

TEST_F(JobScriptTest, AnOptionThatLacksItsValueTakesNoOther) {
  const std::string script =
      JobScript(Request({{"nodes", ""}, {"requeue", ""}, {"signal", "B:USR1@60"}}, {"--hold", "--nice=1"}));
  EXPECT_THAT(script, HasSubstr("#SBATCH --signal=B:USR1@60\n#SBATCH --nice=1\n"
                                "#SBATCH --nodes\n#SBATCH --requeue\n#SBATCH --hold\n\n"));
}

TEST_F(JobScriptTest, ASupervisorThatComesToItsEndEndsTheJobWithItsCode) {
  const ProgramOutput output = Run("echo $* home $MUSTER_HOME $(umask); : >$folder/over; exit 137");
  EXPECT_EQ(output.status.code, 137);
  EXPECT_EQ(output.out, absl::StrCat("supervise 4.2 --in_job slurm home ", scratch_ / "home", " 0027\n"));
  EXPECT_THAT(output.err, Not(HasSubstr("was killed")));
}

TEST_F(JobScriptTest, ANodeWithoutMusterIsNamedForWhoeverLooksAtTheJob) {
  scratch_.Write("job.sh", JobScript(Request()));
  const ProgramOutput output =
      *RunToItsEnd({"bash", scratch_ / "job.sh"}, {"PATH=/usr/bin:/bin", "SLURMD_NODENAME=h1"}, kPatience);
  EXPECT_EQ(output.status.code, 2);
  const std::string why =
      absl::StrCat("h1 has no ", scratch_ / "muster", ": put muster into a folder that all nodes see\n");
  EXPECT_EQ(output.err, "muster: " + why);
  EXPECT_EQ(scratch_.Read("over"), why);
}

TEST_F(JobScriptTest, AnErrorOfTheSupervisorIsNoDeath) {
  const ProgramOutput output = Run("echo once; exit 3");
  EXPECT_EQ(output.status.code, 3);
  EXPECT_EQ(output.out, "once\n");
}

TEST_F(JobScriptTest, AKilledSupervisorIsStartedThreeTimesAgain) {
  const ProgramOutput output = Run("echo life; kill -KILL $$");
  EXPECT_EQ(output.status.code, 137);
  EXPECT_EQ(output.out, "life\nlife\nlife\nlife\n");
  EXPECT_THAT(output.err, HasSubstr("the supervisor of experiment 4.2 was killed (signal 9)"));
}

TEST_F(JobScriptTest, ASupervisorThatDiesInAJobThatEndsIsNotStartedAgain) {
  const ProgramOutput output = Run("echo life; kill -TERM $PPID; sleep 0.2; kill -KILL $$");
  EXPECT_EQ(output.out, "life\n");
}

// The script's first command is `rm`, at which there is no supervisor.
TEST_F(JobScriptTest, ASignalBeforeThereIsASupervisorReachesIt) {
  scratch_.Write("bin/rm", "#!/bin/sh\n[ -e $0.done ] || { : >$0.done; kill -TERM $PPID; }\nexec /bin/rm \"$@\"\n");
  chmod((scratch_ / "bin/rm").c_str(), 0700);
  const ProgramOutput output = Run("echo life; exec sleep 600", scratch_ / "bin" + ":/usr/bin:/bin");
  EXPECT_EQ(output.status.code, 128 + SIGTERM) << output.err;
  EXPECT_THAT(output.err, Not(HasSubstr("was killed"))) << "it isn't started again";
}

TEST_F(JobScriptTest, SignalsArePassedOnAndTheNoticeIsNoted) {
  // The script's own process is the parent of the supervisor.
  const ProgramOutput output =
      Run("trap 'echo asked; : >$folder/over; exit 5' TERM; kill -USR2 $PPID; while :; do sleep 0.05; done");
  EXPECT_EQ(output.status.code, 5) << output.err;
  EXPECT_EQ(output.out, "asked\n");
  EXPECT_TRUE(scratch_.Has("notice"));
}

// Slurm sends SIGCONT before SIGTERM, and to jobs that it lets go on.
TEST_F(JobScriptTest, ContinueIsNoNotice) {
  const ProgramOutput output = Run("trap 'echo asked' TERM; kill -CONT $PPID; echo goes on; : >$folder/over; exit 5");
  EXPECT_EQ(output.status.code, 5) << output.err;
  EXPECT_EQ(output.out, "goes on\n");
  EXPECT_FALSE(scratch_.Has("notice"));
}

// By SIGTERM somebody may cancel the job, of which the engine knows more than the script.
TEST_F(JobScriptTest, ASignalThatOthersSendTooIsNoNotice) {
  scratch_.Write("muster", absl::StrCat("#!/bin/bash\ntrap ': >", scratch_ / "over",
                                        "; exit 5' TERM; kill -TERM $PPID; while :; do sleep 0.05; done\n"));
  chmod((scratch_ / "muster").c_str(), 0700);
  scratch_.Write("job.sh", JobScript(Request({{"signal", "B:TERM@60"}})));
  EXPECT_EQ(RunToItsEnd({"bash", scratch_ / "job.sh"}, {"PATH=/usr/bin:/bin"}, kPatience)->status.code, 5);
  EXPECT_FALSE(scratch_.Has("notice"));
}

}  // namespace
}  // namespace muster::job_script_test
