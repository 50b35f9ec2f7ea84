#include "muster/launch/registry/registry.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/registry/kept_variables.h"
#include "muster/launch/registry/registry_rows.h"
#include "muster/launch/registry/registry_schema.h"
#include "muster/launch/registry/sqlite.h"

namespace muster {
namespace {

// Returns an id that changes with each boot of the machine.
std::string BootOfThisMachine() {
  const auto boot = PosixFileSystem().ReadFile("/proc/sys/kernel/random/boot_id");
  return boot.ok() ? std::string(absl::StripAsciiWhitespace(*boot)) : "";
}

// Returns the greatest number of an experiment that has a folder; folders stay behind if a registry is moved away.
int64_t GreatestNumberOfFolders(const Home& home) {
  const auto names = PosixFileSystem().ListDirectory(JoinPath(home.path(), "experiments"));
  int64_t greatest = 0;
  if (!names.ok()) return greatest;
  for (const std::string& name : *names) {
    const auto id = ExperimentId::Parse(name);
    if (id.ok() && id->run == 0) greatest = std::max(greatest, id->number);
  }
  return greatest;
}

absl::Status CheckNewExperiment(const NewExperiment& experiment) {
  if (experiment.runs.empty()) return absl::InvalidArgumentError("an experiment needs a run; accepted: 1 or more");
  if (experiment.grid || experiment.runs.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(experiment.runs.size(), " runs for an experiment that isn't a grid; accepted: 1"));
}

absl::Status StateError(const std::string& whose, RunState from, RunState to) {
  return absl::InvalidArgumentError(absl::StrCat(whose, " is ", AbslView(Name(from)), ", after which ",
                                                 AbslView(Name(to)),
                                                 " may not come (docs/experiments.md, \"States\")"));
}

// Binds the columns of `experiments` that come from a file and its options, in the order used below.
void BindSpecification(SqliteStatement& statement, const NewExperiment& experiment) {
  statement.BindText(experiment.project)
      .BindText(experiment.folder)
      .BindText(experiment.tree)
      .BindInt(experiment.grid ? static_cast<int64_t>(experiment.runs.size()) : 0)
      .BindText(experiment.file_name)
      .BindText(OptionsText(experiment.options))
      .BindBytes(EnvironmentBytes(KeptVariables(experiment.environment)))
      .BindText(experiment.file_text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Registry>> Registry::Open(const Home& home, const Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> database, SqliteDatabase::Open(home.database()));
  RETURN_IF_ERROR(PrepareRegistry(*database, [&home] { return GreatestNumberOfFolders(home); }));
  return std::unique_ptr<Registry>(new Registry(std::move(database), clock, BootOfThisMachine()));
}

Registry::Registry(std::unique_ptr<SqliteDatabase> database, const Clock& clock, std::string boot)
    : database_(std::move(database)), clock_(clock), boot_(std::move(boot)) {}

Registry::~Registry() = default;

absl::StatusOr<int64_t> Registry::Create(const NewExperiment& experiment, const Prepare& before_others_see_it) {
  RETURN_IF_ERROR(CheckNewExperiment(experiment));
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(*database_, Durability::kDisk));
  ASSIGN_OR_RETURN(SqliteStatement insert,
                   database_->Prepare("INSERT INTO experiments"
                                      " (project, folder, tree, runs, file_name, options, environment, file_text)"
                                      " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  BindSpecification(insert, experiment);
  RETURN_IF_ERROR(insert.Run());
  const ExperimentId own{database_->last_row(), 0};
  RETURN_IF_ERROR(InsertRun(own, experiment.tree, experiment.grid ? ParameterValues() : experiment.runs[0]));
  for (size_t i = 0; experiment.grid && i < experiment.runs.size(); ++i) {
    RETURN_IF_ERROR(InsertRun({own.number, static_cast<int>(i) + 1}, experiment.tree, experiment.runs[i]));
  }
  if (before_others_see_it) RETURN_IF_ERROR(before_others_see_it(own));
  RETURN_IF_ERROR(transaction.Commit());
  return own.number;
}

absl::Status Registry::InsertRun(const ExperimentId& id, const std::string& tree, const ParameterValues& parameters) {
  ASSIGN_OR_RETURN(const std::string text, ParametersText(parameters));
  ASSIGN_OR_RETURN(SqliteStatement insert,
                   database_->Prepare("INSERT INTO runs (number, run, state, attempt, supervisor, boot, created_us,"
                                      " exit_code, tree, output_dir, reason, parameters)"
                                      " VALUES (?, ?, ?, 1, 0, ?, ?, 0, ?, '', '', ?)"));
  insert.BindInt(id.number).BindInt(id.run).BindText(Name(RunState::kCreated)).BindText(boot_);
  insert.BindInt(absl::ToUnixMicros(clock_.Now())).BindText(tree).BindText(text);
  return insert.Run();
}

absl::Status Registry::Restart(const ExperimentId& id, const NewExperiment& experiment) {
  RETURN_IF_ERROR(CheckNewExperiment(experiment));
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(*database_, Durability::kDisk));
  ASSIGN_OR_RETURN(const RunRecord present, Run(id));
  if (!HasEnded(present.state)) {
    return absl::FailedPreconditionError(absl::StrCat("experiment ", id.ToString(), " is ",
                                                      AbslView(Name(present.state)),
                                                      "; wait for its end, or end it with `muster kill`"));
  }
  const bool was_grid = present.runs > 0;
  if (was_grid != experiment.grid) {
    return absl::InvalidArgumentError(
        absl::StrCat("experiment ", id.ToString(), was_grid ? " is a grid" : " isn't a grid", ", its new attempt ",
                     was_grid ? "isn't" : "is", "; start a new experiment (without --experiment)"));
  }
  ASSIGN_OR_RETURN(SqliteStatement update,
                   database_->Prepare("UPDATE experiments SET project = ?1, folder = ?2, tree = ?3,"
                                      " runs = CASE ?4 WHEN 0 THEN runs ELSE ?4 END, file_name = ?5, options = ?6,"
                                      " environment = ?7, file_text = ?8 WHERE number = ?9"));
  BindSpecification(update, experiment);
  RETURN_IF_ERROR(update.BindInt(id.number).Run());
  if (was_grid) {
    RETURN_IF_ERROR(RestartGrid(present, experiment));
  } else {
    RETURN_IF_ERROR(RestartRun(id, experiment.tree, experiment.runs[0]));
  }
  return transaction.Commit();
}

absl::Status Registry::RestartGrid(const RunRecord& present, const NewExperiment& experiment) {
  const int64_t number = present.id.number;
  ASSIGN_OR_RETURN(const int64_t open, OpenRunsOf(number));
  if (open > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        open, " runs of grid ", number, " are still running; wait for their end, or end them with `muster kill`"));
  }
  const int runs = static_cast<int>(experiment.runs.size());
  ASSIGN_OR_RETURN(const std::vector<RunRecord> old, Runs(number));
  const auto is_done = [&old](int run, const ParameterValues& parameters) {
    return std::any_of(old.begin(), old.end(), [&](const RunRecord& one) {
      return one.id.run == run && one.state == RunState::kFinished && one.parameters == parameters;
    });
  };
  int restarted = 0;
  RETURN_IF_ERROR(RestartRun(present.id, experiment.tree, {}));
  for (int run = 1; run <= runs; ++run) {
    const ExperimentId id{number, run};
    const ParameterValues& parameters = experiment.runs[static_cast<size_t>(run) - 1];
    if (is_done(run, parameters)) continue;
    ++restarted;
    RETURN_IF_ERROR(run <= present.runs ? RestartRun(id, experiment.tree, parameters)
                                        : InsertRun(id, experiment.tree, parameters));
  }
  if (restarted == 0)
    return absl::FailedPreconditionError(
        absl::StrCat("all ", runs, " runs of grid ", number,
                     " have finished; muster rerun runs them again as a new experiment, muster train --experiment "
                     "with the id of a run that one alone"));
  for (const char* sql :
       {"DELETE FROM runs WHERE number = ? AND run > ?", "DELETE FROM tasks WHERE number = ? AND run > ?"}) {
    ASSIGN_OR_RETURN(SqliteStatement surplus, database_->Prepare(sql));
    RETURN_IF_ERROR(surplus.BindInt(number).BindInt(runs).Run());
  }
  return absl::OkStatus();
}

absl::Status Registry::RestartRun(const ExperimentId& id, const std::string& tree, const ParameterValues& parameters) {
  ASSIGN_OR_RETURN(const std::string text, ParametersText(parameters));
  ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_->Prepare("UPDATE runs SET state = ?, attempt = attempt + 1, supervisor = 0, boot = ?,"
                         " ended_us = NULL, exit_code = 0, tree = ?, reason = '', parameters = ?, run_id = ''"
                         " WHERE number = ? AND run = ?"));
  update.BindText(Name(RunState::kCreated)).BindText(boot_).BindText(tree).BindText(text);
  RETURN_IF_ERROR(update.BindInt(id.number).BindInt(id.run).Run());
  ASSIGN_OR_RETURN(SqliteStatement forget, database_->Prepare("DELETE FROM tasks WHERE number = ? AND run = ?"));
  return forget.BindInt(id.number).BindInt(id.run).Run();
}

