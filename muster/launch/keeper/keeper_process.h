// The keeper's process itself (keeper.h): it takes the agent's messages one after the other, reaps what has ended, and
// starts the agent's next lives. It has one thread and never returns.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/backends/local/child.h"
#include "muster/launch/backends/local/detached_process.h"
#include "muster/launch/backends/local/task_parent.h"
#include "muster/launch/keeper/keeper.h"
#include "muster/launch/keeper/keeper_messages.h"
#include "muster/transport/io/socket.h"

namespace muster {

class KeeperProcess {
 public:
  // In the forked process. `socket`: to the agent, which is process `agent`.
  KeeperProcess(KeeperOptions options, Socket socket, pid_t agent);
  [[noreturn]] void Run();

 private:
  struct KeptTask {
    std::string about;
    Child child;
    bool is_ps = false;
  };

  // Reads what is there, and acts on each message that has come whole.
  void ReadAndTake();
  void Take(KeeperMessage message);
  void TakeKeep(KeeperMessage& message);
  void TakeStart(KeeperMessage& message);
  void TakeAwait(const std::string& label);
  void TakeForget(const std::string& label);
  void OnTime();
  int MillisecondsToWait() const;
  void Reap();
  // The agent has closed its end: nothing that it has asked for comes any more.
  void OnAgentGone();
  // Waits for the end of a process, and keeps the limit meanwhile.
  void AwaitEnd(int pid_fd);
  void StartLife();
  std::unique_ptr<Keeper> MakeAgentsEnd(Socket socket) const;
  void AskTasksToEnd() const;
  // Kills what tasks have left behind and that isn't to outlive them, though its environment doesn't show whose it is:
  // it has become this process's children.
  void KillOrphans() const;
  [[noreturn]] void EndAll();

  // Constant after construction.
  const KeeperOptions options_;
  const SavedIdentity identity_;  // the agent's

  Socket socket_;
  std::unique_ptr<KeeperReader> reader_ = std::make_unique<KeeperReader>();
  pid_t agent_;
  Socket agent_pid_fd_;
  Socket child_ends_;  // signalfd
  std::map<std::string, KeptTask> tasks_;
  std::map<std::string, KeptThing> things_;  // with descriptors of its own
  absl::Time end_at_ = absl::InfiniteFuture();
  bool asked_to_end_ = false;
  uint64_t life_ = 1;
  std::deque<absl::Time> lives_;  // when the last ones began
};

}  // namespace muster
