// One host of a run, as a supervisor sees it: gets streams to the host's agent from an engine, sends it commands, and
// tells what becomes of its tasks. Dials again when a stream breaks, until the host counts as lost. A task that is
// launched, or gets ports, after that gets a new agent, if the host can be reached, with the ports that were reserved
// before. Used by the loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/retry_pause.h"
#include "muster/launch/agent/agent_connection.h"
#include "muster/launch/agent/agent_link.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/engines/engine.h"
#include "muster/launch/hosts/host_list.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/later_calls.h"

namespace muster {

struct HostAgentOptions {
  std::string job;          // of the agent, letters, digits and '-'
  uint64_t supervisor = 1;  // see HostPlan
  AgentLimits limits;
  std::optional<PortRange> ports = std::nullopt;          // see HostPlan
  absl::Duration out_of_reach_after = absl::Seconds(10);  // see BackendEvents::OnOutOfReach
  std::function<void(const std::string& line)> note;      // takes a line for the user; must be set
};

// A launch until its end, or a reservation until its answer.
struct AskedOfHost {
  TaskId task;
  bool launch = false;
  bool started = false;
  bool renewed = false;                // a reservation that the agent before had
  size_t ports = 0;                    // of a reservation
  std::vector<uint16_t> without = {};  // as in ReserveEntry
  // These two are of a launch of the supervisor before.
  OutputEnds written = {};     // what is in the logs
  std::optional<EndMode> end;  // how to end it once the agent has answered
};
// A command until the agent takes it.
struct QueuedForHost {
  std::function<void()> send;
  std::optional<AskedOfHost> asked;  // what must be answered if it can't be sent any more
};

class HostAgent final : public AgentLinkEvents {
 public:
  // Borrows all but the host; they must outlive it. `changed` is called from the loop when state() has changed.
  HostAgent(Host host, const HostAgentOptions& options, Engine& engine, FdLoop& loop, const Clock& clock,
            BackendEvents& events, std::function<void()> changed);
  ~HostAgent() override;

  enum class State {
    kConnecting,  // no agent has answered yet
    kReady,       // one has; it may be silent now
    kGone,        // there is none: it was never reached, has died, is lost, or has refused; see why_gone
  };
  State state() const { return state_; }
  const absl::Status& why_gone() const { return why_gone_; }
  const std::string& name() const { return host_.name; }
  // Returns whether the agent knows that everything has ended, and has ended itself.
  bool stopped() const { return stopped_ && connection_ == nullptr; }
  int strays() const { return strays_; }  // that tasks had left behind, once the agent has stopped
  bool suspect() const { return link_->suspect(); }
  absl::Time heard_since() const { return heard_since_; }  // without a gap

  // The engine's answers.
  void OnStream(AgentStream stream);
  void OnNoStream(const absl::Status& why);

  // These are as in Backend; the answers are calls of BackendEvents.
  void Reserve(const TaskId& task, const std::vector<uint16_t>& ports, bool renew = false);  // renew: see Renew there
  void Launch(const ProcessSpec& process);
  void TakeOver(const LeftProcess& process);
  void End(const TaskId& task, EndMode mode);
  void PauseOutput(bool paused);
  void Input(const TaskId& task, std::string_view bytes);
  void GiveUp(const TaskId& task);
  void WriteHosts(const std::string& file);
  // Returns whether the host is lost and hasn't come back, or the task was given up while it couldn't be heard.
  bool may_leave(const TaskId& task) const;
  // Forgets the ports of a task that has gone to another host.
  void Forget(const TaskId& task) { reserved_.erase(task); }
  // Ends everything on the host; see stopped(). No event of a task follows.
  void Stop();

  absl::Time deadline() const;
  void OnTime();

