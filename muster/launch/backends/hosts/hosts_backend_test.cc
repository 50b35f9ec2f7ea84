#include "muster/launch/backends/hosts/hosts_backend.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/net/free_ports.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/testing/loop_engine.h"

namespace muster::hosts_backend_test {
namespace {

using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::Each, ::testing::ElementsAre,
    ::testing::HasSubstr, ::testing::IsEmpty;

const TaskId kTask{kWorkerJob, 0};
const TaskId kOther{kWorkerJob, 1};
const TaskId kBoard{"tensorboard", 0};

// One host, "a", whose agent is in this process; more are named by the tests.
class HostsBackendTest : public ::testing::Test, public BackendEvents {
 protected:
  HostsBackendTest() : HostsBackendTest(RealClock()) {}
  explicit HostsBackendTest(const Clock& clock) : loop_(clock) {
    options_.clock = &clock;
    signal(SIGPIPE, SIG_IGN);
    options_.plan = {.hosts = {{.name = "a"}}, .placement = {{kTask, "a"}, {kOther, "a"}}};
    options_.plan.grace = kLeastGrace;
    options_.note = [this](const std::string& line) { notes_.push_back(line); };
  }
  ~HostsBackendTest() override {
    if (backend_ != nullptr) backend_->Stop();
  }

  LoopEngine& Start(bool over_tcp = false) {
    AgentLimits limits;
    limits.grace = options_.plan.grace;
    auto made = std::make_unique<LoopEngine>(options_.run_id, options_, limits, loop_, over_tcp);
    LoopEngine& engine = *made;
    engine.agents_clock = agents_clock_;
    backend_ = std::make_unique<HostsBackend>(options_, std::move(made), loop_, *this);
    EXPECT_EQ(backend_->Start(), absl::OkStatus());
    return engine;
  }
  void Round() {
    loop_.RunOnce(backend_->deadline());
    backend_->OnTime();
  }
  void Await(const std::string& line) {
    const absl::Time hang = RealClock().Now() + absl::Minutes(1);
    while (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) {
      ASSERT_LT(RealClock().Now(), hang) << line << " hasn't come";
      Round();
    }
  }
  void Launch(const TaskId& task, const std::string& script) {
    backend_->Launch(
        {.task = task, .arguments = {"/bin/sh", "-c", script}, .environment = {{kRunIdVariable, options_.run_id}}});
  }

  void OnReserved(const TaskId& task, const std::vector<std::string>& addresses) override {
    lines_.push_back(absl::StrCat(task.ToString(), " has ", addresses.size(), " ports"));
    if (!addresses.empty()) port_ = static_cast<uint16_t>(std::stoi(addresses[0].substr(addresses[0].rfind(':') + 1)));
  }
  void OnNotReserved(const TaskId& task, const absl::Status& why) override {
    lines_.push_back(absl::StrCat(task.ToString(), " has no ports: ", std::string(why.message())));
  }
  void OnStarted(const TaskId& task, const LocalProcess& process) override {
    EXPECT_EQ(process.pid > 0, task == kBoard);
    EXPECT_EQ(process.pid_on_host > 0, task != kBoard && !(may_have_ended_ && process.pid_on_host == 0));
    pids_[task] = static_cast<pid_t>(process.pid_on_host);
    lines_.push_back(absl::StrCat(task.ToString(), " runs on ", process.host));
  }
  void OnNotStarted(const TaskId& task, const absl::Status& why) override {
    lines_.push_back(absl::StrCat(task.ToString(), " isn't started: ", std::string(why.message())));
  }
  void OnOutput(const TaskId& task, OutputStream, std::string_view bytes) override { out_[task] += bytes; }
  void OnExit(const TaskId& task, const ExitStatus& status) override {
    lines_.push_back(absl::StrCat(task.ToString(), " ", status.ToString()));
  }
  void OnOutOfReach(const TaskId& task) override {
    lines_.push_back(absl::StrCat(task.ToString(), " is out of reach"));
  }

