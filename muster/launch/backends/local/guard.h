// Ends a run's processes when the launcher has died without doing so, of SIGKILL say. The guard is a process of its
// own, forked before the first task. It holds the reading end of a pipe whose writing end only the launcher has, so
// end-of-file means that the launcher is gone. Then it kills each task's process group and every other process with the
// backend's MUSTER_AGENT_ID. It has a name of its own, "run-guard RUNID", so that whoever ends all processes called
// muster doesn't end those that clean up after them. (The tasks themselves also have PR_SET_PDEATHSIG; their children
// don't, because it isn't inherited.) Not thread-safe.
//
// Records in the pipe say which process groups exist. A task writes its own between fork and exec, so it can't start
// anything that the guard doesn't know of. The launcher withdraws it before another process can get the group's number.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// The name of the processes that end what a launcher or an agent has left. A Guard and a Keeper have it, as the first
// word of their command lines.
inline constexpr char kGuardName[] = "run-guard";

class Guard {
 public:
  // Its command line, as ps shows it.
  static std::string Title(const std::string& run_id) { return std::string(kGuardName) + " " + run_id; }

  // One write, which a pipe doesn't divide.
  struct Record {
    int32_t group;
    int32_t added;  // 1: there is this group; 0: it has ended
  };

  // Forks: the process must have no other threads. When it returns, the guard holds none of this process's descriptors.
  // `run_id` is for its name alone, by which AwaitGuard finds it.
  static absl::StatusOr<std::unique_ptr<Guard>> Fork(const std::string& run_id, const std::string& agent_id);
  // Lets the guard go, without waiting for it.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Where a task announces itself: Record{getpid(), 1}, once it leads its group. Closed by exec.
  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }
  void Forget(pid_t group);
  // Nothing is left to be guarded: waits until the guard has ended.
  void Finish();

 private:
  Guard(int fd, pid_t pid) : fd_(fd), pid_(pid) {}

  int fd_;
  const pid_t pid_;
};

}  // namespace muster