  void OnAttached(const std::string& agent_id, uint64_t life, const std::vector<HeldLaunch>& launches) override;
  void OnSuspect(bool suspect) override;
  void OnReserved(const CommandId& command, const TaskId& task, const std::vector<std::string>& addresses) override;
  void OnStarted(const CommandId& launch, const TaskId& task, int64_t pid) override;
  void OnFailed(const CommandId& command, const TaskId& task, const absl::Status& status) override;
  void OnStopped(uint64_t strays) override;
  void OnOutput(const CommandId& launch, OutputStream stream, uint64_t position, std::string_view bytes) override;
  void OnOutputLost(const CommandId& launch, OutputStream stream, uint64_t position, uint64_t bytes) override;
  void OnExit(const CommandId& launch, const TaskId& task, const ExitStatus& status, bool unsure) override;
  void OnUsage(const UsageEntry& usage) override;
  void OnNote(const std::string& line) override;

 private:
  // Sends it now, or once the agent takes commands.
  void Queue(QueuedForHost command);
  void SendQueued();
  void SendLaunch(const ProcessSpec& process);
  void SendReserve(const AskedOfHost& asked, const std::vector<uint16_t>& ports);
  // Finds what was left among what the agent keeps, and ends what nobody asks for.
  void FindLeft(const std::vector<HeldLaunch>& launches);
  void ReserveAgain();
  void GetNewAgent();  // after the agent is gone
  void MakeLink();
  void Connect();
  // Returns whether too many connections in a row have ended without an event of the agent. Call once for each.
  bool BreaksInVain();
  void Redial();
  void OnConnectionEnd(const absl::Status& why);
  // The host has no agent any more: tells what became of everything that was asked for. `lost`: and can't be reached.
  void BecomeGone(const absl::Status& why, bool lost = false);
  // Kills what was given up, when the host is heard.
  void EndGivenUp();
  void TellGone(const AskedOfHost& asked);
  void TellStarted(AskedOfHost& asked, int64_t pid);
  std::optional<CommandId> LaunchOf(const TaskId& task) const;

  // Constant after construction.
  const Host host_;
  const HostAgentOptions& options_;
  Engine& engine_;
  FdLoop& loop_;
  const Clock& clock_;
  BackendEvents& events_;
  const std::function<void()> changed_;
  const std::string supervisor_id_;  // one for each: the same host under two names refuses the second

  LaterCalls later_;
  State state_ = State::kConnecting;
  absl::Status why_gone_;
  std::optional<AgentLink> link_;                // always has a value
  uint64_t life_ = 0;                            // of its agent, once it has answered
  AgentStream stream_;                           // of connection_
  std::unique_ptr<AgentConnection> connection_;  // null: none now
  RetryPause pause_;
  absl::Time redial_at_;                            // InfiniteFuture: the engine has been asked, or there is a stream
  bool connecting_ = false;                         // the engine has been asked
  absl::Time hang_up_at_ = absl::InfiniteFuture();  // a silent stream
  absl::Time looked_ = absl::InfinitePast();        // OnTime's last call
  std::string seen_at_;                             // the address of the first stream; "": the agent knows it
  std::string last_try_;                            // why the host couldn't be reached again
  uint64_t seen_ = 0;                               // events, when the last connection ended
  int futile_ = 0;                                  // connections since
  absl::Time answer_by_;                            // while connecting: of the agent, once there is a stream
  std::deque<QueuedForHost> queue_;
  std::map<CommandId, AskedOfHost> asked_;
  std::map<TaskId, AskedOfHost> left_;    // by the supervisor before, until the agent has answered
  std::map<CommandId, TaskId> given_up_;  // launches whose tasks are elsewhere now, until their end is known
  absl::Time out_of_reach_at_ = absl::InfiniteFuture();  // while suspect
  bool was_ready_ = false, lost_ = false;                // lost: its tasks have ended, and it couldn't be reached since
  absl::Time heard_since_;                               // while heard
  absl::Time tasks_end_by_ = absl::InfinitePast();       // those of earlier agents have ended by then
  std::string hosts_file_;                               // for agents that come later
  std::map<TaskId, std::vector<uint16_t>> reserved_;     // ports by their numbers
  bool paused_ = false, stopping_ = false, stopped_ = false;
  int strays_ = 0;
};

}  // namespace muster
