// The processes of a run as children of this one. They die with it, on kill -9 too (see Guard), and none outlives the
// run: a task's process group is killed when the task has ended, and Stop kills whatever has left its group. A ps gets
// a memory file (MUSTER_ARENA_FD) that stays here when its process dies: launched again, it finds its model there. Not
// thread-safe; the process must have no other threads, since it forks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/launch/backend.h"
#include "muster/launch/backends/local/child.h"
#include "muster/launch/backends/local/guard.h"
#include "muster/launch/fd_loop.h"

namespace muster {

struct LocalBackendOptions {
  // In the environment of every process as MUSTER_RUN_ID, put there by who makes the ProcessSpec.
  std::string run_id;
  // "NAME=VALUE": what all processes have, mostly this one's own environment.
  std::vector<std::string> environment;
};

class LocalBackend final : public Backend {
 public:
  // Borrows `loop` and `events`, which must outlive it.
  LocalBackend(const LocalBackendOptions& options, FdLoop& loop, BackendEvents& events);
  ~LocalBackend() override;

  absl::Status Start() override;
  int Stop() override;
  absl::Status Launch(const ProcessSpec& process) override;
  void End(const TaskId& task, EndMode mode) override;
  void PauseOutput(bool paused) override;

  // 0 if it doesn't run.
  pid_t Pid(const TaskId& task) const;

 private:
  std::vector<std::string> EnvironmentOf(const ProcessSpec& process) const;
  std::string SearchPath(const std::vector<std::string>& environment) const;
  // The memory that outlives the process of a ps; -1 for other tasks.
  int MemoryFd(const TaskId& task);
  int& OutputFd(const TaskId& task, OutputStream stream);
  void WatchOutput(const TaskId& task, OutputStream stream);
  // Returns how many bytes there were; closes the descriptor at its end.
  size_t ReadOnce(const TaskId& task, OutputStream stream);
  void ReadWhatIsThere(const TaskId& task, OutputStream stream);
  void OnEnd(const TaskId& task);

  // Constant after construction.
  const LocalBackendOptions options_;
  FdLoop& loop_;
  BackendEvents& events_;

  std::unique_ptr<Guard> guard_;  // while started
  std::map<TaskId, Child> children_;
  std::map<TaskId, int> memories_;
  bool paused_ = false;
};

}  // namespace muster
