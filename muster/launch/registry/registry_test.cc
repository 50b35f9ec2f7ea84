#include "muster/launch/registry/registry.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/testing/full_disk.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::registry_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

using RegistryTest = RegistryFixture;

TaskRecord Task(const std::string& job, int index, RunState state) {
  TaskRecord task;
  task.task = {job, index};
  task.state = state;
  return task;
}

TEST_F(RegistryTest, KeepsAnExperimentAsItWasAskedFor) {
  NewExperiment experiment = Single();
  experiment.file_text = "run: 'eins'\n# \xc3\xa4 \xff\n";
  experiment.options = {.no_gpus = true, .no_venv = true, .stop_grace_seconds = 7};
  experiment.runs = {{{"num-layers", "4"}, {"quote", "\"'\n{"}, {"empty", ""}}};
  experiment.environment = {"HOME=1", "LANG=", "LC_BYTES=\xff\xfe", "OMP_LINES=a\nb"};
  EXPECT_EQ(Create(*Open(), experiment), 1);

  auto registry = Open();
  const auto got = registry->Specification(1).value();
  EXPECT_EQ(got.project, experiment.project);
  EXPECT_EQ(got.folder, experiment.folder);
  EXPECT_EQ(got.file_name, experiment.file_name);
  EXPECT_EQ(got.file_text, experiment.file_text);
  EXPECT_EQ(got.tree, experiment.tree);
  EXPECT_TRUE(got.options.no_gpus);
  EXPECT_TRUE(got.options.no_venv);
  EXPECT_EQ(got.options.stop_grace_seconds, 7);
  EXPECT_EQ(got.runs, experiment.runs);
  EXPECT_FALSE(got.grid);
  EXPECT_EQ(got.environment, experiment.environment);

  const RunRecord run = Get(*registry, {1, 0});
  EXPECT_EQ(run.id, (ExperimentId{1, 0}));
  EXPECT_EQ(run.project, "toaster");
  EXPECT_EQ(run.folder, "/projects/toaster");
  EXPECT_EQ(run.tree, "0123abcd");
  EXPECT_EQ(run.state, RunState::kCreated);
  EXPECT_EQ(run.parameters, experiment.runs[0]);
  EXPECT_EQ(run.attempt, 1);
  EXPECT_EQ(run.runs, 0);
  EXPECT_EQ(run.created, clock_.Now());
  EXPECT_EQ(run.ended, absl::InfinitePast());
  EXPECT_THAT(*registry->Runs(1), IsEmpty());
  EXPECT_THAT(*registry->Tasks({1, 0}), IsEmpty());
}

TEST_F(RegistryTest, AGridHasItsRuns) {
  auto registry = Open();
  ASSERT_EQ(Create(*registry, Single()), 1);
  ASSERT_EQ(Create(*registry, Grid(12)), 2);
  const RunRecord own = Get(*registry, {2, 0});
  EXPECT_EQ(own.runs, 12);
  EXPECT_THAT(own.parameters, IsEmpty());
  const auto runs = registry->Runs(2).value();
  ASSERT_EQ(runs.size(), 12U);
  for (int i = 0; i < 12; ++i) {
    const RunRecord& run = runs[static_cast<size_t>(i)];
    EXPECT_EQ(run.id, (ExperimentId{2, i + 1}));
    EXPECT_EQ(run.parameters.at("learning-rate"), std::to_string(i + 1));
    EXPECT_EQ(run.runs, 0);
    EXPECT_EQ(run.project, "toaster");
  }
  EXPECT_EQ(Get(*registry, {2, 11}).parameters.at("learning-rate"), "11");
  const auto specification = registry->Specification(2).value();
  EXPECT_TRUE(specification.grid);
  EXPECT_EQ(specification.runs, Grid(12).runs);
}

