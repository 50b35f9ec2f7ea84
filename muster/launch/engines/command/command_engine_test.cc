// With a script in the place of `docker exec`, which runs its words on this machine.
#include "muster/launch/engines/command/command_engine.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/testing/hanging_script.h"
#include "muster/launch/testing/piped_program_text.h"

namespace muster::command_engine_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

constexpr char kFakeAgent[] = "#!/bin/sh\necho \"agent $*\"\nexec cat\n";

class CommandEngineTest : public ::testing::Test, public EngineEvents {
 protected:
  CommandEngineTest() {
    signal(SIGPIPE, SIG_IGN);
    Script("exec", "host=$1; shift; echo dialled >>$host.log; HOME=$PWD/$host exec \"$@\"");
    folder_.Write("muster", kFakeAgent);
    hosts_.setting.folder = folder_.path();
    hosts_.setting.start = {.argv = {"./exec", "{host}", "{agent}"}, .time_limit = absl::Hours(1)};
    hosts_.setting.state = {.argv = {"./state", "{job}", "{id}"}, .time_limit = absl::Hours(1), .gone_exit = {3}};
    hosts_.values = {{"job", "17"}};
    hosts_.ids = {{"n1", "x1"}};
    Script("state", "echo \"$*\" >>asked");
    contact_.environment = {kUsualPath};
    contact_.job = "job-1";
    contact_.muster_path = folder_ / "muster";
    contact_.muster = {.hash = "0123abcd", .bytes = std::string_view(kFakeAgent).size()};
    utsname here;
    uname(&here);
    contact_.muster_needs.machine = here.machine;
  }
  void Script(const std::string& name, const std::string& text) {
    folder_.Write(name, absl::StrCat("#!/bin/sh\n", text, "\n"));
    ASSERT_EQ(chmod((folder_ / name).c_str(), 0700), 0);
  }
  void OnStream(const std::string&, AgentStream stream) override { stream_ = std::move(stream); }
  void OnNoStream(const std::string&, const absl::Status& why) override { failure_ = why; }

  // Returns why there is no stream; OK: there is one.
  absl::Status Connect(CommandEngine& engine) {
    Begin(engine);
    return Await(engine);
  }
  void Begin(CommandEngine& engine) {
    stream_.reset();
    failure_.reset();
    engine.Connect("n1");
    engine.OnTime();
  }
  absl::Status Await(CommandEngine& engine) {
    while (!stream_.has_value() && !failure_.has_value()) {
      loop_.RunOnce(engine.deadline());
      engine.OnTime();
    }
    return failure_.value_or(absl::OkStatus());
  }

  // Lets a HangingScript come so far that it has written this file.
  void AwaitFile(const std::string& name) {
    while (folder_.Read(name).empty()) loop_.RunOnce(absl::InfiniteFuture());
  }
  // Moves the clock to the end of `limit`, and shows that nothing ends before.
  void PassLimit(CommandEngine& engine, absl::Duration limit) {
    EXPECT_EQ(engine.deadline(), clock_.Now() + limit);
    clock_.Advance(limit - absl::Milliseconds(1));
    engine.OnTime();
    EXPECT_FALSE(stream_.has_value() || failure_.has_value());
    clock_.Advance(absl::Milliseconds(1));
    engine.OnTime();
  }

  const ScratchFolder folder_;
  SimulatedClock clock_;
  FdLoop loop_{clock_};
  CommandHosts hosts_;
  ContactOptions contact_;
  std::optional<AgentStream> stream_;
  std::optional<absl::Status> failure_;
};

TEST_F(CommandEngineTest, CopiesMusterAndHandsOverTheStream) {
  CommandEngine engine(hosts_, contact_, loop_, clock_);
  ASSERT_EQ(engine.Start(*this), absl::OkStatus());
  ASSERT_EQ(Connect(engine), absl::OkStatus());
  std::string text = stream_->read_already;
  pollfd more = {stream_->in_fd, POLLIN, 0};
  while (text.find('\n') == std::string::npos && poll(&more, 1, -1) == 1 && ReadSome(more.fd, text)) {
  }
  EXPECT_EQ(text, "agent agent --attach job-1 --grace 30\n");
  EXPECT_EQ(folder_.Read("n1/.cache/muster/bin/0123abcd/muster"), kFakeAgent);
  EXPECT_EQ(folder_.Read("asked"), "") << "the first time nobody asks for its state";
}

// As ssh and pbs_tmrsh take it.
TEST_F(CommandEngineTest, ATextForAShellReachesTheAgentToo) {
  hosts_.setting.start.argv = {"./exec", "{host}", "sh", "-c", "{agent_line}"};
  CommandEngine engine(hosts_, contact_, loop_, clock_);
  ASSERT_EQ(engine.Start(*this), absl::OkStatus());
  EXPECT_EQ(Connect(engine), absl::OkStatus());
}

