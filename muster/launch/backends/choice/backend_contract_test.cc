// What every Backend keeps to (backend.h), held against each launch engine and against the fake that other tests use.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/backends/choice/make_backend.h"
#include "muster/launch/backends/hosts/hosts_backend.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/testing/fake_backend.h"
#include "muster/launch/testing/loop_engine.h"

namespace muster::backend_contract_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ElementsAre, ::testing::EndsWith, ::testing::HasSubstr,
    ::testing::IsEmpty, ::testing::Not, ::testing::StartsWith;

const TaskId kTask{kWorkerJob, 0};
const TaskId kOther{kWorkerJob, 1};

sockaddr_in Loopback(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  sockaddr_in loopback = {};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  loopback.sin_port = htons(static_cast<uint16_t>(port));
  return loopback;
}

// Returns what a program gets that binds "127.0.0.1:PORT": 0 or an errno. `as_server`: with SO_REUSEADDR, then listens.
int Bind(const std::string& address, bool as_server) {
  const sockaddr_in bound = Loopback(address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int reuse = as_server ? 1 : 0;
  EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse), 0);
  const bool ok =
      bind(fd, reinterpret_cast<const sockaddr*>(&bound), sizeof bound) == 0 && (!as_server || listen(fd, 1) == 0);
  const int error = ok ? 0 : errno;
  close(fd);
  return error;
}

// Returns what a client gets that connects to "127.0.0.1:PORT": 0 or an errno.
int Connect(const std::string& address) {
  const sockaddr_in server = Loopback(address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int error = connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0 ? 0 : errno;
  close(fd);
  return error;
}

class BackendContractTest : public ::testing::TestWithParam<std::string>, public BackendEvents {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    BackendOptions options = {.run_id = run_id_, .environment = {"PATH=/usr/bin:/bin"}};
    if (GetParam() == "fake") {
      backend_ = std::make_unique<FakeBackend>(options, loop_, *this);
    } else if (IsOnHosts()) {  // but for ssh, commands, Slurm, Ray, Spark and Kubernetes themselves
      options.plan = {.hosts = {{.name = "here"}}, .placement = {{kTask, "here"}, {kOther, "here"}}};
      auto engine = std::make_unique<LoopEngine>(run_id_, options, AgentLimits(), loop_, /*over_tcp=*/IsOverTcp());
      backend_ = std::make_unique<HostsBackend>(options, std::move(engine), loop_, *this);
    } else {
      backend_ = MakeBackend(GetParam(), options, loop_, *this).value();
    }
    EXPECT_EQ(backend_->Stop(), 0) << "it isn't started";
    ASSERT_EQ(backend_->Start(), absl::OkStatus());
  }
  void TearDown() override { backend_->Stop(); }
  static bool IsOnHosts() { return GetParam() != kThisMachine && GetParam() != "fake"; }
  // Agents of Slurm, Ray, Spark and Kubernetes connect to their supervisor over TCP.
  static bool IsOverTcp() {
    return GetParam() == kSlurmEngine || GetParam() == kRayEngine || GetParam() == kSparkEngine ||
           GetParam() == kKubernetesEngine;
  }

  void OnReserved(const TaskId& task, const std::vector<std::string>& addresses) override {
    EXPECT_FALSE(in_call_);
    addresses_[task] = addresses;
  }
  void OnNotReserved(const TaskId& task, const absl::Status& why) override { addresses_[task] = why; }
  void OnStarted(const TaskId& task, const LocalProcess& process) override {
    EXPECT_FALSE(in_call_);
    EXPECT_EQ(process.pid > 0, GetParam() == kThisMachine);
    answers_[task] = absl::OkStatus();
  }
  void OnNotStarted(const TaskId& task, const absl::Status& why) override {
    EXPECT_FALSE(in_call_);
    answers_[task] = why;
  }
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override {
    EXPECT_TRUE(answers_.contains(task)) << "output before the start";
    EXPECT_FALSE(exits_.contains(task)) << "output after the exit";
    EXPECT_EQ(stream, OutputStream::kStdout);
    out_[task] += bytes;
  }
  void OnExit(const TaskId& task, const ExitStatus& status) override {
    EXPECT_FALSE(in_call_);
    EXPECT_TRUE(answers_.contains(task)) << "an end before the start";
    EXPECT_TRUE(exits_.emplace(task, status).second) << task.ToString() << " ends twice";
  }

  void Round(absl::Time deadline) {
    loop_.RunOnce(std::min(deadline, backend_->deadline()));
    backend_->OnTime();
  }
  void Begin(const TaskId& task, std::vector<std::string> arguments, bool takes_input = false) {
    answers_.erase(task);
    in_call_ = true;
    backend_->Launch({.task = task,
                      .arguments = std::move(arguments),
                      .environment = {{kRunIdVariable, run_id_}},
                      .takes_input = takes_input});
    in_call_ = false;
  }
  // Returns what came of it.
  absl::Status Launch(const TaskId& task, std::vector<std::string> arguments) {
    Begin(task, std::move(arguments));
    while (!answers_.contains(task)) Round(absl::InfiniteFuture());
    return answers_[task];
  }
  absl::StatusOr<std::vector<std::string>> Reserve(const TaskId& task, const std::vector<uint16_t>& ports) {
    in_call_ = true;
    backend_->Reserve(task, ports);
    in_call_ = false;
    while (!addresses_.contains(task)) Round(absl::InfiniteFuture());
    return addresses_.at(task);
  }
  absl::StatusOr<std::vector<std::string>> Renew(const TaskId& task, const std::vector<uint16_t>& ports) {
    addresses_.erase(task);
    in_call_ = true;
    backend_->Renew(task, ports);
    in_call_ = false;
    while (!addresses_.contains(task)) Round(absl::InfiniteFuture());
    return addresses_.at(task);
  }
  ExitStatus ExitOf(const TaskId& task) {
    while (!exits_.contains(task)) Round(absl::InfiniteFuture());
    return exits_[task];
  }
  // As much as happens without waiting.
  void RunRounds(int rounds) {
    for (int i = 0; i < rounds; ++i) Round(absl::InfinitePast());
  }

  const std::string run_id_ = RandomHex(8);
  FdLoop loop_{RealClock()};
  std::unique_ptr<Backend> backend_;
  bool in_call_ = false;  // of the backend
  std::map<TaskId, absl::StatusOr<std::vector<std::string>>> addresses_;
  std::map<TaskId, absl::Status> answers_;
  std::map<TaskId, std::string> out_;
  std::map<TaskId, ExitStatus> exits_;
};