TEST_F(RegistryTest, WhatCannotBeAnExperimentIsRefused) {
  auto registry = Open();
  NewExperiment none = Single(), two = Grid(2), binary = Single(), label = Single(), word = Single();
  none.runs.clear();
  two.grid = false;
  binary.runs = {{{"rate", "\xff"}}};
  label.options.hosts.kubernetes = KubernetesSetting{.labels = {{"team\xff", "a"}}};
  word.options.hosts.command = CommandSetting{.hosts = 1, .folder = "/f"};
  word.options.hosts.command->acquire.argv = {"./get", "kn\xf6pfe"};
  for (const NewExperiment& wrong : {none, two, binary, label, word}) {
    EXPECT_EQ(registry->Create(wrong).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(registry->Create(binary).status().message(), HasSubstr("\"rate\""));
  EXPECT_THAT(registry->Create(label).status().message(), HasSubstr("/kubernetes/labels/team"));
  EXPECT_THAT(registry->Create(word).status().message(), HasSubstr("\"/command/acquire/argv/1\" is \"kn"));
  EXPECT_THAT(*registry->List({}), IsEmpty());
  EXPECT_EQ(Create(*registry, Single()), 1);
}

// Otherwise others could see it for a moment without a lock.
TEST_F(RegistryTest, NobodySeesAnExperimentBeforeItIsPrepared) {
  auto registry = Open(), other = Open();
  const auto number = registry->Create(Single(), [&](const ExperimentId& id) {
    EXPECT_EQ(id, (ExperimentId{1, 0}));
    EXPECT_EQ(other->Run(id).status().code(), absl::StatusCode::kNotFound);
    return absl::OkStatus();
  });
  ASSERT_TRUE(number.ok()) << number.status();
  EXPECT_TRUE(other->Run({1, 0}).ok());

  const auto failed = registry->Create(Single(), [](const ExperimentId&) { return absl::AbortedError("no folder"); });
  EXPECT_EQ(failed.status(), absl::AbortedError("no folder"));
  EXPECT_EQ(registry->List({})->size(), 1U);
  EXPECT_EQ(Create(*registry, Single()), 2);
}

TEST_F(RegistryTest, WhatIsNotThereIsNamed) {
  auto registry = Open();
  EXPECT_THAT(registry->Run({7, 0}).status().message(),
              HasSubstr("there is no experiment 7; none has been started (muster train)"));
  EXPECT_EQ(registry->Last("").status().code(), absl::StatusCode::kNotFound);
  for (int i = 0; i < 4; ++i) Create(*registry, Single());
  Create(*registry, Grid(3));
  for (const auto& [id, words] :
       std::vector<std::pair<ExperimentId, std::string>>{{{9, 0}, "there is no experiment 9; the last are 5, 4, 3"},
                                                         {{9, 2}, "there is no experiment 9; the last are 5, 4, 3"},
                                                         {{1, 2}, "experiment 1 isn't a grid: it has no run 2"},
                                                         {{5, 4}, "grid 5 has no run 4; it has 1 to 3"}}) {
    RunRecord record;
    record.id = id;
    for (const absl::Status& status :
         {registry->Run(id).status(), registry->Tasks(id).status(), registry->SetRun(record),
          SetTasks(*registry, id, {}), registry->Restart(id, Single()), registry->TakeGpus(id, 1, {0}).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
      EXPECT_THAT(status.message(), HasSubstr(words));
    }
  }
  for (const absl::Status& status :
       {registry->Runs(9).status(), registry->Specification(9).status(), registry->Forget(9)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  }
  EXPECT_THAT(registry->Last("oven").status().message(), HasSubstr("no experiment of project \"oven\""));
}

TEST_F(RegistryTest, StatesFollowTheDrawingOnly) {
  const std::vector<RunState> all = {RunState::kCreated, RunState::kBuilding, RunState::kPending, RunState::kStarting,
                                     RunState::kRunning, RunState::kFinished, RunState::kFailed,  RunState::kKilled};
  auto registry = Open();
  for (const RunState from : all) {
    for (const RunState to : all) {
      const ExperimentId id{Create(*registry, Single()), 0};
      if (from == RunState::kBuilding) {
        ASSERT_TRUE(SetState(*registry, id, from).ok());
      } else {
        Bring(*registry, id, from);
      }
      const bool allowed = from == to || (MayFollow(from, to) && !HasEnded(from));
      const absl::Status status = SetState(*registry, id, to);
      EXPECT_EQ(status.ok(), allowed) << Name(from) << " -> " << Name(to) << ": " << status;
      EXPECT_EQ(Get(*registry, id).state, allowed ? to : from);
      if (!allowed) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), HasSubstr("experiment " + id.ToString() + " is " + std::string(Name(from))));
      }

      ASSERT_TRUE(SetTasks(*registry, id, {Task("other", 0, from)}).ok());  // a new task may have any state
      const absl::Status task = SetTasks(*registry, id, {Task("other", 0, to)});
      EXPECT_EQ(task.ok(), allowed) << Name(from) << " -> " << Name(to) << ": " << task;
    }
  }
}

TEST_F(RegistryTest, SetRunWritesWhatASupervisorKnows) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  ASSERT_TRUE(SetSupervisor(*registry, id, 4242).ok());
  EXPECT_EQ(Get(*registry, id).supervisor, 4242);
  RunRecord run = Get(*registry, id);
  run.output_dir = "/out/1";
  run.state = RunState::kPending;
  run.project = "another";  // SetRun doesn't write it
  ASSERT_TRUE(registry->SetRun(run).ok());
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(Get(*registry, id).ended, absl::InfinitePast());

  run.state = RunState::kFailed;
  run.reason = "worker.2 exited with 3";
  run.exit_code = 3;
  ASSERT_TRUE(registry->SetRun(run).ok());
  const absl::Time ended = clock_.Now();
  clock_.Advance(absl::Seconds(5));
  ASSERT_TRUE(registry->SetRun(run).ok());  // the same state again
  const RunRecord got = Get(*registry, id);
  EXPECT_EQ(got.state, RunState::kFailed);
  EXPECT_EQ(got.reason, run.reason);
  EXPECT_EQ(got.exit_code, 3);
  EXPECT_EQ(got.output_dir, "/out/1");
  EXPECT_EQ(got.project, "toaster");
  EXPECT_EQ(got.supervisor, 0);
  EXPECT_EQ(got.ended, ended);
}

