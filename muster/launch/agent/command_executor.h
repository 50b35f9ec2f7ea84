// What an agent's end of the protocol needs of the host: what executes commands, and what keeps its memory beyond its
// own death. Used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/agent/entries.h"

namespace muster {

// A command that has been taken in and isn't finished: its answer hasn't been acknowledged, or, if it has no answer,
// its execution hasn't returned.
struct OpenCommand {
  CommandId command;
  EntryKind kind = EntryKind::kNone;
  TaskId task;       // of a reserve and a launch
  std::string body;  // empty for a launch and an input, which aren't done again
};

// What an agent's next life must know.
struct AgentRecord {
  std::string agent_id;  // kIdBytes
  uint64_t life = 1;
  uint64_t supervisor = 0;    // the highest number that has attached; 0: none
  std::string supervisor_id;  // of that supervisor
  uint64_t taken_in = 0;      // its highest command
  std::vector<OpenCommand> open;
  // When the agent last sent something that a supervisor has answered; at first, its start.
  absl::Time answered = absl::InfinitePast();  // must be set
  bool stopping = false;
};

// Keeps an AgentRecord where it outlives the agent's process (not the host). When a call returns, a death at any later
// moment doesn't undo it; a death during a call leaves it undone or done.
class AgentJournal {
 public:
  virtual ~AgentJournal() = default;
  // Sets `taken_in` to 0 at once.
  virtual void SetSupervisor(uint64_t number, const std::string& id) = 0;
  // Adds to `open`, and sets `taken_in` and, for a stop, `stopping` at once.
  virtual void TakeIn(const OpenCommand& command) = 0;
  // Removes from `open`.
  virtual void Close(const CommandId& command) = 0;
  virtual void SetAnswered(absl::Time answered) = 0;
};

// Executes commands. Each comes once; Reserve, End, WriteHosts and Stop again after the death of the agent that had
// them. Nothing may call SupervisorLink from within these calls but its Send functions.
class CommandExecutor {
 public:
  virtual ~CommandExecutor() = default;

  // Answered by SendReserved or SendFailed. Ports that the task has already count.
  virtual void Reserve(const CommandId& command, const ReserveEntry& reserve) = 0;
  // Answered by SendStarted, then SendOutput and SendExited, or by SendFailed.
  virtual void Launch(const CommandId& launch, const LaunchEntry& process) = 0;
  // SendExited follows. Has no effect on a launch that doesn't run.
  virtual void End(const CommandId& launch, EndMode mode) = 0;
  virtual void WriteHosts(const std::string& file) = 0;
  // Empty: the end of the launch's input. Has no effect on a launch that takes none or doesn't run.
  virtual void Input(const CommandId& launch, std::string_view bytes) = 0;
  // Ends all tasks at once, also those that are being started, and strays. Answered by SendStopped, after SendExited of
  // each launch.
  virtual void Stop() = 0;

  // The launches that were started and whose end hasn't been forgotten, running or not.
  virtual std::vector<HeldLaunch> Launches() const = 0;
  // The supervisor knows of the launch's end.
  virtual void Forget(const CommandId& launch) = 0;
  // Gives up ports that were reserved under another supervisor and that no launch has used.
  virtual void DropReservations() = 0;
  // The grace is over: ends all tasks, also those that are being started.
  // With kGently, parameter servers go on until they are killed with what is left.
  virtual void EndAll(EndMode mode) = 0;
};

}  // namespace muster
