// Where the processes of a run live: this machine, later other hosts. A backend starts processes, ends them and tells
// what they write and how they end; what follows from that is the TaskSupervisor's business, not its own. One thread:
// every call, and every call of BackendEvents, is made by the thread that runs the FdLoop which the backend watches its
// descriptors with.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

// Unset: no limit.
struct ProcessLimits {
  std::optional<double> cpus;        // of one core, > 0
  std::optional<int64_t> mem_bytes;  // > 0; of the task and all that it starts
};

// A file or folder of the machine that a process sees at a path, maybe another one.
struct ProcessMount {
  std::string host;  // absolute
  std::string path;  // absolute, and there already
  bool writable = false;
};

// One process to be started.
struct ProcessSpec {
  TaskId task;
  std::string address;                 // that its server shall have; empty for who has none (the evaluator)
  std::string node;                    // of a layout, by name; empty: this machine
  std::vector<std::string> arguments;  // [0] is the program
  // On top of what the backend's processes have anyway; wins over it.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;  // where it runs, absolute; empty: where the backend does
  ProcessLimits limits;
  std::vector<ProcessMount> mounts;  // in this order
};

enum class OutputStream { kStdout, kStderr };

enum class EndMode {
  kGently,  // asked to end (SIGTERM)
  kAtOnce,  // killed, with all that it has started
};

class BackendEvents {
 public:
  virtual ~BackendEvents() = default;
  // Any piece of what the task wrote, not necessarily whole lines. `bytes` is valid during the call.
  virtual void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) = 0;
  // Once for each started process, after all its output.
  virtual void OnExit(const TaskId& task, const ExitStatus& status) = 0;
};

// What a run tells its backend, whichever that is. A backend leaves out what it has no use for.
struct BackendOptions {
  // In the environment of every process as MUSTER_RUN_ID, put there by who makes the ProcessSpec.
  std::string run_id;
  // "NAME=VALUE": what all processes have, mostly this one's own environment.
  std::vector<std::string> environment;
  // For limits of processes of this machine without control groups: for each of the pids the bytes of all processes of
  // the group that it leads; for all at once, since that is one pass over /proc. One that isn't there has none. Empty:
  // such limits aren't kept.
  std::function<std::map<pid_t, int64_t>(const std::vector<pid_t>& pids)> resident_bytes = nullptr;
  // Takes a line for the user about what can't be had here. Empty: nobody is told.
  std::function<void(const std::string& line)> note = nullptr;
  bool control_groups = true;         // use them if that is permitted
  const Clock* clock = &RealClock();  // borrowed; when to look at memory
};

// A task's process as this machine's kernel knows it: for the registry, which finds processes again when their
// supervisor is gone, and for lines to the user.
struct LocalProcess {
  pid_t pid = 0;       // 0: it doesn't run, or not on this machine
  std::string cgroup;  // the folder of its control group; empty if it has none
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Before the first Launch.
  [[nodiscard]] virtual absl::Status Start() = 0;
  // Kills what is left of the run, strays included, and waits until it is gone. Returns how many strays there were:
  // processes that tasks had left behind. Without effect if not started.
  virtual int Stop() = 0;

  // Returns once the program runs. NotFound or PermissionDenied if it can't be executed, if its directory isn't there,
  // or if what it is to see can't be mounted; the task's name must not be running already.
  [[nodiscard]] virtual absl::Status Launch(const ProcessSpec& process) = 0;
  // Returns at once, OnExit tells the rest: after kGently once all of the task have ended, the children of a shell that
  // is gone already too, so that they have the same time for it. Without effect on a task that doesn't run.
  virtual void End(const TaskId& task, EndMode mode) = 0;
  // While paused, output stays where it is and the processes that write wait: memory stays bounded when nobody reads
  // ours.
  virtual void PauseOutput(bool paused) = 0;

  // When OnTime has something to do that no descriptor tells, as limits of memory that are looked at now and then;
  // InfiniteFuture if never. Who runs the loop waits no longer than until then.
  virtual absl::Time deadline() const = 0;
  // To be called at deadline(), and whenever.
  virtual void OnTime() = 0;
  virtual LocalProcess ProcessOf(const TaskId& task) const = 0;
};

}  // namespace muster