absl::StatusOr<RunRecord> Registry::Run(const ExperimentId& id) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database_->Prepare(absl::StrCat("SELECT ", kRunColumns,
                                                   " FROM runs r JOIN experiments e ON e.number = r.number"
                                                   " WHERE r.number = ? AND r.run = ?")));
  ASSIGN_OR_RETURN(const bool row, select.BindInt(id.number).BindInt(id.run).Step());
  if (!row) return NoSuchRun(id);
  return RunOfRow(select);
}

absl::Status Registry::NoSuchRun(const ExperimentId& id) {
  if (id.run > 0) {
    ASSIGN_OR_RETURN(SqliteStatement select, database_->Prepare("SELECT runs FROM experiments WHERE number = ?"));
    ASSIGN_OR_RETURN(const bool row, select.BindInt(id.number).Step());
    if (row && select.Int(0) == 0) {
      return absl::NotFoundError(absl::StrCat("experiment ", id.number, " isn't a grid: it has no run ", id.run));
    }
    if (row) {
      return absl::NotFoundError(
          absl::StrCat("grid ", id.number, " has no run ", id.run, "; it has 1 to ", select.Int(0)));
    }
  }
  constexpr int kNamed = 3;
  ASSIGN_OR_RETURN(SqliteStatement last,
                   database_->Prepare("SELECT number FROM experiments ORDER BY number DESC LIMIT ?"));
  last.BindInt(kNamed);
  std::vector<int64_t> numbers;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, last.Step());
    if (!row) break;
    numbers.push_back(last.Int(0));
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no experiment ", id.number,
      numbers.empty() ? "; none has been started (muster train)" : "; the last are " + absl::StrJoin(numbers, ", ")));
}

