#include "muster/launch/registry/registry.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/registry/files/exclusive_file.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/former_attempt.h"
#include "muster/launch/registry/former_registry.h"
#include "muster/launch/registry/index_refresh.h"
#include "muster/launch/registry/index_schema.h"
#include "muster/launch/registry/kept_variables.h"
#include "muster/launch/registry/registry_rows.h"
#include "muster/launch/registry/sqlite.h"
#include "muster/launch/registry/state_change.h"

namespace muster {
namespace {

absl::Status CheckNewExperiment(const NewExperiment& experiment) {
  if (experiment.runs.empty()) return absl::InvalidArgumentError("an experiment needs a run; accepted: 1 or more");
  if (const absl::Status taken = CheckOptions(experiment.options); !taken.ok()) return taken;
  if (experiment.grid || experiment.runs.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(experiment.runs.size(), " runs for an experiment that isn't a grid; accepted: 1"));
}

absl::Status StateError(const std::string& whose, RunState from, RunState to) {
  return absl::InvalidArgumentError(absl::StrCat(whose, " is ", AbslView(Name(from)), ", after which ",
                                                 AbslView(Name(to)),
                                                 " may not come (docs/experiments.md, \"States\")"));
}

NewExperiment WithKeptVariables(NewExperiment experiment) {
  experiment.environment = KeptVariables(experiment.environment);
  return experiment;
}

int64_t RunsOfGrid(const NewExperiment& experiment) {
  return experiment.grid ? static_cast<int64_t>(experiment.runs.size()) : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Registry>> Registry::Open(const Home& home, const Clock& clock, ToRead to_read) {
  ASSIGN_OR_RETURN(RegistryPlace place, FindRegistryPlace(home, ReadEnvironment().index.value_or("")));
  absl::StatusOr<std::unique_ptr<Registry>> opened = OpenAt(home, place, clock, to_read);
  if (!absl::IsResourceExhausted(opened.status()) || to_read != ToRead::kAll) return opened;
  place.database.clear();
  place.shared = true;  // supervisors here go on with that index
  return OpenAt(home, place, clock, to_read);
}

absl::StatusOr<std::unique_ptr<Registry>> Registry::OpenAt(const Home& home, const RegistryPlace& place,
                                                           const Clock& clock, ToRead to_read) {
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> database,
                   place.database.empty() ? SqliteDatabase::OpenInMemory() : SqliteDatabase::Open(place.database));
  RETURN_IF_ERROR(PrepareIndex(*database, [&home] { return GreatestNumberOfFolders(home); }));
  auto registry = std::unique_ptr<Registry>(new Registry(std::move(database), home, place, clock));
  if (!registry->database_->read_only()) RETURN_IF_ERROR(TakeOverFormerRegistry(*registry->database_, home));
  RETURN_IF_ERROR(to_read == ToRead::kAll ? registry->refresh_->All() : registry->refresh_->OnlyOpen());
  return registry;
}

Registry::Registry(std::unique_ptr<SqliteDatabase> database, const Home& home, RegistryPlace place, const Clock& clock)
    : database_(std::move(database)),
      home_(home),
      place_(std::move(place)),
      clock_(clock),
      refresh_(std::make_unique<IndexRefresh>(*database_, home_, place_)) {}

Registry::~Registry() = default;

absl::Status Registry::Freshen(int64_t number, int run) {
  // What a job's other home has comes here by files, too.
  const bool others_write =
      place_.shared || access(home_.other_home({.number = number, .run = run}).c_str(), F_OK) == 0;
  return others_write && !database_->in_transaction() ? refresh_->One(number, run) : absl::OkStatus();
}

absl::StatusOr<StateChange> Registry::BeginChange(Durability durability) {
  return StateChange::Begin(*database_, home_, durability);
}

absl::StatusOr<int64_t> Registry::Create(const NewExperiment& asked, const Prepare& before_others_see_it) {
  RETURN_IF_ERROR(CheckNewExperiment(asked));
  const NewExperiment experiment = WithKeptVariables(asked);
  ASSIGN_OR_RETURN(StateChange change, BeginChange(Durability::kDisk));
  ASSIGN_OR_RETURN(const int64_t above, database_->Value("SELECT seq FROM sqlite_sequence WHERE name = 'experiments'"));
  ASSIGN_OR_RETURN(const int64_t number, change.ClaimNumber(above));
  ASSIGN_OR_RETURN(SqliteStatement insert,
                   database_->Prepare("INSERT INTO experiments"
                                      " (number, project, folder, tree, runs, file_name, options, environment,"
                                      " file_text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.BindInt(number);
  BindSpecification(insert, experiment, RunsOfGrid(experiment));
  RETURN_IF_ERROR(insert.Run());
  const ExperimentId own{.number = number};
  RETURN_IF_ERROR(InsertRun(own, experiment.tree, experiment.grid ? ParameterValues() : experiment.runs[0]));
  for (size_t i = 0; experiment.grid && i < experiment.runs.size(); ++i)
    RETURN_IF_ERROR(InsertRun({number, static_cast<int>(i) + 1}, experiment.tree, experiment.runs[i]));
  if (before_others_see_it) RETURN_IF_ERROR(before_others_see_it(own));
  RETURN_IF_ERROR(change.WriteExperiment(number));
  RETURN_IF_ERROR(change.Commit(clock_.Now()));
  return number;
}

absl::Status Registry::KnowFolders() { return refresh_->All(); }

absl::Status Registry::InsertRun(const ExperimentId& id, const std::string& tree, const ParameterValues& parameters) {
  // They are those of a run that the grid had before it shrank.
  if (id.run > 0) unlink(home_.records(id).c_str());
  return ApplyAskedRun(*database_, id.number,
                       {.run = id.run,
                        .attempt = 1,
                        .created = clock_.Now(),
                        .tree = tree,
                        .parameters = parameters,
                        .output_dir = "",
                        .machine = place_.machine.ToString()});
}

absl::Status Registry::Restart(const ExperimentId& id, const NewExperiment& asked) {
  RETURN_IF_ERROR(CheckNewExperiment(asked));
  const NewExperiment experiment = WithKeptVariables(asked);
  RETURN_IF_ERROR(Run(id).status());
  ASSIGN_OR_RETURN(const ExclusiveFile alone, TakeAskedRuns(home_, id.number));
  RETURN_IF_ERROR(Freshen(id.number));
  ASSIGN_OR_RETURN(StateChange change, BeginChange(Durability::kDisk));
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
  BindSpecification(update, experiment, RunsOfGrid(experiment));
  RETURN_IF_ERROR(update.BindInt(id.number).Run());
  RETURN_IF_ERROR(KeepFormer(home_, id.number));
  if (was_grid) {
    RETURN_IF_ERROR(RestartGrid(present, experiment));
  } else {
    RETURN_IF_ERROR(RestartRun(id, experiment.tree, experiment.runs[0]));
  }
  RETURN_IF_ERROR(change.WriteExperiment(id.number));
  return change.Commit(clock_.Now());
}

absl::Status Registry::RestartGrid(const RunRecord& present, const NewExperiment& experiment) {
  const int64_t number = present.id.number;
  ASSIGN_OR_RETURN(const int64_t open, CountOpenRuns(*database_, number));
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
  return DropRunsAbove(*database_, number, runs);
}

absl::Status Registry::RestartRun(const ExperimentId& id, const std::string& tree, const ParameterValues& parameters) {
  ASSIGN_OR_RETURN(const RunRecord present, SelectRun(*database_, id));
  return ApplyAskedRun(*database_, id.number,
                       {.run = id.run,
                        .attempt = present.attempt + 1,
                        .created = present.created,
                        .tree = tree,
                        .parameters = parameters,
                        .output_dir = present.output_dir,
                        .machine = place_.machine.ToString()});
}

absl::StatusOr<RunRecord> Registry::Run(const ExperimentId& id) {
  RETURN_IF_ERROR(Freshen(id.number, id.run));
  absl::StatusOr<RunRecord> run = SelectRun(*database_, id);
  if (absl::IsNotFound(run.status()) && !database_->in_transaction()) {
    RETURN_IF_ERROR(refresh_->One(id.number));  // one that has ended may not have been read (ToRead::kOpen)
    run = SelectRun(*database_, id);
  }
  return absl::IsNotFound(run.status()) ? NoSuchRun(id) : run;
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
  RETURN_IF_ERROR(Freshen(id.number, id.run));
  ASSIGN_OR_RETURN(std::vector<TaskRecord> tasks, SelectTasks(*database_, id));
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
  RETURN_IF_ERROR(Freshen(number));
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

absl::Status Registry::SetRun(const RunRecord& run, const std::vector<TaskRecord>& tasks) {
  const bool ends = HasEnded(run.state);
  ASSIGN_OR_RETURN(StateChange change, BeginChange(ends ? Durability::kDisk : Durability::kProcess));
  RETURN_IF_ERROR(refresh_->One(run.id.number, run.id.run));
  ASSIGN_OR_RETURN(const RunRecord present, Run(run.id));
  const bool follows = !HasEnded(present.state) && MayFollow(present.state, run.state);
  if (run.state != present.state && !follows)
    return StateError("experiment " + run.id.ToString(), present.state, run.state);
  RunRecord next = run;
  next.attempt = present.attempt;
  next.machine = place_.machine.ToString();
  next.ended = absl::InfinitePast();
  if (ends) {
    next.supervisor = 0;
    next.run_id = "";
    next.ended = HasEnded(present.state) ? present.ended : clock_.Now();
  }
  RETURN_IF_ERROR(UpdateRun(*database_, next));
  if (ends) RETURN_IF_ERROR(DropLeases(*database_, run.id));
  std::vector<TaskId> changed;
  for (const TaskRecord& task : tasks) {
    RETURN_IF_ERROR(SetTask(run.id, task));
    changed.push_back(task.task);
  }
  RETURN_IF_ERROR(change.WriteRecord(run.id, changed));
  return change.Commit(clock_.Now());
}

absl::Status Registry::SetTask(const ExperimentId& id, const TaskRecord& task) {
  TaskRecord next = task;
  const bool has_time = task.since != absl::UnixEpoch();
  if (!has_time) next.since = clock_.Now();
  const absl::StatusOr<TaskRecord> present = SelectTask(*database_, id, task.task);
  if (!present.ok() && !absl::IsNotFound(present.status())) return present.status();
  if (present.ok()) {
    const bool same = present->state == task.state;
    if (!same && (HasEnded(present->state) || !MayFollow(present->state, task.state)))
      return StateError("task " + FullName(id, task.task), present->state, task.state);
    if (same && !has_time) next.since = present->since;
  }
  return UpsertTask(*database_, id, next);
}

absl::StatusOr<std::vector<int>> Registry::TakeGpus(const ExperimentId& id, int count, const std::vector<int>& all) {
  ASSIGN_OR_RETURN(StateChange change, BeginChange(Durability::kProcess));
  RETURN_IF_ERROR(refresh_->One(id.number, id.run));
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
                   database_->Prepare("INSERT INTO gpu_leases (gpu, number, run) VALUES (?, ?, ?)"));
  for (const int gpu : mine) {
    RETURN_IF_ERROR(insert.BindInt(gpu).BindInt(id.number).BindInt(id.run).Run());
    insert.Reset();
  }
  RETURN_IF_ERROR(change.WriteRecord(id, {}));
  RETURN_IF_ERROR(change.Commit(clock_.Now()));
  return mine;
}

absl::Status Registry::ReleaseGpus(const ExperimentId& id) {
  ASSIGN_OR_RETURN(StateChange change, BeginChange(Durability::kProcess));
  RETURN_IF_ERROR(refresh_->One(id.number, id.run));
  RETURN_IF_ERROR(DropLeases(*database_, id));
  if (database_->changes() == 0) return change.Commit(clock_.Now());
  RETURN_IF_ERROR(change.WriteRecord(id, {}));
  return change.Commit(clock_.Now());
}

absl::Status Registry::Forget(int64_t number) {
  ASSIGN_OR_RETURN(StateChange change, BeginChange(Durability::kDisk));
  RETURN_IF_ERROR(Run({number, 0}).status());
  ASSIGN_OR_RETURN(const int64_t open, CountOpenRuns(*database_, number));
  if (open > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "experiment ", number, " is still running; wait for its end, or end it with `muster kill ", number, "`"));
  }
  RETURN_IF_ERROR(DropExperiment(*database_, number));
  RETURN_IF_ERROR(change.ForgetExperiment(number));
  return change.Commit(clock_.Now());
}

absl::Status Registry::Renew(const ExperimentId& id) { return WriteState(*database_, home_, id, clock_.Now()); }

bool Registry::IsHere(const RunRecord& run) const {
  // Its supervisor is wherever the engine has put it.
  if (access(home_.job(run.id).c_str(), F_OK) == 0) return false;
  return place_.machine.HasSamePids(MachineId::Parse(run.machine)) || (!place_.shared && place_.machine.boot.empty());
}

std::optional<absl::Duration> Registry::SinceRenewal(const ExperimentId& id) const {
  return AgeOfFile(home_.state(id));
}

}  // namespace muster
