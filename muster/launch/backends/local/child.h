// Starts one program of a run as a child process: in a process group of its own, with pipes for its streams. It dies
// with its parent, and the guard knows it before it runs. It gets a control group, mounts and a working directory if
// asked. Not thread-safe.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"

namespace muster {

struct ChildSpec {
  std::string program;  // the file to execute
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=VALUE", the complete environment
  int guard_fd = -1;                     // see Guard::fd
  rlim_t mark = 0;                       // as MarkOf returns it; 0: none of its own
  uint64_t memory_limit = 0;             // for SetResidentLimit, bytes; 0: the parent's
  int memory_fd = -1;                    // inherited, its number in MUSTER_ARENA_FD; -1: none
  std::string directory;                 // its path after the mounts; empty: the parent's
  std::vector<ProcessMount> mounts;      // see EnterMounts
  std::optional<mode_t> umask;           // unset: the parent's
  int cgroup_fd = -1;                    // see Cgroups::Enter; -1: the parent's group
  bool takes_input = false;              // by a pipe; otherwise its stdin is empty
};

// The caller must close the descriptors; other children don't inherit them.
struct Child {
  pid_t pid = 0;       // also the number of its process group
  int pid_fd = -1;     // readable when it has ended
  int stdin_fd = -1;   // the writing end, non-blocking; -1: it takes no input
  int stdout_fd = -1;  // non-blocking
  int stderr_fd = -1;  // non-blocking
};

// Returns once the program is being executed. Errors of execve and of all steps before it
// (NotFound, PermissionDenied, ...) name the program, directory or mount, and leave nothing running.
absl::StatusOr<Child> StartChild(const ChildSpec& spec);

}  // namespace muster
