// The process that forks a LocalBackend's tasks. Only a parent is told how its child ended, and the kernel ends the
// children when it dies, so which process that is decides what the tasks outlive: OwnChildren (this process), or a
// Keeper, which an agent's tasks have as parent so that they go on when the agent dies. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/backends/local/child.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

inline constexpr int kAgentIdBytes = 16;                  // random ones
inline constexpr char kArenaFileName[] = "muster-arena";  // of a ps's memory, as /proc/PID/maps has it

// What must not die with a backend's process: bytes, and descriptors.
struct KeptThing {
  std::string value;
  std::vector<int> descriptors;  // borrowed from the parent
};

// A task to start, beside its ChildSpec.
struct NewTask {
  TaskId task;
  std::string label;        // as ProcessSpec::label
  std::string about;        // what the backend wants to know of it again
  bool has_memory = false;  // a memory file of the task's, the same for all its lives, under MUSTER_ARENA_FD
};

// One that was started by a backend whose process has died. It may have ended meanwhile.
struct AdoptedTask {
  std::string label;
  std::string about;
  Child child;  // without a stdin, which has died with that process; the caller must close the descriptors
};

// The name of a thing that says how a task's end came about.
inline std::string NameOfEnd(const std::string& label) { return "end of " + label; }

class TaskParent {
 public:
  virtual ~TaskParent() = default;

  // Must be called first.
  [[nodiscard]] virtual absl::Status Start() = 0;
  // Returns whether the parent has died, and with it its children: their numbers may be others' by now.
  virtual bool gone() const { return false; }
  // The MUSTER_AGENT_ID of the tasks.
  virtual const std::string& agent_id() const = 0;
  // As muster::StartChild.
  virtual absl::StatusOr<Child> StartTask(const NewTask& task, ChildSpec spec) = 0;
  // Blocks until the process has ended. After that its group's number may be another's, so nothing may be sent there.
  virtual ExitStatus Await(const std::string& label, const Child& child) = 0;
  // The end of a task that was awaited is known wherever it must be. What was kept as NameOfEnd goes, too.
  virtual void Forget(const std::string& label) = 0;
  // All tasks have been awaited, and none follows.
  virtual void Finish() = 0;

  // Keeps a thing beyond the death of this process, if the parent can; replaces one of the same name.
  virtual void Keep(const std::string& /*name*/, const KeptThing& /*thing*/) {}
  virtual std::vector<AdoptedTask> Adopt() { return {}; }
  // What earlier processes have kept.
  virtual const std::map<std::string, KeptThing>& kept() const {
    static const std::map<std::string, KeptThing> nothing;
    return nothing;
  }
};

}  // namespace muster