  BackendOptions options_{.run_id = RandomHex(8), .environment = {"PATH=/usr/bin:/bin"}};
  FdLoop loop_;
  const Clock* agents_clock_ = &RealClock();
  std::unique_ptr<HostsBackend> backend_;
  uint16_t port_ = 0;  // reserved last
  std::vector<std::string> lines_;
  std::vector<std::string> notes_;
  std::map<TaskId, std::string> out_;
  std::map<TaskId, pid_t> pids_;
  bool may_have_ended_ = false;  // by the time at which it is known to have been started
};

TEST_F(HostsBackendTest, HostsThatCantBeUsedAreAllNamedBeforeAnythingIsReserved) {
  options_.plan.hosts.push_back({.name = "b"});
  options_.plan.hosts.push_back({.name = "c"});
  LoopEngine& engine = Start();
  engine.unreachable = {{"b", "b is off"}, {"c", "c knows you not"}};
  backend_->Reserve(kTask, {0});
  Await("worker:0 has no ports: b is off\nc knows you not");
  EXPECT_EQ(lines_.size(), 1U);
}

class StreamTest : public HostsBackendTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(HostsBackend, StreamTest, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "Tcp" : "UnixSocket"; });

TEST_P(StreamTest, BrokenCostsNothing) {
  LoopEngine& engine = Start(GetParam());
  backend_->Reserve(kTask, {0});
  Await("worker:0 has 1 ports");
  Launch(kTask, "echo before; exec sleep 1000");
  Await("worker:0 runs on a");
  for (int i = 0; i < 5; ++i) {
    engine.Cut("a");
    Launch(kOther, absl::StrCat("exit ", i));
    Await(absl::StrCat("worker:1 ", ExitStatus{.code = i}.ToString()));
  }
  backend_->End(kTask, EndMode::kAtOnce);
  Await(absl::StrCat("worker:0 ", ExitStatus{.signal = SIGKILL}.ToString()));
  EXPECT_THAT(notes_, ElementsAre("reaching 1 host"));
}

// An agent obeys nobody who doesn't know the run's secret.
TEST_F(HostsBackendTest, WithAnotherSecretAnAgentIsNotReached) {
  LoopEngine& engine = Start(/*over_tcp=*/true);
  engine.other_secret = "guessed";
  backend_->Reserve(kTask, {0});
  for (int i = 0; i < 200 && lines_.empty(); ++i) Round();
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("it belongs to another job")));
}

TEST_F(HostsBackendTest, ATaskWithoutAPlaceRunsHere) {
  Start();
  backend_->Reserve(kBoard, {0});
  Await("tensorboard:0 has 1 ports");
  Launch(kBoard, "echo here; exit 3");
  Await(absl::StrCat("tensorboard:0 ", ExitStatus{.code = 3}.ToString()));
  EXPECT_THAT(lines_, Contains("tensorboard:0 runs on "));
  EXPECT_EQ(out_[kBoard], "here\n");
}

// Supervisors that come one after the other, with the same agents.
class SupervisorsTest : public HostsBackendTest {
 protected:
  // Gives streams to the agents of another engine, which outlives it.
  class SharedEngine final : public Engine {
   public:
    explicit SharedEngine(LoopEngine& engine) : engine_(engine) {}
    absl::Status Start(EngineEvents& events) override { return engine_.Start(events); }
    void Connect(const std::string& host) override { engine_.Connect(host); }
    absl::Time deadline() const override { return engine_.deadline(); }
    void OnTime() override { engine_.OnTime(); }

   private:
    LoopEngine& engine_;
  };

  ~SupervisorsTest() override {
    if (backend_ != nullptr) backend_->Stop();
    backend_.reset();
  }
  // The supervisor before is killed, if there was one: it says nothing to anybody.
  void Next() {
    options_.plan.supervisor = backend_ == nullptr ? 1 : options_.plan.supervisor + 1;
    backend_.reset();
    lines_.clear();
    out_.clear();
    backend_ = std::make_unique<HostsBackend>(options_, std::make_unique<SharedEngine>(engine_), loop_, *this);
    EXPECT_EQ(backend_->Start(), absl::OkStatus());
  }
  void AwaitOutput(const TaskId& task, const std::string& text) {
    const absl::Time hang = RealClock().Now() + absl::Minutes(1);
    while (out_[task] != text) {
      ASSERT_LT(RealClock().Now(), hang) << out_[task];
      Round();
    }
  }