TEST_P(BackendContractTest, ReservedPortsAreDifferentAndNobodyElsesUntilItStops) {
  const auto addresses = Reserve(kTask, {0, 0});
  ASSERT_EQ(addresses.status(), absl::OkStatus());
  ASSERT_EQ(addresses->size(), 2);
  const auto others = Reserve(kOther, {0});
  EXPECT_THAT(*addresses, Not(Contains(others->front())));
  EXPECT_NE(addresses->front(), addresses->back());
  EXPECT_EQ(Bind(addresses->front(), /*as_server=*/false), EADDRINUSE);
  EXPECT_EQ(Bind(addresses->front(), /*as_server=*/true), 0) << "its own server can";
  backend_->Stop();
  EXPECT_EQ(Bind(addresses->front(), /*as_server=*/false), 0);
}

TEST_P(BackendContractTest, APortIsStillReservedBetweenTwoLives) {
  const std::string address = Reserve(kTask, {0})->front();
  ASSERT_EQ(Launch(kTask, {"echo", "one"}), absl::OkStatus());
  ExitOf(kTask);
  EXPECT_EQ(Bind(address, /*as_server=*/false), EADDRINUSE);
  EXPECT_EQ(Connect(address), ECONNREFUSED) << "a client tries again; it doesn't wait in a queue of nobody";
  exits_.clear();
  ASSERT_EQ(Launch(kTask, {"echo", "two"}), absl::OkStatus());
  ExitOf(kTask);
  EXPECT_EQ(Bind(address, /*as_server=*/false), EADDRINUSE);
}

TEST_P(BackendContractTest, APortThatIsAskedForByItsNumberIsThatOneOrAnError) {
  const std::string taken = Reserve(kTask, {0})->front();
  int number = 0;
  ASSERT_TRUE(absl::SimpleAtoi(taken.substr(taken.rfind(':') + 1), &number));
  const absl::Status why = Reserve(kOther, {static_cast<uint16_t>(number)}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(why));
  EXPECT_THAT(std::string(why.message()), EndsWith(absl::StrCat("port ", number, " is in use")));
  backend_->Stop();
  addresses_.clear();
  ASSERT_EQ(backend_->Start(), absl::OkStatus());
  EXPECT_THAT(*Reserve(kOther, {static_cast<uint16_t>(number)}), ElementsAre(taken));
}

TEST_P(BackendContractTest, RenewedPortsAreOthersAndReservedAsWell) {
  const std::string before = Reserve(kTask, {0})->front();
  const auto after = Renew(kTask, {0});
  ASSERT_EQ(after.status(), absl::OkStatus());
  EXPECT_NE(after->front(), before);
  EXPECT_EQ(Bind(after->front(), /*as_server=*/false), EADDRINUSE);
}