absl::StatusOr<NewExperiment> Registry::Specification(int64_t number) {
  ASSIGN_OR_RETURN(const RunRecord own, Run({number, 0}));
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database_->Prepare("SELECT file_name, file_text, options, environment, tree FROM experiments"
                                      " WHERE number = ?"));
  ASSIGN_OR_RETURN(const bool row, select.BindInt(number).Step());
  if (!row) return NoSuchRun({number, 0});
  NewExperiment experiment;
  experiment.project = own.project;
  experiment.folder = own.folder;
  experiment.grid = own.runs > 0;
  experiment.file_name = select.Text(0);
  experiment.file_text = select.Text(1);
  ASSIGN_OR_RETURN(experiment.options, ParseOptionsText(select.Text(2)));
  experiment.environment = ParseEnvironmentBytes(select.Text(3));
  experiment.tree = select.Text(4);
  if (!experiment.grid) {
    experiment.runs.push_back(own.parameters);
    return experiment;
  }
  ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, Runs(number));
  for (const RunRecord& run : runs) experiment.runs.push_back(run.parameters);
  return experiment;
}

absl::StatusOr<std::vector<TaskRecord>> Registry::Tasks(const ExperimentId& id) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database_->Prepare(
                       absl::StrCat("SELECT ", kTaskColumns, " FROM tasks WHERE number = ? AND run = ? ORDER BY id")));
  select.BindInt(id.number).BindInt(id.run);
  std::vector<TaskRecord> tasks;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) break;
    ASSIGN_OR_RETURN(TaskRecord task, TaskOfRow(select));
    tasks.push_back(std::move(task));
  }
  if (tasks.empty()) RETURN_IF_ERROR(Run(id).status());
  return tasks;
}

absl::StatusOr<std::vector<RunRecord>> Registry::AllRuns(SqliteStatement& statement) {
  std::vector<RunRecord> runs;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return runs;
    ASSIGN_OR_RETURN(RunRecord run, RunOfRow(statement));
    runs.push_back(std::move(run));
  }
}