TEST_F(RegistryTest, TasksAreKeptInTheirOrder) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Grid(2)), 2};
  TaskRecord worker = Task(kWorkerJob, 1, RunState::kRunning);
  worker.pid = 77;
  worker.cgroup = "/cg/x";
  worker.status_address = "127.0.0.1:9100";
  worker.gpus = "0,1";
  worker.mem_limit = int64_t{16} << 30;
  worker.restarts = 2;
  worker.exit = ExitStatus{.code = 0, .signal = 9};
  worker.reason = "used more than its 16 GB of memory";
  ASSERT_TRUE(SetTasks(*registry, id, {Task(kPsJob, 0, RunState::kCreated), worker}).ok());
  ASSERT_TRUE(SetTasks(*registry, id, {Task(kBuildJob, 0, RunState::kCreated)}).ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(SetTasks(*registry, id, {Task(kPsJob, 0, RunState::kPending)}).ok());

  const auto tasks = registry->Tasks(id).value();
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].task, (TaskId{kPsJob, 0}));
  EXPECT_EQ(tasks[0].state, RunState::kPending);
  EXPECT_EQ(tasks[0].exit, std::nullopt);
  const TaskRecord& got = tasks[1];
  EXPECT_EQ(got.task, worker.task);
  EXPECT_EQ(got.state, worker.state);
  EXPECT_EQ(got.pid, worker.pid);
  EXPECT_EQ(got.cgroup, worker.cgroup);
  EXPECT_EQ(got.status_address, worker.status_address);
  EXPECT_EQ(got.gpus, worker.gpus);
  EXPECT_EQ(got.mem_limit, worker.mem_limit);
  EXPECT_EQ(got.restarts, worker.restarts);
  EXPECT_EQ(got.exit, worker.exit);
  EXPECT_EQ(got.reason, worker.reason);
  EXPECT_EQ(tasks[2].task, (TaskId{kBuildJob, 0}));
  EXPECT_THAT(*registry->Tasks({id.number, 1}), IsEmpty());
}

TEST_F(RegistryTest, ATaskIsInItsStateSinceItCameToIt) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  const auto since = [&] { return registry->Tasks(id)->at(0).since; };
  ASSERT_TRUE(SetTasks(*registry, id, {Task(kMasterJob, 0, RunState::kCreated)}).ok());
  const absl::Time created = clock_.Now();
  EXPECT_EQ(since(), created);
  clock_.Advance(absl::Seconds(3));
  ASSERT_TRUE(SetTasks(*registry, id, {Task(kMasterJob, 0, RunState::kCreated)}).ok());
  EXPECT_EQ(since(), created);
  ASSERT_TRUE(SetTasks(*registry, id, {Task(kMasterJob, 0, RunState::kPending)}).ok());
  EXPECT_EQ(since(), clock_.Now());
  TaskRecord said = Task(kMasterJob, 0, RunState::kStarting);
  said.since = clock_.Now() - absl::Milliseconds(250);
  ASSERT_TRUE(SetTasks(*registry, id, {said}).ok());
  EXPECT_EQ(since(), said.since);
}