TEST_P(BackendContractTest, ATaskWithoutPortsMayBeReservedForToo) { EXPECT_THAT(*Reserve(kTask, {}), IsEmpty()); }

TEST_P(BackendContractTest, AnEndBeforeTheStartIsToldFollowsTheStart) {
  Begin(kTask, {"sleep", "1000"});
  backend_->End(kTask, EndMode::kAtOnce);
  EXPECT_EQ(ExitOf(kTask), ExitStatus{.signal = SIGKILL});
  EXPECT_EQ(answers_[kTask], absl::OkStatus());
}

TEST_P(BackendContractTest, OnceStoppedItTellsNothing) {
  backend_->Reserve(kTask, {0});
  Begin(kOther, {"echo"});
  backend_->Stop();
  RunRounds(3);
  EXPECT_TRUE(addresses_.empty());
  EXPECT_TRUE(answers_.empty());
}

TEST_P(BackendContractTest, OutputComesBeforeTheExit) {
  ASSERT_EQ(Launch(kTask, {"echo", "hello", "world"}), absl::OkStatus());
  EXPECT_EQ(out_[kTask], "") << "told after the start";
  EXPECT_EQ(ExitOf(kTask), ExitStatus{});
  EXPECT_EQ(out_[kTask], "hello world\n");
}

TEST_P(BackendContractTest, TasksEndEachWithItsOwnStatus) {
  ASSERT_EQ(Launch(kTask, {"false"}), absl::OkStatus());
  ASSERT_EQ(Launch(kOther, {"echo"}), absl::OkStatus());
  EXPECT_EQ(ExitOf(kTask), ExitStatus{.code = 1});
  EXPECT_EQ(ExitOf(kOther), ExitStatus{});
}

TEST_P(BackendContractTest, AProgramThatIsNotThereIsAnErrorAndNoExit) {
  EXPECT_TRUE(absl::IsNotFound(Launch(kTask, {"no-such-program"})));
  ASSERT_EQ(Launch(kOther, {"echo"}), absl::OkStatus());
  ExitOf(kOther);
  EXPECT_FALSE(exits_.contains(kTask));
}

TEST_P(BackendContractTest, EndReturnsAtOnceAndTheExitTellsTheRest) {
  ASSERT_EQ(Launch(kTask, {"sleep", "1000"}), absl::OkStatus());
  ASSERT_EQ(Launch(kOther, {"sleep", "1000"}), absl::OkStatus());
  backend_->End(kTask, EndMode::kGently);
  EXPECT_TRUE(exits_.empty());
  EXPECT_EQ(ExitOf(kTask), ExitStatus{.signal = SIGTERM});
  EXPECT_FALSE(exits_.contains(kOther));
  backend_->End(kOther, EndMode::kAtOnce);
  EXPECT_EQ(ExitOf(kOther), ExitStatus{.signal = SIGKILL});
}

TEST_P(BackendContractTest, EndOfATaskThatDoesNotRunIsWithoutEffect) {
  backend_->End(kTask, EndMode::kGently);
  ASSERT_EQ(Launch(kTask, {"echo"}), absl::OkStatus());
  EXPECT_EQ(ExitOf(kTask), ExitStatus{});
  backend_->End(kTask, EndMode::kAtOnce);
  RunRounds(3);
}

TEST_P(BackendContractTest, ATaskCanBeLaunchedAgainOnceItHasEnded) {
  ASSERT_EQ(Launch(kTask, {"echo", "one"}), absl::OkStatus());
  ExitOf(kTask);
  exits_.clear();
  ASSERT_EQ(Launch(kTask, {"echo", "two"}), absl::OkStatus());
  ExitOf(kTask);
  EXPECT_EQ(out_[kTask], "one\ntwo\n");
}

TEST_P(BackendContractTest, PausedOutputStaysWhereItIs) {
  ASSERT_EQ(Launch(kTask, {"yes"}), absl::OkStatus());
  while (out_[kTask].empty()) Round(absl::InfiniteFuture());
  EXPECT_THAT(out_[kTask], StartsWith("y\n"));
  backend_->PauseOutput(true);
  const size_t before = out_[kTask].size();
  // While another task runs from its start to its end, this one writes.
  ASSERT_EQ(Launch(kOther, {"echo"}), absl::OkStatus());
  ExitOf(kOther);
  EXPECT_EQ(out_[kTask].size(), before);
  backend_->PauseOutput(false);
  while (out_[kTask].size() == before) Round(absl::InfiniteFuture());
  backend_->End(kTask, EndMode::kAtOnce);
  EXPECT_EQ(ExitOf(kTask), ExitStatus{.signal = SIGKILL});
}

