// Runs over hosts that can do without one of them: HostsBackend leaves it out, whatever is wrong with it.
#include "muster/launch/backends/hosts/optional_hosts.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/backends/hosts/hosts_backend.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/testing/loop_engine.h"

namespace muster::optional_hosts_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty,
    ::testing::Not, ::testing::StartsWith;

const TaskId kChief{kMasterJob, 0}, kWorker{kWorkerJob, 0}, kEvaluator{kEvaluatorJob, 0};

TEST(OptionalHostsTest, PatienceIsOverOnlyWhereTheOthersWaitedWithoutABreak) {
  OptionalHosts hosts({"e"});
  absl::Time now = absl::UnixEpoch();
  EXPECT_FALSE(hosts.IsPatienceOver(true, now));
  now += OptionalHosts::kPatience - absl::Seconds(1);
  EXPECT_FALSE(hosts.IsPatienceOver(true, now));
  EXPECT_EQ(hosts.deadline(), now + absl::Seconds(1));
  EXPECT_FALSE(hosts.IsPatienceOver(false, now));
  EXPECT_EQ(hosts.deadline(), absl::InfiniteFuture());
  now += absl::Seconds(1);
  EXPECT_FALSE(hosts.IsPatienceOver(true, now));
  EXPECT_TRUE(hosts.IsPatienceOver(true, now + OptionalHosts::kPatience));
}

// The evaluator is on e, which is the first host to be dialled; the chief is on a, a worker on b. What `muster reach`
// does is what the test says, in a script. Time passes only where the test says so.
class LeftOutHostTest : public ::testing::Test, public BackendEvents {
 protected:
  LeftOutHostTest() {
    signal(SIGPIPE, SIG_IGN);
    options_.clock = &clock_;
    options_.environment = {"PATH=" + folder_.path() + ":/usr/bin:/bin"};
    options_.note = [this](const std::string& line) { lines_.push_back(line); };
    options_.plan = {.hosts = {{.name = "e"}, {.name = "a"}, {.name = "b"}},
                     .placement = {{kChief, "a"}, {kWorker, "b"}, {kEvaluator, "e"}},
                     .optional_hosts = {"e"},
                     .ssh_config = "",
                     .muster = ""};
    Reach("exit 0");
  }
  ~LeftOutHostTest() override {
    if (backend_ != nullptr) backend_->Stop();
  }

  // What each dialler does with "$@", the other hosts' addresses in the order of the hosts.
  void Reach(const std::string& script) {
    std::ofstream(folder_ / "muster") << "#!/bin/sh\ncase $2 in\n  --listen) echo listening; echo; exec sleep 1000 ;;\n"
                                      << "  --dial) shift 2; " << script << " ;;\nesac\n";
    ASSERT_EQ(chmod((folder_ / "muster").c_str(), 0700), 0);
  }
  LoopEngine& Start() {
    AgentLimits limits;
    limits.grace = options_.plan.grace;
    auto made = std::make_unique<LoopEngine>(options_.run_id, options_, limits, loop_);
    LoopEngine& engine = *made;
    engine.agents_clock = &clock_;
    backend_ = std::make_unique<HostsBackend>(options_, std::move(made), loop_, *this);
    EXPECT_EQ(backend_->Start(), absl::OkStatus());
    backend_->AllowElsewhere(kEvaluator, wish_);
    for (const TaskId& task : {kChief, kWorker}) backend_->Reserve(task, {0});
    backend_->Reserve(kEvaluator, {});
    return engine;
  }
  void Round() {
    loop_.RunOnce(std::min(backend_->deadline(), clock_.Now() + absl::Milliseconds(10)));
    backend_->OnTime();
  }
  bool HasCome(const std::string& line) const { return std::find(lines_.begin(), lines_.end(), line) != lines_.end(); }
  // Lets what happens happen, without time that passes.
  void Await(const std::string& line) {
    for (const absl::Time hang = RealClock().Now() + absl::Minutes(1); !HasCome(line);) {
      ASSERT_LT(RealClock().Now(), hang) << line << " hasn't come";
      Round();
    }
  }
  // Lets time pass, with more rounds in it than agents need to answer.
  void Pass(absl::Duration time) {
    for (const absl::Time until = clock_.Now() + time; clock_.Now() < until; clock_.Advance(absl::Milliseconds(250)))
      for (int round = 0; round < 20; ++round) {
        loop_.RunOnce(absl::InfinitePast());
        backend_->OnTime();
      }
  }
  void ExpectEvaluatorOn(const std::string& host) {
    backend_->Launch({.task = kEvaluator,
                      .arguments = {"/bin/sh", "-c", "exec sleep 1000"},
                      .environment = {{kRunIdVariable, options_.run_id}}});
    Await(absl::StrCat("evaluator:0 runs on ", host));
  }

