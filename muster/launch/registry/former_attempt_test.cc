// Tests of Registry::TakeRestartBack, on one host and as another sees it.
#include "muster/launch/registry/former_attempt.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "muster/launch/testing/registry_fixture.h"

namespace muster::former_attempt_test {
namespace {

using ::testing::IsEmpty, ::testing::SizeIs;

class FormerAttemptTest : public RegistryFixture {
 protected:
  std::unique_ptr<Registry> OpenOn(const std::string& host) {
    const RegistryPlace place{.database = indexes_ / (host + ".db"),
                              .shared = true,
                              .machine = {.host = host, .boot = "boot-of-" + host, .pid_numbers = "1"}};
    return Registry::OpenAt(home_, place, clock_).value();
  }
  // Another attempt, with other parameters and tasks, that ends before it has begun.
  void BeginAndTakeBack(Registry& registry, const ExperimentId& id) {
    NewExperiment again = Single();
    again.file_text = "other: text\n";
    again.runs = {{{"learning-rate", "7"}}};
    ASSERT_TRUE(registry.Restart(id, again).ok());
    Bring(registry, id, RunState::kPending);
    ASSERT_TRUE(SetTasks(registry, id, {{.task = {kWorkerJob, 3}, .state = RunState::kPending}}).ok());
    clock_.Advance(absl::Minutes(1));
    const absl::Status back = registry.TakeRestartBack(id);
    ASSERT_TRUE(back.ok()) << back;
  }

  const ScratchFolder indexes_;
};

TEST_F(FormerAttemptTest, AllIsAsBeforeTheAttemptThatWasTakenBack) {
  auto a = OpenOn("a"), b = OpenOn("b");
  const ExperimentId id{Create(*a, Single()), 0};
  Bring(*a, id, RunState::kRunning);
  TaskRecord task{.task = {kWorkerJob, 0}, .state = RunState::kRunning, .host = "h1", .restarts = 2};
  ASSERT_TRUE(SetTasks(*a, id, {task}).ok());
  task.state = RunState::kFinished;
  task.exit = ExitStatus{.code = 0};
  ASSERT_TRUE(SetTasks(*a, id, {task}).ok());
  Bring(*a, id, RunState::kFinished);
  const RunRecord before = Get(*a, id);
  const std::vector<TaskRecord> tasks = a->Tasks(id).value();
  for (int time = 0; time < 2; ++time) {
    BeginAndTakeBack(*a, id);
    for (Registry* const registry : {a.get(), b.get()}) {
      RunRecord after = Get(*registry, id);
      EXPECT_EQ(after.state, RunState::kFinished);
      EXPECT_EQ(after.ended, before.ended);
      EXPECT_EQ(after.parameters, before.parameters);
      EXPECT_EQ(after.output_dir, before.output_dir);
      EXPECT_EQ(registry->Tasks(id).value(), tasks);
      EXPECT_EQ(registry->Specification(id.number)->file_text, Single().file_text);
      EXPECT_THAT(registry->List({.only_open = true}).value(), IsEmpty());
    }
  }
  // An index that is made anew reads the same.
  auto c = OpenOn("c");
  EXPECT_EQ(Get(*c, id).state, RunState::kFinished);
  EXPECT_EQ(c->Tasks(id).value(), tasks);
  EXPECT_TRUE(a->Restart(id, Single()).ok()) << "and it can begin again";
}

TEST_F(FormerAttemptTest, TheFirstAttemptCanNotBeTakenBack) {
  auto a = OpenOn("a");
  const ExperimentId id{Create(*a, Single()), 0};
  EXPECT_EQ(a->TakeRestartBack(id).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Get(*a, id).state, RunState::kCreated);
}

// The other runs of its grid stay as they are.
TEST_F(FormerAttemptTest, ARunOfAGridIsTakenBackAlone) {
  auto a = OpenOn("a");
  const int64_t number = Create(*a, Grid(2));
  for (const int run : {1, 2}) Bring(*a, {number, run}, RunState::kFinished);
  Bring(*a, {number, 0}, RunState::kFinished);
  const RunRecord before = Get(*a, {number, 2});
  BeginAndTakeBack(*a, {number, 2});
  EXPECT_EQ(Get(*a, {number, 2}).state, RunState::kFinished);
  EXPECT_EQ(Get(*a, {number, 2}).parameters, before.parameters);
  EXPECT_EQ(Get(*a, {number, 1}).attempt, 1);
  EXPECT_THAT(a->Runs(number).value(), SizeIs(2));
}

}  // namespace
}  // namespace muster::former_attempt_test