TEST_F(RegistryTest, OfTasksAllAreWrittenOrNone) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  ASSERT_TRUE(
      SetTasks(*registry, id, {Task(kPsJob, 0, RunState::kCreated), Task(kPsJob, 1, RunState::kFinished)}).ok());
  const absl::Status status =
      SetTasks(*registry, id, {Task(kPsJob, 0, RunState::kPending), Task(kPsJob, 1, RunState::kRunning)});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(status.message(), HasSubstr("task 1.ps.2 is FINISHED, after which RUNNING may not come"));
  EXPECT_EQ(registry->Tasks(id)->at(0).state, RunState::kCreated);
}

TEST_F(RegistryTest, AnotherAttemptOfAnEndedExperiment) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  EXPECT_EQ(registry->Restart(id, Single()).code(), absl::StatusCode::kFailedPrecondition);
  Bring(*registry, id, RunState::kRunning);
  EXPECT_THAT(registry->Restart(id, Single()).message(), HasSubstr("experiment 1 is RUNNING"));
  ASSERT_TRUE(SetTasks(*registry, id, {Task(kMasterJob, 0, RunState::kFailed)}).ok());
  RunRecord run = Get(*registry, id);
  run.state = RunState::kFailed;
  run.reason = "master exited with 1";
  run.exit_code = 1;
  run.output_dir = "/out/1";
  ASSERT_TRUE(registry->SetRun(run).ok());
  EXPECT_EQ(registry->Restart(id, Grid(2)).code(), absl::StatusCode::kInvalidArgument);

  NewExperiment again = Single();
  again.file_text = "new";
  again.tree = "ffff";
  again.runs = {{{"learning-rate", "0.5"}}};
  again.options.no_gpus = true;
  clock_.Advance(absl::Seconds(9));
  ASSERT_TRUE(registry->Restart(id, again).ok());
  const RunRecord got = Get(*registry, id);
  EXPECT_EQ(got.state, RunState::kCreated);
  EXPECT_EQ(got.attempt, 2);
  EXPECT_EQ(got.reason, "");
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_EQ(got.output_dir, "/out/1");
  EXPECT_EQ(got.tree, "ffff");
  EXPECT_EQ(got.parameters, again.runs[0]);
  EXPECT_EQ(got.ended, absl::InfinitePast());
  EXPECT_EQ(got.created, clock_.Now() - absl::Seconds(9));
  EXPECT_THAT(*registry->Tasks(id), IsEmpty());
  const auto specification = registry->Specification(1).value();
  EXPECT_EQ(specification.file_text, "new");
  EXPECT_EQ(specification.tree, "ffff");
  EXPECT_TRUE(specification.options.no_gpus);
  EXPECT_EQ(registry->List({.only_open = true})->size(), 1U);
}

TEST_F(RegistryTest, AnotherAttemptOfAGrid) {
  auto registry = Open();
  const int64_t number = Create(*registry, Grid(3));
  const ExperimentId own{number, 0};
  Bring(*registry, own, RunState::kFinished);
  EXPECT_EQ(registry->Restart(own, Grid(3)).code(), absl::StatusCode::kFailedPrecondition);  // its runs haven't ended
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(SetTasks(*registry, {number, run}, {Task(kMasterJob, 0, RunState::kFinished)}).ok());
    Bring(*registry, {number, run}, RunState::kFailed);
  }
  EXPECT_EQ(registry->Restart(own, Single()).code(), absl::StatusCode::kInvalidArgument);

  ASSERT_TRUE(registry->Restart(own, Grid(2)).ok());
  EXPECT_EQ(Get(*registry, own).runs, 2);
  EXPECT_EQ(Get(*registry, own).attempt, 2);
  ASSERT_EQ(registry->Runs(number)->size(), 2U);
  EXPECT_EQ(Get(*registry, {number, 2}).attempt, 2);
  EXPECT_EQ(Get(*registry, {number, 2}).state, RunState::kCreated);
  EXPECT_THAT(*registry->Tasks({number, 2}), IsEmpty());
  EXPECT_THAT(Sql("SELECT * FROM tasks"), IsEmpty());  // including the third run's

  for (int run = 0; run <= 2; ++run) Bring(*registry, {number, run}, RunState::kFinished);
  ASSERT_TRUE(registry->Restart(own, Grid(4)).ok());
  EXPECT_EQ(registry->Runs(number)->size(), 4U);
  EXPECT_EQ(Get(*registry, {number, 4}).attempt, 1);
}

