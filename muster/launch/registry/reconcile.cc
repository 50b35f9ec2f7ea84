// Registry::Reconcile, which fails experiments whose supervisor is gone.
#include <csignal>

#include "muster/base/status_macros.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/registry_schema.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/registry/sqlite.h"

namespace muster {
namespace {

// Returns whether a run of a grid waits for its turn. A run that is PENDING, for a build or GPUs, has a supervisor of
// its own.
bool WaitsForItsTurn(const ExperimentId& id, RunState state) { return id.run > 0 && state == RunState::kCreated; }

// Checks locks. Remembers the last grid's, because thousands of its runs may be waiting.
class SupervisorLook {
 public:
  explicit SupervisorLook(const Home& home) : home_(home) {}

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

  const Home& home_;
  int64_t last_grid_ = 0;  // 0: none yet
  bool last_is_held_ = false;
};

constexpr char kMachineRestarted[] = "the machine was restarted";
constexpr char kGridKilled[] = "the supervisor of its grid was killed";
constexpr char kTrainKilled[] = "`muster train` was killed before it had started the supervisor";
constexpr char kSupervisorKilled[] = "its supervisor was killed";

// `boot`: the machine's present boot; `its_boot`: the boot in which the run was last updated.
std::string ReasonOfLoss(const RunRecord& run, const std::string& its_boot, const std::string& boot) {
  if (!boot.empty() && !its_boot.empty() && boot != its_boot) return kMachineRestarted;
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

absl::StatusOr<std::vector<ExperimentId>> Registry::Reconcile(const Home& home) {
  // Looks first without blocking writers, as there is usually nothing to write.
  std::vector<ExperimentId> suspects;
  SupervisorLook look(home);
  ASSIGN_OR_RETURN(SqliteStatement open, database_->Prepare(kOpenRunsQuery));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, open.Step());
    if (!row) break;
    const ExperimentId id{open.Int(0), static_cast<int>(open.Int(1))};
    ASSIGN_OR_RETURN(const RunState state, ParseRunState(open.Text(2)));
    if (look.FindsNone(id, state)) suspects.push_back(id);
  }
  if (suspects.empty() || database_->read_only()) return suspects;

  const absl::Time now = clock_.Now();
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(*database_, Durability::kProcess));
  std::vector<ExperimentId> lost;
  SupervisorLook second_look(home);
  for (const ExperimentId& id : suspects) {
    const absl::StatusOr<RunRecord> run = Run(id);
    if (absl::IsNotFound(run.status())) continue;  // forgotten meanwhile
    RETURN_IF_ERROR(run.status());
    // A supervisor writes its last state and then releases the lock; another attempt takes the lock and then writes
    // CREATED. Nobody else writes now, so a run that hasn't ended and whose lock is free is lost.
    if (HasEnded(run->state) || !second_look.FindsNone(id, run->state)) continue;
    RETURN_IF_ERROR(MarkLost(*run, now));
    lost.push_back(id);
  }
  RETURN_IF_ERROR(transaction.Commit());
  return lost;
}

absl::Status Registry::MarkLost(const RunRecord& run, absl::Time now) {
  ASSIGN_OR_RETURN(SqliteStatement select, database_->Prepare("SELECT boot FROM runs WHERE number = ? AND run = ?"));
  RETURN_IF_ERROR(select.BindInt(run.id.number).BindInt(run.id.run).Step().status());
  const std::string reason = ReasonOfLoss(run, select.Text(0), boot_);
  const int64_t now_us = absl::ToUnixMicros(now);

  ASSIGN_OR_RETURN(SqliteStatement update_run,
                   database_->Prepare("UPDATE runs SET state = ?, reason = ?, exit_code = ?, supervisor = 0,"
                                      " ended_us = ? WHERE number = ? AND run = ?"));
  update_run.BindText(Name(RunState::kFailed)).BindText(reason).BindInt(128 + SIGKILL).BindInt(now_us);
  RETURN_IF_ERROR(update_run.BindInt(run.id.number).BindInt(run.id.run).Run());

  ASSIGN_OR_RETURN(SqliteStatement update_tasks,
                   database_->Prepare("UPDATE tasks SET state = ?, reason = ?, since_us = ?, pid = 0"
                                      " WHERE number = ? AND run = ? AND state NOT IN (?, ?, ?)"));
  update_tasks.BindText(Name(RunState::kFailed)).BindText(reason).BindInt(now_us);
  update_tasks.BindInt(run.id.number).BindInt(run.id.run);
  for (const RunState end : {RunState::kFinished, RunState::kFailed, RunState::kKilled}) {
    update_tasks.BindText(Name(end));
  }
  RETURN_IF_ERROR(update_tasks.Run());
  return DropLeases(run.id);
}

absl::StatusOr<std::vector<Registry::LeftRun>> Registry::LeftRuns() {
  ASSIGN_OR_RETURN(SqliteStatement select, database_->Prepare(kLeftRunsQuery));
  select.BindText(boot_);
  std::vector<LeftRun> left;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return left;
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
