// Runs the tasks of a run on several hosts: an agent on each executes what is asked for here (docs/agents.md). A task
// that the plan doesn't place, as TensorBoard, runs on this machine. Used by the loop's thread.
//
// All hosts are reached, and reach each other, before a port is reserved on any: each Reserve waits for that, and fails
// with a line for every host or pair of hosts that can't be used. Optional hosts (HostPlan) aren't waited for: one that
// can't be used is left out, and what should run there goes where AllowElsewhere says. A host that is lost later ends
// its own tasks and these alone: each exits as if killed, and may Move to another host.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/launch/backends/backend.h"
#include "muster/launch/backends/hosts/host_agent.h"
#include "muster/launch/backends/hosts/optional_hosts.h"
#include "muster/launch/backends/hosts/reach_check.h"
#include "muster/launch/backends/local/local_backend.h"
#include "muster/launch/engines/engine.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/later_calls.h"

namespace muster {

class HostsBackend final : public Backend, public EngineEvents, private BackendEvents {
 public:
  // Borrows `loop` and `events`, which must outlive it. `options.plan` has at least one host.
  HostsBackend(const BackendOptions& options, std::unique_ptr<Engine> engine, FdLoop& loop, BackendEvents& events);
  ~HostsBackend() override;

  absl::Status Start() override;
  // Runs the loop until each host that can be heard has ended everything. What runs on another one ends there, within
  // the plan's grace.
  int Stop() override;
  void Reserve(const TaskId& task, const std::vector<uint16_t>& ports) override;
  void AllowElsewhere(const TaskId& task, const MoveWish& wish) override { elsewhere_[task] = wish; }
  std::vector<TaskId> LeaveOut(const std::string& host, const std::string& why) override;
  void Launch(const ProcessSpec& process) override;
  void TakeOver(const LeftProcess& process) override;
  void End(const TaskId& task, EndMode mode) override;
  void PauseOutput(bool paused) override;
  void Input(const TaskId& task, std::string_view bytes) override;
  std::string Move(const TaskId& task, const MoveWish& wish) override;
  bool CanGiveUp(const TaskId& task, const MoveWish& wish) const override;
  void GiveUp(const TaskId& task) override;
  void WriteHosts(const std::string& file) override;
  absl::Time deadline() const override;
  void OnTime() override;

  void OnStream(const std::string& host, AgentStream stream) override;
  void OnNoStream(const std::string& host, const absl::Status& why) override;

 private:
  // What agents tell: of the check, or for the run.
  void OnReserved(const TaskId& task, const std::vector<std::string>& addresses) override;
  void OnNotReserved(const TaskId& task, const absl::Status& why) override;
  void OnStarted(const TaskId& task, const LocalProcess& process) override;
  void OnNotStarted(const TaskId& task, const absl::Status& why) override;
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override;
  void OnOutputLost(const TaskId& task, OutputStream stream, uint64_t bytes) override {
    OwnerOf(task).OnOutputLost(task, stream, bytes);
  }
  void OnExit(const TaskId& task, const ExitStatus& status) override;
  void OnOutOfReach(const TaskId& task) override { OwnerOf(task).OnOutOfReach(task); }
  void OnUsage(const TaskId& task, const ProcessUsage& usage) override { OwnerOf(task).OnUsage(task, usage); }
  BackendEvents& OwnerOf(const TaskId& task);

  // A host has answered, or can't be used.
  void OnHostChanged();
  void OnChecked(const absl::Status& checked);
  // Leaves out optional hosts that everything else waits for, when their time is over.
  void MindOptionalHosts();
  bool AwaitsOnlyOptional() const;
  // Gives a task a place whose host is left out. Returns why there is none.
  absl::Status PlaceAgain(const TaskId& task);
  absl::Status StartHere();
  void ReserveHere(const TaskId& task, const std::vector<uint16_t>& ports);
  // Returns the host of a task; null: this machine.
  HostAgent* HostOf(const TaskId& task) const;
  // Returns one of the wished hosts that has room and has been heard without a gap since then; nullopt: there is none.
  std::optional<std::string> PlaceElsewhere(const TaskId& task, const MoveWish& wish, absl::Time since) const;
  // Reserves what has waited; not before the hosts are checked.
  void ReserveWaiting();
  absl::Status WhyNotAllHosts() const;
  void Note(const std::string& line) const;

  // Constant after construction.
  const BackendOptions options_;
  const HostAgentOptions host_options_;
  FdLoop& loop_;
  BackendEvents& events_;

  std::map<TaskId, std::string> placement_;  // the plan's, and where tasks have gone since
  std::map<TaskId, MoveWish> elsewhere_;     // of tasks that go elsewhere if their host is left out
  OptionalHosts optional_;
  std::unique_ptr<Engine> engine_;
  LocalBackend local_;
  bool local_started_ = false;                                // once a task has no place on a host
  std::optional<LaterCalls> later_;                           // while started
  std::map<std::string, std::unique_ptr<HostAgent>> agents_;  // while started
  std::optional<ReachCheck> check_;                           // from the time at which all hosts have answered
  std::optional<absl::Status> usable_;                        // whether all hosts are, once known
  std::vector<std::pair<TaskId, std::vector<uint16_t>>> waiting_;
};

}  // namespace muster