  const ScratchFolder folder_;
  LoopEngine engine_{options_.run_id, options_, {.grace = kLeastGrace}, loop_};
};

TEST_F(SupervisorsTest, TheNextGoesOnWithWhatRuns) {
  const std::string gate = folder_ / "gate";
  Next();
  backend_->Reserve(kTask, {0});
  Await("worker:0 has 1 ports");
  Launch(kTask, absl::StrCat("echo one; until [ -e ", gate, " ]; do sleep 0.01; done; echo two; exit 7"));
  AwaitOutput(kTask, "one\n");
  Next();
  backend_->TakeOver({.task = kTask, .ports = {port_}, .written_stdout = 4});
  Await("worker:0 runs on a");
  Next();
  backend_->TakeOver({.task = kTask, .ports = {port_}, .written_stdout = 2});
  Await("worker:0 runs on a");
  std::ofstream(gate) << "";
  Await(absl::StrCat("worker:0 ", ExitStatus{.code = 7}.ToString()));
  EXPECT_THAT(out_[kTask], AnyOf("e\ntwo\n", "two\n")) << "what was acknowledged doesn't come again";
  EXPECT_EQ(lines_.size(), 2U);
  EXPECT_THAT(notes_, Each(HasSubstr("reaching 1 host")));
}

TEST_F(SupervisorsTest, TheNextHearsOfAnEndBetweenThem) {
  Next();
  Launch(kTask, "exec sleep 1000");
  Await("worker:0 runs on a");
  kill(pids_.at(kTask), SIGKILL);
  Next();
  may_have_ended_ = true;
  backend_->TakeOver({.task = kTask});
  Await("worker:0 runs on a");
  Await(absl::StrCat("worker:0 ", ExitStatus{.signal = SIGKILL, .killed_from = KilledFrom::kOutside}.ToString()));
  EXPECT_EQ(lines_.size(), 2U);
}

TEST_F(SupervisorsTest, AnEndThatIsAskedForBeforeTheAgentAnswersIsMade) {
  Next();
  Launch(kTask, "exec sleep 1000");
  Await("worker:0 runs on a");
  Next();
  backend_->TakeOver({.task = kTask});
  backend_->End(kTask, EndMode::kGently);
  Await(absl::StrCat("worker:0 ", ExitStatus{.signal = SIGTERM}.ToString()));
}

TEST_F(SupervisorsTest, WhatDiedWithItsAgentIsSaidAndItsPortsAreKeptForItsNextStart) {
  Next();
  backend_->Reserve(kTask, {0});
  Await("worker:0 has 1 ports");
  Launch(kTask, "exec sleep 1000");
  Await("worker:0 runs on a");
  engine_.KillAgent("a");
  Next();
  backend_->TakeOver({.task = kTask, .ports = {port_}});
  Await("worker:0 isn't started: no process of it is left on a");
  Launch(kTask, "exit 3");
  Await(absl::StrCat("worker:0 ", ExitStatus{.code = 3}.ToString()));
  EXPECT_FALSE(FreePorts::Take({port_, 1}).ok());
}

TEST_F(SupervisorsTest, WhatTheNextDoesNotAskForIsEnded) {
  for (const bool asks_for_another : {true, false}) {
    SCOPED_TRACE(asks_for_another);
    Next();
    Launch(kTask, "exec sleep 1000");
    Launch(kOther, "exec sleep 1000");
    Await("worker:0 runs on a");
    Await("worker:1 runs on a");
    const std::map<TaskId, pid_t> pids = pids_;
    Next();
    if (asks_for_another) backend_->TakeOver({.task = kTask});
    const absl::Time hang = RealClock().Now() + absl::Minutes(1);
    const auto is_to_end = [&](const TaskId& task) { return task == kOther || !asks_for_another; };
    for (const TaskId& task : {kOther, kTask})
      while (is_to_end(task) && kill(pids.at(task), 0) == 0 && RealClock().Now() < hang) Round();
    EXPECT_NE(kill(pids.at(kOther), 0), 0);
    EXPECT_EQ(kill(pids.at(kTask), 0) == 0, asks_for_another);
    if (!asks_for_another) continue;
    backend_->End(kTask, EndMode::kAtOnce);
    Await(absl::StrCat("worker:0 ", ExitStatus{.signal = SIGKILL}.ToString()));
  }
}