TEST_F(RegistryTest, AnotherAttemptOfAGridLeavesWhatHasFinished) {
  auto registry = Open();
  const int64_t number = Create(*registry, Grid(3));
  const ExperimentId own{number, 0};
  for (int run = 0; run <= 3; ++run)
    Bring(*registry, {number, run}, run == 2 ? RunState::kFailed : RunState::kFinished);
  NewExperiment again = Grid(3);
  again.runs[2] = {{"learning-rate", "7"}};  // changed since
  ASSERT_TRUE(registry->Restart(own, again).ok());
  EXPECT_EQ(Get(*registry, {number, 1}).state, RunState::kFinished);
  EXPECT_EQ(Get(*registry, {number, 1}).attempt, 1);
  EXPECT_EQ(Get(*registry, {number, 2}).state, RunState::kCreated);
  EXPECT_EQ(Get(*registry, {number, 3}).state, RunState::kCreated);
  for (const int run : {0, 2, 3}) Bring(*registry, {number, run}, RunState::kFinished);
  const absl::Status done = registry->Restart(own, again);
  EXPECT_EQ(done.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(done.message()), HasSubstr("all 3 runs of grid 1 have finished"));
  EXPECT_EQ(Get(*registry, own).state, RunState::kFinished) << "nothing is changed";
}

