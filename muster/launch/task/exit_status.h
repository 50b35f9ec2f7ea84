// How a process ended. A plain value.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// What is known of a SIGKILL.
enum class KilledFrom : uint32_t {
  kUnknown,      // there was none, or the run itself sent it
  kOutside,      // neither the run nor a limit of its own
  kOutOfMemory,  // likewise, and at that time the kernel killed a process here because memory had run out
};

struct ExitStatus {
  int code = 0;    // exit code, if `signal` is 0
  int signal = 0;  // the signal that killed it; 0: none
  // Its memory limit in bytes if it ended because it used more than that, otherwise 0.
  int64_t over_memory = 0;
  KilledFrom killed_from = KilledFrom::kUnknown;
  // It has exited with `code` in answer to a signal to all of its job: it has neither finished nor failed.
  bool at_signal = false;
  bool by_its_host = false;  // its host was lost, or the agent there has died: the program isn't to blame
  // The host with which it was lost, where nobody has seen its end; code and signal are assumed then.
  std::string lost_host = {};

  bool ok() const { return code == 0 && signal == 0 && !at_signal; }
  // Returns what a shell has in $?: 128 + the signal for a process that was killed. A process that has exited with 0 at
  // a signal counts as ended by SIGTERM.
  int ShellCode() const { return signal != 0 ? 128 + signal : at_signal && code == 0 ? 128 + 15 : code; }
  // Returns whether SIGKILL killed it, or its program if it is a shell, which says so by 137.
  bool WasKilled() const { return signal == 9 || code == 137; }
  // "exited with 1"; "was killed by signal 9 (killed)"; for the code by which a shell tells of a signal "exited with
  // 139, as its program was killed by signal 11 (segmentation fault)"; "…: it used more than its 512 MB of memory"; "…,
  // from outside"; "…, from outside: memory had run out on its machine or in its job or container"; "was lost with its
  // host h2"; "exited with 0 when a signal came to all of its job".
  std::string ToString() const;
  // Returns what code and signal don't say: "used more than its 512 MB of memory"; "h2 was lost; it runs on h1 now",
  // where `now_on` is the host of the process in its place, if there is one; where it is known who killed it, all that
  // ToString says. "" if they say all.
  std::string Cause(const std::string& now_on = "") const;

  bool operator==(const ExitStatus&) const = default;
};

}  // namespace muster
