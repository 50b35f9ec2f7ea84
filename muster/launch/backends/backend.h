// Where the processes of a run live: this machine, later other hosts. A backend starts processes, ends them and tells
// what they write and how they end; what follows from that is the TaskSupervisor's business, not its own. One thread:
// every call, and every call of BackendEvents, is made by the thread that runs the FdLoop which the backend watches its
// descriptors with.
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
};

}  // namespace muster
