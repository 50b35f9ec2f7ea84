// Processes held by a descriptor (pidfd_open(2)), so that a number given to a later process can't be taken for them. As
// plain system calls: glibc 2.36 has the functions, but its header lacks extern "C". Thread-safe.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace muster {

// Readable when the process has ended; not inherited by children. -1 and errno if there is no such process.
inline int OpenPidFd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// 0, or -1 and errno.
inline int SignalPidFd(int pid_fd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pid_fd, signal, nullptr, 0));
}

}  // namespace muster
