// What is known of every experiment: an SQLite database below MUSTER_HOME, in WAL mode, one transaction a call, so that
// commands and supervisors use it at the same time and a kill -9 at any moment leaves it whole. docs/experiments.md has
// the tables. A call waits up to 10 s for another writer's turn (Unavailable then). Not thread-safe: one Registry a
// thread.
//
// Who writes: `muster train` makes an experiment; from then on only its supervisor writes its states, and whoever finds
// that the supervisor is gone (Reconcile).
#pragma once

#include <sys/types.h>

#include <cstdint>
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

struct sqlite3;

namespace muster {

// How an experiment was asked for, besides its file: kept, so that its supervisor and `rerun` do the same.
struct TrainOptions {
  bool no_gpus = false;
  bool no_venv = false;  // the python on PATH, whatever the file says of a version
  int stop_grace_seconds = 30;
};

struct NewExperiment {
  std::string project;
  std::string folder;                // of the file, absolute
  std::string file_name, file_text;  // as it was
  std::string tree;                  // content hash of the code
  TrainOptions options;
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
  absl::Time since;    // when it came to this state
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
  int exit_code = 0;          // once ended: the master's, as a shell has it
  pid_t supervisor = 0;       // while it runs
  absl::Time created, ended;  // ended: InfinitePast while it isn't
};

class Registry {
 public:
  // Makes the tables if there are none. FailedPrecondition: made by a newer muster, or not a database (both say what to
  // do).
  static absl::StatusOr<std::unique_ptr<Registry>> Open(const Home& home, const Clock& clock);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The number it got. All rows of it, its runs included, appear at once.
  absl::StatusOr<int64_t> Create(const NewExperiment& experiment);
  // Another attempt of an ended experiment: CREATED again, with another file, tree and parameters. FailedPrecondition:
  // it hasn't ended.
  [[nodiscard]] absl::Status Restart(const ExperimentId& id, const NewExperiment& experiment);

  // NotFound, naming the id and the last few there are.
  absl::StatusOr<RunRecord> Run(const ExperimentId& id);
  absl::StatusOr<NewExperiment> Specification(int64_t number);
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

  // For supervisors. InvalidArgument if the state may not follow the present one.
  [[nodiscard]] absl::Status SetRun(const RunRecord& run);
  [[nodiscard]] absl::Status SetTasks(const ExperimentId& id, const std::vector<TaskRecord>& tasks);

  // Takes free GPUs of `all` for a run, all or none of them (empty: not now); given back by Release, and by Reconcile
  // when the run's supervisor is gone.
  absl::StatusOr<std::vector<int>> TakeGpus(const ExperimentId& id, int count, const std::vector<int>& all);
  [[nodiscard]] absl::Status ReleaseGpus(const ExperimentId& id);

  // Forgets an ended experiment.
  [[nodiscard]] absl::Status Forget(int64_t number);

  // Experiments that say they go on and whose lock nobody holds have lost their supervisor, by a kill -9 or a reboot:
  // they and their tasks become FAILED, with that as the reason. Returns which. Every command does this first.
  absl::StatusOr<std::vector<ExperimentId>> Reconcile(const Home& home);

 private:
  Registry(sqlite3* database, const Clock& clock) : database_(database), clock_(clock) {}

  sqlite3* const database_;
  const Clock& clock_;
};

}  // namespace muster