TEST_F(SupervisorsTest, OfAHostThatCantBeReachedNothingIsSaidBeforeItsTasksHaveSurelyEnded) {
  Next();
  Launch(kTask, "exec sleep 1000");
  Await("worker:0 runs on a");
  engine_.unreachable["a"] = "a is cut off";
  Next();
  backend_->TakeOver({.task = kTask});
  for (int i = 0; i < 5; ++i) Round();
  EXPECT_THAT(lines_, IsEmpty());
  engine_.unreachable.clear();
  Await("worker:0 runs on a");
}

// In the place of `muster reach`.
constexpr char kFakeReach[] = R"sh(#!/bin/sh
case $2 in
  --listen) echo listening; echo "10.0.0.9 (eth0)"; exec sleep 1000 ;;
  --dial) shift 2; UNREACHED ;;
esac
)sh";

class ReachedHostsTest : public HostsBackendTest {
 protected:
  explicit ReachedHostsTest(const Clock& clock = RealClock()) : HostsBackendTest(clock) {
    options_.plan.hosts.push_back({.name = "b"});
    options_.plan.placement[kOther] = "b";
    options_.environment = {"PATH=" + folder_.path() + ":/usr/bin:/bin"};
  }
  // What each dialler does with "$@", the other hosts' addresses.
  void Dial(const std::string& script) {
    std::string text = kFakeReach;
    text.replace(text.find("UNREACHED"), 9, script);
    std::ofstream(folder_.path() + "/muster") << text;
    ASSERT_EQ(chmod((folder_.path() + "/muster").c_str(), 0700), 0);
  }
  ScratchFolder folder_;
};

TEST_F(ReachedHostsTest, HostsThatReachEachOtherHaveTasks) {
  Dial("exit 0");
  Start();
  backend_->Reserve(kTask, {0});
  backend_->Reserve(kOther, {0});
  Await("worker:0 has 1 ports");
  Await("worker:1 has 1 ports");
  Launch(kTask, "exit 4");
  Launch(kOther, "exit 5");
  Await(absl::StrCat("worker:0 ", ExitStatus{.code = 4}.ToString()));
  Await(absl::StrCat("worker:1 ", ExitStatus{.code = 5}.ToString()));
  EXPECT_THAT(lines_, Contains("worker:1 runs on b"));
  EXPECT_EQ(lines_.size(), 6U) << "nothing of the check";
}

TEST_F(ReachedHostsTest, PairsThatDontAreNamedWithWhatToDo) {
  Dial("echo \"$1 connection refused\"; exit 1");
  Start();
  backend_->Reserve(kTask, {0});
  while (lines_.empty()) Round();
  EXPECT_THAT(lines_.front(), AllOf(HasSubstr("worker:0 has no ports: "), HasSubstr("a can't reach b at 127.0.0.1:"),
                                    HasSubstr("b can't reach a at 127.0.0.1:"),
                                    HasSubstr(" (of no interface there) from 127.0.0.1: connection refused; "),
                                    HasSubstr("a has 10.0.0.9 (eth0); name the address that works in a host file: "
                                              "a address=IP")));
}

TEST_F(ReachedHostsTest, ACheckThatBreaksIsAnError) {
  Dial("kill -9 $$");
  Start();
  backend_->Reserve(kTask, {0});
  while (lines_.empty()) Round();
  EXPECT_THAT(lines_.front(), HasSubstr("a: the check whom it can reach was "));
}

