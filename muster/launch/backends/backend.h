// Where the processes of a run live: this machine, later other hosts. A backend starts and ends processes and reports
// their output and how they end; the TaskSupervisor decides what follows. A task is started in two phases, so that the
// tasks of a cluster can be told each other's addresses: Reserve for all of them, then Launch. Single-threaded: the
// thread that runs the FdLoop with which the backend watches its descriptors makes every call. No call waits for a
// process or a host, and none calls back: every call of BackendEvents comes from the loop.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/net/port_range.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/hosts/command_setting.h"
#include "muster/launch/hosts/host_setting.h"
#include "muster/launch/task/exit_status.h"
#include "muster/launch/task/gpus_in_use.h"

namespace muster {

// The engine that runs the processes as children of this one (local/).
inline constexpr char kThisMachine[] = "local";
// The engine that runs them on hosts that the user reaches by ssh (hosts/).
inline constexpr char kSshEngine[] = "ssh";
// Other engines (host_setting.h, command_setting.h) run them on hosts of the user's commands or of a job (hosts/).

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
  // Gives up the task's reserved ports just before the program runs, for one that can't bind beside the reservation.
  bool release_ports = false;
  // Its stdin is what Backend::Input gives it; otherwise it is empty.
  bool takes_input = false;
  // Names this start of the task to a process that keeps it when this one dies (TaskParent); empty: nobody does.
  std::string label = "";
};

// What a task may have waiting that its program hasn't read. A sender learns from the program's own output how far it
// has read, and stays far below.
inline constexpr size_t kMaxWaitingInput = size_t{4} << 20;

enum class OutputStream { kStdout, kStderr };

enum class EndMode {
  kGently,  // asks it to end (SIGTERM)
  kAtOnce,  // kills it and all that it has started
};

// A task's process as this machine's kernel knows it: for the registry, which finds processes again when their
// supervisor is gone, and for lines to the user.
struct LocalProcess {
  pid_t pid = 0;            // 0: it doesn't run, or not on this machine
  std::string cgroup;       // the folder of its control group; empty if it has none
  std::string host;         // where it runs instead; empty: on this machine
  int64_t pid_on_host = 0;  // there
};

// What a task's processes have used since its start, as an agent has measured it.
struct ProcessUsage {
  double cpu_seconds = 0;
  int64_t resident_bytes = 0;
  GpusInUse gpus = {};
};

class BackendEvents {
 public:
  virtual ~BackendEvents() = default;
  // Exactly one of these two answers each Reserve. `addresses`: "HOST:PORT" for each port, in the order of the request.
  virtual void OnReserved(const TaskId& task, const std::vector<std::string>& addresses) = 0;
  // InvalidArgument: a port that was asked for by its number is in use.
  virtual void OnNotReserved(const TaskId& task, const absl::Status& why) = 0;
  // Comes before one of these two if the task's host is left out: the task is on this one from now on. `why`: a line
  // for the user about the host.
  virtual void OnPlaced(const TaskId& /*task*/, const std::string& /*host*/, const std::string& /*why*/) {}
  // Exactly one of these two answers each Launch. OnStarted comes before all output: the program runs.
  virtual void OnStarted(const TaskId& task, const LocalProcess& process) = 0;
  // NotFound or PermissionDenied: the program can't be executed, its directory doesn't exist or a mount fails. No
  // OnExit follows.
  virtual void OnNotStarted(const TaskId& task, const absl::Status& why) = 0;
  // Takes any piece of the task's output, not necessarily whole lines. `bytes` is valid during the call.
  virtual void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) = 0;
  // So many bytes that the task has written will not come: they died with an agent, or with the supervisor before.
  virtual void OnOutputLost(const TaskId& /*task*/, OutputStream /*stream*/, uint64_t /*bytes*/) {}
  // Called once for each started process, after all its output.
  virtual void OnExit(const TaskId& task, const ExitStatus& status) = 0;
  // Called every second while the host of a task that runs hasn't been heard for longer than
  // HostAgentOptions::out_of_reach_after. The task may go on there.
  virtual void OnOutOfReach(const TaskId& /*task*/) {}
  // Called now and then while a task runs on another host; what is used on this machine can be read from /proc.
  virtual void OnUsage(const TaskId& /*task*/, const ProcessUsage& /*usage*/) {}
};