TEST_F(CommandEngineTest, AFailureHasTheCommandAsItCouldBeTyped) {
  Script("exec", "echo 'No such container: n1' >&2; exit 1");
  CommandEngine engine(hosts_, contact_, loop_, clock_);
  ASSERT_EQ(engine.Start(*this), absl::OkStatus());
  const absl::Status failure = Connect(engine);
  EXPECT_TRUE(absl::IsUnavailable(failure)) << failure;
  EXPECT_THAT(std::string(failure.message()),
              AllOf(HasSubstr("n1 has no agent: ./exec n1 "), HasSubstr("{agent}"),
                    HasSubstr("exited with 1 before one spoke (No such container: n1)")));
}

TEST_F(CommandEngineTest, AHostThatIsGoneIsGivenUpAtOnce) {
  CommandEngine engine(hosts_, contact_, loop_, clock_);
  ASSERT_EQ(engine.Start(*this), absl::OkStatus());
  ASSERT_EQ(Connect(engine), absl::OkStatus());
  ASSERT_EQ(Connect(engine), absl::OkStatus()) << "it is there, and is reached again";
  EXPECT_EQ(folder_.Read("asked"), "17 x1\n");
  Script("state", R"sh(echo '{"state": "E", "gone": true, "why": "preempted"}')sh");
  const absl::Status gone = Connect(engine);
  EXPECT_TRUE(absl::IsFailedPrecondition(gone)) << gone;
  EXPECT_EQ(gone.message(), "n1 is the run's no more: preempted");
  EXPECT_EQ(folder_.Read("n1.log"), "dialled\ndialled\n");
}

TEST_F(CommandEngineTest, AStartThatHangsIsKilledAndItsHostHasNoAgent) {
  hosts_.setting.start.time_limit = absl::Minutes(2);
  Script("exec", HangingScript("true"));
  CommandEngine engine(hosts_, contact_, loop_, clock_);
  ASSERT_EQ(engine.Start(*this), absl::OkStatus());
  Begin(engine);
  while (engine.LastWords("n1") != kHangs) loop_.RunOnce(absl::InfiniteFuture());
  PassLimit(engine, absl::Minutes(2));
  ASSERT_TRUE(failure_.has_value());
  EXPECT_TRUE(absl::IsDeadlineExceeded(*failure_)) << *failure_;
  EXPECT_EQ(failure_->message(), "n1 has no agent after 2m (hangs)");
  AwaitDeathOfHanging(folder_);
}

// It takes no notice of SIGTERM, so it is killed.
TEST_F(CommandEngineTest, AfterAStateThatHangsTheHostIsTriedAsIfNobodyHadBeenAsked) {
  hosts_.setting.state.time_limit = absl::Seconds(10);
  CommandEngine engine(hosts_, contact_, loop_, clock_);
  ASSERT_EQ(engine.Start(*this), absl::OkStatus());
  ASSERT_EQ(Connect(engine), absl::OkStatus());
  Script("state", HangingScript("echo asked >asked; echo asked >&2"));
  Begin(engine);
  AwaitFile(kHangs);
  EXPECT_EQ(engine.LastWords("n1"), "its state is asked");
  PassLimit(engine, absl::Seconds(10));
  AwaitFile("asked");
  EXPECT_FALSE(stream_.has_value()) << "it is asked to end first";
  PassLimit(engine, CommandRun::kEnding);
  EXPECT_EQ(Await(engine), absl::OkStatus());
  EXPECT_EQ(folder_.Read("n1.log"), "dialled\ndialled\n");
  AwaitDeathOfHanging(folder_);
}

TEST_F(CommandEngineTest, WhatAStateSaysOnceItsTimeIsOverCountsForNothing) {
  hosts_.setting.state.time_limit = absl::Seconds(10);
  CommandEngine engine(hosts_, contact_, loop_, clock_);
  ASSERT_EQ(engine.Start(*this), absl::OkStatus());
  ASSERT_EQ(Connect(engine), absl::OkStatus());
  Script("state", HangingScript("exit 3"));
  Begin(engine);
  AwaitFile(kHangs);
  PassLimit(engine, absl::Seconds(10));
  EXPECT_EQ(Await(engine), absl::OkStatus()) << "3 is one of gone_exit";
  AwaitDeathOfHanging(folder_);
}

TEST(WhyGoneTest, SaysByCodeOrByWord) {
  const CommandTemplate state{.gone_exit = {3}};
  EXPECT_EQ(WhyGone(state, {}, {R"({"state": "R"})"}), "");
  EXPECT_EQ(WhyGone(state, {.code = 3}, {R"({"state": "F"})"}), "F");
  EXPECT_EQ(WhyGone(state, {.code = 3}, {}), "its state exited with 3");
  EXPECT_EQ(WhyGone(state, {}, {"noise", R"({"gone": true, "why": "the node is down"})"}), "the node is down");
  EXPECT_EQ(WhyGone(state, {.code = 1}, {R"({"gone": true})"}), "") << "its word isn't to be trusted";
  EXPECT_EQ(WhyGone(state, {.signal = 9}, {}), "");
}

}  // namespace
}  // namespace muster::command_engine_test
