// A host of a simulated run: a guard with its tasks and the journal, and the agent's lives. The agent's end of the
// protocol is the real one; tasks, pipes and the guard are simulated. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/agent/command_executor.h"
#include "muster/launch/agent/supervisor_link.h"
#include "muster/sim/agents/agent_truth.h"

namespace muster {

class AgentHost final : public AgentJournal, public CommandExecutor {
 public:
  // `agent_gone` is called when the agent's process has ended: its streams are broken.
  AgentHost(AgentTruth& truth, int number, std::function<void()> agent_gone);

  void StartAgent();
  // Kills the agent at the n-th point that it passes from now on; its next life starts `back_after` later.
  void KillAgentAt(uint64_t passes, absl::Duration back_after);
  void PauseAgent(absl::Duration lasts);
  void KillHost();
  // Called every 250 ms.
  void Tick();

  // The agent's end; null while there is none or it is stopped.
  SupervisorLink* link() { return agent_ && Now() >= paused_until_ && !dead_ ? agent_.get() : nullptr; }
  bool gone() const { return gone_; }  // the agent has ended for good
  absl::Time paused_until() const { return paused_until_; }
  // A point in what the agent does. Returns whether it lives on.
  bool Point();
  bool runs_nothing() const { return running_ == 0; }
  // The bytes that agents had read when they died, at most, of a stream of a launch.
  uint64_t ReadByTheDead(const CommandId& launch, OutputStream stream) const;
  uint64_t Written(const CommandId& launch, OutputStream stream) const;

  void SetSupervisor(uint64_t number, const std::string& id) override;
  void TakeIn(const OpenCommand& command) override;
  void Close(const CommandId& command) override;
  void SetAnswered(absl::Time answered) override;

  void Reserve(const CommandId& command, const ReserveEntry& reserve) override;
  void Launch(const CommandId& launch, const LaunchEntry& process) override;
  void End(const CommandId& launch, EndMode mode) override;
  void WriteHosts(const std::string&) override {}
  void Input(const CommandId&, std::string_view) override {}  // its tasks read nothing
  void Stop() override;
  std::vector<HeldLaunch> Launches() const override;
  void Forget(const CommandId& launch) override;
  void DropReservations() override {}
  void EndAll(EndMode mode) override;

 private:
  struct Task {
    TaskId task;
    bool running = true;
    bool forgotten = false;
    OutputEnds written;       // to the pipes
    OutputEnds read;          // from them: in the journal
    OutputEnds read_by_dead;  // `read` when an agent died last
    uint64_t exited_in = 0;   // the life that has reported the end
  };

  absl::Time Now() const { return truth_.world.Now(); }
  std::string Name() const { return absl::StrCat("host ", number_); }
  void AgentDied();
  void StartTask(const CommandId& launch, const TaskId& task);
  void EndTask(const CommandId& launch);
  void Write(const CommandId& launch);
  void ReadPipes();
  void GuardAgainstSilence();

  AgentTruth& truth_;
  const int number_;
  const std::function<void()> agent_gone_;
  AgentRecord record_;  // the journal
  std::map<CommandId, Task> tasks_;
  int running_ = 0;
  std::unique_ptr<SupervisorLink> agent_;
  uint64_t generation_ = 0;  // of agents: what an earlier one has asked of the guard isn't done
  DeathPoints points_;
  absl::Duration back_after_;
  bool dead_ = false;  // the agent, in the middle of something
  bool gone_ = false;
  bool stop_asked_ = false;
  bool stop_answered_ = false;
  absl::Time paused_until_ = absl::InfinitePast();
};

}  // namespace muster
