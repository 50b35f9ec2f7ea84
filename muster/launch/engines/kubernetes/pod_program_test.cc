#include "muster/launch/engines/kubernetes/pod_program.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/program_output.h"

namespace muster::pod_program_test {
namespace {

using ::testing::ContainsRegex, ::testing::HasSubstr;

constexpr absl::Duration kHang = absl::Minutes(1);

// Runs the programs of pods with a muster that the test writes; their folders are in a scratch one.
class PodProgramTest : public ::testing::Test {
 protected:
  // $1 is the word behind `muster`.
  ProgramOutput Supervise(const std::string& muster) const {
    return Run(SupervisorProgram({.muster = scratch_ / "program",
                                  .experiment = "1.2",
                                  .over_file = scratch_ / "over",
                                  .output_file = scratch_ / "out",
                                  .await = absl::Seconds(60),
                                  .keep = absl::Hours(1),
                                  .grace = absl::Hours(2)}),
               muster);
  }
  ProgramOutput Run(const std::string& program, const std::string& muster) const {
    scratch_.Write("secret/rendezvous", "secret\n");
    scratch_.Write("own/x", "");
    scratch_.Write("program", absl::StrCat("#!/bin/sh\nfolder=", scratch_.path(), "\necho \"$@\" >>$folder/words\n",
                                           muster, "\n"));
    chmod((scratch_ / "program").c_str(), 0700);
    const std::string placed = absl::StrReplaceAll(program, {{"/etc/muster", scratch_ / "secret"},
                                                             {" /muster/", absl::StrCat(" ", scratch_ / "own/")},
                                                             {">/muster/", absl::StrCat(">", scratch_ / "own/")},
                                                             {"</muster/", absl::StrCat("<", scratch_ / "own/")}});
    return *RunToItsEnd({"sh", "-c", placed}, {"PATH=/usr/bin:/bin", "HOME=/", "MUSTER_POD_HOST=h0"}, kHang);
  }

  const ScratchFolder scratch_;
};

TEST_F(PodProgramTest, TheSupervisorIsAwaitedRunAndFetched) {
  const ProgramOutput output = Supervise(
      "case \"$*\" in supervise*) : >$folder/over; echo said; exit 3;;\n"
      "*linger*) until grep -qs said $folder/out; do :; done; esac");
  EXPECT_EQ(output.status.code, 3) << output.err;
  EXPECT_EQ(scratch_.Read("words"),
            "home await 1.2 --patience 60\nsupervise 1.2 --in_job kubernetes\nhome linger 1.2 --keep 3600\n");
  EXPECT_EQ(scratch_.Read("own/rendezvous"), "secret\n");
  struct stat info {};
  ASSERT_EQ(stat((scratch_ / "own/rendezvous").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0U);
}

TEST_F(PodProgramTest, ASupervisorThatIsKilledIsFollowedByThreeOthers) {
  const ProgramOutput output = Supervise("case $1 in supervise) kill -9 $$; esac");
  EXPECT_EQ(output.status.code, 137) << output.err;
  EXPECT_THAT(scratch_.Read("words"), HasSubstr("supervise 1.2 --in_job kubernetes\nsupervise 1.2 --in_job "
                                                "kubernetes\nsupervise 1.2 --in_job kubernetes\nsupervise 1.2 --in_job "
                                                "kubernetes\nhome linger"));
}

TEST_F(PodProgramTest, WithoutAnExperimentNothingIsSupervised) {
  const ProgramOutput output = Supervise("exit 5");
  EXPECT_EQ(output.status.code, 5) << output.err;
  EXPECT_EQ(scratch_.Read("words"), "home await 1.2 --patience 60\n");
}

// The played supervisor signals the shell, and ends by the signal that it then gets itself.
TEST_F(PodProgramTest, TheEndOfThePodAsksTheSupervisorAndShortensTheWait) {
  const auto run = [&](const std::string& signal) {
    const ProgramOutput output =
        Supervise(absl::StrCat("trap 'kill $nap; echo told >>$folder/words; : >$folder/over; exit 4' TERM\n",
                               "case $1 in supervise) sleep 60 & nap=$!; kill -", signal, " $PPID; wait $nap; esac"));
    EXPECT_EQ(output.status.code, 4) << output.err;
  };
  run("TERM");
  EXPECT_THAT(scratch_.Read("words"), ContainsRegex("told\nhome linger 1.2 --keep 7[0-9][0-9][0-9]\n"))
      << "what is left of the grace";
  unlink((scratch_ / "over").c_str());
  run("USR1");
  EXPECT_THAT(scratch_.Read("words"), HasSubstr("told\nhome linger 1.2 --keep 3600\n")) << "a kill isn't a deletion";
}

TEST_F(PodProgramTest, TheEndOfThePodWhileItWaitsForTheReaderLeavesTheRestOfTheGrace) {
  const ProgramOutput output = Supervise(
      "trap 'kill $nap; exit 9' TERM\n"
      "case \"$*\" in supervise*) : >$folder/over; exit 3;;\n"
      "*\"--keep 3600\") sleep 60 & nap=$!; kill -TERM $PPID; wait $nap;; esac");
  EXPECT_EQ(output.status.code, 3) << output.err;
  EXPECT_THAT(scratch_.Read("words"),
              ContainsRegex("home linger 1.2 --keep 3600\nhome linger 1.2 --keep 7[0-9][0-9][0-9]\n"));
}

// A played wait asks the shell for the run's end again and again, and would end by SIGTERM if that were passed on.
TEST_F(PodProgramTest, AnAskForTheEndReachesNeitherTheWaitForTheExperimentNorThatForTheReader) {
  const ProgramOutput output = Supervise(
      "trap 'echo \"$2 told\" >>$folder/words; exit 9' TERM\n"
      "case \"$*\" in supervise*) : >$folder/over; exit 3;; esac\n"
      "for i in 1 2 3 4 5 6 7 8 9; do kill -USR1 $PPID; /bin/true; done; echo \"$2 ends\" >>$folder/words");
  EXPECT_EQ(output.status.code, 3) << output.err;
  EXPECT_EQ(scratch_.Read("words"),
            "home await 1.2 --patience 60\nawait ends\nsupervise 1.2 --in_job kubernetes\n"
            "home linger 1.2 --keep 3600\nlinger ends\n");
}

TEST_F(PodProgramTest, TheAgentReadsTheSecretAndItsHostsName) {
  const ProgramOutput output = Run(AgentProgramOfPod({.muster = scratch_ / "program",
                                                      .run = "ab",
                                                      .grace = absl::Seconds(30),
                                                      .first = absl::Minutes(20),
                                                      .ending = absl::Seconds(25)}),
                                   "exit 7");
  EXPECT_EQ(output.status.code, 7) << output.err;
  EXPECT_EQ(scratch_.Read("words"),
            absl::StrCat("agent --serve ab --host_variable MUSTER_POD_HOST --rendezvous ", scratch_ / "own/rendezvous",
                         " --grace 30 --first 1200 --ending 25 --passes_signals\n"));
}

TEST(InPodHomeTest, AFileOfTheHomeIsInThePodsHome) {
  EXPECT_EQ(InPodHome("/u/.muster/experiments/1/job_over", "/u/.muster"), "/muster/home/experiments/1/job_over");
}

}  // namespace
}  // namespace muster::pod_program_test
