#include "muster/launch/task_run/task_run.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/net/free_ports.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"

namespace muster::task_run_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::SizeIs;

const TaskId kTask{kWorkerJob, 0};
const TaskId kOther{kWorkerJob, 1};

// Returns whether a program that doesn't set SO_REUSEADDR can bind the address.
bool CanBind(const std::string& address) {
  sockaddr_in bound = {};
  bound.sin_family = AF_INET;
  bound.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bound.sin_port = htons(PortOf(address));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool can = bind(fd, reinterpret_cast<const sockaddr*>(&bound), sizeof bound) == 0;
  close(fd);
  return can;
}

class TaskRunTest : public ::testing::Test, public TaskRunClient {
 protected:
  void TearDown() override { run_.Stop(); }

  void OnOutput(const TaskId& task, OutputStream, std::string_view bytes) override { out_[task] += bytes; }
  void OnOutputEnd(const TaskId& task) override { ++ends_[task]; }
  std::deque<std::string> LastLines(const TaskId& task) const override {
    const auto found = out_.find(task);
    return found == out_.end() ? std::deque<std::string>() : std::deque<std::string>{found->second};
  }
  void OnStarted(const ProcessSpec& spec, const LocalProcess& process) override {
    EXPECT_GT(process.pid, 0);
    started_.push_back(spec.task.ToString());
    could_bind_.push_back(reserved_.contains(spec.task) && !reserved_[spec.task].empty() &&
                          CanBind(reserved_[spec.task].front()));
  }
  absl::StatusOr<std::vector<ProcessSpec>> PlanAgain(const TaskId& task, const std::string& host,
                                                     const ReservedPorts& addresses) override {
    EXPECT_EQ(host, "") << task.ToString() << " stays on this machine";
    return plan_(addresses);
  }
  void Say(const std::string& line) override { said_.push_back(line); }
  void Wait() override { run_.RunRound(absl::InfiniteFuture()); }

  ProcessSpec Shell(const TaskId& task, const std::string& script) const {
    return {.task = task, .arguments = {"sh", "-c", script}, .environment = {{kRunIdVariable, run_id_}}};
  }
  void Reserve(const TaskId& task, std::vector<uint16_t> ports) {
    auto reserved = run_.Reserve({{.task = task, .ports = std::move(ports)}});
    ASSERT_EQ(reserved.status(), absl::OkStatus());
    reserved_ = *std::move(reserved);
  }

  const std::string run_id_ = RandomHex(8);
  std::map<TaskId, std::string> out_;
  std::map<TaskId, int> ends_;
  std::vector<std::string> started_, said_;
  ReservedPorts reserved_;
  std::vector<bool> could_bind_;  // at each start: see CanBind
  std::function<std::vector<ProcessSpec>(const ReservedPorts& addresses)> plan_;
  TaskRun run_{{.backend = {.run_id = run_id_, .environment = {"PATH=/usr/bin:/bin"}}}, *this};
};

TEST_F(TaskRunTest, AnEngineThatThereIsntIsNamed) {
  TaskRun run({.engine = "locla"}, *this);
  EXPECT_THAT(std::string(run.Start().message()), HasSubstr("unknown launch engine 'locla' (nearest: local)"));
  EXPECT_EQ(run.Stop(), 0);
}

TEST_F(TaskRunTest, AllAreReservedStartedAndSupervisedToTheEnd) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  const auto reserved = run_.Reserve({{.task = kTask, .ports = {0, 0}}, {.task = kOther, .ports = {}}});
  ASSERT_EQ(reserved.status(), absl::OkStatus());
  EXPECT_THAT(reserved->at(kTask), SizeIs(2));
  EXPECT_THAT(reserved->at(kOther), IsEmpty());
  ASSERT_EQ(run_.Launch({Shell(kOther, "echo other"), Shell(kTask, "echo one; exit 7")}), absl::OkStatus());
  EXPECT_THAT(started_, ElementsAre("worker:1", "worker:0")) << "in the order of the processes";
  EXPECT_EQ(run_.supervisor(), nullptr);
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 7);
  EXPECT_EQ(out_[kTask], "one\n");
  EXPECT_EQ(out_[kOther], "other\n");
  EXPECT_EQ(run_.Stop(), 0);
}

TEST_F(TaskRunTest, APortThatIsInUseIsAnError) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  Reserve(kTask, {0});
  const uint16_t number = PortOf(reserved_.at(kTask).front());
  const auto again = run_.Reserve({{.task = kOther, .ports = {number}}});
  EXPECT_EQ(again.status(), absl::InvalidArgumentError(absl::StrCat("port ", number, " is in use")));
}