absl::StatusOr<std::vector<RunRecord>> Registry::Runs(int64_t number) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database_->Prepare(absl::StrCat("SELECT ", kRunColumns,
                                                   " FROM runs r JOIN experiments e ON e.number = r.number"
                                                   " WHERE r.number = ? AND r.run > 0 ORDER BY r.run")));
  select.BindInt(number);
  ASSIGN_OR_RETURN(std::vector<RunRecord> runs, AllRuns(select));
  if (runs.empty()) RETURN_IF_ERROR(Run({number, 0}).status());
  return runs;
}

absl::StatusOr<std::vector<RunRecord>> Registry::List(const Filter& filter) {
  const bool of_project = !filter.project.empty();
  ASSIGN_OR_RETURN(SqliteStatement select, database_->Prepare(ListQuery(of_project, filter.only_open)));
  if (of_project) select.BindText(filter.project);
  select.BindInt(filter.last > 0 ? filter.last : -1);
  ASSIGN_OR_RETURN(std::vector<RunRecord> experiments, AllRuns(select));
  std::reverse(experiments.begin(), experiments.end());
  return experiments;
}

absl::StatusOr<ExperimentId> Registry::Last(const std::string& project) {
  ASSIGN_OR_RETURN(SqliteStatement select, database_->Prepare(LastQuery(!project.empty())));
  if (!project.empty()) select.BindText(project);
  ASSIGN_OR_RETURN(const bool row, select.Step());
  if (row) return ExperimentId{select.Int(0), 0};
  return absl::NotFoundError(absl::StrCat("no experiment", project.empty() ? "" : " of project " + Quoted(project),
                                          " has been started yet; `muster train` starts one"));
}

absl::Status Registry::SetRun(const RunRecord& run) {
  const bool ends = HasEnded(run.state);
  ASSIGN_OR_RETURN(SqliteTransaction transaction,
                   SqliteTransaction::Begin(*database_, ends ? Durability::kDisk : Durability::kProcess));
  ASSIGN_OR_RETURN(const RunRecord present, Run(run.id));
  const bool follows = !HasEnded(present.state) && MayFollow(present.state, run.state);
  if (run.state != present.state && !follows)
    return StateError("experiment " + run.id.ToString(), present.state, run.state);
  ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_->Prepare("UPDATE runs SET state = ?, reason = ?, output_dir = ?, exit_code = ?,"
                         " supervisor = ?, boot = ?, run_id = ?, ended_us = ? WHERE number = ? AND run = ?"));
  update.BindText(Name(run.state)).BindText(run.reason).BindText(run.output_dir).BindInt(run.exit_code);
  update.BindInt(ends ? 0 : run.supervisor).BindText(boot_).BindText(ends ? "" : run.run_id);
  if (ends) {
    update.BindInt(absl::ToUnixMicros(HasEnded(present.state) ? present.ended : clock_.Now()));
  } else {
    update.BindNull();
  }
  RETURN_IF_ERROR(update.BindInt(run.id.number).BindInt(run.id.run).Run());
  if (ends) RETURN_IF_ERROR(DropLeases(run.id));
  return transaction.Commit();
}

absl::Status Registry::SetTasks(const ExperimentId& id, const std::vector<TaskRecord>& tasks) {
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(*database_, Durability::kProcess));
  RETURN_IF_ERROR(Run(id).status());
  for (const TaskRecord& task : tasks) RETURN_IF_ERROR(SetTask(id, task));
  return transaction.Commit();
}