TEST_F(HostsBackendTest, AnAgentThatDiesTakesItsTasksAlong) {
  LoopEngine& engine = Start();
  backend_->Reserve(kTask, {0});
  Await("worker:0 has 1 ports");
  Launch(kTask, "sleep 1000");
  Await("worker:0 runs on a");
  engine.KillAgent("a");
  Await(absl::StrCat("worker:0 ", ExitStatus{.signal = SIGKILL}.ToString()));
  EXPECT_THAT(notes_, ElementsAre("reaching 1 host", "the agent on a has died, and its tasks with it"));
  // The next life of the task is on a new agent, which keeps the same port for it.
  lines_.clear();
  Launch(kTask, "exit 3");
  Await("worker:0 runs on a");
  Await(absl::StrCat("worker:0 ", ExitStatus{.code = 3}.ToString()));
  EXPECT_FALSE(FreePorts::Take({.first = port_, .count = 1}).ok());
  engine.KillAgent("a");
  while (notes_.size() < 3) Round();
  engine.unreachable = {{"a", "a is off"}};
  lines_.clear();
  Launch(kTask, "true");
  Await("worker:0 isn't started: a is off");
  backend_->Stop();
  EXPECT_TRUE(FreePorts::Take({.first = port_, .count = 1}).ok());
}

struct HasClock {
  SimulatedClock clock{RealClock().Now()};
};

// The supervisor's time passes only where the test says so.
class SilentHostTest : protected HasClock, public HostsBackendTest {
 protected:
  SilentHostTest() : HostsBackendTest(clock) {}
};

TEST_F(SilentHostTest, StreamsOverWhichNothingComesAreGivenUpOneAfterTheOther) {
  LoopEngine& engine = Start();
  backend_->Reserve(kTask, {0});
  Await("worker:0 has 1 ports");
  engine.silent = 2;
  engine.Cut("a");
  // Each round takes what is there; the limits of the host are 3 s until it is suspect, and 15 s until it is lost.
  for (int i = 0; i < 48 && (notes_.size() < 3); ++i) {
    for (int round = 0; round < 20; ++round) {
      loop_.RunOnce(absl::InfinitePast());
      backend_->OnTime();
    }
    clock.Advance(absl::Milliseconds(250));
    EXPECT_EQ(backend_->UnheardHost(kTask).empty(), notes_.size() != 2) << notes_.back();
  }
  EXPECT_EQ(engine.silent, 0);
  EXPECT_THAT(notes_, ElementsAre("reaching 1 host", HasSubstr("a hasn't been heard for 3s"), "a is heard again"));
}

TEST_F(SilentHostTest, AHostThatIsAwaitedIsNamedWithItsLastWords) {
  Start().silent = 1;
  Round();
  clock.Advance(absl::Seconds(10));
  Round();
  EXPECT_THAT(notes_, ElementsAre("reaching 1 host", "waiting for a since 10s: a is busy"));
}

// Two hosts: worker 0 is on a, worker 1 on b, which is silent when the test says so.
class MovedTaskTest : protected HasClock, public ReachedHostsTest {
 protected:
  MovedTaskTest() : ReachedHostsTest(clock) {
    agents_clock_ = &clock;
    options_.plan.grace = kUsualGrace;
  }

  LoopEngine& StartBoth(const std::string& program = "echo $$; exec sleep 1000") {
    Dial("exit 0");
    LoopEngine& engine = Start();
    for (const TaskId& task : {kTask, kOther}) backend_->Reserve(task, {0});
    for (const std::string task : {"worker:0", "worker:1"}) Await(task + " has 1 ports");
    Launch(kTask, "exec sleep 1000");
    Launch(kOther, program);
    while (out_[kOther].empty()) Round();
    Await("worker:0 runs on a");
    return engine;
  }
  void BeSilent(LoopEngine& engine) {
    engine.unreachable = {{"b", "b is off"}};
    engine.Cut("b");
  }
  // Lets what is due happen, and then time pass.
  void Pass(absl::Duration time) {
    for (int round = 0; round < 20; ++round) {
      loop_.RunOnce(absl::InfinitePast());
      backend_->OnTime();
    }
    clock.Advance(time);
  }
  // Lets time pass until the line has come.
  void PassUntil(const std::string& line) {
    for (int i = 0; i < 400 && std::find(lines_.begin(), lines_.end(), line) == lines_.end(); ++i)
      Pass(absl::Milliseconds(250));
    EXPECT_THAT(lines_, Contains(line));
  }
  // After it has moved to a.
  void StartElsewhere() {
    lines_.clear();
    backend_->Reserve(kOther, {0});
    PassUntil("worker:1 has 1 ports");
    Launch(kOther, "exec sleep 1000");
    PassUntil("worker:1 runs on a");
  }
  const MoveWish wish_{.hosts = {"a", "b"}, .others = {kTask, kOther}};
};