TEST_F(RegistryTest, AnotherAttemptOfOneRunOfAGrid) {
  auto registry = Open();
  const int64_t number = Create(*registry, Grid(2));
  for (int run = 0; run <= 2; ++run) Bring(*registry, {number, run}, RunState::kFinished);
  NewExperiment again = Single();
  again.tree = "ffff";
  again.runs = {{{"learning-rate", "9"}}};
  EXPECT_EQ(registry->Restart({number, 2}, Grid(2)).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(registry->Restart({number, 2}, again).ok());
  EXPECT_EQ(Get(*registry, {number, 2}).state, RunState::kCreated);
  EXPECT_EQ(Get(*registry, {number, 2}).parameters, again.runs[0]);
  EXPECT_EQ(Get(*registry, {number, 2}).tree, "ffff");
  EXPECT_EQ(Get(*registry, {number, 1}).state, RunState::kFinished);
  EXPECT_EQ(Get(*registry, {number, 1}).tree, "0123abcd");
  EXPECT_EQ(Get(*registry, {number, 0}).state, RunState::kFinished);
  EXPECT_EQ(Get(*registry, {number, 0}).runs, 2);
  EXPECT_TRUE(registry->Specification(number)->grid);
}

TEST_F(RegistryTest, WhatIsForgottenIsGoneAndItsNumberIsNotGivenAgain) {
  auto registry = Open();
  const int64_t number = Create(*registry, Grid(2));
  ASSERT_TRUE(SetTasks(*registry, {number, 2}, {Task(kMasterJob, 0, RunState::kRunning)}).ok());
  Bring(*registry, {number, 0}, RunState::kFinished);
  Bring(*registry, {number, 1}, RunState::kFinished);
  EXPECT_EQ(registry->Forget(number).code(), absl::StatusCode::kFailedPrecondition);  // run 2 hasn't ended
  Bring(*registry, {number, 2}, RunState::kFinished);
  ASSERT_TRUE(registry->Forget(number).ok());
  EXPECT_EQ(registry->Run({number, 0}).status().code(), absl::StatusCode::kNotFound);
  for (const char* table : {"experiments", "runs", "tasks", "gpu_leases"})
    EXPECT_THAT(Sql(std::string("SELECT * FROM ") + table), IsEmpty()) << table;
  EXPECT_EQ(Create(*registry, Single()), number + 1);
}

TEST_F(RegistryTest, GpusHaveOneOwner) {
  auto registry = Open();
  const ExperimentId first{Create(*registry, Single()), 0}, second{Create(*registry, Single()), 0};
  const std::vector<int> all = {0, 1, 2, 5};
  EXPECT_THAT(*registry->TakeGpus(first, 3, all), ElementsAre(0, 1, 2));
  EXPECT_THAT(*registry->TakeGpus(second, 2, all), IsEmpty());  // not just one
  EXPECT_THAT(*registry->TakeGpus(second, 1, all), ElementsAre(5));
  EXPECT_THAT(*registry->TakeGpus(first, 1, all), IsEmpty());
  EXPECT_THAT(*registry->TakeGpus(first, 0, all), IsEmpty());
  ASSERT_TRUE(registry->ReleaseGpus(first).ok());
  EXPECT_THAT(*registry->TakeGpus(second, 2, all), ElementsAre(0, 1));  // besides its first
  EXPECT_THAT(*registry->TakeGpus(first, 2, all), IsEmpty());
  Bring(*registry, second, RunState::kFinished);  // its end releases them
  EXPECT_THAT(*registry->TakeGpus(first, 4, all), ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(registry->TakeGpus(second, 1, all).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(*registry->TakeGpus(first, 2, {7, 7}), IsEmpty());  // one GPU, named twice
}

TEST_F(RegistryTest, AFullDiskChangesNothing) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  NewExperiment large = Single();
  large.file_text = std::string(500000, '#');
  std::optional<FullDisk> disk(std::in_place, 200000);
  const absl::Status full = registry->Create(large).status();
  const absl::Status other = SetState(*registry, id, RunState::kPending);
  disk.reset();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_TRUE(other.ok()) << other;  // there is room for that
  EXPECT_EQ(registry->List({})->size(), 1U);
  EXPECT_EQ(Create(*registry, large), 2);
}

// Gives the same as a vector, in a table of the size for which the header promises speed.
TEST_F(RegistryTest, ListsTheNewestOfTenThousand) {
  auto registry = Open();
  ASSERT_EQ(Create(*registry, Single("p0")), 1);
  registry.reset();
  for (int i = 2; i <= 10000; ++i) ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.folder({.number = i})).ok());
  std::ofstream(home_.experiment_file(10000)) << "";  // else it was forgotten
  Sql("INSERT INTO experiments (number, project, folder, tree, runs, file_name, options, environment, file_text)"
      " WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
      " SELECT i, 'p' || (i % 7), '/f', 't', (i % 100 == 0) * 3, 'f', '{}', x'', '' FROM n;"
      "INSERT INTO runs (number, run, state, attempt, supervisor, machine, created_us, ended_us, exit_code, tree,"
      " output_dir, reason, parameters) SELECT number, 0, CASE number % 11 WHEN 0 THEN 'RUNNING' ELSE 'FINISHED' END, "
      "1, 0, '', 1,"
      " CASE number % 11 WHEN 0 THEN NULL ELSE 2 END, 0, 't', '', '', '{}' FROM experiments WHERE number > 1;"
      "INSERT INTO runs (number, run, state, attempt, supervisor, machine, created_us, ended_us, exit_code, tree,"
      " output_dir, reason, parameters) SELECT e.number, k.value, 'RUNNING', 1, 0, '', 1, NULL, 0, 't', '', '', '{}'"
      " FROM experiments e, json_each('[1,2,3]') k WHERE e.runs = 3");
  registry = Open();
  for (const bool only_open : {false, true}) {
    for (const std::string project : {"", "p3", "nobody's"}) {
      for (const int last : {0, 1, 20, 20000}) {
        std::vector<int64_t> expected;
        for (int64_t i = 10000; i >= 1 && (last == 0 || static_cast<int>(expected.size()) < last); --i) {
          const bool open = i % 11 == 0 || i == 1;
          const std::string of = i == 1 ? "p0" : "p" + std::to_string(i % 7);
          if ((!only_open || open) && (project.empty() || project == of)) expected.push_back(i);
        }
        std::reverse(expected.begin(), expected.end());
        const auto got = registry->List({.project = project, .only_open = only_open, .last = last}).value();
        std::vector<int64_t> numbers;
        for (const RunRecord& run : got) {
          EXPECT_EQ(run.id.run, 0);
          numbers.push_back(run.id.number);
        }
        EXPECT_EQ(numbers, expected) << project << " " << only_open << " " << last;
      }
    }
  }
  EXPECT_EQ(*registry->Last(""), (ExperimentId{10000, 0}));
  EXPECT_EQ(*registry->Last("p3"), (ExperimentId{9999, 0}));  // 9999 % 7 is 3
  EXPECT_EQ(registry->Last("nobody's").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(registry->Runs(9900)->size(), 3U);
}

}  // namespace
}  // namespace muster::registry_test
