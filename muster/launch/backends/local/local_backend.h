// Runs the processes of a run on this machine, as children of a TaskParent: mostly this process, with which they die,
// also on kill -9 (OwnChildren). None outlives the run: a task's process group is killed when the task has ended, and
// Stop kills what has left its group. A ps gets a memory file (MUSTER_ARENA_FD) that stays with the parent when its
// process dies, so that a restarted ps finds its model there.
// Not thread-safe; the process must have no other threads, since it forks, and SIGPIPE must be ignored if tasks take
// input.
//
// Each backend makes an id (MUSTER_AGENT_ID) that its processes inherit, and kills only those that have it: two
// backends of one run leave each other's tasks alone.
//
// Control groups (cgroups.h) enforce limits where this process may make some. Elsewhere the backend checks the tasks'
// memory itself and kills those that use too much (memory_watch.h), and cpus aren't limited. A limit or mount that
// isn't possible here is reported once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/base/net/free_ports.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/backends/local/cgroups.h"
#include "muster/launch/backends/local/child.h"
#include "muster/launch/backends/local/memory_watch.h"
#include "muster/launch/backends/local/oom_kills.h"
#include "muster/launch/backends/local/own_children.h"
#include "muster/launch/backends/local/run_processes.h"
#include "muster/launch/backends/local/task_input.h"
#include "muster/launch/backends/local/task_parent.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/later_calls.h"

namespace muster {

class LocalBackend final : public Backend {
 public:
  // Borrows `loop`, `events` and `parent` (null: this process is the tasks' parent), which must outlive it.
  LocalBackend(const BackendOptions& options, FdLoop& loop, BackendEvents& events, TaskParent* parent = nullptr);
  ~LocalBackend() override;

  // Goes on with the tasks that the parent has of an earlier backend: their output and ends are told as if this one had
  // started them.
  absl::Status Start() override;
  int Stop() override;
  void Reserve(const TaskId& task, const std::vector<uint16_t>& ports) override;
  void Renew(const TaskId& task, const std::vector<uint16_t>& ports) override;
  void TakePortsFrom(const PortRange& range) override { port_range_ = range; }
  void Launch(const ProcessSpec& process) override;
  void End(const TaskId& task, EndMode mode) override;
  void PauseOutput(bool paused) override;
  void Input(const TaskId& task, std::string_view bytes) override;
  absl::Time deadline() const override;
  void OnTime() override;
  // How often it has looked through all processes of the machine, which takes time in proportion to their number.
  int looks() const { return looks_; }

 private:
  // A running task.
  struct Running {
    Child child;
    int64_t asked_at = -1;             // clock ticks since boot when it was asked to end; -1: never
    int member_fd = -1;                // a process that goes on in the group after its first has ended
    int64_t mem_limit = 0;             // bytes; 0: none
    std::string label;                 // as ProcessSpec::label
    std::string cgroup;                // its folder
    bool too_much_memory = false;      // this backend killed it for that
    bool asked = false;                // this backend was told to end it
    std::unique_ptr<TaskInput> input;  // null: it takes none
  };

  [[nodiscard]] absl::Status HoldPorts(const TaskId& task, const std::vector<uint16_t>& numbers);
  [[nodiscard]] absl::Status TryToLaunch(const ProcessSpec& process);
  // Watches a started process and tells of it.
  void OnLaunched(const TaskId& task);
  void Watch(const TaskId& task);
  void AdoptTasks();
  void AdoptThings();
  void AdoptPorts(const KeptThing& thing);
  void KeepEnd(const Running& running);
  void SignalGroup(const Child& child, int signal) const;
  void KeepPorts(const TaskId& task);
  std::vector<std::string> EnvironmentOf(const ProcessSpec& process);
  std::string ProgramOf(const ProcessSpec& process) const;
  absl::StatusOr<std::vector<ProcessMount>> MountsOf(const ProcessSpec& process);
  // Returns the descriptor by which the process enters its control group; -1: none.
  absl::StatusOr<int> GroupOf(const ProcessSpec& process);
  void NoteWithoutGroups(const ProcessLimits& limits);
  void Note(const std::string& line);
  int& OutputFd(const TaskId& task, OutputStream stream);
  void WatchOutput(const TaskId& task, OutputStream stream);
  // Returns how many bytes there were; closes the descriptor at its end.
  size_t ReadOnce(const TaskId& task, OutputStream stream);
  void ReadWhatIsThere(const TaskId& task, OutputStream stream);
  // Handles the end of the task's first process.
  void OnEnd(const TaskId& task);
  void OnMemberEnd(const TaskId& task);
  // Waits for one more process of the task's group; returns false if it has none.
  bool AwaitMember(const TaskId& task);
  void ForgetMember(Running& running);
  void Finish(const TaskId& task);
  // Returns the status with what is known of a SIGKILL.
  ExitStatus WithCause(const TaskId& task, ExitStatus status) const;
  // Returns the machine's process groups as they are after the ends that this round of the loop tells of: many tasks
  // that end together, as they do when they are asked to, are looked up at once.
  const ProcessGroups& GroupsOfThisRound();

  // Constant after construction.
  const BackendOptions options_;
  FdLoop& loop_;
  BackendEvents& events_;
  std::optional<OwnChildren> own_children_;  // unless there is another parent
  TaskParent& parent_;

  std::optional<LaterCalls> later_;  // while started
  std::map<TaskId, Running> running_;
  ProcessGroups groups_;
  uint64_t groups_round_ = 0;  // the loop's round of which groups_ is
  int looks_ = 0;
  std::map<TaskId, std::vector<FreePorts>> ports_;  // one each
  std::optional<PortRange> port_range_ = options_.plan.ports;
  MemoryWatch memory_watch_;
  OomKills oom_kills_;
  std::unique_ptr<Cgroups> cgroups_;       // from the first limit on, if permitted
  std::optional<std::string> no_cgroups_;  // why not, once known
  std::optional<absl::Status> may_mount_;  // once known
  std::set<std::string> noted_;
  bool paused_ = false;
};

}  // namespace muster
