// Where the processes of a run live: this machine, later other hosts. A backend starts and ends processes and reports
// their output and how they end; the TaskSupervisor decides what follows. Single-threaded: the thread that runs the
// FdLoop with which the backend watches its descriptors makes every call, and every call of BackendEvents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

// An unset field means no limit.
struct ProcessLimits {
  std::optional<double> cpus;        // of one core, > 0
  std::optional<int64_t> mem_bytes;  // > 0; for the task and all that it starts
};

// A file or folder of the machine that a process sees at `path`, which may be another path.
struct ProcessMount {
  std::string host;  // absolute
  std::string path;  // absolute; must exist
  bool writable = false;
};

// A process to start.
struct ProcessSpec {
  TaskId task;
  std::string address;                 // of its server; empty if it has none (the evaluator)
  std::string node;                    // its name in a layout; empty: this machine
  std::vector<std::string> arguments;  // [0] is the program
  // Added to the environment that the backend gives every process; these values win.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;  // working directory, absolute; empty: the backend's
  ProcessLimits limits;
  std::vector<ProcessMount> mounts;  // applied in this order
};

enum class OutputStream { kStdout, kStderr };

enum class EndMode {
  kGently,  // asks it to end (SIGTERM)
  kAtOnce,  // kills it and all that it has started
};

class BackendEvents {
 public:
  virtual ~BackendEvents() = default;
  // Takes any piece of the task's output, not necessarily whole lines. `bytes` is valid during the call.
  virtual void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) = 0;
  // Called once for each started process, after all its output.
  virtual void OnExit(const TaskId& task, const ExitStatus& status) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Must be called before the first Launch.
  [[nodiscard]] virtual absl::Status Start() = 0;
  // Kills what is left of the run, strays included, and waits until it is gone. Returns the number of strays, which are
  // processes that tasks left behind. Has no effect if not started.
  virtual int Stop() = 0;

  // Returns once the program runs. NotFound or PermissionDenied if the program can't be executed, its directory doesn't
  // exist or a mount fails. No task of this name may be running already.
  [[nodiscard]] virtual absl::Status Launch(const ProcessSpec& process) = 0;
  // Returns at once; OnExit reports the end. With kGently, OnExit comes once all processes of the task have ended, also
  // the children of a shell that has exited already, so that they get the same time. Has no effect on a task that
  // doesn't run.
  virtual void End(const TaskId& task, EndMode mode) = 0;
  // While paused, output stays in the pipes and writing processes block, so that memory stays bounded when nobody reads
  // our own output.
  virtual void PauseOutput(bool paused) = 0;
};

}  // namespace muster
