// How a process ended. A plain value.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

struct ExitStatus {
  int code = 0;    // exit code, if `signal` is 0
  int signal = 0;  // the signal that killed it; 0: none
  // Its memory limit in bytes if it ended because it used more than that, otherwise 0.
  int64_t over_memory = 0;
  bool host_lost = false;  // its host was lost, or the agent there has died: the program isn't to blame

  bool ok() const { return code == 0 && signal == 0; }
  // Returns what a shell has in $?: 128 + the signal for a process that was killed.
  int ShellCode() const { return signal != 0 ? 128 + signal : code; }
  // "exited with 1"; "was killed by signal 9 (killed)"; for the code by which a shell tells of a signal "exited with
  // 139, as its program was killed by signal 11 (segmentation fault)"; "…: it used more than its 512 MB of memory".
  std::string ToString() const;

  bool operator==(const ExitStatus&) const = default;
};

}  // namespace muster
