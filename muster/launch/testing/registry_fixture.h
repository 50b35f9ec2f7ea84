// For tests of the registry: a MUSTER_HOME of their own, experiments to put into it, and a plain SQLite connection to
// read and to corrupt it.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {

// Writes these rows of a run's tasks.
inline absl::Status SetTasks(Registry& registry, const ExperimentId& id, const std::vector<TaskRecord>& tasks) {
  ASSIGN_OR_RETURN(const RunRecord run, registry.Run(id));
  return registry.SetRun(run, tasks);
}

class RegistryFixture : public ::testing::Test {
 protected:
  // Returns another registry each time.
  std::unique_ptr<Registry> Open() { return Registry::Open(home_, clock_).value(); }

  static NewExperiment Single(const std::string& project = "toaster") {
    NewExperiment experiment;
    experiment.project = project;
    experiment.folder = "/projects/" + project;
    experiment.file_name = "muster.yml";
    experiment.file_text = "project: " + project + "\n";
    experiment.tree = "0123abcd";
    experiment.runs = {{{"learning-rate", "0.1"}}};
    experiment.environment = {"PATH=/bin"};
    return experiment;
  }
  static NewExperiment Grid(int runs) {
    NewExperiment experiment = Single();
    experiment.grid = true;
    experiment.runs.clear();
    for (int run = 1; run <= runs; ++run) experiment.runs.push_back({{"learning-rate", std::to_string(run)}});
    return experiment;
  }

  static int64_t Create(Registry& registry, const NewExperiment& experiment) {
    return registry.Create(experiment).value();
  }
  static RunRecord Get(Registry& registry, const ExperimentId& id) { return registry.Run(id).value(); }
  static absl::Status SetState(Registry& registry, const ExperimentId& id, RunState state) {
    RunRecord run = Get(registry, id);
    run.state = state;
    return registry.SetRun(run);
  }
  static absl::Status SetSupervisor(Registry& registry, const ExperimentId& id, pid_t supervisor) {
    RunRecord run = Get(registry, id);
    run.supervisor = supervisor;
    return registry.SetRun(run);
  }
  // Also sets the states on the way there.
  static void Bring(Registry& registry, const ExperimentId& id, RunState state) {
    const std::vector<RunState> way = {RunState::kPending, RunState::kStarting, RunState::kRunning};
    for (const RunState step : way) {
      if (HasEnded(state) || state == RunState::kCreated) break;
      ASSERT_TRUE(SetState(registry, id, step).ok());
      if (step == state) return;
    }
    if (state != RunState::kCreated) {
      ASSERT_TRUE(SetState(registry, id, state).ok());
    }
  }

  // Takes the lock as a supervisor, or its starter, does.
  RunLock TakeLock(const ExperimentId& id) {
    EXPECT_TRUE(PosixFileSystem().CreateDirectory(home_.folder(id)).ok());
    return RunLock::Take(home_.lock(id)).value();
  }

  // Runs `sql` on the file without the registry; returns the rows' first columns.
  std::vector<std::string> Sql(const std::string& sql) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(home_.database().c_str(), &database), SQLITE_OK);
    std::vector<std::string> rows;
    char* error = nullptr;
    const auto take = [](void* to, int columns, char** values, char** /*names*/) {
      if (columns > 0) static_cast<std::vector<std::string>*>(to)->push_back(values[0] == nullptr ? "NULL" : values[0]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), take, &rows, &error), SQLITE_OK)
        << sql << ": " << (error == nullptr ? "" : error);
    sqlite3_free(error);
    EXPECT_EQ(sqlite3_close(database), SQLITE_OK);
    return rows;
  }

  const ScratchFolder scratch_;
  const Home home_{scratch_.path()};
  SimulatedClock clock_;
};

}  // namespace muster
