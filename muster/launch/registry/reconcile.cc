// Registry::Reconcile, which fails experiments whose supervisor is gone.
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status_macros.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/index_refresh.h"
#include "muster/launch/registry/index_schema.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/registry_rows.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/registry/sqlite.h"
#include "muster/launch/registry/state_change.h"

namespace muster {
namespace {

// Returns whether a run of a grid waits for its turn. A run that is PENDING, for a build or GPUs, has a supervisor of
// its own.
bool WaitsForItsTurn(const ExperimentId& id, RunState state) { return id.run > 0 && state == RunState::kCreated; }

// Returns whether an engine's job has the run's supervisor, or will have it.
bool IsInJob(const Home& home, const ExperimentId& id) { return access(home.job(id).c_str(), F_OK) == 0; }

// Checks locks. Remembers the last grid's, because thousands of its runs may be waiting.
class SupervisorLook {
 public:
  SupervisorLook(const Home& home, const RegistryPlace& place) : home_(home), place_(place) {}

  // Returns whether a free lock says anything about a run of that machine: another host's lock may be unknown here.
  bool MayJudge(const ExperimentId& id, const MachineId& its) const {
    if (place_.machine.HasSameKernel(its) || its.boot.empty()) return true;
    // A file system that is local here may be exported to others, whose locks this kernel doesn't see.
    if (place_.shared && its.host != place_.machine.host) return false;
    const std::optional<absl::Duration> age = AgeOfFile(home_.state(id));
    return !age.has_value() || *age > kSurelyGone;
  }

  // Returns whether no supervisor cares for a run that hasn't ended. A grid's supervisor cares for the runs that it
  // hasn't started yet; a run that it has started has a supervisor, and a lock, of its own.
  bool FindsNone(const ExperimentId& id, RunState state) {
    if (WaitsForItsTurn(id, state) && GridIsHeld(id.number)) return false;
    return !RunLock::IsHeld(home_.lock(id));
  }

 private:
  bool GridIsHeld(int64_t number) {
    if (last_grid_ != number) {
      last_grid_ = number;
      last_is_held_ = RunLock::IsHeld(home_.lock({number, 0}));
    }
    return last_is_held_;
  }

  // Where a host has booted again, its former supervisors' locks go, however late the file system notices.
  static constexpr absl::Duration kSurelyGone = absl::Seconds(30);

  const Home& home_;
  const RegistryPlace& place_;
  int64_t last_grid_ = 0;  // 0: none yet
  bool last_is_held_ = false;
};

constexpr char kMachineRestarted[] = "the machine was restarted";
constexpr char kGridKilled[] = "the supervisor of its grid was killed";
constexpr char kTrainKilled[] = "`muster train` was killed, or its disk was full, before it had started the supervisor";
constexpr char kSupervisorKilled[] = "its supervisor was killed";

std::string ReasonOfLoss(const RunRecord& run, const MachineId& here) {
  const MachineId its = MachineId::Parse(run.machine);
  if (!its.boot.empty() && !here.boot.empty() && its.boot != here.boot) return kMachineRestarted;
  if (WaitsForItsTurn(run.id, run.state)) return kGridKilled;
  if (run.state == RunState::kCreated && run.supervisor == 0) return kTrainKilled;
  return kSupervisorKilled;
}

}  // namespace

bool WasLost(const RunRecord& run) {
  if (run.state != RunState::kFailed) return false;
  return run.reason == kMachineRestarted || run.reason == kGridKilled || run.reason == kTrainKilled ||
         run.reason == kSupervisorKilled;
}

absl::StatusOr<std::vector<ExperimentId>> Registry::Reconcile() {
  if (place_.shared) RETURN_IF_ERROR(refresh_->All());
  // Looks first without blocking writers, as there is usually nothing to write.
  std::vector<ExperimentId> suspects;
  SupervisorLook look(home_, place_);
  ASSIGN_OR_RETURN(SqliteStatement open, database_->Prepare(kOpenRunsQuery));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, open.Step());
    if (!row) break;
    const ExperimentId id{open.Int(0), static_cast<int>(open.Int(1))};
    ASSIGN_OR_RETURN(const RunState state, ParseRunState(open.Text(2)));
    if (look.FindsNone(id, state) && look.MayJudge(id, MachineId::Parse(open.Text(3))) && !IsInJob(home_, id))
      suspects.push_back(id);
  }
  if (suspects.empty() || database_->read_only() || access(home_.experiments().c_str(), W_OK) != 0) return suspects;

  const absl::Time now = clock_.Now();
  ASSIGN_OR_RETURN(StateChange change, BeginChange(Durability::kProcess));
  std::vector<ExperimentId> lost;
  SupervisorLook second_look(home_, place_);
  for (const ExperimentId& id : suspects) {
    RETURN_IF_ERROR(refresh_->One(id.number, id.run));
    const absl::StatusOr<RunRecord> run = Run(id);
    if (absl::IsNotFound(run.status())) continue;  // forgotten meanwhile
    RETURN_IF_ERROR(run.status());
    // A supervisor writes its last state and then releases the lock; another attempt takes the lock and then writes
    // CREATED. Nobody else writes now, so a run that hasn't ended and whose lock is free is lost.
    if (HasEnded(run->state) || !second_look.FindsNone(id, run->state)) continue;
    if (!second_look.MayJudge(id, MachineId::Parse(run->machine)) || IsInJob(home_, id)) continue;
    RETURN_IF_ERROR(
        MarkLost(change, *run, {.reason = ReasonOfLoss(*run, place_.machine), .exit_code = 128 + SIGKILL}, now));
    lost.push_back(id);
  }
  RETURN_IF_ERROR(change.Commit(now));
  return lost;
}