// A process that the run's supervisor before this one has launched.
struct LeftProcess {
  TaskId task;
  std::vector<uint16_t> ports = {};                 // the task's reserved ones, by number
  uint64_t written_stdout = 0, written_stderr = 0;  // bytes of its output that are in the logs
};

// Where the tasks of a run over several hosts run.
struct HostPlan {
  std::vector<Host> hosts;
  std::map<TaskId, std::string> placement;  // by name; tasks that aren't in it run on this machine
  // Those of the hosts that the run can do without (DispensableHosts). Nobody waits for one, and one that can't be used
  // is left out.
  std::set<std::string> optional_hosts = {};
  std::string ssh_config;  // a file for `ssh -F`; empty: the user's own
  // The file of muster: hosts by ssh get a copy of it, nodes of Slurm must see it under this path.
  std::string muster;
  // A folder that the nodes of Slurm see, in which the run keeps where its supervisor is.
  std::string shared_folder = "";
  // How long an agent keeps its tasks without hearing from here; at least kLeastGrace.
  absl::Duration grace = kUsualGrace;
  // What an agent gives its tasks to end after a signal, as its own flag says.
  absl::Duration signalled = absl::Seconds(3);
  // The only numbers that reserved ports may have, on each host and on this machine; nullopt: UsualPorts of each.
  std::optional<PortRange> ports = std::nullopt;
  // Which supervisor of the run this is, from 1. From the second on, hosts have agents that may keep tasks.
  uint64_t supervisor = 1;
  // How the commands of kCommandEngine reach the hosts that they have got.
  std::optional<CommandHosts> command = std::nullopt;
  // This process is in the job that has the hosts: whoever signals the job signals this process, too, maybe twice.
  bool in_job = false;
};

// Where a task may go when its host is lost.
struct MoveWish {
  std::vector<std::string> hosts;   // of the plan, by name
  std::map<TaskId, int> gpus = {};  // of all tasks that need some
  std::vector<TaskId> others = {};  // the run's tasks that haven't ended: they take room where they are
  std::string last_resort = "";     // the host that takes the task if none has room; empty: none does
};

// What a run tells its backend, whichever that is. A backend leaves out what it has no use for.
struct BackendOptions {
  // In the environment of every process as MUSTER_RUN_ID, put there by the maker of the ProcessSpec.
  std::string run_id;
  // "NAME=VALUE": what all processes have, mostly this one's own environment.
  std::vector<std::string> environment;
  // For limits of processes of this machine without control groups: for each of the pids the bytes of all processes of
  // the group that it leads; for all at once, since that is one pass over /proc. One that isn't there has none. Empty:
  // such limits aren't kept.
  std::function<std::map<pid_t, int64_t>(const std::vector<pid_t>& pids)> resident_bytes = nullptr;
  // Takes a line for the user about what isn't available here. Empty: nobody is told.
  std::function<void(const std::string& line)> note = nullptr;
  bool control_groups = true;         // use them if that is permitted
  std::optional<mode_t> umask;        // of all processes; unset: this one's own
  HostPlan plan;                      // for an engine that has hosts
  const Clock* clock = &RealClock();  // borrowed; when to look at memory
  // Where ports are reserved, as FreePorts takes it, and what the tasks are told.
  std::string address = "127.0.0.1";
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Must be called before the first Reserve or Launch.
  [[nodiscard]] virtual absl::Status Start() = 0;
  // Kills what this backend has started and is left, strays included, and waits until it is gone. Gives up all ports.
  // Returns the number of strays, which are processes that tasks left behind. Nothing is called back any more. Has no
  // effect if not started.
  virtual int Stop() = 0;