  void OnReserved(const TaskId& task, const std::vector<std::string>&) override {
    lines_.push_back(absl::StrCat(task.ToString(), " has its ports"));
  }
  void OnNotReserved(const TaskId& task, const absl::Status& why) override {
    lines_.push_back(absl::StrCat(task.ToString(), " has no ports: ", why.message()));
  }
  void OnPlaced(const TaskId& task, const std::string& host, const std::string& why) override {
    EXPECT_EQ(task, kEvaluator);
    lines_.push_back(absl::StrCat("evaluator:0 goes to ", host));
    why_ = why;
  }
  void OnStarted(const TaskId& task, const LocalProcess& process) override {
    lines_.push_back(absl::StrCat(task.ToString(), " runs on ", process.host));
  }
  void OnNotStarted(const TaskId& task, const absl::Status& why) override {
    lines_.push_back(absl::StrCat(task.ToString(), " isn't started: ", why.message()));
  }
  void OnOutput(const TaskId&, OutputStream, std::string_view) override {}
  void OnExit(const TaskId& task, const ExitStatus& status) override {
    lines_.push_back(absl::StrCat(task.ToString(), status.host_lost ? " is lost" : " has ended"));
  }

  SimulatedClock clock_{RealClock().Now()};
  FdLoop loop_{clock_};
  const ScratchFolder folder_;
  BackendOptions options_{.run_id = RandomHex(8)};
  MoveWish wish_{.hosts = {"a", "b"}, .others = {kChief, kWorker, kEvaluator}, .last_resort = "a"};
  std::unique_ptr<HostsBackend> backend_;
  std::vector<std::string> lines_;
  std::string why_;
};

TEST_F(LeftOutHostTest, OneThatWorksIsUsed) {
  Start();
  Await("evaluator:0 has its ports");
  ExpectEvaluatorOn("e");
  EXPECT_EQ(why_, "");
}

TEST_F(LeftOutHostTest, OneThatCantBeReachedIsLeftOutAtOnce) {
  Start().unreachable = {{"e", "e is off"}};
  Await("evaluator:0 has its ports");
  Await("worker:0 has its ports");
  EXPECT_EQ(why_, "e isn't used: e is off");
  ExpectEvaluatorOn("a");
}

TEST_F(LeftOutHostTest, WithoutOptionalHostsAllAreNeeded) {
  options_.plan.optional_hosts.clear();
  Start().unreachable = {{"e", "e is off"}};
  Await("evaluator:0 has no ports: e is off");
  EXPECT_THAT(lines_, Contains("master:0 has no ports: e is off"));
}

TEST_F(LeftOutHostTest, ANeededHostThatCantBeReachedIsNamedWithIt) {
  Start().unreachable = {{"e", "e is off"}, {"b", "b is off"}};
  Await("evaluator:0 has no ports: e is off\nb is off");
  EXPECT_EQ(why_, "");
}

TEST_F(LeftOutHostTest, OneThatSaysNothingIsLeftOutOnceTheOthersHaveWaited) {
  LoopEngine& engine = Start();
  engine.silent = 1;
  Pass(OptionalHosts::kPatience - absl::Seconds(1));
  EXPECT_EQ(engine.silent, 0);
  EXPECT_THAT(lines_, ElementsAre("reaching 3 hosts")) << "it may answer";
  Pass(absl::Seconds(2));
  Await("evaluator:0 has its ports");
  EXPECT_EQ(why_, "e isn't used: nothing was heard of it for 5s after the others were there");
  ExpectEvaluatorOn("a");
}

TEST_F(LeftOutHostTest, NobodyIsLeftOutWhileANeededHostIsWaitedFor) {
  options_.plan.hosts = {{.name = "b"}, {.name = "e"}, {.name = "a"}};
  Start().silent = 2;
  Pass(3 * OptionalHosts::kPatience);
  EXPECT_THAT(lines_, ElementsAre("reaching 3 hosts"));
}

// e can't reach b, and a can't reach e.
TEST_F(LeftOutHostTest, OneThatTheOthersDoNotReachIsLeftOut) {
  Reach("shift $(($# - 1)); echo \"$1 refused\"; exit 1");
  options_.plan.hosts = {{.name = "a"}, {.name = "b"}, {.name = "e"}};
  Start();
  Await("evaluator:0 has its ports");
  EXPECT_THAT(why_, AllOf(StartsWith("e isn't used: "), HasSubstr(" can't reach "), HasSubstr(": refused; ")));
  ExpectEvaluatorOn("a");
}

TEST_F(LeftOutHostTest, NeededHostsThatDoNotReachEachOtherAreNamed) {
  Reach("echo \"$2 refused\"; exit 1");  // a and b each name the other
  options_.plan.hosts = {{.name = "e"}, {.name = "a"}, {.name = "b"}};
  Start();
  while (lines_.size() < 2) Round();
  EXPECT_THAT(lines_[1], AllOf(HasSubstr("master:0 has no ports: "), HasSubstr("a can't reach b at "),
                               HasSubstr("b can't reach a at "), Not(HasSubstr(" e "))));
}

