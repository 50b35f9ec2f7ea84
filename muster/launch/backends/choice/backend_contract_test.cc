// What every Backend keeps to (backend.h), held against each launch engine and against the fake that other tests use.
#include <gmock/gmock.h>
#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/launch/backends/backend.h"
#include "muster/launch/backends/choice/make_backend.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/testing/fake_backend.h"

namespace muster::backend_contract_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::StartsWith;

const TaskId kTask{kWorkerJob, 0};
const TaskId kOther{kWorkerJob, 1};

class BackendContractTest : public ::testing::TestWithParam<std::string>, public BackendEvents {
 protected:
  void SetUp() override {
    const BackendOptions options = {.run_id = run_id_, .environment = {"PATH=/usr/bin:/bin"}};
    if (GetParam() == "fake") {
      backend_ = std::make_unique<FakeBackend>(options, loop_, *this);
    } else {
      backend_ = MakeBackend(GetParam(), options, loop_, *this).value();
    }
    EXPECT_EQ(backend_->Stop(), 0) << "it isn't started";
    ASSERT_EQ(backend_->Start(), absl::OkStatus());
  }
  void TearDown() override { backend_->Stop(); }

  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override {
    EXPECT_FALSE(exits_.contains(task)) << "output after the exit";
    EXPECT_EQ(stream, OutputStream::kStdout);
    out_[task] += bytes;
  }
  void OnExit(const TaskId& task, const ExitStatus& status) override {
    EXPECT_TRUE(exits_.emplace(task, status).second) << task.ToString() << " ends twice";
  }

  absl::Status Launch(const TaskId& task, std::vector<std::string> arguments) {
    return backend_->Launch(
        {.task = task, .arguments = std::move(arguments), .environment = {{kRunIdVariable, run_id_}}});
  }
  ExitStatus ExitOf(const TaskId& task) {
    while (!exits_.contains(task)) loop_.RunOnce(absl::InfiniteFuture());
    return exits_[task];
  }
  // As much as happens without waiting.
  void RunRounds(int rounds) {
    for (int i = 0; i < rounds; ++i) loop_.RunOnce(absl::InfinitePast());
  }

  const std::string run_id_ = RandomHex(8);
  FdLoop loop_{RealClock()};
  std::unique_ptr<Backend> backend_;
  std::map<TaskId, std::string> out_;
  std::map<TaskId, ExitStatus> exits_;
};

TEST_P(BackendContractTest, OutputComesBeforeTheExit) {
  ASSERT_EQ(Launch(kTask, {"echo", "hello", "world"}), absl::OkStatus());
  EXPECT_EQ(out_[kTask], "") << "told by the loop, not by Launch";
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
  EXPECT_EQ(backend_->ProcessOf(kTask).pid, 0);
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
  EXPECT_EQ(backend_->ProcessOf(kTask).pid, 0);
  exits_.clear();
  ASSERT_EQ(Launch(kTask, {"echo", "two"}), absl::OkStatus());
  ExitOf(kTask);
  EXPECT_EQ(out_[kTask], "one\ntwo\n");
}

TEST_P(BackendContractTest, PausedOutputStaysWhereItIs) {
  ASSERT_EQ(Launch(kTask, {"yes"}), absl::OkStatus());
  while (out_[kTask].empty()) loop_.RunOnce(absl::InfiniteFuture());
  EXPECT_THAT(out_[kTask], StartsWith("y\n"));
  backend_->PauseOutput(true);
  const size_t before = out_[kTask].size();
  // While another task runs from its start to its end, this one writes.
  ASSERT_EQ(Launch(kOther, {"echo"}), absl::OkStatus());
  ExitOf(kOther);
  EXPECT_EQ(out_[kTask].size(), before);
  backend_->PauseOutput(false);
  while (out_[kTask].size() == before) loop_.RunOnce(absl::InfiniteFuture());
  backend_->End(kTask, EndMode::kAtOnce);
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
  EXPECT_EQ(backend_->ProcessOf(kTask).pid, 0);
  EXPECT_EQ(backend_->Stop(), 0);
}

TEST_P(BackendContractTest, WithoutLimitsThereIsNothingToDoByTheClock) {
  ASSERT_EQ(Launch(kTask, {"sleep", "1000"}), absl::OkStatus());
  EXPECT_EQ(backend_->deadline(), absl::InfiniteFuture());
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
    void OnOutput(const TaskId&, OutputStream, std::string_view) override {}
    void OnExit(const TaskId&, const ExitStatus&) override {}
  } events;
  EXPECT_THAT(std::string(MakeBackend("locla", {}, loop, events).status().message()),
              AllOf(HasSubstr("unknown launch engine 'locla' (nearest: local)"), HasSubstr("accepted: local")));
  EXPECT_THAT(BackendNames(), ElementsAre(kThisMachine));
}

}  // namespace
}  // namespace muster::backend_contract_test
