// With small scripts in the places of a scheduler's commands, which note in a log what they were asked.
#include "muster/launch/engines/command/held_hosts.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/testing/hanging_script.h"
#include "muster/launch/testing/piped_program_text.h"

namespace muster::held_hosts_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::ElementsAre, ::testing::EndsWith,
    ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not, ::testing::SizeIs, ::testing::StartsWith;

constexpr char kTwoHosts[] = R"sh(echo '{"job": "17"}'; echo '{"host": "n1"}'; echo '{"host": "n2", "id": "x"}')sh";

class HeldHostsTest : public ::testing::Test {
 protected:
  HeldHostsTest() {
    signal(SIGPIPE, SIG_IGN);
    Script("release", "echo \"release $*\" >>log");
  }

  void Script(const std::string& name, const std::string& text) {
    folder_.Write(name, absl::StrCat("#!/bin/sh\n", text, "\n"));
    ASSERT_EQ(chmod((folder_ / name).c_str(), 0700), 0);
  }
  HeldOrder Order() {
    HeldOrder order{.folder = folder_ / "held",
                    .who = "experiment 4",
                    .setting = {.hosts = 2, .folder = folder_.path()},
                    .values = {{"hosts", "2"}, {"experiment", "4"}},
                    .environment = {kUsualPath}};
    order.setting.acquire = {
        .argv = {"./acquire", "{hosts}"}, .time_limit = time_limit_, .retry_exit = {75}, .refused_exit = {2}};
    order.setting.start = {.argv = {"./start", "{agent}"}, .time_limit = absl::Hours(1)};
    order.setting.release = {.argv = {"./release", "{job}"}, .time_limit = absl::Hours(1), .gone_exit = {35}};
    return order;
  }
  HeldCalls Calls() {
    return {.say = [this](const std::string& line) { said_.push_back(line); },
            .waits = [this](const std::string& why) { waits_.push_back(why); },
            .deadline = [] { return absl::InfiniteFuture(); },
            .on_time = [this] { return interrupt_ ? interrupt_() : absl::OkStatus(); }};
  }
  absl::StatusOr<std::unique_ptr<HeldHosts>> Acquire() {
    return HeldHosts::Acquire(Order(), Calls(), loop_, RealClock());
  }
  std::string MessageOfAcquire(absl::StatusCode code) {
    const absl::Status status = Acquire().status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
  std::string Log() const { return folder_.Read("log"); }
  std::vector<std::string> Left() const {
    auto names = PosixFileSystem().ListDirectory(folder_ / "held");
    return names.ok() ? *std::move(names) : std::vector<std::string>();
  }
  std::vector<std::string> GiveBack() {
    return GiveBackLeft(
        folder_ / "held", {kUsualPath}, [this](const std::string& run_id) { ended_.push_back(run_id); }, RealClock());
  }
  // Acquires in another process and kills it there (-9).
  void AcquireAndBeKilled() {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      FdLoop loop(RealClock());
      const auto held = HeldHosts::Acquire(Order(), Calls(), loop, RealClock());
      raise(held.ok() ? SIGKILL : SIGTERM);
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }

  const ScratchFolder folder_;
  FdLoop loop_{RealClock()};
  absl::Duration time_limit_ = absl::Hours(1);
  std::function<absl::Status()> interrupt_;
  std::vector<std::string> said_, waits_, ended_;
};

TEST_F(HeldHostsTest, WaitsThenHasTheHostsAndGivesThemBackOnce) {
  Script("acquire",
         absl::StrCat("[ $1 = 2 ] || exit 9\necho '{\"waits\": \"Priority\"}'\n", kTwoHosts, "\necho busy >&2"));
  auto held = Acquire();
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_THAT((*held)->hosts(), ElementsAre(Host{.name = "n1"}, Host{.name = "n2"}));
  EXPECT_THAT(waits_, ElementsAre("Priority", ""));
  EXPECT_THAT(said_, AllOf(Contains("acquire: busy"), Contains("acquire: got n2, 2 of 2")));
  const CommandHosts hosts = (*held)->ForEngine();
  EXPECT_EQ(hosts.values.at("job"), "17");
  EXPECT_EQ(hosts.ids.at("n2"), "x");
  EXPECT_EQ(Log(), "") << "it holds them";
  EXPECT_THAT(GiveBack(), IsEmpty()) << "its holder lives";
  (*held)->GiveBack([](const std::string&) {});
  held->reset();
  EXPECT_EQ(Log(), "release 17\n");
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(HeldHostsTest, TooFewHostsAreGivenBack) {
  Script("acquire", R"sh(echo '{"job": "17"}'; echo '{"host": "n1"}')sh");
  EXPECT_THAT(MessageOfAcquire(absl::StatusCode::kUnavailable),
              HasSubstr("./acquire 2 exited with 0; it had got 1 of 2 hosts"));
  EXPECT_EQ(Log(), "release 17\n");
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(HeldHostsTest, ARefusalIsOneAndAFailureIsAnother) {
  Script("acquire", "echo 'no such queue' >&2; exit 2");
  EXPECT_THAT(MessageOfAcquire(absl::StatusCode::kInvalidArgument),
              HasSubstr("the hosts are refused: ./acquire 2 exited with 2 (no such queue)"));
  Script("acquire", "exit 1");
  EXPECT_THAT(MessageOfAcquire(absl::StatusCode::kUnavailable), HasSubstr("exited with 1"));
  EXPECT_EQ(Log(), "") << "there is no job to give back";
}

TEST_F(HeldHostsTest, NotNowIsAskedAgain) {
  Script("acquire", absl::StrCat("echo asked >>log; [ $(wc -l <log) -gt 1 ] || exit 75\n", kTwoHosts));
  const auto held = Acquire();
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(Log(), "asked\nasked\n");
  EXPECT_THAT(waits_, Contains(HasSubstr("not now: ./acquire 2 exited with 75")));
}

TEST_F(HeldHostsTest, WhenItsTimeIsOverThePartIsGivenBack) {
  time_limit_ = absl::Milliseconds(300);
  Script("acquire", R"sh(echo '{"job": "17"}'; echo '{"host": "n1"}'; echo '{"waits": "Resources"}'
read line <gate)sh");
  ASSERT_EQ(mkfifo((folder_ / "gate").c_str(), 0600), 0);
  const std::string message = MessageOfAcquire(absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(message, HasSubstr("hasn't ended within"));
  EXPECT_EQ(Log(), "release 17\n") << message;
  EXPECT_THAT(message, HasSubstr("it had got 1 of 2 hosts, and waited: Resources"));
}

// Its end cuts off the line that it is about to write.
TEST_F(HeldHostsTest, AHalfLineThatItsEndLeavesIsNoMistake) {
  time_limit_ = absl::Milliseconds(300);
  Script("acquire", R"sh(printf '{"waits": "Reso'; read line <gate)sh");
  ASSERT_EQ(mkfifo((folder_ / "gate").c_str(), 0600), 0);
  EXPECT_THAT(MessageOfAcquire(absl::StatusCode::kDeadlineExceeded), HasSubstr("hasn't ended within"));
}

// A file in another encoding than UTF-8.
TEST_F(HeldHostsTest, AWordThatCantBeNotedIsRefusedBeforeAnythingIsHeld) {
  Script("acquire", absl::StrCat("echo asked >>log\n", kTwoHosts));
  HeldOrder order = Order();
  order.setting.release.argv.push_back("kn\xf6pfe");
  const absl::Status status = HeldHosts::Acquire(order, Calls(), loop_, RealClock()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(Log(), "");
}

TEST_F(HeldHostsTest, ALineThatIsNothingOfOursEndsIt) {
  Script("acquire", "echo '{\"job\": \"17\"}'; echo 'Welcome to the cluster'; read line <gate");
  ASSERT_EQ(mkfifo((folder_ / "gate").c_str(), 0600), 0);
  EXPECT_THAT(MessageOfAcquire(absl::StatusCode::kInvalidArgument),
              HasSubstr("./acquire 2: it printed 'Welcome to the cluster', which isn't a JSON object"));
  EXPECT_EQ(Log(), "release 17\n");
}

TEST_F(HeldHostsTest, AnInterruptEndsTheWaiting) {
  Script("acquire", "echo '{\"job\": \"17\"}'; read line <gate");
  ASSERT_EQ(mkfifo((folder_ / "gate").c_str(), 0600), 0);
  interrupt_ = [this] { return said_.empty() ? absl::OkStatus() : absl::CancelledError("Ctrl-C"); };
  EXPECT_EQ(MessageOfAcquire(absl::StatusCode::kCancelled), "Ctrl-C");
  EXPECT_EQ(Log(), "release 17\n");
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(HeldHostsTest, TheNextCommandGivesBackWhatAKilledOneHasHeld) {
  Script("acquire", kTwoHosts);
  AcquireAndBeKilled();
  EXPECT_EQ(Log(), "");
  EXPECT_THAT(GiveBack(), ElementsAre("gave back the hosts of experiment 4, which were still held: ./release 17"));
  EXPECT_THAT(ended_, SizeIs(1)) << "an acquire that is left";
  EXPECT_THAT(GiveBack(), IsEmpty());
  EXPECT_EQ(Log(), "release 17\n");
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(HeldHostsTest, AReleaseThatFailsIsTriedAgainByTheNextCommand) {
  Script("acquire", kTwoHosts);
  Script("release", "echo \"release $*\" >>log; echo 'the server is away' >&2; exit 1");
  {
    const auto held = Acquire();
    ASSERT_TRUE(held.ok()) << held.status();
    (*held)->GiveBack([this](const std::string& line) { said_.push_back(line); });
  }
  EXPECT_THAT(said_,
              Contains(AllOf(HasSubstr("couldn't be given back: ./release 17 exited with 1 (the server is away)"),
                             HasSubstr("the next command"))));
  EXPECT_THAT(
      GiveBack(),
      ElementsAre(AllOf(StartsWith("the hosts of experiment 4 couldn't be given back: ./release 17 exited with 1"),
                        HasSubstr("tries it again, until it works or "), EndsWith(" is removed"))));
  Script("release", "echo \"release $*\" >>log; exit 35");
  EXPECT_THAT(GiveBack(), ElementsAre(HasSubstr("gave back the hosts"))) << "they are gone already";
  EXPECT_EQ(Log(), "release 17\nrelease 17\nrelease 17\n");
  EXPECT_THAT(Left(), IsEmpty());
}

// Whether it takes notice of SIGTERM or not, and whatever it exits with then.
TEST_F(HeldHostsTest, AReleaseThatHangsIsEndedAndTriedAgainByTheNextCommand) {
  SimulatedClock clock;
  Script("acquire", kTwoHosts);
  for (const char* at_sigterm : {"echo asked >&2", "exit 35"}) {
    SCOPED_TRACE(at_sigterm);
    Script("release", HangingScript(at_sigterm));
    FdLoop loop(clock);
    HeldOrder order = Order();
    order.setting.release.time_limit = absl::Minutes(1);
    const auto held = HeldHosts::Acquire(order, Calls(), loop, clock);
    ASSERT_TRUE(held.ok()) << held.status();
    said_.clear();
    (*held)->GiveBack([&](const std::string& line) {
      said_.push_back(line);
      if (line == "release: hangs") clock.Advance(absl::Minutes(1));
      if (line == "release: asked") clock.Advance(CommandRun::kEnding);
    });
    ASSERT_THAT(said_, Not(IsEmpty()));
    EXPECT_THAT(said_.back(), ContainsRegex("^the hosts couldn't be given back: ./release 17 hasn't ended within 1m "
                                            "\\((asked|hangs)\\); the next command of muster on this machine tries"));
    AwaitDeathOfHanging(folder_);
    EXPECT_THAT(Left(), Contains(HasSubstr(".json"))) << "what is held stays noted";
    Script("release", "echo \"release $*\" >>log");
    EXPECT_THAT(GiveBack(), ElementsAre("gave back the hosts of experiment 4, which were still held: ./release 17"));
    EXPECT_THAT(Left(), IsEmpty());
  }
  EXPECT_EQ(Log(), "release 17\nrelease 17\n");
}

// Its words become commands of whoever looks.
TEST_F(HeldHostsTest, AFileThatOthersMayWriteIsNoOrder) {
  Script("acquire", kTwoHosts);
  AcquireAndBeKilled();
  for (const std::string& name : Left())
    if (name.ends_with(".json")) {
      ASSERT_EQ(chmod((folder_ / ("held/" + name)).c_str(), 0666), 0);
    }
  EXPECT_THAT(GiveBack(), IsEmpty());
  EXPECT_EQ(Log(), "");
}

}  // namespace
}  // namespace muster::held_hosts_test