TEST_F(MovedTaskTest, GoesToAnotherHostWhenTheirsIsLost) {
  LoopEngine& engine = StartBoth();
  EXPECT_EQ(backend_->Move(kOther, wish_), "") << "its host is heard";
  BeSilent(engine);
  PassUntil("worker:1 was lost with its host b");
  EXPECT_EQ(backend_->Move(kOther, {.hosts = {"b"}, .others = wish_.others}), "") << "none is wished";
  EXPECT_EQ(backend_->Move(kOther, wish_), "a");
  StartElsewhere();
}

// Both processes may run for a while; the one that was given up is killed as soon as its host is heard.
TEST_F(MovedTaskTest, IsGivenUpBeforeItsHostIsLost) {
  LoopEngine& engine = StartBoth();
  const pid_t pid = std::stoi(out_[kOther]);
  BeSilent(engine);
  PassUntil("worker:1 is out of reach");
  EXPECT_EQ(backend_->Move(kOther, wish_), "") << "it counts as running still";
  EXPECT_FALSE(backend_->CanGiveUp(kOther, {.hosts = {"b"}, .others = wish_.others}));
  EXPECT_FALSE(backend_->CanGiveUp(kTask, wish_)) << "its host is heard";
  EXPECT_TRUE(backend_->CanGiveUp(kOther, wish_));
  backend_->GiveUp(kOther);
  EXPECT_EQ(kill(pid, 0), 0);
  EXPECT_EQ(backend_->Move(kOther, wish_), "a");
  StartElsewhere();
  engine.unreachable.clear();
  lines_.clear();
  for (const absl::Time hang = RealClock().Now() + absl::Minutes(1); kill(pid, 0) == 0;) {
    ASSERT_LT(RealClock().Now(), hang);
    loop_.RunOnce(absl::InfinitePast());
    backend_->OnTime();
    clock.Advance(absl::Milliseconds(1));
  }
  EXPECT_THAT(lines_, ElementsAre()) << "the new one goes on";
}

// The supervisor's own network was away: a, which comes back first, is no place for the tasks of b, which may follow.
TEST_F(MovedTaskTest, IsNotGivenUpForAHostThatWasSilentItself) {
  LoopEngine& engine = StartBoth();
  engine.unreachable = {{"a", "no network"}, {"b", "no network"}};
  engine.Cut("a");
  engine.Cut("b");
  PassUntil("worker:1 is out of reach");
  engine.unreachable.erase("a");
  const auto is_back = [&] { return !notes_.empty() && notes_.back() == "a is heard again"; };
  for (int i = 0; i < 100 && !is_back(); ++i) Pass(absl::Milliseconds(250));
  ASSERT_TRUE(is_back()) << notes_.back();
  EXPECT_FALSE(backend_->CanGiveUp(kOther, wish_));
  for (int i = 0; i < 40; ++i) Pass(absl::Milliseconds(250));
  EXPECT_TRUE(backend_->CanGiveUp(kOther, wish_));
}

