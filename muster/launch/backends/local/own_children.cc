#include "muster/launch/backends/local/own_children.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "muster/base/check.h"
#include "muster/base/os/memory_file.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/system/awaited_children.h"
#include "muster/launch/system/process_mark.h"
#include "muster/launch/system/random_hex.h"

namespace muster {

OwnChildren::OwnChildren(std::string run_id, FdLoop& loop)
    : run_id_(std::move(run_id)), loop_(loop), agent_id_(RandomHex(kAgentIdBytes)) {}

OwnChildren::~OwnChildren() { MUSTER_CHECK(guard_ == nullptr); }

absl::Status OwnChildren::Start() {
  MUSTER_CHECK(guard_ == nullptr);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return absl::ErrnoToStatus(errno, "cannot become a subreaper");
  ASSIGN_OR_RETURN(orphans_, Orphans::Watch(loop_));
  ASSIGN_OR_RETURN(guard_, Guard::Fork(run_id_, agent_id_));
  return absl::OkStatus();
}

absl::StatusOr<Child> OwnChildren::StartTask(const NewTask& task, ChildSpec spec) {
  spec.guard_fd = guard_->fd();
  spec.mark = MarkOf(agent_id_);
  if (task.has_memory) spec.memory_fd = MemoryOf(task.task);
  absl::StatusOr<Child> child = StartChild(spec);
  if (child.ok()) AddAwaitedChild(child->pid);
  return child;
}

int OwnChildren::MemoryOf(const TaskId& task) {
  const auto [memory, added] = memories_.try_emplace(task, -1);
  // If this fails, the ps has memory of its own, which is lost when it is killed.
  if (added) memory->second = CreateMemoryFile(kArenaFileName);
  return memory->second;
}

// The guard forgets the group before its number is freed, so that no signal can ever reach a later process with the
// same number.
ExitStatus OwnChildren::Await(const std::string& /*label*/, const Child& child) {
  guard_->Forget(child.pid);
  const ExitStatus status = WaitForEnd(child.pid_fd);
  RemoveAwaitedChild(child.pid);
  orphans_->Reap();  // those that ended after it
  return status;
}

void OwnChildren::Finish() {
  if (guard_ == nullptr) return;
  for (const auto& [task, fd] : memories_) close(fd);
  memories_.clear();
  orphans_->Reap();
  orphans_.reset();
  guard_->Finish();
  guard_.reset();
}

ExitStatus WaitForEnd(int pid_fd, int options) {
  siginfo_t info = {};
  if (Uninterrupted([&] { return waitid(P_PIDFD, static_cast<id_t>(pid_fd), &info, WEXITED | options); }) != 0)
    return {.signal = SIGKILL};  // somebody else has waited for it
  if (info.si_code == CLD_EXITED) return {.code = info.si_status};
  return {.signal = info.si_status};
}

}  // namespace muster