absl::Status Registry::SetTask(const ExperimentId& id, const TaskRecord& task) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database_->Prepare(absl::StrCat(
                       "SELECT ", kTaskColumns, " FROM tasks WHERE number = ? AND run = ? AND job = ? AND task = ?")));
  select.BindInt(id.number).BindInt(id.run).BindText(task.task.job).BindInt(task.task.index);
  ASSIGN_OR_RETURN(const bool known, select.Step());
  absl::Time since = task.since == absl::UnixEpoch() ? clock_.Now() : task.since;
  if (known) {
    ASSIGN_OR_RETURN(const TaskRecord present, TaskOfRow(select));
    const bool same = present.state == task.state;
    if (!same && (HasEnded(present.state) || !MayFollow(present.state, task.state)))
      return StateError("task " + FullName(id, task.task), present.state, task.state);
    if (same && task.since == absl::UnixEpoch()) since = present.since;
  }
  ASSIGN_OR_RETURN(
      SqliteStatement upsert,
      database_->Prepare(absl::StrCat("INSERT INTO tasks (number, run, ", kTaskColumns,
                                      ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                                      " ON CONFLICT (number, run, job, task) DO UPDATE SET state = excluded.state,"
                                      " since_us = excluded.since_us, pid = excluded.pid, cgroup = excluded.cgroup,"
                                      " status_address = excluded.status_address, gpus = excluded.gpus,"
                                      " mem_limit = excluded.mem_limit, restarts = excluded.restarts,"
                                      " exit_code = excluded.exit_code, exit_signal = excluded.exit_signal,"
                                      " reason = excluded.reason, host = excluded.host")));
  upsert.BindInt(id.number).BindInt(id.run).BindText(task.task.job).BindInt(task.task.index);
  upsert.BindText(Name(task.state)).BindInt(absl::ToUnixMicros(since)).BindInt(task.pid).BindText(task.cgroup);
  upsert.BindText(task.status_address).BindText(task.gpus).BindInt(task.mem_limit).BindInt(task.restarts);
  if (task.exit.has_value()) {
    upsert.BindInt(task.exit->code).BindInt(task.exit->signal);
  } else {
    upsert.BindNull().BindNull();
  }
  return upsert.BindText(task.reason).BindText(task.host).Run();
}

absl::StatusOr<std::vector<int>> Registry::TakeGpus(const ExperimentId& id, int count, const std::vector<int>& all) {
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(*database_, Durability::kProcess));
  ASSIGN_OR_RETURN(const RunRecord present, Run(id));
  if (HasEnded(present.state)) {
    return absl::FailedPreconditionError(
        absl::StrCat("experiment ", id.ToString(), " is ", AbslView(Name(present.state)), ": it gets no GPUs"));
  }
  std::set<int64_t> taken;
  ASSIGN_OR_RETURN(SqliteStatement select, database_->Prepare("SELECT gpu FROM gpu_leases"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) break;
    taken.insert(select.Int(0));
  }
  std::vector<int> mine;
  for (const int gpu : all) {
    if (static_cast<int>(mine.size()) < count && taken.insert(gpu).second) mine.push_back(gpu);
  }
  if (static_cast<int>(mine.size()) < count) return std::vector<int>();
  ASSIGN_OR_RETURN(SqliteStatement insert,
                   database_->Prepare("INSERT INTO gpu_leases (gpu, number, run, since_us) VALUES (?, ?, ?, ?)"));
  const int64_t now = absl::ToUnixMicros(clock_.Now());
  for (const int gpu : mine) {
    RETURN_IF_ERROR(insert.BindInt(gpu).BindInt(id.number).BindInt(id.run).BindInt(now).Run());
    insert.Reset();
  }
  RETURN_IF_ERROR(transaction.Commit());
  return mine;
}

absl::Status Registry::ReleaseGpus(const ExperimentId& id) {
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(*database_, Durability::kProcess));
  RETURN_IF_ERROR(DropLeases(id));
  return transaction.Commit();
}

absl::Status Registry::DropLeases(const ExperimentId& id) {
  ASSIGN_OR_RETURN(SqliteStatement drop, database_->Prepare("DELETE FROM gpu_leases WHERE number = ? AND run = ?"));
  return drop.BindInt(id.number).BindInt(id.run).Run();
}

absl::StatusOr<int64_t> Registry::OpenRunsOf(int64_t number) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database_->Prepare("SELECT count(*) FROM runs WHERE number = ? AND ended_us IS NULL"));
  ASSIGN_OR_RETURN(const bool row, select.BindInt(number).Step());
  return row ? select.Int(0) : 0;
}

absl::Status Registry::Forget(int64_t number) {
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(*database_, Durability::kDisk));
  RETURN_IF_ERROR(Run({number, 0}).status());
  ASSIGN_OR_RETURN(const int64_t open, OpenRunsOf(number));
  if (open > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "experiment ", number, " is still running; wait for its end, or end it with `muster kill ", number, "`"));
  }
  for (const char* sql : {"DELETE FROM experiments WHERE number = ?", "DELETE FROM runs WHERE number = ?",
                          "DELETE FROM tasks WHERE number = ?", "DELETE FROM gpu_leases WHERE number = ?"}) {
    ASSIGN_OR_RETURN(SqliteStatement forget, database_->Prepare(sql));
    RETURN_IF_ERROR(forget.BindInt(number).Run());
  }
  return transaction.Commit();
}

}  // namespace muster
