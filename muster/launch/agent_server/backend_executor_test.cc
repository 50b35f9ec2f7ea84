#include "muster/launch/agent_server/backend_executor.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>

#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/testing/agent_client.h"
#include "muster/launch/testing/fake_backend.h"
#include "muster/launch/testing/kept_values.h"

namespace muster::backend_executor_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::MatchesRegex;

const TaskId kTask{kWorkerJob, 0};
const TaskId kOther{kWorkerJob, 1};

class NoJournal final : public AgentJournal {
  void SetSupervisor(uint64_t, const std::string&) override {}
  void TakeIn(const OpenCommand&) override {}
  void Close(const CommandId&) override {}
  void SetAnswered(absl::Time) override {}
};

// A supervisor and an agent with a fake backend; frames pass between them without a stream.
class BackendExecutorTest : public ::testing::Test {
 protected:
  BackendExecutorTest() {
    EXPECT_EQ(executor_.Start(agent_), absl::OkStatus());
    stream_ = agent_.OnStream(RealClock().Now());
    client_.link.OnStream(RealClock().Now());
  }

  void Exchange() {
    const absl::Time now = RealClock().Now();
    client_.OnTime();
    for (bool any = true; any;) {
      any = false;
      for (std::string frame; !(frame = client_.link.NextFrame(now)).empty(); any = true)
        EXPECT_EQ(agent_.OnBytes(now, stream_, AsBytes(frame.data(), frame.size())), absl::OkStatus());
      for (std::string frame; !(frame = agent_.NextFrame(now, stream_)).empty(); any = true)
        EXPECT_EQ(client_.link.OnBytes(now, AsBytes(frame.data(), frame.size())), absl::OkStatus());
      executor_.Update();
    }
  }
  // As much as happens without waiting, several times.
  void Settle() {
    for (int i = 0; i < 10; ++i) {
      Exchange();
      loop_.RunOnce(absl::InfinitePast());
    }
  }
  // Runs until `done` returns true.
  template <typename Done>
  void RunUntil(Done done) {
    while (!done()) {
      Exchange();
      loop_.RunOnce(RealClock().Now() + absl::Milliseconds(10));
    }
  }
  CommandId Launch(const TaskId& task, std::vector<std::string> arguments) {
    Settle();
    return client_.link.Launch({.task = task, .arguments = std::move(arguments)}).value();
  }
  CommandId Reserve(const ReserveEntry& reserve) {
    Settle();
    const CommandId command = client_.link.Reserve(reserve).value();
    Settle();
    return command;
  }

