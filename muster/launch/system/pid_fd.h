// Refers to processes by descriptors (pidfd_open(2)), so that a later process with the same number can't be mistaken
// for them. Uses plain system calls: glibc 2.36 has the functions, but its header lacks extern "C". Thread-safe.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace muster {

// Returns a descriptor that is readable once the process has ended and that children don't inherit. -1 and errno if
// there is no such process.
inline int OpenPidFd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// Returns 0, or -1 and errno.
inline int SignalPidFd(int pid_fd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pid_fd, signal, nullptr, 0));
}

}  // namespace muster