// Its agent has said that it ends them, and can't be reached since: they go once they must have ended.
TEST_F(MovedTaskTest, OfAnEndingAgentGoesOnceItHasEnded) {
  LoopEngine& engine = StartBoth("trap '' TERM; echo $$; while :; do sleep 0.05; done");
  engine.EndAgent("b");
  PassUntil(absl::StrCat("worker:1 ", ExitStatus{.signal = SIGKILL}.ToString()));
  engine.unreachable = {{"b", "b is off"}};
  Launch(kOther, "exit 0");
  const absl::Time asked = clock.Now();
  PassUntil("worker:1 isn't started: b is off");
  ASSERT_LT(clock.Now(), asked + absl::Seconds(1));
  EXPECT_EQ(backend_->Move(kOther, wish_), "") << "they may live";
  clock.Advance(absl::Seconds(5));
  lines_.clear();
  Launch(kOther, "exit 0");
  PassUntil("worker:1 isn't started: b is off");
  EXPECT_EQ(backend_->Move(kOther, wish_), "a");
}

// Its host has lost agent and guard while it was to have ports there.
TEST_F(MovedTaskTest, HasItsPortsFromTheNextAgent) {
  LoopEngine& engine = StartBoth();
  engine.KillAgent("b");
  PassUntil(absl::StrCat("worker:1 ", ExitStatus{.signal = SIGKILL}.ToString()));
  lines_.clear();
  backend_->Reserve(kOther, {0});
  PassUntil("worker:1 has 1 ports");
}

TEST_F(MovedTaskTest, StaysWithoutASlotElsewhere) {
  options_.plan.hosts[0].slots = 1;
  LoopEngine& engine = StartBoth();
  BeSilent(engine);
  PassUntil("worker:1 is out of reach");
  EXPECT_FALSE(backend_->CanGiveUp(kOther, wish_));
  PassUntil("worker:1 was lost with its host b");
  EXPECT_EQ(backend_->Move(kOther, wish_), "");
}

// It asks its tasks to end, and lets no supervisor attach until they have; the next agent starts after that.
TEST_F(HostsBackendTest, ATaskIsStartedAgainOnceAnEndingAgentIsGone) {
  LoopEngine& engine = Start();
  backend_->Reserve(kTask, {0});
  Await("worker:0 has 1 ports");
  Launch(kTask, "trap 'sleep 0.2; exit' TERM; echo ready; while :; do sleep 0.01; done");
  while (out_[kTask].empty()) Round();
  engine.EndAgent("a");
  Await(absl::StrCat("worker:0 ", ExitStatus{.signal = SIGKILL}.ToString()));
  lines_.clear();
  Launch(kTask, "exit 3");
  Await(absl::StrCat("worker:0 ", ExitStatus{.code = 3}.ToString()));
}

TEST_F(HostsBackendTest, AHostUnderTwoNamesIsNamed) {
  options_.plan.hosts.push_back({.name = "b"});
  LoopEngine& engine = Start();
  engine.aliases = {{"b", "a"}};
  backend_->Reserve(kTask, {0});
  while (lines_.empty()) Round();
  EXPECT_THAT(lines_.front(), HasSubstr("takes no commands: it obeys another one; is the host in the list under two "
                                        "names, or is its /tmp that of another host?"));
}

TEST_F(HostsBackendTest, AProgramThatIsMissingIsNamedWithItsHost) {
  Start();
  backend_->Reserve(kTask, {0});
  Await("worker:0 has 1 ports");
  backend_->Launch({.task = kTask, .arguments = {"no-such-program"}});
  while (lines_.size() < 2) Round();
  EXPECT_THAT(lines_.back(), AllOf(HasSubstr("worker:0 isn't started: on a: "), HasSubstr("no-such-program")));
}

TEST_F(HostsBackendTest, StopEndsTheAgents) {
  LoopEngine& engine = Start();
  backend_->Reserve(kTask, {0});
  Await("worker:0 has 1 ports");
  Launch(kTask, "setsid sh -c 'echo left; exec sleep 1000' & exec sleep 1000");
  while (out_[kTask] != "left\n") Round();
  EXPECT_EQ(backend_->Stop(), 1) << "it has left the group of its task";
  engine.OnTime();
  EXPECT_EQ(engine.agents(), 0U);
  EXPECT_THAT(notes_, ElementsAre("reaching 1 host"));
}

}  // namespace
}  // namespace muster::hosts_backend_test