  const ScratchFolder scratch_;
  FdLoop loop_{RealClock()};
  NoJournal journal_;
  std::map<std::string, KeptThing> kept_;
  BackendExecutor executor_{
      {.address = "h1",
       .cluster_file = scratch_ / "cluster",
       .devices = {{"CUDA_VISIBLE_DEVICES", "4,5"}},
       .keep = [this](const ValueChanges& changes) { KeepIn(kept_, changes); }},
      loop_,
      [this](BackendEvents& events) { return std::make_unique<FakeBackend>(BackendOptions{}, loop_, events); }};
  SupervisorLink agent_{{.job = "job", .limits = {.kept_bytes = 10'000}},
                        {.agent_id = std::string(kIdBytes, 'a'), .answered = RealClock().Now()},
                        journal_,
                        executor_};
  SupervisorLink::StreamId stream_{};
  AgentClient client_{loop_, "job"};
};

TEST_F(BackendExecutorTest, ALaunchHasItsOutputAndItsEnd) {
  const CommandId launch = Launch(kTask, {"echo", "hello"});
  RunUntil([&] { return client_.exits.contains(launch); });
  EXPECT_TRUE(client_.started.contains(launch));
  EXPECT_EQ(client_.out[launch], "hello\n");
  EXPECT_EQ(client_.exits[launch], ExitStatus{});
  EXPECT_TRUE(executor_.idle());
  const CommandId again = Launch(kTask, {"false"});
  RunUntil([&] { return client_.exits.contains(again); });
  EXPECT_EQ(client_.exits[again], ExitStatus{.code = 1});
  EXPECT_THAT(client_.mistakes, IsEmpty());
}

TEST_F(BackendExecutorTest, AnEndIsForgottenOnceTheSupervisorHasIt) {
  const CommandId launch = Launch(kTask, {"echo"});
  RunUntil([&] { return executor_.Launches().size() == 1 && executor_.idle(); });
  EXPECT_EQ(executor_.Launches()[0].launch, launch);
  EXPECT_EQ(executor_.Launches()[0].pid, 0);
  Exchange();
  RunUntil([&] { return executor_.Launches().empty(); });  // with the next frame, 500 ms later
}

TEST_F(BackendExecutorTest, ATaskThatRunsIsNotStartedTwice) {
  const CommandId first = Launch(kTask, {"sleep"});
  const CommandId second = Launch(kTask, {"sleep"});
  Settle();
  EXPECT_TRUE(client_.started.contains(first));
  EXPECT_TRUE(absl::IsAlreadyExists(client_.failed[second]));
  EXPECT_THAT(std::string(client_.failed[second].message()), HasSubstr("worker:0 runs already, by launch 1.1"));
}

TEST_F(BackendExecutorTest, AnEndIsForItsLaunchAlone) {
  const CommandId first = Launch(kTask, {"sleep"});
  client_.link.End(first, EndMode::kGently).value();
  RunUntil([&] { return client_.exits.contains(first); });
  EXPECT_EQ(client_.exits[first], ExitStatus{.signal = SIGTERM});
  const CommandId second = Launch(kTask, {"sleep"});
  client_.link.End(first, EndMode::kAtOnce).value();
  Settle();
  EXPECT_FALSE(client_.exits.contains(second));
  client_.link.End(second, EndMode::kAtOnce).value();
  RunUntil([&] { return client_.exits.contains(second); });
}

TEST_F(BackendExecutorTest, WhatCannotStartFails) {
  const CommandId launch = Launch(kTask, {"no-such-program"});
  Settle();
  EXPECT_TRUE(absl::IsNotFound(client_.failed[launch]));
  EXPECT_TRUE(executor_.idle());
  EXPECT_THAT(executor_.Launches(), IsEmpty());
}

TEST_F(BackendExecutorTest, PlacesOfDevicesAreThoseOfTheHostsPool) {
  Settle();
  const auto launch = [this](int index, const std::string& devices) {
    return client_.link
        .Launch({.task = {kWorkerJob, index},
                 .arguments = {"env"},
                 .environment = {{.name = "CUDA_VISIBLE_DEVICES", .value = devices}}})
        .value();
  };
  const CommandId second = launch(0, "1"), third = launch(1, "2");
  RunUntil([&] { return client_.exits.contains(second) && client_.failed.contains(third); });
  EXPECT_THAT(client_.out[second], HasSubstr("CUDA_VISIBLE_DEVICES=5\n"));
  EXPECT_THAT(client_.failed[third].message(), HasSubstr("CUDA_VISIBLE_DEVICES is '4,5', which has 2"));
}

// What a next life finds: the launch that runs, the one that has ended, the ports; and not the one that never began.
TEST_F(BackendExecutorTest, ANextLifeKnowsWhatTheOneBeforeHasKept) {
  const CommandId ended = Launch(kTask, {"echo", "hello"});
  RunUntil([&] { return client_.exits.contains(ended) && executor_.Launches().empty(); });
  const CommandId running = Launch(kTask, {"sleep", "1000"});
  RunUntil([&] { return client_.started.contains(running); });
  Reserve({.task = kTask, .ports = {0}});
  std::map<std::string, KeptThing> kept = kept_;
  kept["launch 9.9"] = kept.at("launch " + running.ToString());  // as if it had been kept, and the process not started
  EXPECT_FALSE(kept.contains("launch " + ended.ToString())) << "the supervisor has it";

  BackendExecutor next({.address = "h1", .cluster_file = scratch_ / "cluster"}, loop_, [this](BackendEvents& events) {
    return std::make_unique<FakeBackend>(BackendOptions{}, loop_, events);
  });
  SupervisorLink link({.job = "job"},
                      {.agent_id = std::string(kIdBytes, 'a'), .life = 2, .answered = RealClock().Now()}, journal_,
                      next);
  ASSERT_EQ(next.Start(link, {.kept = kept, .processes = {{running, 77}}}), absl::OkStatus());
  ASSERT_EQ(next.Launches().size(), 1U);
  EXPECT_EQ(next.Launches()[0].launch, running);
  EXPECT_EQ(next.Launches()[0].pid, 77);
  EXPECT_FALSE(next.idle());
  next.Close();
}

TEST_F(BackendExecutorTest, PortsAreReservedOnce) {
  const CommandId two = Reserve({.task = kTask, .ports = {0, 0}});
  ASSERT_EQ(client_.reserved[two].size(), 2U);
  EXPECT_THAT(client_.reserved[two][0], MatchesRegex("h1:[0-9]+"));
  EXPECT_EQ(client_.reserved[Reserve({.task = kTask, .ports = {0, 0}})], client_.reserved[two]);
  EXPECT_EQ(client_.reserved[Reserve({.task = kTask, .ports = {0}})][0], client_.reserved[two][0]);
  const std::string port = client_.reserved[two][0].substr(3);
  EXPECT_THAT(client_.reserved[Reserve({.task = kTask, .ports = {0}, .address = "10.0.0.7"})],
              ElementsAre("10.0.0.7:" + port));
  EXPECT_THAT(client_.reserved[Reserve({.task = kTask, .ports = {0}, .address = "2001:db8::7"})],
              ElementsAre("[2001:db8::7]:" + port));
  EXPECT_TRUE(absl::IsFailedPrecondition(client_.failed[Reserve({.task = kTask, .ports = {0, 0, 0}})]));
}

// The command may be done again by the agent's next life.
TEST_F(BackendExecutorTest, PortsThatAnotherProgramHasAreReplacedOnce) {
  const std::string first = client_.reserved[Reserve({.task = kTask, .ports = {0}})][0];
  const uint32_t number = static_cast<uint32_t>(std::stoi(first.substr(3)));
  const std::string second = client_.reserved[Reserve({.task = kTask, .ports = {0}, .without = {number}})][0];
  EXPECT_NE(first, second);
  EXPECT_EQ(client_.reserved[Reserve({.task = kTask, .ports = {0}, .without = {number}})][0], second);
  EXPECT_EQ(client_.reserved[Reserve({.task = kTask, .ports = {0}})][0], second);
}

TEST_F(BackendExecutorTest, StopEndsAllAlsoWhatIsBeingStarted) {
  const CommandId running = Launch(kTask, {"sleep"});
  Settle();
  const CommandId starting = client_.link.Launch({.task = kOther, .arguments = {"sleep"}}).value();
  client_.link.Stop().value();
  RunUntil([&] { return client_.stopped.has_value(); });
  EXPECT_EQ(client_.exits[running], ExitStatus{.signal = SIGKILL});
  EXPECT_EQ(client_.exits[starting], ExitStatus{.signal = SIGKILL});
  RunUntil([&] { return agent_.stopped(); });
  executor_.Reserve({1, 9}, {.task = kTask});  // no honest supervisor asks for that
  executor_.Launch({1, 10}, {.task = kTask, .arguments = {"sleep"}});
  EXPECT_TRUE(executor_.idle());
}

TEST_F(BackendExecutorTest, OnceTheGraceIsOverNobodyTakesOutputAndAllEnd) {
  const CommandId launch = Launch(kTask, {"yes"});
  RunUntil([&] { return !client_.out[launch].empty(); });
  agent_.EndNow(RealClock().Now());
  while (!executor_.idle()) loop_.RunOnce(absl::InfiniteFuture());
}

// One that is asked to end tells all that training has ended, though only this host may be out of reach.
TEST_F(BackendExecutorTest, OnceTheGraceIsOverPsAreKilledAndNotAskedToEnd) {
  const CommandId ps = Launch({kPsJob, 0}, {"sleep"});
  RunUntil([&] { return client_.started.contains(ps); });
  agent_.EndNow(RealClock().Now());
  for (int i = 0; i < 10; ++i) loop_.RunOnce(absl::InfinitePast());
  EXPECT_FALSE(executor_.idle());
  executor_.EndAll(EndMode::kAtOnce);
  while (!executor_.idle()) loop_.RunOnce(absl::InfiniteFuture());
}

TEST_F(BackendExecutorTest, OutputThatIsNotTakenStaysWhereItIs) {
  const CommandId launch = Launch(kTask, {"yes"});
  RunUntil([&] { return !client_.out[launch].empty(); });
  while (agent_.may_send_output()) loop_.RunOnce(absl::InfinitePast());
  for (int i = 0; i < 10; ++i) loop_.RunOnce(absl::InfinitePast());
  const size_t before = client_.out[launch].size();
  RunUntil([&] { return client_.out[launch].size() > before + 200; });
  EXPECT_THAT(client_.mistakes, IsEmpty());
}

TEST_F(BackendExecutorTest, TheClusterFileIsReplaced) {
  Settle();
  client_.link.WriteHosts("worker:0 h1:1\n").value();
  Settle();
  EXPECT_EQ(scratch_.Read("cluster"), "worker:0 h1:1\n");
  client_.link.WriteHosts("worker:0 h2:1\n").value();
  Settle();
  EXPECT_EQ(scratch_.Read("cluster"), "worker:0 h2:1\n");
  EXPECT_FALSE(scratch_.Has("cluster.new"));
}

TEST_F(BackendExecutorTest, AClusterFileThatCannotBeWrittenIsSaidAndTriedAgain) {
  std::filesystem::create_directory(scratch_ / "cluster.new");
  Settle();
  client_.link.WriteHosts("worker:0 h1:1\n").value();
  Settle();
  executor_.OnTime();
  Settle();
  EXPECT_THAT(client_.notes, ElementsAre(HasSubstr("tasks have old addresses until this works: cannot write " +
                                                   (scratch_ / "cluster.new"))));
  std::filesystem::remove(scratch_ / "cluster.new");
  executor_.OnTime();
  Settle();
  EXPECT_EQ(scratch_.Read("cluster"), "worker:0 h1:1\n");
  EXPECT_THAT(client_.notes, ElementsAre(HasSubstr("old addresses"), HasSubstr("present addresses")));
}

// There is room again when the next change of addresses comes, before the last one has been tried again.
TEST_F(BackendExecutorTest, ALaterClusterFileThatCanBeWrittenIsSaidToo) {
  std::filesystem::create_directory(scratch_ / "cluster.new");
  Settle();
  for (const char* hosts : {"worker:0 h1:1\n", "worker:0 h2:1\n"}) client_.link.WriteHosts(hosts).value();
  Settle();
  std::filesystem::remove(scratch_ / "cluster.new");
  client_.link.WriteHosts("worker:0 h3:1\n").value();
  Settle();
  EXPECT_EQ(scratch_.Read("cluster"), "worker:0 h3:1\n");
  EXPECT_THAT(client_.notes, ElementsAre(HasSubstr("old addresses"), HasSubstr("present addresses")))
      << "each is said once";
}

}  // namespace
}  // namespace muster::backend_executor_test