TEST_P(BackendContractTest, AProgramReadsItsInputUntilItsEnd) {
  Begin(kTask, {"cat"}, /*takes_input=*/true);
  backend_->Input(kTask, "given before the start is told\n");
  while (out_[kTask].empty()) Round(absl::InfiniteFuture());
  backend_->Input(kTask, "and ");
  backend_->Input(kTask, "after it");
  backend_->Input(kTask, "");
  backend_->Input(kTask, "after its end");
  EXPECT_EQ(ExitOf(kTask), ExitStatus{});
  EXPECT_EQ(out_[kTask], "given before the start is told\nand after it");
}

TEST_P(BackendContractTest, InputBeyondWhatAPipeHoldsComesWhole) {
  std::string text;
  for (int i = 0; text.size() < 1'000'000; ++i) absl::StrAppend(&text, i, "\n");
  Begin(kTask, {"cat"}, /*takes_input=*/true);
  backend_->Input(kTask, text);
  backend_->Input(kTask, "");
  EXPECT_EQ(ExitOf(kTask), ExitStatus{});
  EXPECT_TRUE(out_[kTask] == text);
}

TEST_P(BackendContractTest, ATaskThatTakesNoInputHasNone) {
  ASSERT_EQ(Launch(kTask, {"cat"}), absl::OkStatus());
  backend_->Input(kTask, "not for it");
  EXPECT_EQ(ExitOf(kTask), ExitStatus{});
  backend_->Input(kTask, "it has ended");
  RunRounds(3);
  EXPECT_EQ(out_[kTask], "");
}

TEST_P(BackendContractTest, ATaskThatReadsNothingIsKilledBeforeItsInputFillsTheMemory) {
  Begin(kTask, {"sleep", "1000"}, /*takes_input=*/true);
  const std::string piece(1 << 20, 'x');
  for (size_t given = 0; given < kMaxWaitingInput + 2 * piece.size(); given += piece.size())
    backend_->Input(kTask, piece);
  EXPECT_EQ(ExitOf(kTask), ExitStatus{.signal = SIGKILL});
}

TEST_P(BackendContractTest, ThePauseLosesNothingOfATaskThatEnds) {
  backend_->PauseOutput(true);
  ASSERT_EQ(Launch(kTask, {"echo", "last", "words"}), absl::OkStatus());
  ExitOf(kTask);
  EXPECT_EQ(out_[kTask], "last words\n");
}

TEST_P(BackendContractTest, StopLeavesNothingOfTheRun) {
  ASSERT_EQ(Launch(kTask, {"sleep", "1000"}), absl::OkStatus());
  EXPECT_EQ(backend_->Stop(), 0) << "a task is no stray";
  EXPECT_EQ(backend_->Stop(), 0);
}

TEST_P(BackendContractTest, WithoutLimitsThereIsSeldomSomethingToDoByTheClock) {
  if (IsOnHosts()) GTEST_SKIP() << "hosts are to be heard";
  ASSERT_EQ(Launch(kTask, {"sleep", "1000"}), absl::OkStatus());
  EXPECT_GT(backend_->deadline(), RealClock().Now() + absl::Seconds(5));
  backend_->OnTime();
  backend_->End(kTask, EndMode::kAtOnce);
  EXPECT_EQ(ExitOf(kTask), ExitStatus{.signal = SIGKILL});
}

INSTANTIATE_TEST_SUITE_P(Engines, BackendContractTest, ::testing::ValuesIn([] {
                           std::vector<std::string> names = BackendNames();
                           names.emplace_back("fake");
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST(MakeBackendTest, AnEngineThatThereIsntIsNamedWithTheNearest) {
  FdLoop loop(RealClock());
  struct : BackendEvents {
    void OnReserved(const TaskId&, const std::vector<std::string>&) override {}
    void OnNotReserved(const TaskId&, const absl::Status&) override {}
    void OnStarted(const TaskId&, const LocalProcess&) override {}
    void OnNotStarted(const TaskId&, const absl::Status&) override {}
    void OnOutput(const TaskId&, OutputStream, std::string_view) override {}
    void OnExit(const TaskId&, const ExitStatus&) override {}
  } events;
  EXPECT_THAT(std::string(MakeBackend("locla", {}, loop, events).status().message()),
              AllOf(HasSubstr("unknown launch engine 'locla' (nearest: local)"),
                    HasSubstr("accepted: local, ssh, command, slurm, ray, spark, kubernetes")));
  EXPECT_THAT(BackendNames(), ElementsAre(kThisMachine, kSshEngine, kCommandEngine, kSlurmEngine, kRayEngine,
                                          kSparkEngine, kKubernetesEngine));
}

}  // namespace
}  // namespace muster::backend_contract_test