TEST_F(TaskRunTest, TheFirstThatCannotBeStartedIsNamed) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(run_.Launch({{.task = kTask, .arguments = {"/no/such/program"}}})));
  EXPECT_TRUE(run_.start_failure()->alone);
  run_.ForgetTasks();
  EXPECT_TRUE(absl::IsNotFound(
      run_.Launch({Shell(kOther, "exec sleep 1000"), {.task = kTask, .arguments = {"/no/such/program"}}})));
  EXPECT_EQ(run_.start_failure()->task, kTask);
  EXPECT_FALSE(run_.start_failure()->alone);
}

TEST_F(TaskRunTest, AnEndBeforeTheSupervisionCounts) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  ASSERT_EQ(run_.Launch({Shell(kTask, "exit 3")}), absl::OkStatus());
  while (ends_[kTask] == 0) Wait();
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 3);
}

// As that of `muster send`, which brings a run's output here.
TEST_F(TaskRunTest, AnEndBeforeTheSupervisionCountsAlsoAfterAnother) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  ASSERT_EQ(run_.Launch({Shell(kTask, "exit 0")}), absl::OkStatus());
  run_.Supervise({.chief = kTask});
  ASSERT_EQ(run_.Launch({Shell(kOther, "exit 3")}), absl::OkStatus());
  while (ends_[kOther] == 0) Wait();
  EXPECT_EQ(run_.supervisor(), nullptr);
  run_.Supervise({.chief = kOther});
  EXPECT_EQ(run_.supervisor()->exit_code(), 3);
}

TEST_F(TaskRunTest, AFailedTaskIsRestartedByItsPolicy) {
  const ScratchFolder folder;
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  ASSERT_EQ(run_.Launch({Shell(kTask, absl::StrCat("mkdir ", folder.path(), "/once && kill -9 $$; echo again"))}),
            absl::OkStatus());
  std::vector<TaskChange> changes;
  run_.Supervise({.chief = kTask,
                  .restart_policy = [](const TaskId&) { return RestartPolicy{.limit = 1}; },
                  .changed = [&](const TaskId&, TaskChange change, const ExitStatus&) { changes.push_back(change); }});
  EXPECT_THAT(changes, ElementsAre(TaskChange::kStarting, TaskChange::kRunning, TaskChange::kFinished));
  EXPECT_EQ(run_.supervisor()->exit_code(), 0);
  EXPECT_THAT(started_, ElementsAre("worker:0")) << "a restart is told as a change";
  EXPECT_THAT(out_[kTask], HasSubstr("again\n"));
}

TEST_F(TaskRunTest, ARestartWhoseProgramIsGoneEndsTheTask) {
  const ScratchFolder folder;
  const std::string program = folder.path() + "/program";
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  ASSERT_EQ(run_.Launch({Shell(kOther, absl::StrCat("cp /bin/sh ", program))}), absl::OkStatus());
  run_.Supervise({.chief = kOther});
  run_.ForgetTasks();
  ASSERT_EQ(run_.Launch({{.task = kTask,
                          .arguments = {program, "-c", absl::StrCat("rm ", program, "; kill -9 $$")},
                          .environment = {{kRunIdVariable, run_id_}}}}),
            absl::OkStatus());
  run_.Supervise({.chief = kTask, .restart_policy = [](const TaskId&) { return RestartPolicy{.limit = 1}; }});
  EXPECT_EQ(run_.supervisor()->exit_code(), 1);
  EXPECT_THAT(said_.back(), HasSubstr("worker:0 could not be started again"));
}

TEST_F(TaskRunTest, WhoseAddressIsInUseIsStartedOnceMoreWithoutTheReservation) {
  const ScratchFolder folder;
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  Reserve(kTask, {0});
  ASSERT_EQ(run_.Launch({Shell(kTask, absl::StrCat("mkdir ", folder.path(),
                                                   "/once && { echo 'OSError: [Errno 98] Address already in use' >&2; "
                                                   "exit 1; }; echo bound"))}),
            absl::OkStatus());
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 0);
  EXPECT_THAT(started_, ElementsAre("worker:0", "worker:0"));
  EXPECT_THAT(could_bind_, ElementsAre(false, true));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("worker:0 exited with 1 and says that its address is in use")));
  EXPECT_FALSE(run_.supervisor()->first_failure().has_value());
}

TEST_F(TaskRunTest, AServerOfMusterWhoseAddressIsInUseIsStartedOnceMoreToo) {
  const ScratchFolder folder;
  const auto once = [&](const std::string& name, const std::string& says) {
    return absl::StrCat("mkdir ", folder.path(), "/", name, " && { echo '", says, "' >&2; exit 1; }; echo bound");
  };
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  ASSERT_EQ(run_.Reserve({{.task = kTask, .ports = {0}}, {.task = kOther, .ports = {0}}}).status(), absl::OkStatus());
  ASSERT_EQ(
      run_.Launch({Shell(kTask, once("ps",
                                     "muster ps: port 20001 (10.0.0.1:20001) is in use by another process: "
                                     "end it or take another port")),
                   Shell(kOther, once("page", "cannot listen at 10.0.0.1:20002; is it in use? 0 takes a free port"))}),
      absl::OkStatus());
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 0);
  for (const TaskId& task : {kTask, kOther}) EXPECT_THAT(out_[task], HasSubstr("bound"));
}

