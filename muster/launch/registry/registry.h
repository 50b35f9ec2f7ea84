// What is known of every experiment. The files in the experiments' folders are what counts; every host that sees them
// has an index of them, an SQLite database in WAL mode (docs/experiments/state.md, registry.md). Each call that changes
// something is one transaction, so commands and supervisors use it at the same time, and a kill -9 at any moment leaves
// it intact. Not thread-safe: each thread needs a Registry of its own. A child that was forked while one was open must
// not use any, unless it has called exec.
//
// `muster train` creates an experiment. From then on only its supervisor writes its states, or Reconcile in a process
// that finds that the supervisor is gone.
//
// Every call may return: Unavailable, others have been writing for 10 s; ResourceExhausted, the disk is full (nothing
// was changed: try again); PermissionDenied, this user may only read; DataLoss, the file is damaged.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/hosts/host_setting.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/files/durability.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry_place.h"
#include "muster/launch/registry/run_state.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

class IndexRefresh;
class SqliteDatabase;
class SqliteStatement;
class StateChange;

// How an experiment was submitted, besides its file. Stored, so that its supervisor and `rerun` do the same.
struct SubmitOptions {
  bool no_gpus = false;
  bool no_venv = false;  // use the python on PATH, whatever version the file names
  int stop_grace_seconds = 30;
  HostSetting hosts;
};

struct NewExperiment {
  std::string project;
  std::string folder;                // with the file, absolute
  std::string file_name, file_text;  // as at submission
  std::string tree;                  // content hash of the code
  SubmitOptions options;
  std::vector<ParameterValues> runs;  // one without `grid`, otherwise one per run of the grid
  bool grid = false;
  std::vector<std::string> environment;  // "NAME=VALUE", of the user's shell; KeptVariables of it are stored
};

struct TaskRecord {
  TaskId task;
  RunState state = RunState::kCreated;
  pid_t pid = 0;               // while it runs, on the supervisor's machine
  std::string host;            // where it runs or has run; empty: this machine
  std::string cgroup;          // its folder, if it has one
  std::string status_address;  // of its status page, "127.0.0.1:9100", if it has one
  std::string gpus;            // visible devices, "0,1"
  int64_t mem_limit = 0;       // bytes; 0: none
  int restarts = 0;
  std::optional<ExitStatus> exit;  // of its last life
  std::string reason;  // why it ended, where the exit status doesn't say: "used more than its 512 MB of memory"
  // When it entered this state. If unset (the epoch), SetRun uses the registry's clock.
  absl::Time since;

  bool operator==(const TaskRecord&) const = default;
};

struct RunRecord {
  ExperimentId id;
  std::string project;
  RunState state = RunState::kCreated;
  std::string reason;  // why it ended so: "worker.2 exited with 1", "its supervisor was killed"
  ParameterValues parameters;
  std::string output_dir;
  std::string tree;
  std::string folder;
  int attempt = 1;
  int runs = 0;               // of a grid; 0: not a grid
  int exit_code = 0;          // once ended: the master's, as a shell has it; 137 if its supervisor was killed
  pid_t supervisor = 0;       // while it runs
  std::string run_id;         // MUSTER_RUN_ID of its processes; empty: none of them is left
  std::string machine;        // of its supervisor (MachineId::ToString)
  absl::Time created, ended;  // ended: InfinitePast until it has ended
};

// Returns whether a run has failed because its supervisor was lost, not by itself.
bool WasLost(const RunRecord& run);

// How a run ended whose supervisor could not say it.
struct LostEnd {
  RunState state = RunState::kFailed;  // or KILLED
  std::string reason;
  int exit_code = 1;
};

// What Registry::Open reads of what is new in the files. kOpen, experiments that haven't ended, is enough for a
// supervisor: on a host whose index is new, thousands may have ended. With kAll, for a command, the index is in
// memory while there is no room for it, so that all can still be shown. (A supervisor leases GPUs in the index.)
enum class ToRead { kAll, kOpen };

