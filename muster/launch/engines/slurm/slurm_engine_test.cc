// The engine with an srun that a test plays: a script that writes down its words, says what the test wants said, and
// stays. The test's own connections stand for agents.
#include "muster/launch/engines/slurm/slurm_engine.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/transport/io/tcp_address.h"

namespace muster::slurm_engine_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not,
    ::testing::UnorderedElementsAre;

// Turns a hang into a failed test.
constexpr absl::Duration kHang = absl::Minutes(1);

class SlurmEngineTest : public ::testing::Test, public EngineEvents {
 protected:
  SlurmEngineTest() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(mkfifo((folder_ / "end").c_str(), 0600), 0);
    end_ = Socket(open((folder_ / "end").c_str(), O_RDWR | O_CLOEXEC));
    folder_.Write("srun", absl::StrCat("#!/bin/sh\ncd ", folder_.path(),
                                       "\necho \"$*\" >>words\nenv >environment\ncat says >&2\n"
                                       "read -r line <end\nexit 1\n"));
    folder_.Write("muster", "");
    for (const char* program : {"srun", "muster"})
      std::filesystem::permissions(folder_ / program, std::filesystem::perms::owner_all);
    folder_.Write("says", "");
    MakeEngine(RealClock());
  }
  void MakeEngine(const Clock& clock) {
    engine_ = std::make_unique<SlurmEngine>(
        SlurmEngineOptions{.hosts = {"n1", "n2"},
                           .environment = environment_,
                           .job = "job-1",
                           .muster = folder_ / "muster",
                           .folder = folder_.path(),
                           .note = [this](const std::string& line) { notes_.push_back(line); }},
        loop_, clock);
  }
  ~SlurmEngineTest() override {
    EndSruns();
    engine_.reset();
    EXPECT_FALSE(folder_.Has(".muster-job-1"));
  }
  // Lets those that have said all end, also if they come to it later.
  void EndSruns() {
    const std::string lines(8, '\n');
    EXPECT_EQ(write(end_.fd(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
  }

  void OnStream(const std::string& host, AgentStream stream) override {
    streams_.emplace_back(host, std::move(stream));
  }
  void OnNoStream(const std::string& host, const absl::Status& why) override {
    failures_.push_back(absl::StrCat(host, "| ", std::string(why.message())));
    EXPECT_EQ(absl::IsFailedPrecondition(why), absl::StrContains(why.message(), "the job has ended"));
  }
  template <typename Done>
  void RunUntil(Done done) {
    const absl::Time give_up = RealClock().Now() + kHang;
    while (!done() && RealClock().Now() < give_up) {
      loop_.RunOnce(std::min(engine_->deadline(), RealClock().Now() + absl::Milliseconds(5)));
      engine_->OnTime();
    }
    ASSERT_TRUE(done());
  }
  std::vector<std::string> Steps() const { return absl::StrSplit(folder_.Read("words"), '\n', absl::SkipEmpty()); }
  Rendezvous Meet() const { return ReadRendezvous(folder_ / ".muster-job-1").value(); }
  Socket ConnectAs(const std::string& host) const {
    const std::string address = Meet().addresses.front();
    const Endpoint to = Resolve(ParseTcpAddress(address).value(), /*numeric_only=*/true).value().front();
    Socket socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(socket.fd(), to.get(), to.length), 0) << address;
    const std::string greeting = GreetingOf(host, KeyOfHost(Meet().secret, host)) + "rest";
    EXPECT_EQ(write(socket.fd(), greeting.data(), greeting.size()), static_cast<ssize_t>(greeting.size()));
    return socket;
  }

  const ScratchFolder folder_;
  Socket end_;
  FdLoop loop_{RealClock()};
  SimulatedClock simulated_clock_{RealClock().Now()};
  std::vector<std::string> environment_ = {absl::StrCat("PATH=", folder_.path(), ":/usr/bin:/bin"), "SLURM_JOB_ID=7",
                                           "SLURM_NTASKS=9", "MUSTER_JOB_TOKEN=token"};
  std::vector<std::string> notes_;
  std::vector<std::pair<std::string, AgentStream>> streams_;
  std::vector<std::string> failures_;
  std::unique_ptr<SlurmEngine> engine_;
};

TEST_F(SlurmEngineTest, AgentsThatConnectAreHandedOverByTheirNames) {
  ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
  const Socket second = ConnectAs("n2"), first = ConnectAs("n1");
  for (const char* host : {"n1", "n2"}) engine_->Connect(host);
  EXPECT_THAT(streams_, IsEmpty()) << "it calls from the loop only";
  RunUntil([&] { return streams_.size() == 2; });
  for (const auto& [host, stream] : streams_) {
    EXPECT_EQ(stream.key, KeyOfHost(Meet().secret, host));
    EXPECT_EQ(stream.read_already, "rest");
    EXPECT_TRUE(absl::StartsWith(Meet().addresses.front(), stream.address + ":")) << stream.address;
  }
  RunUntil([&] { return Steps().size() == 1; });
  EXPECT_THAT(Steps().front(), AllOf(HasSubstr("--nodes=2"), Not(HasSubstr("--nodelist"))));
}

TEST_F(SlurmEngineTest, TheSecretIsInAFileOfTheUserAlone) {
  ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
  struct stat file;
  ASSERT_EQ(stat((folder_ / ".muster-job-1").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
  RunUntil([&] { return !folder_.Read("environment").empty(); });
  const std::string seen = folder_.Read("words") + folder_.Read("environment");
  EXPECT_THAT(seen, AllOf(Not(HasSubstr(absl::BytesToHexString(Meet().secret))), Not(HasSubstr("token")),
                          HasSubstr("SLURM_JOB_ID=7"), Not(HasSubstr("SLURM_NTASKS"))));
}

TEST_F(SlurmEngineTest, ANodeWithoutMusterIsNamedAndTheOthersAreNot) {
  folder_.Write("says",
                "srun: error: n2: task 1: Exited with exit code 2\n"
                "1: slurmstepd-n2: error: execve(): /x/muster: No such file or directory\n");
  ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
  for (const char* host : {"n1", "n2"}) engine_->Connect(host);
  RunUntil([&] { return !failures_.empty(); });
  EXPECT_THAT(failures_, ElementsAre(AllOf(HasSubstr("n2| n2 has no " + (folder_ / "muster")),
                                           HasSubstr("that all nodes see (slurmstepd-n2: error: execve()"))));
}

TEST_F(SlurmEngineTest, WhySrunFailsIsTheSameForAll) {
  folder_.Write("says", "srun: error: Unable to confirm allocation for job 7: Invalid job id specified\n");
  ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
  for (const char* host : {"n1", "n2"}) engine_->Connect(host);
  EndSruns();
  RunUntil([&] { return failures_.size() == 2; });
  const std::string why =
      "the job has ended: srun: error: Unable to confirm allocation for job 7: Invalid job id "
      "specified";
  EXPECT_THAT(failures_, UnorderedElementsAre("n1| " + why, "n2| " + why));
}

TEST_F(SlurmEngineTest, WhatKeepsSrunFromStartingAgentsIsSaid) {
  const std::string said = "srun: error: Unable to create step for job 7: Memory required by task is not available";
  folder_.Write("says", said + "\n");
  ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
  for (const char* host : {"n1", "n2"}) engine_->Connect(host);
  EndSruns();
  RunUntil([&] { return failures_.size() == 2; });
  EXPECT_THAT(failures_,
              UnorderedElementsAre("n1| no agents on the nodes: " + said, "n2| no agents on the nodes: " + said));
}

TEST_F(SlurmEngineTest, WhyAnAgentHasEndedSaysWhatToDo) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {absl::StrCat("muster: cannot read ", folder_ / ".muster-job-1", ": No such file or directory"),
       absl::StrCat("n2 doesn't see ", folder_.path(), ": start this in a folder that all nodes see (muster: cannot")},
      {"muster: can't reach the supervisor at 10.0.0.1:5: Connection refused",
       "n2 doesn't reach this machine: start this on a node, by srun --pty bash or in a script for sbatch (muster: "
       "can't"},
      {"slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.",
       "n2: its agent has ended before it connected: slurmstepd: error: Detected 1 oom_kill event in StepId=7.0."}};
  for (const auto& [said, why] : cases) {
    SCOPED_TRACE(said);
    failures_.clear();
    folder_.Write("says", absl::StrCat("srun: error: n2: task 1: Exited with exit code 1\n1: ", said, "\n"));
    MakeEngine(RealClock());
    ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
    for (const char* host : {"n1", "n2"}) engine_->Connect(host);
    RunUntil([&] { return !failures_.empty(); });
    EXPECT_THAT(failures_, ElementsAre(HasSubstr("n2| " + why)));
    EXPECT_EQ(write(end_.fd(), "\n", 1), 1);  // for this srun alone
  }
}

TEST_F(SlurmEngineTest, AnAgentThatDoesntConnectIsGivenUp) {
  MakeEngine(simulated_clock_);
  ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
  engine_->Connect("n1");
  RunUntil([&] { return Steps().size() == 1; });
  simulated_clock_.Advance(absl::Seconds(119));
  engine_->OnTime();
  EXPECT_THAT(failures_, IsEmpty());
  simulated_clock_.Advance(absl::Seconds(1));
  RunUntil([&] { return !failures_.empty(); });
  EXPECT_THAT(failures_, ElementsAre("n1| n1: its agent hasn't connected within 2m; can the node reach this host?"));
}

TEST_F(SlurmEngineTest, AControllerThatDoesntAnswerIsAskedAgain) {
  MakeEngine(simulated_clock_);
  const std::string unanswered = "Unable to confirm allocation for job 7: Socket timed out on send/recv operation";
  folder_.Write("says", absl::StrCat("srun: error: ", unanswered, "\n"));
  ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
  for (const char* host : {"n1", "n2"}) engine_->Connect(host);
  EXPECT_EQ(write(end_.fd(), "\n", 1), 1);
  RunUntil([&] { return !notes_.empty(); });
  EXPECT_THAT(notes_, ElementsAre("Slurm's controller doesn't answer; trying again (" + unanswered + ")"));
  EXPECT_EQ(Steps().size(), 1U);
  folder_.Write("says", "");
  simulated_clock_.Advance(absl::Seconds(5));
  RunUntil([&] { return Steps().size() == 2; });
  EXPECT_EQ(Steps()[0], Steps()[1]);
  const Socket first = ConnectAs("n1"), second = ConnectAs("n2");
  RunUntil([&] { return streams_.size() == 2; });
  EXPECT_EQ(streams_[0].second.last_words(), "") << "what was said of the first try is of no use then";
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(SlurmEngineTest, ANodeWhoseAgentDiesGetsAStepOfItsOwn) {
  std::filesystem::remove(folder_ / "says");
  ASSERT_EQ(mkfifo((folder_ / "says").c_str(), 0600), 0);
  ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
  engine_->Connect("n2");
  const Socket agent = ConnectAs("n2");
  RunUntil([&] { return streams_.size() == 1; });
  folder_.Write("says", "srun: error: n2: task 1: Killed\n");
  RunUntil([&] { return streams_[0].second.last_words() == " (Killed)"; });
  std::filesystem::remove(folder_ / "says");
  folder_.Write("says", "");
  engine_->Connect("n2");
  RunUntil([&] { return Steps().size() == 2; });
  EXPECT_THAT(Steps().back(), AllOf(HasSubstr("--nodes=1 "), HasSubstr("--nodelist=n2 ")));
  const Socket next = ConnectAs("n2");
  RunUntil([&] { return streams_.size() == 2; });
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(SlurmEngineTest, AStepThatWaitsSaysSo) {
  const std::string line = "srun: Job step creation temporarily disabled, retrying (Requested nodes are busy)";
  folder_.Write("says", line + "\n");
  ASSERT_EQ(engine_->Start(*this), absl::OkStatus());
  engine_->Connect("n1");
  RunUntil([&] { return !notes_.empty(); });
  EXPECT_THAT(notes_, ElementsAre(line));
}

TEST_F(SlurmEngineTest, WithoutMusterItDoesntStart) {
  std::filesystem::remove(folder_ / "muster");
  EXPECT_EQ(engine_->Start(*this).code(), absl::StatusCode::kNotFound);
}

// Otherwise it would be said of srun what is said of the user's program.
TEST_F(SlurmEngineTest, WithoutSrunItSaysThatSlurmsIsMissing) {
  std::filesystem::remove(folder_ / "srun");
  environment_ = {absl::StrCat("PATH=", folder_.path())};
  MakeEngine(RealClock());
  const absl::Status none = engine_->Start(*this);
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()), HasSubstr("there is no srun in the PATH, by which Slurm starts tasks"));
}

}  // namespace
}  // namespace muster::slurm_engine_test
