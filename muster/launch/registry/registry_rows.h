// Converts the index's text and byte columns, reads its rows and writes those that files or tasks say. Stateless.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/sqlite.h"
#include "muster/launch/spec/parameters.h"

namespace muster {

// Returns {"learning-rate":"0.1"}. InvalidArgument naming a parameter that isn't text (UTF-8).
absl::StatusOr<std::string> ParametersText(const ParameterValues& parameters);
absl::StatusOr<ParameterValues> ParseParametersText(std::string_view text);

// InvalidArgument: a word, label or folder among them isn't text (UTF-8), and can't be kept.
absl::Status CheckOptions(const SubmitOptions& options);

// Returns {"no_gpus":false,…}, for options that CheckOptions takes. When parsing, missing keys get their defaults.
std::string OptionsText(const SubmitOptions& options);
absl::StatusOr<SubmitOptions> ParseOptionsText(std::string_view text);

// Ends each "NAME=VALUE" with a zero byte, as the kernel does, because its bytes needn't be text.
std::string EnvironmentBytes(const std::vector<std::string>& environment);
std::vector<std::string> ParseEnvironmentBytes(std::string_view bytes);

// Read rows of kRunColumns (index_schema.h) and kTaskColumns. DataLoss: the row isn't what this program writes.
absl::StatusOr<RunRecord> RunOfRow(const SqliteStatement& row);
inline constexpr char kTaskColumns[] =
    "job, task, state, since_us, pid, cgroup, status_address, gpus, mem_limit, restarts, exit_code, exit_signal, "
    "reason, host";
absl::StatusOr<TaskRecord> TaskOfRow(const SqliteStatement& row);

// NotFound without such a row; the message is for programmers.
absl::StatusOr<RunRecord> SelectRun(SqliteDatabase& database, const ExperimentId& id);
absl::StatusOr<TaskRecord> SelectTask(SqliteDatabase& database, const ExperimentId& id, const TaskId& task);
// Returns the tasks in the order in which they came.
absl::StatusOr<std::vector<TaskRecord>> SelectTasks(SqliteDatabase& database, const ExperimentId& id);
absl::StatusOr<int64_t> CountOpenRuns(SqliteDatabase& database, int64_t number);

// Binds project, folder, tree, runs, file_name, options, environment and file_text. `runs`: of a grid; 0: none.
void BindSpecification(SqliteStatement& statement, const NewExperiment& experiment, int64_t runs);
// Writes state, reason, output_dir, exit_code, supervisor, machine, run_id and ended; nothing if the row's attempt is
// another one.
[[nodiscard]] absl::Status UpdateRun(SqliteDatabase& database, const RunRecord& run);
// Writes the whole row.
[[nodiscard]] absl::Status UpsertTask(SqliteDatabase& database, const ExperimentId& id, const TaskRecord& task);
// Makes the run's row. An attempt later than the row's begins: CREATED, without tasks and GPUs.
[[nodiscard]] absl::Status ApplyAskedRun(SqliteDatabase& database, int64_t number, const AskedRun& asked);
// Writes what a record says; nothing if it is of an earlier attempt than the row's. `leases`: GPUs are those of this
// machine.
[[nodiscard]] absl::Status ApplyChange(SqliteDatabase& database, const ExperimentId& id, const RunChange& change,
                                       bool leases);
[[nodiscard]] absl::Status DropLeases(SqliteDatabase& database, const ExperimentId& id);
[[nodiscard]] absl::Status DropTasks(SqliteDatabase& database, const ExperimentId& id);
// Drops all rows of an experiment.
[[nodiscard]] absl::Status DropExperiment(SqliteDatabase& database, int64_t number);
// Drops rows of runs of a grid that has fewer now.
[[nodiscard]] absl::Status DropRunsAbove(SqliteDatabase& database, int64_t number, int64_t runs);

}  // namespace muster