absl::StatusOr<std::vector<ExperimentId>> Registry::OpenRuns() {
  ASSIGN_OR_RETURN(SqliteStatement open, database_->Prepare(kOpenRunsQuery));
  std::vector<ExperimentId> runs;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, open.Step());
    if (!row) return runs;
    runs.push_back({open.Int(0), static_cast<int>(open.Int(1))});
  }
}

absl::Status Registry::EndLost(const ExperimentId& id, const LostEnd& end) {
  ASSIGN_OR_RETURN(StateChange change, BeginChange(Durability::kDisk));
  RETURN_IF_ERROR(refresh_->One(id.number, id.run));
  ASSIGN_OR_RETURN(const RunRecord run, Run(id));
  const absl::Time now = clock_.Now();
  if (!HasEnded(run.state)) RETURN_IF_ERROR(MarkLost(change, run, end, now));
  return change.Commit(now);
}

absl::Status Registry::StartOver(const ExperimentId& id, const std::string& reason) {
  ASSIGN_OR_RETURN(StateChange change, BeginChange(Durability::kDisk));
  RETURN_IF_ERROR(refresh_->One(id.number, id.run));
  ASSIGN_OR_RETURN(RunRecord run, Run(id));
  run.state = RunState::kCreated;
  run.reason = reason;
  run.exit_code = 0;
  run.supervisor = 0;
  run.run_id.clear();
  run.machine = place_.machine.ToString();
  run.ended = absl::InfinitePast();
  RETURN_IF_ERROR(UpdateRun(*database_, run));
  ASSIGN_OR_RETURN(const std::vector<TaskRecord> tasks, SelectTasks(*database_, id));
  std::vector<TaskId> changed;
  const absl::Time now = clock_.Now();
  for (const TaskRecord& task : tasks) {
    RETURN_IF_ERROR(UpsertTask(*database_, id, {.task = task.task, .mem_limit = task.mem_limit, .since = now}));
    changed.push_back(task.task);
  }
  RETURN_IF_ERROR(DropLeases(*database_, id));
  RETURN_IF_ERROR(change.MarkOpen(id.number));
  RETURN_IF_ERROR(change.WriteRecord(id, changed));
  return change.Commit(now);
}

absl::Status Registry::MarkLost(StateChange& change, const RunRecord& run, const LostEnd& end, absl::Time now) {
  RunRecord lost = run;
  lost.reason = end.reason;
  lost.state = end.state;
  lost.exit_code = end.exit_code;
  lost.supervisor = 0;
  lost.ended = now;
  RETURN_IF_ERROR(UpdateRun(*database_, lost));
  ASSIGN_OR_RETURN(std::vector<TaskRecord> tasks, SelectTasks(*database_, run.id));
  std::vector<TaskId> changed;
  for (TaskRecord& task : tasks) {
    if (HasEnded(task.state)) continue;
    task.state = lost.state;
    task.reason = lost.reason;
    task.since = now;
    task.pid = 0;
    RETURN_IF_ERROR(UpsertTask(*database_, run.id, task));
    changed.push_back(task.task);
  }
  RETURN_IF_ERROR(DropLeases(*database_, run.id));
  return change.WriteRecord(run.id, changed);
}

absl::StatusOr<std::vector<Registry::LeftRun>> Registry::LeftRuns() {
  ASSIGN_OR_RETURN(SqliteStatement select, database_->Prepare(kLeftRunsQuery));
  std::vector<LeftRun> left;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return left;
    if (!place_.machine.HasSamePids(MachineId::Parse(select.Text(3)))) continue;
    left.push_back({.id = {select.Int(0), static_cast<int>(select.Int(1))}, .run_id = select.Text(2)});
  }
}

absl::Status Registry::ForgetProcesses(const ExperimentId& id) {
  if (database_->read_only()) return absl::OkStatus();
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(*database_, Durability::kProcess));
  ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_->Prepare("UPDATE runs SET run_id = '' WHERE number = ? AND run = ? AND ended_us IS NOT NULL"));
  RETURN_IF_ERROR(update.BindInt(id.number).BindInt(id.run).Run());
  return transaction.Commit();
}

}  // namespace muster
