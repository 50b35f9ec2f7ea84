#include "muster/launch/engines/slurm/job_script.h"

#include <gmock/gmock.h>
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
  ProgramOutput Run(const std::string& supervisor) {
    scratch_.Write("muster", absl::StrCat("#!/bin/bash\nfolder=", scratch_.path(), "\n", supervisor, "\n"));
    chmod((scratch_ / "muster").c_str(), 0700);
    scratch_.Write("job.sh", JobScript(Order()));
    return *RunToItsEnd({"bash", scratch_ / "job.sh"}, {"PATH=/usr/bin:/bin"}, kPatience);
  }
  JobScriptOrder Order() const {
    return {.experiment = "4.2",
            .project = "toy",
            .options = {{"nodes", "2"}, {"signal", "B:USR2@60"}},
            .muster = scratch_ / "muster",
            .home = scratch_ / "home",
            .users_umask = 027,
            .over_file = scratch_ / "over",
            .notice_file = scratch_ / "notice"};
  }

  const ScratchFolder scratch_;
};

TEST_F(JobScriptTest, ItsLinesHaveTheOptionsInAFormThatSbatchReads) {
  JobScriptOrder order = Order();
  order.options = {{"comment", "two \"words\""}, {"exclusive", ""}, {"nodes", "2-4"}};
  order.extra = {"--gres=gpu:2"};
  const std::string script = JobScript(order);
  EXPECT_THAT(script, AllOf(HasSubstr("#SBATCH \"--comment=two \\\"words\\\"\"\n"), HasSubstr("#SBATCH --exclusive\n"),
                            HasSubstr("#SBATCH --nodes=2-4\n"), HasSubstr("#SBATCH --gres=gpu:2\n")));
}

TEST_F(JobScriptTest, AnOptionThatLacksItsValueTakesNoOther) {
  JobScriptOrder order = Order();
  order.options = {{"nodes", ""}, {"open-mode", "append"}, {"signal", "B:USR1@60"}};
  order.extra = {"--hold", "--nice=1"};
  const std::string script = JobScript(order);
  EXPECT_THAT(script, HasSubstr("#SBATCH --open-mode=append\n#SBATCH --signal=B:USR1@60\n#SBATCH --nice=1\n"
                                "#SBATCH --nodes\n#SBATCH --hold\n\n"));
}

TEST_F(JobScriptTest, TheUsersOptionsTakeThePlaceOfMusters) {
  SlurmSetting setting;
  setting.options = {{"mem", std::nullopt}, {"signal", "B:TERM@30"}, {"qos", "night"}};
  EXPECT_EQ(MergeOptions({{"mem", "1M"}, {"signal", "B:USR1@60"}, {"requeue", ""}}, setting),
            (SbatchOptions{{"signal", "B:TERM@30"}, {"qos", "night"}, {"requeue", ""}}));
}

TEST_F(JobScriptTest, ASupervisorThatComesToItsEndEndsTheJobWithItsCode) {
  const ProgramOutput output = Run("echo $* home $MUSTER_HOME $(umask); : >$folder/over; exit 137");
  EXPECT_EQ(output.status.code, 137);
  EXPECT_EQ(output.out, absl::StrCat("supervise 4.2 --in_job home ", scratch_ / "home", " 0027\n"));
  EXPECT_THAT(output.err, Not(HasSubstr("was killed")));
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

TEST_F(JobScriptTest, SignalsArePassedOnAndTheNoticeIsNoted) {
  // The script's own process is the parent of the supervisor.
  const ProgramOutput output =
      Run("trap 'echo asked; : >$folder/over; exit 5' TERM; kill -USR2 $PPID; while :; do sleep 0.05; done");
  EXPECT_EQ(output.status.code, 5) << output.err;
  EXPECT_EQ(output.out, "asked\n");
  EXPECT_TRUE(scratch_.Has("notice"));
}

TEST(NoticeSignalTest, IsThatWhichTheScriptGets) {
  EXPECT_EQ(NoticeSignal({{"signal", "B:USR1@60"}}), "USR1");
  EXPECT_EQ(NoticeSignal({{"signal", "RB:SIGTERM@60"}}), "TERM");
  EXPECT_EQ(NoticeSignal({{"signal", "B:12"}}), "12");
  EXPECT_EQ(NoticeSignal({{"signal", "USR1@60"}}), "") << "for the steps";
  EXPECT_EQ(NoticeSignal({{"signal", "B:a b"}}), "");
  EXPECT_EQ(NoticeSignal({}), "");
}

TEST(ParseTimeLimitTest, KnowsSlurmsForms) {
  EXPECT_EQ(ParseTimeLimit("90"), absl::Minutes(90));
  EXPECT_EQ(ParseTimeLimit("90:30"), absl::Minutes(90) + absl::Seconds(30));
  EXPECT_EQ(ParseTimeLimit("1:02:03"), absl::Hours(1) + absl::Minutes(2) + absl::Seconds(3));
  EXPECT_EQ(ParseTimeLimit("2-12"), absl::Hours(60));
  EXPECT_EQ(ParseTimeLimit("2-12:30"), absl::Hours(60) + absl::Minutes(30));
  for (const char* text : {"", "UNLIMITED", "1:", "1-2-3", "-5", "1:2:3:4"})
    EXPECT_EQ(ParseTimeLimit(text), std::nullopt);
}

}  // namespace
}  // namespace muster::job_script_test
