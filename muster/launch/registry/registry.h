// What is known of every experiment: an SQLite database below MUSTER_HOME, in WAL mode, one transaction a call, so that
// commands and supervisors use it at the same time and a kill -9 at any moment leaves it whole.
// docs/experiments/registry.md has the tables. Not thread-safe: one Registry a thread. A child that was forked while
// one was open uses none, unless it has called exec.
//
// Who writes: `muster train` makes an experiment; from then on only its supervisor writes its states, and whoever finds
// that the supervisor is gone (Reconcile).
//
// Errors of every call: Unavailable, others have been writing for 10 s; ResourceExhausted, the disk is full (nothing
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
#include "muster/launch/exit_status.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/run_state.h"
#include "muster/launch/spec/parameters.h"

namespace muster {

class SqliteDatabase;
class SqliteStatement;

// How an experiment was asked for, besides its file: kept, so that its supervisor and `rerun` do the same.
struct SubmitOptions {
  bool no_gpus = false;
  bool no_venv = false;  // the python on PATH, whatever the file says of a version
  int stop_grace_seconds = 30;
};

struct NewExperiment {
  std::string project;
  std::string folder;                // of the file, absolute
  std::string file_name, file_text;  // as it was
  std::string tree;                  // content hash of the code
  SubmitOptions options;
  std::vector<ParameterValues> runs;  // one, and it isn't a grid; more, and each is a run
  bool grid = false;
  std::vector<std::string> environment;  // "NAME=VALUE", of the user's shell
};

struct TaskRecord {
  TaskId task;
  RunState state = RunState::kCreated;
  pid_t pid = 0;               // while it runs
  std::string cgroup;          // folder of it, if it has one
  std::string status_address;  // of its status page, "127.0.0.1:9100", if it has one
  std::string gpus;            // visible devices, "0,1"
  int64_t mem_limit = 0;       // bytes; 0: none
  int restarts = 0;
  std::optional<ExitStatus> exit;  // of its last life
  std::string reason;  // why it ended, where the exit status doesn't say: "used more than its 512 MB of memory"
  // When it came to this state. SetTasks: the epoch, which it is unless set, lets the registry's clock say it.
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
  int runs = 0;               // of a grid; 0: it is none
  int exit_code = 0;          // once ended: the master's, as a shell has it; 137 if its supervisor was lost
  pid_t supervisor = 0;       // while it runs
  absl::Time created, ended;  // ended: InfinitePast while it isn't
};

class Registry {
 public:
  // Makes the tables if there are none; experiments whose folders are there already aren't numbered again. For reading
  // only where this user may not write the file. FailedPrecondition: made by a newer muster, or not a database (both
  // say what to do). `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<Registry>> Open(const Home& home, const Clock& clock);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The number it got. All rows of it, its runs included, appear at once. `before_others_see_it` is called when the
  // number is certain and nobody can see it yet: to make its folder and take its lock, without which Reconcile would
  // think it lost. If that fails, so does Create, and there is no experiment. InvalidArgument: no runs; several, and no
  // grid; a parameter that isn't text.
  using Prepare = std::function<absl::Status(const ExperimentId& id)>;
  absl::StatusOr<int64_t> Create(const NewExperiment& experiment, const Prepare& before_others_see_it = {});
  // Another attempt of an ended experiment (of a grid: of all its runs), or of one ended run of a grid, whose
  // parameters are `experiment.runs[0]`: CREATED again, with another file, tree and parameters, the same number and
  // output_dir, and no tasks. Take its lock first. FailedPrecondition: it hasn't ended. InvalidArgument: one is a grid,
  // the other isn't.
  [[nodiscard]] absl::Status Restart(const ExperimentId& id, const NewExperiment& experiment);

  // NotFound, naming the id and the last few there are.
  absl::StatusOr<RunRecord> Run(const ExperimentId& id);
  // As it was last made or restarted.
  absl::StatusOr<NewExperiment> Specification(int64_t number);
  // In the order in which SetTasks first had them.
  absl::StatusOr<std::vector<TaskRecord>> Tasks(const ExperimentId& id);
  // Of a grid, in order.
  absl::StatusOr<std::vector<RunRecord>> Runs(int64_t number);
  struct Filter {
    std::string project;     // empty: all
    bool only_open = false;  // that haven't ended
    int last = 0;            // so many of the newest; 0: all
  };
  // Experiments (without the runs of grids), newest last. `List` with 10,000 in the table and last = 20: a millisecond.
  absl::StatusOr<std::vector<RunRecord>> List(const Filter& filter);
  // The newest of the project (empty: of all). NotFound saying so.
  absl::StatusOr<ExperimentId> Last(const std::string& project);

  // For supervisors. Writes state, reason, output_dir, exit_code and supervisor, and says when it ended; an end gives
  // its GPUs back and is on the disk when this returns. InvalidArgument if the state may not follow the present one
  // (run_state.h; the same again is fine): CREATED comes only by Restart.
  [[nodiscard]] absl::Status SetRun(const RunRecord& run);
  // Only the supervisor's process, before it has anything else to say. FailedPrecondition: the run has ended.
  [[nodiscard]] absl::Status SetSupervisor(const ExperimentId& id, pid_t supervisor);
  // Writes whole rows: of these tasks all or, where a state may not follow (InvalidArgument), none; others stay.
  [[nodiscard]] absl::Status SetTasks(const ExperimentId& id, const std::vector<TaskRecord>& tasks);

  // Takes free GPUs of `all` for a run, all or none of them (empty: not now), besides those it has; given back by
  // Release, by the run's end, and by Reconcile when the run's supervisor is gone. FailedPrecondition: it has ended.
  absl::StatusOr<std::vector<int>> TakeGpus(const ExperimentId& id, int count, const std::vector<int>& all);
  [[nodiscard]] absl::Status ReleaseGpus(const ExperimentId& id);

  // Forgets an ended experiment. Its folder and its number stay: no other gets it. FailedPrecondition: it, or one of
  // its runs, hasn't ended.
  [[nodiscard]] absl::Status Forget(int64_t number);

  // Experiments that say they go on and whose lock nobody holds have lost their supervisor, by a kill -9 or a reboot:
  // they and their tasks become FAILED, with that as the reason. Returns which, runs of grids too. Every command does
  // this first. A registry that can only be read stays as it is.
  absl::StatusOr<std::vector<ExperimentId>> Reconcile(const Home& home);

 private:
  Registry(std::unique_ptr<SqliteDatabase> database, const Clock& clock, std::string boot);

  absl::Status NoSuchRun(const ExperimentId& id);
  absl::StatusOr<int64_t> OpenRunsOf(int64_t number);
  absl::StatusOr<std::vector<RunRecord>> AllRuns(SqliteStatement& statement);
  [[nodiscard]] absl::Status InsertRun(const ExperimentId& id, const std::string& tree,
                                       const ParameterValues& parameters);
  [[nodiscard]] absl::Status RestartRun(const ExperimentId& id, const std::string& tree,
                                        const ParameterValues& parameters);
  [[nodiscard]] absl::Status RestartGrid(const RunRecord& present, const NewExperiment& experiment);
  [[nodiscard]] absl::Status SetTask(const ExperimentId& id, const TaskRecord& task);
  [[nodiscard]] absl::Status MarkLost(const RunRecord& run, absl::Time now);
  [[nodiscard]] absl::Status DropLeases(const ExperimentId& id);

  // Constant after construction.
  const std::unique_ptr<SqliteDatabase> database_;
  const Clock& clock_;
  const std::string boot_;  // of the machine, this time; empty: it doesn't say
};

}  // namespace muster
