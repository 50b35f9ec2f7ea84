// Executes a supervisor's commands on this host with a Backend: what the supervisor knows by the number of its command
// is a task there. Keeps each launch until the supervisor knows of its end, and counts what its streams have written.
// Used by the loop's thread.
//
// Ports stay reserved until the end of the agent: a task that is to have some again gets those that it has, also from
// the next supervisor. (A Backend has no call that gives up the ports of one task.)
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/agent/command_executor.h"
#include "muster/launch/agent/supervisor_link.h"
#include "muster/launch/agent_server/exits_at_signal.h"
#include "muster/launch/agent_server/kept_journal.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/backends/local/task_parent.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/later_calls.h"
#include "muster/launch/task/device_pool.h"

namespace muster {

struct BackendExecutorOptions {
  std::string address;          // of this host, told to tasks unless the supervisor gives another one
  std::string cluster_file;     // the path that WriteHosts replaces, MUSTER_CLUSTER_FILE of all tasks
  std::string heard_file = "";  // MUSTER_HEARD_FILE of all tasks
  // What a task runs whose program is "muster", whatever its PATH is; empty: that in its PATH.
  std::string muster = "";
  NamedValues devices = {};  // of the host, which its tasks share (DevicePoolIn)
  // Keeps values where the agent's next life finds them; empty: nowhere.
  std::function<void(const ValueChanges&)> keep = nullptr;
  absl::Duration settle = absl::ZeroDuration();  // of ends (ExitsAtSignal)
  const Clock* clock = &RealClock();
};

struct RunningLaunch {
  CommandId launch;
  pid_t pid = 0;        // its first process
  std::string devices;  // its CUDA_VISIBLE_DEVICES, where that was given to it
};

// What an agent's earlier lives have left.
struct EarlierLives {
  std::map<std::string, KeptThing> kept;  // values that a BackendExecutor has kept, among others
  std::map<CommandId, pid_t> processes;   // of the launches that the backend goes on with, running or ended
};

class BackendExecutor final : public CommandExecutor, private BackendEvents {
 public:
  // Borrows `loop`, which must outlive it. The backend that `make` returns must reserve ports on all addresses.
  BackendExecutor(BackendExecutorOptions options, FdLoop& loop,
                  const std::function<std::unique_ptr<Backend>(BackendEvents& events)>& make);
  ~BackendExecutor() override;

  // Starts the backend. Borrows `link`, which gets the answers, until Close. Must be called first. Afterwards
  // Launches() has those of earlier lives; call TellEnds once the link has told what it wants of them.
  [[nodiscard]] absl::Status Start(SupervisorLink& link, const EarlierLives& earlier = {});
  // Tells the ends that an earlier life knew of, which the supervisor may not have.
  void TellEnds();
  // The label of a launch's process (ProcessSpec), and back.
  static std::string LabelOf(const CommandId& launch) { return launch.ToString(); }
  static std::optional<CommandId> LaunchOf(const std::string& label);
  // The agent has got a signal, and the tasks with it.
  void OnSignal() { exits_.OnSignal(); }
  // Kills what is left, strays included; nothing is called back any more. Blocks until all of it is gone.
  void Close();

  // Reads the tasks' output, or leaves it in the pipes, as the link wants it. Call it after whatever may have changed
  // that.
  void Update();
  // Returns whether no task runs or is being started, and all ends are told.
  bool idle() const { return current_.empty(); }
  std::vector<RunningLaunch> RunningLaunches() const;
  absl::Time deadline() const;
  // Does what is due, and tries again to write the cluster file if that has failed: call it once a second at least.
  void OnTime();

  void Reserve(const CommandId& command, const ReserveEntry& reserve) override;
  void Launch(const CommandId& launch, const LaunchEntry& process) override;
  void End(const CommandId& launch, EndMode mode) override;
  void WriteHosts(const std::string& file) override;
  void Input(const CommandId& launch, std::string_view bytes) override;
  void Stop() override;
  std::vector<HeldLaunch> Launches() const override;
  void Forget(const CommandId& launch) override;
  void DropReservations() override {}
  void EndAll(EndMode mode) override;

 private:
  enum class State { kBeingStarted, kRunning, kEnded };
  struct Held {
    TaskId task;
    State state = State::kBeingStarted;
    pid_t pid = 0;
    OutputEnds written;
    ExitStatus status;         // once it has ended
    std::string devices = "";  // as RunningLaunch
    absl::Time begun = absl::InfinitePast();
  };
  struct Reservation {
    bool answered = false;           // by the backend
    std::vector<std::string> ports;  // once answered
    std::vector<std::pair<CommandId, ReserveEntry>> waiting;
  };

  void OnReserved(const TaskId& task, const std::vector<std::string>& addresses) override;
  void OnNotReserved(const TaskId& task, const absl::Status& why) override;
  void OnStarted(const TaskId& task, const LocalProcess& process) override;
  void OnNotStarted(const TaskId& task, const absl::Status& why) override;
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override;
  void OnExit(const TaskId& task, const ExitStatus& status) override;

  void ReadEarlier(const EarlierLives& earlier);
  // Keeps what is known of the launch, after each change.
  void Keep(const CommandId& launch, const Held& held) const;
  void AnswerReserve(const CommandId& command, const ReserveEntry& reserve, const Reservation& reservation);
  void TellExits();
  void StopIfAllHaveEnded();
  void StopBackend();

  // Constant after construction.
  const BackendExecutorOptions options_;
  const std::unique_ptr<Backend> backend_;

  LaterCalls later_;
  SupervisorLink* link_ = nullptr;       // borrowed, from Start to Close
  std::map<CommandId, Held> launches_;   // whose end isn't forgotten
  std::map<TaskId, CommandId> current_;  // those that run or are being started, or whose end isn't told yet
  ExitsAtSignal exits_;                  // whose ends aren't told yet
  std::map<TaskId, Reservation> reservations_;
  std::string unwritten_;  // the cluster file that couldn't be written
  bool paused_ = false;
  bool ending_ = false;          // nobody takes output any more
  bool stop_asked_ = false;      // by the supervisor
  bool stop_scheduled_ = false;  // of the backend
  bool stopped_ = false;         // the backend
};

}  // namespace muster