  // Binds TCP ports where the task will run and keeps them until Stop, also between the task's lives, so that no other
  // program gets them: a port is never only found free. `ports`: numbers, or 0 for any. Call once per task.
  virtual void Reserve(const TaskId& task, const std::vector<uint16_t>& ports) = 0;
  // Says where a task goes if its host is left out (HostPlan::optional_hosts). Call before its Reserve.
  virtual void AllowElsewhere(const TaskId& /*task*/, const MoveWish& /*wish*/) {}
  // Leaves out an optional host that can't be used for what `why` says. Returns the tasks that go elsewhere: Reserve
  // must come again for each. They don't run, and nothing else is asked of this host any more.
  virtual std::vector<TaskId> LeaveOut(const std::string& /*host*/, const std::string& /*why*/) { return {}; }
  // Reserves other ports for a task that doesn't run, in the place of those that it has, because other programs use
  // them. Answered as Reserve; without an answer of OnReserved it has none any more. The default is for a backend whose
  // Reserve doesn't give the same ones again.
  virtual void Renew(const TaskId& task, const std::vector<uint16_t>& ports) { Reserve(task, ports); }
  // Sets HostPlan::ports, for an agent's backend: its supervisor says it with what is to be reserved.
  virtual void TakePortsFrom(const PortRange& /*range*/) {}
  // Starts the task's process. No task of this name may be running already or being started.
  virtual void Launch(const ProcessSpec& process) = 0;
  // Returns at once; OnExit reports the end. Also ends a task whose start hasn't been reported yet. With kGently,
  // OnExit comes once all processes of the task have ended, also the children of a shell that has exited already, so
  // that they get the same time. Has no effect on a task that doesn't run.
  virtual void End(const TaskId& task, EndMode mode) = 0;
  // While paused, output stays in the pipes and writing processes block, so that memory stays bounded when nobody reads
  // our own output.
  virtual void PauseOutput(bool paused) = 0;
  // Gives the bytes to the stdin of a task with ProcessSpec::takes_input, from its Launch on; empty: the end of its
  // input. Returns at once: what the program doesn't read yet is kept, and a task with more than kMaxWaitingInput
  // waiting is killed. Has no effect on other tasks, nor after the end of the input or of the task.
  virtual void Input(const TaskId& task, std::string_view bytes) = 0;

  // Goes on with a process of the supervisor before this one (HostPlan::supervisor) and with its ports, in the place of
  // Reserve and Launch. Answered as Launch; NotFound: it has ended with its agent. Call it before the loop runs, for
  // all.
  virtual void TakeOver(const LeftProcess& /*process*/) { MUSTER_CHECK(false); }  // an engine without agents

  // Says that a task that doesn't run shall run on another host from now on, if its own is lost or out of reach and one
  // of the wished ones has room. Returns that host's name; then Reserve must come again, before Launch. "": it stays.
  virtual std::string Move(const TaskId& /*task*/, const MoveWish& /*wish*/) { return ""; }
  // Returns whether a task that is out of reach could go to one of the wished hosts, which has been heard all the time.
  virtual bool CanGiveUp(const TaskId& /*task*/, const MoveWish& /*wish*/) const { return false; }
  // Gives up such a task: nothing more is told of its process, which is killed once its host is heard again.
  virtual void GiveUp(const TaskId& /*task*/) {}
  // Returns the host of a task that can't be told anything now because its host isn't heard, and until when it may run
  // on; "": it can.
  virtual std::string UnheardHost(const TaskId& /*task*/) const { return ""; }
  // Replaces the file on every host that tells tasks where the others are (transport/tcp/moved_addresses.h).
  virtual void WriteHosts(const std::string& /*file*/) {}

  // When OnTime has something to do that no descriptor tells, as limits of memory that are looked at now and then;
  // InfiniteFuture if never. The loop must wait no longer than until then.
  virtual absl::Time deadline() const = 0;
  // Must be called at deadline(); may be called at any time.
  virtual void OnTime() = 0;
};

}  // namespace muster