class Registry {
 public:
  // Opens this host's index, makes its tables if missing, and reads what is new in the files. Opens it for reading only
  // if this user may not write it. FailedPrecondition: made by a newer muster, not a database, or experiments of an
  // older muster run (all say what to do). `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<Registry>> Open(const Home& home, const Clock& clock,
                                                        ToRead to_read = ToRead::kAll);
  // The same where the caller says where the index is, and on which machine it is.
  static absl::StatusOr<std::unique_ptr<Registry>> OpenAt(const Home& home, const RegistryPlace& place,
                                                          const Clock& clock, ToRead to_read = ToRead::kAll);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Creates an experiment and returns its number. All its rows, its runs included, appear at once.
  // `before_others_see_it` is called when the number is certain and nobody can see it yet: to make its folder and take
  // its lock, without which Reconcile would consider it lost. If that fails, so does Create, and no experiment exists.
  // InvalidArgument: no runs; several without `grid`; a parameter that isn't text.
  using Prepare = std::function<absl::Status(const ExperimentId& id)>;
  absl::StatusOr<int64_t> Create(const NewExperiment& experiment, const Prepare& before_others_see_it = {});
  // Lists the experiments' folders if they have changed, and keeps that they are known, so that the next command
  // needn't: for a command that has started one.
  [[nodiscard]] absl::Status KnowFolders();
  // Starts another attempt of an ended experiment (for a grid, of its runs but those that have finished with the same
  // parameters; FailedPrecondition: all have), or of one ended run of a grid with the
  // parameters `experiment.runs[0]`. It is CREATED again, with another file, tree and parameters, the same number and
  // output_dir, and no tasks. Its lock must be held. FailedPrecondition: it hasn't ended. InvalidArgument: only one of
  // the two is a grid.
  [[nodiscard]] absl::Status Restart(const ExperimentId& id, const NewExperiment& experiment);
  // Takes a Restart back, for its supervisor before tasks begin: all is as before. FailedPrecondition: there was no
  // attempt before.
  [[nodiscard]] absl::Status TakeRestartBack(const ExperimentId& id);

  // NotFound, naming the id and the last few that exist.
  absl::StatusOr<RunRecord> Run(const ExperimentId& id);
  // Returns the specification of the last Create or Restart.
  absl::StatusOr<NewExperiment> Specification(int64_t number);
  // Returns the tasks in the order in which SetRun first had them.
  absl::StatusOr<std::vector<TaskRecord>> Tasks(const ExperimentId& id);
  // Returns the runs of a grid, in order.
  absl::StatusOr<std::vector<RunRecord>> Runs(int64_t number);
  struct Filter {
    std::string project;     // empty: all
    bool only_open = false;  // only experiments that haven't ended
    int last = 0;            // this many of the newest; 0: all
  };
  // Returns experiments (without the runs of grids), newest last. With 10,000 experiments and last = 20, this takes a
  // millisecond.
  absl::StatusOr<std::vector<RunRecord>> List(const Filter& filter);
  // Returns the newest of the project (empty: of all). NotFound saying so.
  absl::StatusOr<ExperimentId> Last(const std::string& project);

  // For supervisors. Writes state, reason, output_dir, exit_code, supervisor and run_id, and the time of an end, after
  // which no process is left, so that run_id is dropped, and whole rows of these tasks; others stay. Readers see all of
  // it at once. An end releases its GPUs and is on the disk when this returns. InvalidArgument, and nothing is written,
  // if a state may not follow the present one (run_state.h; the same state is fine): only Restart sets CREATED.
  [[nodiscard]] absl::Status SetRun(const RunRecord& run, const std::vector<TaskRecord>& tasks = {});

  // Leases free GPUs out of `all` to a run, either `count` of them or none (empty: not now), besides those it has.
  // ReleaseGpus, the run's end, or Reconcile after the loss of its supervisor release them. FailedPrecondition: ended.
  absl::StatusOr<std::vector<int>> TakeGpus(const ExperimentId& id, int count, const std::vector<int>& all);
  [[nodiscard]] absl::Status ReleaseGpus(const ExperimentId& id);

  // Forgets an ended experiment. Its folder stays, and no other experiment gets its number. FailedPrecondition: it, or
  // one of its runs, hasn't ended.
  [[nodiscard]] absl::Status Forget(int64_t number);

  // Finds experiments that haven't ended but whose lock nobody holds: their supervisor was lost by a kill -9 or a
  // reboot. Sets them and their tasks to FAILED, with that as the reason. Returns them, runs of grids too. Every
  // command does this first. What this user may not write isn't changed. Supervisors of other hosts and those in a job
  // of an engine aren't judged: the engine knows of these (launch/jobs).
  absl::StatusOr<std::vector<ExperimentId>> Reconcile();
  // Returns all runs that haven't ended, those of grids included, by experiment.
  absl::StatusOr<std::vector<ExperimentId>> OpenRuns();
  // Ends a run whose supervisor is surely gone, and its tasks; no effect if it has ended.
  [[nodiscard]] absl::Status EndLost(const ExperimentId& id, const LostEnd& end);
  // Lets a run begin once more in the same attempt: it and its tasks are CREATED, for `reason`. Only for its
  // supervisor, and for a command that has found that it has none.
  [[nodiscard]] absl::Status StartOver(const ExperimentId& id, const std::string& reason);
  // Returns the runs, usually none, that were lost in this boot of the machine and of which processes may be left.
  struct LeftRun {
    ExperimentId id;
    std::string run_id;
  };
  absl::StatusOr<std::vector<LeftRun>> LeftRuns();
  // Must be called when the processes of a lost run are known to be gone.
  [[nodiscard]] absl::Status ForgetProcesses(const ExperimentId& id);

  // Renews state.json, by which others see that the run's supervisor lives; for it, every kRenewEvery.
  static constexpr absl::Duration kRenewEvery = absl::Seconds(5);
  [[nodiscard]] absl::Status Renew(const ExperimentId& id);
  bool is_shared() const { return place_.shared; }  // other hosts may write the home, too
  // Returns whether process numbers of the run's supervisor and tasks are this machine's.
  bool IsHere(const RunRecord& run) const;
  // Returns how long ago its supervisor renewed state.json, by the file system's own clock; nullopt: unknown.
  std::optional<absl::Duration> SinceRenewal(const ExperimentId& id) const;

 private:
  Registry(std::unique_ptr<SqliteDatabase> database, const Home& home, RegistryPlace place, const Clock& clock);

  // Reads what other hosts have written of it, if they can write.
  [[nodiscard]] absl::Status Freshen(int64_t number, int run = 0);
  absl::StatusOr<StateChange> BeginChange(Durability durability);
  absl::Status NoSuchRun(const ExperimentId& id);
  absl::StatusOr<std::vector<RunRecord>> AllRuns(SqliteStatement& statement);
  [[nodiscard]] absl::Status InsertRun(const ExperimentId& id, const std::string& tree,
                                       const ParameterValues& parameters);
  [[nodiscard]] absl::Status RestartRun(const ExperimentId& id, const std::string& tree,
                                        const ParameterValues& parameters);
  [[nodiscard]] absl::Status RestartGrid(const RunRecord& present, const NewExperiment& experiment);
  [[nodiscard]] absl::Status SetTask(const ExperimentId& id, const TaskRecord& task);
  [[nodiscard]] absl::Status MarkLost(StateChange& change, const RunRecord& run, const LostEnd& end, absl::Time now);

  // Constant after construction.
  const std::unique_ptr<SqliteDatabase> database_;
  const Home home_;
  const RegistryPlace place_;
  const Clock& clock_;
  const std::unique_ptr<IndexRefresh> refresh_;
};

}  // namespace muster
