// Starts one program of a run as a child process: in a process group of its own, with pipes for its output, dying with
// its parent, known to the guard before it runs; in a control group, with mounts and in a directory of its own if that
// is wanted. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"

namespace muster {

struct ChildSpec {
  std::string program;  // the file to be executed
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=VALUE", all of it
  int guard_fd = -1;                     // see Guard::fd
  int memory_fd = -1;                    // inherited under the same number; -1: none
  std::string directory;                 // as it is called after the mounts; empty: the parent's
  std::vector<ProcessMount> mounts;      // see EnterMounts
  int cgroup_fd = -1;                    // see Cgroups::Enter; -1: the parent's group
};

// Descriptors are the caller's to close, and are not inherited by other children.
struct Child {
  pid_t pid = 0;       // and the number of its process group
  int pid_fd = -1;     // readable when it has ended
  int stdout_fd = -1;  // non-blocking
  int stderr_fd = -1;  // non-blocking
};

// Returns once the program is being executed. Its stdin is empty. An error of execve or of what comes before it
// (NotFound, PermissionDenied, ...) is returned, naming the program, directory or mount, and nothing is left running.
absl::StatusOr<Child> StartChild(const ChildSpec& spec);

}  // namespace muster