TEST_F(LeftOutHostTest, OneThatIsLostDuringTheCheckIsLeftOut) {
  const std::string gate = folder_ / "gate";
  Reach(absl::StrCat("echo x >>", folder_ / "dialling", "; until [ -e ", gate, " ]; do sleep 0.01; done; exit 0"));
  LoopEngine& engine = Start();
  struct stat dialling {};
  while (stat((folder_ / "dialling").c_str(), &dialling) != 0 || dialling.st_size < 6) Round();
  engine.unreachable = {{"e", "e is off"}};
  engine.Cut("e");
  Round();
  std::ofstream(gate) << "";
  for (const absl::Time hang = RealClock().Now() + absl::Minutes(1); !HasCome("evaluator:0 has its ports");) {
    ASSERT_LT(RealClock().Now(), hang);
    Round();
    clock_.Advance(absl::Milliseconds(50));
  }
  EXPECT_THAT(why_, StartsWith("e isn't used: "));
  ExpectEvaluatorOn("a");
}

// The chief's host has two tasks, the worker's one.
TEST_F(LeftOutHostTest, ItsEvaluatorGoesToTheHostWithTheFewestTasks) {
  options_.plan.placement[{kPsJob, 0}] = "a";
  wish_.others.push_back({kPsJob, 0});
  Start().unreachable = {{"e", "e is off"}};
  Await("evaluator:0 goes to b");
}

TEST_F(LeftOutHostTest, WithoutRoomItsEvaluatorGoesToTheChiefs) {
  wish_.gpus = {{kEvaluator, 1}};
  wish_.last_resort = "b";
  Start().unreachable = {{"e", "e is off"}};
  Await("evaluator:0 goes to b");
}

TEST_F(LeftOutHostTest, WhatIsNotAllowedToGoElsewhereHasNoPlace) {
  LoopEngine& engine = Start();
  backend_->AllowElsewhere(kEvaluator, {});
  engine.unreachable = {{"e", "e is off"}};
  Await("evaluator:0 has no ports: e isn't used: e is off; no other host has room");
  Await("master:0 has its ports");
}

// The code can't be brought there, say.
TEST_F(LeftOutHostTest, OneThatFailsLaterIsLeftOutOnRequest) {
  LoopEngine& engine = Start();
  Await("evaluator:0 has its ports");
  EXPECT_EQ(engine.agents(), 3U);
  EXPECT_THAT(backend_->LeaveOut("e", "its disk\nis full"), ElementsAre(kEvaluator));
  EXPECT_THAT(backend_->LeaveOut("e", "again"), ElementsAre(kEvaluator)) << "it has no other place yet";
  backend_->Reserve(kEvaluator, {});
  Await("evaluator:0 goes to a");
  EXPECT_EQ(why_, "e isn't used: its disk; is full");
  EXPECT_THAT(backend_->LeaveOut("e", "again"), IsEmpty());
  ExpectEvaluatorOn("a");
  for (const absl::Time hang = RealClock().Now() + absl::Minutes(1); engine.agents() > 2;) {
    ASSERT_LT(RealClock().Now(), hang) << "its agent hasn't ended";
    Round();
  }
}

TEST_F(LeftOutHostTest, NothingMovesToOneThatIsLeftOut) {
  LoopEngine& engine = Start();
  Await("evaluator:0 has its ports");
  backend_->LeaveOut("e", "its disk is full");
  engine.unreachable = {{"b", "b is off"}};
  engine.Cut("b");
  backend_->Launch({.task = kWorker, .arguments = {"true"}});
  Pass(options_.plan.grace + absl::Seconds(10));
  EXPECT_THAT(lines_, Contains(HasSubstr("worker:0 isn't started: b is lost: ")));
  EXPECT_EQ(backend_->Move(kWorker, {.hosts = {"e"}}), "");
  EXPECT_EQ(backend_->Move(kWorker, {.hosts = {"e", "a"}}), "a");
}

// A next supervisor knows from the placement which host the one before has left out.
TEST_F(LeftOutHostTest, OneWithoutItsTaskWasLeftOutByTheSupervisorBefore) {
  options_.plan.supervisor = 2;
  options_.plan.placement[kEvaluator] = "a";
  LoopEngine& engine = Start();
  Await("evaluator:0 has its ports");
  ExpectEvaluatorOn("a");
  for (const absl::Time hang = RealClock().Now() + absl::Minutes(1); engine.agents() != 2;) {
    ASSERT_LT(RealClock().Now(), hang) << "its agent hasn't ended";
    Round();
  }
}

}  // namespace
}  // namespace muster::optional_hosts_test