// The other task knows the address of the first, and ends once it knows the new one.
TEST_F(TaskRunTest, WhoseAddressIsStillInUseGetsAnotherAndAllAreStartedAgain) {
  const ScratchFolder folder;
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  Reserve(kTask, {0});
  const std::string before = reserved_.at(kTask).front();
  plan_ = [&](const ReservedPorts& addresses) {
    const std::string& address = addresses.at(kTask).front();
    const std::string in_use = "{ echo bind: address already in use; exit 5; }";
    return std::vector<ProcessSpec>{
        Shell(kTask, absl::StrCat("[ ", address, " = ", before, " ] && ", in_use, "; echo bound ", address)),
        Shell(kOther, absl::StrCat("[ ", address, " = ", before, " ] && exec sleep 1000; echo told ", address))};
  };
  ASSERT_EQ(run_.Launch(plan_(reserved_)), absl::OkStatus());
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 0);
  const std::string after = out_[kTask].substr(out_[kTask].rfind(' ') + 1);
  EXPECT_NE(after, before + "\n");
  EXPECT_EQ(out_[kOther], "told " + after);
  EXPECT_EQ(ends_[kTask], 3);
  EXPECT_FALSE(run_.supervisor()->first_failure().has_value());
  EXPECT_EQ(run_.supervisor()->restarts(kTask) + run_.supervisor()->restarts(kOther), 0);
  EXPECT_THAT(said_, ::testing::Contains(HasSubstr("another program has its port, so it gets another one")));
}

TEST_F(TaskRunTest, WhoseThirdAddressIsInUseHasFailed) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  Reserve(kTask, {0});
  plan_ = [&](const ReservedPorts&) {
    return std::vector<ProcessSpec>{Shell(kTask, "echo bind: address already in use; exit 5")};
  };
  ASSERT_EQ(run_.Launch(plan_(reserved_)), absl::OkStatus());
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 5);
  EXPECT_EQ(ends_[kTask], 3);
}

TEST_F(TaskRunTest, APortThatTheUserHasChosenStays) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  const uint16_t port = FreePorts::Reserve(1)->port(0);  // released again at once
  Reserve(kTask, {port});
  ASSERT_EQ(run_.Launch({Shell(kTask, "echo bind: address already in use; exit 5")}), absl::OkStatus());
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 5);
  EXPECT_EQ(ends_[kTask], 2);
}

// Its end and the failed start both come before the supervision.
TEST_F(TaskRunTest, WhatCannotBeStartedOnceMoreHasFailed) {
  const ScratchFolder folder;
  const std::string program = folder.path() + "/once";
  std::ofstream(program) << "#!/bin/sh\nrm \"$0\"\necho bind: address already in use\nexit 5\n";
  ASSERT_EQ(chmod(program.c_str(), 0700), 0);
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  Reserve(kTask, {0});
  ProcessSpec process = Shell(kTask, "");
  process.arguments = {program};
  ASSERT_EQ(run_.Launch({process}), absl::OkStatus());
  while (said_.size() < 2) Wait();
  EXPECT_THAT(said_.back(), HasSubstr("worker:0 could not be started once more: "));
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 1);
}

TEST_F(TaskRunTest, WithoutAReservationItIsAFailureLikeAnyOther) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  ASSERT_EQ(run_.Launch({Shell(kTask, "echo bind: address already in use; exit 5")}), absl::OkStatus());
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 5);
  EXPECT_THAT(started_, SizeIs(1));
}

TEST_F(TaskRunTest, AnInterruptBeforeTheSupervisionEndsTheTasks) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  ASSERT_EQ(run_.Launch({Shell(kTask, "exec sleep 1000")}), absl::OkStatus());
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  while (run_.interrupts() == 0) Wait();
  run_.Supervise({.chief = kTask});
  EXPECT_EQ(run_.supervisor()->exit_code(), 128 + SIGTERM);
}

TEST_F(TaskRunTest, TheCompanionIsEndedWithTheTasksAndItsFailureIsOnlySaid) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  ASSERT_EQ(run_.Launch({Shell(kTask, "exit 0")}), absl::OkStatus());
  run_.LaunchCompanion({.task = kOther, .arguments = {"/no/such/program"}});
  run_.Supervise({.chief = kTask});
  while (said_.empty()) Wait();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("worker:1 could not be started")));
  run_.LaunchCompanion(Shell(kOther, "exec sleep 1000"));
  EXPECT_EQ(run_.Stop(), 0);
  EXPECT_EQ(ends_[kOther], 1);
}

}  // namespace
}  // namespace muster::task_run_test
