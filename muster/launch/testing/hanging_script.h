// For tests of time limits: a shell script that never ends by itself, with a child that SIGTERM doesn't end, and the
// question whether both are gone.
#pragma once

#include <sched.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster {

inline constexpr char kHangs[] = "hangs";

// Returns its lines. It writes the numbers of its processes into the file kHangs of the folder in which it runs, then
// that word to stderr. `at_sigterm`: what it does then, in the words of a shell without "'".
inline std::string HangingScript(const std::string& at_sigterm) {
  // A child inherits what its parent ignores. The file is there once SIGTERM does what it shall.
  return absl::StrCat("trap '' TERM\nsleep 1000 &\ntrap '", at_sigterm, "' TERM\necho $$ $! >", kHangs, "\necho ",
                      kHangs, " >&2\nwhile :; do wait; done");
}

// `pid`: as a script has written it; "": no process. A zombie is dead.
inline bool IsAlive(const std::string& pid) {
  if (pid.empty()) return false;
  std::ifstream stat(absl::StrCat("/proc/", std::stoi(pid), "/stat"));
  std::string number, name, state;
  return stat >> number >> name >> state && state != "Z";
}

// Waits until none of the processes of a HangingScript that ran in `folder` is alive. A test that hangs here has found
// one that was left.
inline void AwaitDeathOfHanging(const ScratchFolder& folder) {
  std::istringstream pids(folder.Read(kHangs));
  for (std::string pid; pids >> pid;)
    while (IsAlive(pid)) sched_yield();
}

}  // namespace muster
