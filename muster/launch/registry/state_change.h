// A change of an experiment's files that goes with a transaction of the index (docs/experiments/state.md): the files
// are written from the index's rows before it is committed, and are as they were if it isn't. Internal to the registry.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/sqlite.h"

namespace muster {

class StateChange {
 public:
  // Begins the transaction. Borrows both, which must outlive it.
  static absl::StatusOr<StateChange> Begin(SqliteDatabase& database, const Home& home, Durability durability);
  ~StateChange();  // takes everything back unless Commit has returned OK
  StateChange(StateChange&& other) noexcept;
  StateChange& operator=(StateChange&&) = delete;

  // Claims a number above `above` that no experiment has or had, by making its folder.
  absl::StatusOr<int64_t> ClaimNumber(int64_t above);
  // Writes experiment.json from the rows of the experiment and of its runs. Those that haven't ended become visible
  // for other hosts.
  [[nodiscard]] absl::Status WriteExperiment(int64_t number);
  // Makes an experiment, of which all runs may have ended, visible for other hosts again.
  [[nodiscard]] absl::Status MarkOpen(int64_t number);
  // Removes what makes an experiment of the folder.
  [[nodiscard]] absl::Status ForgetExperiment(int64_t number);
  // Appends a record with the run's row and those of `tasks`.
  [[nodiscard]] absl::Status WriteRecord(const ExperimentId& id, const std::vector<TaskId>& tasks);

  // Commits the transaction, then renews state.json of the runs that have changed. `now`: for state.json.
  [[nodiscard]] absl::Status Commit(absl::Time now);

 private:
  StateChange(SqliteDatabase& database, const Home& home, Durability durability, SqliteTransaction transaction)
      : database_(&database), home_(&home), durability_(durability), transaction_(std::move(transaction)) {}
  void TakeBack();

  SqliteDatabase* database_;
  const Home* home_;
  Durability durability_;
  SqliteTransaction transaction_;
  std::vector<std::function<void()>> undo_;  // the last first
  std::set<ExperimentId> changed_;
  std::set<int64_t> maybe_over_;  // experiments of which a run has ended
};

// Returns what was asked for, of the rows of an experiment and its runs. NotFound.
absl::StatusOr<ExperimentFileText> ExperimentOfRows(SqliteDatabase& database, int64_t number);
// Returns the rows of a run: its own, the GPUs leased to it, and all its tasks. NotFound.
absl::StatusOr<RunChange> StateOfRows(SqliteDatabase& database, const ExperimentId& id);
// Writes state.json from them. Errors are those of ReplaceFile.
[[nodiscard]] absl::Status WriteState(SqliteDatabase& database, const Home& home, const ExperimentId& id,
                                      absl::Time now);
// Returns the greatest number of a folder in experiments/; 0: none.
int64_t GreatestNumberOfFolders(const Home& home);

}  // namespace muster
