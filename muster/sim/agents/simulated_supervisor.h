// A supervisor of a simulated run: the real AgentLink to each host, and a simple plan: every task runs somewhere, until
// everything is stopped. It writes down what it knows in the RunFolder, where its successor finds it. Used by one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/agent/agent_link.h"
#include "muster/sim/agents/agent_truth.h"

namespace muster {

class SimulatedSupervisor {
 public:
  // What it needs of the world.
  struct World {
    std::function<void(int host)> redial;  // gives up the host's stream, if any, and dials
    // These return, for a stream of a launch, the bytes written, and those read by agents that died, at most.
    std::function<uint64_t(int host, const CommandId&, OutputStream)> written;
    std::function<uint64_t(int host, const CommandId&, OutputStream)> read_by_dead;
    std::function<void()> died;
  };

  SimulatedSupervisor(AgentTruth& truth, int hosts, int tasks, absl::Time stop_at, World world);
  ~SimulatedSupervisor();

  void KillAt(uint64_t passes) { points_.KillAt(passes); }
  // Called every 250 ms.
  void Tick();

  uint64_t number() const { return number_; }
  // It has read the folder, which it does once an earlier supervisor writes nothing any more.
  bool ready() const { return !hosts_.empty(); }
  AgentLink& link(int host);
  bool alive() const { return !dead_; }
  // Returns whether every host has stopped or is lost.
  bool done() const;
  // What it still waits for, if not.
  std::string WaitsFor() const;

 private:
  class Host;
  struct Placement {
    int host = 0;
    std::optional<CommandId> launch;
  };

  bool Point();
  absl::Time Now() const { return truth_.world.Now(); }
  static TaskId TaskOf(int task) { return task == 0 ? TaskId{kPsJob, 0} : TaskId{kWorkerJob, task - 1}; }
  int IndexOf(const TaskId& task) const { return task.job == kPsJob ? 0 : task.index + 1; }
  void Found(int host, const std::vector<HeldLaunch>& launches);
  void Ended(int host, const CommandId& launch);
  void Plan();
  bool MayStart(int task) const;
  void Place(int task);
  void EndSomething();

  AgentTruth& truth_;
  const absl::Time stop_at_;
  const World world_;
  const uint64_t number_;
  const absl::Time began_;
  const int host_count_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::vector<Placement>> placements_;  // of each task
  DeathPoints points_;
  bool dead_ = false;
};

}  // namespace muster
