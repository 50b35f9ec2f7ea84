// Tasks as children of this process. They die with it, also on kill -9: the kernel ends them, and a Guard what they
// have started. Used by the loop's thread; the process must have no other threads, since it forks.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "muster/launch/backends/local/guard.h"
#include "muster/launch/backends/local/orphans.h"
#include "muster/launch/backends/local/task_parent.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class OwnChildren final : public TaskParent {
 public:
  // `run_id` names the guard. Borrows `loop`, which must outlive it.
  OwnChildren(std::string run_id, FdLoop& loop);
  ~OwnChildren() override;

  // Makes this process the parent of all orphans below it, so that Finish can wait until every process of the run is
  // gone, grandchildren too.
  absl::Status Start() override;
  const std::string& agent_id() const override { return agent_id_; }
  absl::StatusOr<Child> StartTask(const NewTask& task, ChildSpec spec) override;
  ExitStatus Await(const std::string& label, const Child& child) override;
  void Forget(const std::string& /*label*/) override {}
  void Finish() override;

 private:
  // Returns the memory that outlives the processes of a task; -1 if there is none.
  int MemoryOf(const TaskId& task);

  // Constant after construction.
  const std::string run_id_;
  FdLoop& loop_;
  const std::string agent_id_;

  std::unique_ptr<Guard> guard_;      // while started
  std::unique_ptr<Orphans> orphans_;  // likewise
  std::map<TaskId, int> memories_;
};

// Waits for a child's end. `options`: as of waitid(2), beside WEXITED.
ExitStatus WaitForEnd(int pid_fd, int options = 0);

}  // namespace muster
