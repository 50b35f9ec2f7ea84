// The parent of an agent's tasks, and the memory that outlives the agent's process (docs/agents.md, "Take-over"). It is
// a process of its own, named as a guard is, forked before the first task. When the agent's process dies without a
// goodbye, the keeper forks the agent's next life from itself, which gets everything: what was kept, the tasks'
// processes and their pipes. When no life has renewed the limit (EndAt) in time, because there is none or it is
// stopped, the keeper asks the tasks but ps to end, kills all 3 s later, and the agent too. When the keeper dies, the
// kernel ends its children.
//
// This class is the agent's end. StartTask and Await wait for the keeper's answer. Used by the loop's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/backends/local/task_parent.h"
#include "muster/transport/io/socket.h"

namespace muster {

class Keeper;
class KeeperReader;

struct KeeperOptions {
  std::string title;      // its command line, as ps shows it
  std::string agent_id;   // the tasks' MUSTER_AGENT_ID
  std::vector<int> kept;  // descriptors that it and the agent's next lives hold, all above 2
  // Is the agent's next life, in a new process that has no descriptors but those kept and what comes from the keeper.
  // Returns the process's exit code.
  std::function<int(std::unique_ptr<Keeper>)> next_life;
  // After the limit and this, the keeper asks the tasks to end, if the agent hasn't.
  absl::Duration after_agent = absl::Seconds(1);
  // Between asking them and killing them.
  absl::Duration ending = absl::Seconds(3);
};

class Keeper final : public TaskParent {
 public:
  // So many lives may begin within a minute; after that the tasks are ended.
  static constexpr size_t kLives = 5;

  // Forks: the process must have no other threads. When it returns, the keeper holds none of this process's descriptors
  // but those kept.
  static absl::StatusOr<std::unique_ptr<Keeper>> Fork(KeeperOptions options);
  ~Keeper() override;  // as Goodbye

  uint64_t life() const { return life_; }  // of the agent, from 1
  pid_t pid() const { return pid_; }
  // What EndAt was told last; InfiniteFuture if it wasn't.
  absl::Time ends_at() const { return ends_at_; }
  // A descriptor that is readable only when the keeper is gone.
  int fd() const { return socket_.fd(); }
  // Ends the tasks at this time of BootClock, unless it is called again before.
  void EndAt(absl::Time time);
  // The agent has asked the tasks to end, and kills them later: the keeper doesn't ask them again, but kills those that
  // the agent hasn't, and starts no next life.
  void SetEnding();
  // Nothing is left to be kept: waits until the keeper has ended.
  void Goodbye();

  absl::Status Start() override { return absl::OkStatus(); }
  const std::string& agent_id() const override { return agent_id_; }
  absl::StatusOr<Child> StartTask(const NewTask& task, ChildSpec spec) override;
  ExitStatus Await(const std::string& label, const Child& child) override;
  void Forget(const std::string& label) override;
  void Finish() override {}
  bool gone() const override;
  void Keep(const std::string& name, const KeptThing& thing) override;
  std::vector<AdoptedTask> Adopt() override;
  const std::vector<AdoptedTask>& adopted() const { return adopted_; }  // until Adopt
  const std::map<std::string, KeptThing>& kept() const override { return kept_; }

  // Keeps and drops (nullopt) values at once: a death leaves all undone, or none.
  void KeepValues(const std::vector<std::pair<std::string, std::optional<std::string>>>& values);

 private:
  friend class KeeperProcess;

  Keeper(Socket socket, pid_t pid, std::string agent_id);
  void Send(uint32_t kind, const std::string& body, const std::vector<int>& descriptors = {});
  void CloseKept(const std::string& name);

  Socket socket_;
  const pid_t pid_;
  const std::string agent_id_;
  bool is_own_child_ = false;
  uint64_t life_ = 1;
  absl::Time ends_at_ = absl::InfiniteFuture();
  std::vector<AdoptedTask> adopted_;
  std::map<std::string, KeptThing> kept_;
  std::unique_ptr<KeeperReader> reader_;
  bool gone_ = false;
};

}  // namespace muster
