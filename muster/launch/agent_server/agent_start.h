// Starts the process of an agent so that it outlives whoever wanted it, and waits until it listens. Used by a process
// without other threads.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// The descriptor by which a started agent says that it listens, or why it doesn't: a pipe.
inline constexpr int kReadinessFd = 3;

// Runs `program` with `arguments` ([0] is its name) in a session of its own, without this process's open files: stdin
// is /dev/null, stdout and stderr are `log_fd`, kReadinessFd is the pipe. It works in / and has this process's
// umask and environment, but for the ids of the run to which this process may itself belong (and loses them): whoever
// ends that one must not end the agent. Returns once it has told that it is ready. Unavailable: it has told why it
// isn't. DeadlineExceeded: it has told nothing for `patience`. Internal: it has ended without a word.
[[nodiscard]] absl::Status StartDetached(const std::string& program, std::vector<std::string> arguments, int log_fd,
                                         absl::Duration patience);

struct WaitingProcess {
  std::string own_file = "";    // it removes this file before it exits; empty: none
  bool passes_signals = false;  // SIGTERM and SIGINT go on to the agent, whichever life of it runs
};

// Goes on in a child of this process. The process itself (`run-wait agent JOB`) waits until the child and all that this
// leaves behind have ended, and exits with the code of the agent's last life: of those that are called as it is, the
// one that has ended last. It kills what tasks have left once neither an agent nor its guard is there. So whoever has
// started it, as a step of Slurm, which kills what is left when its process has ended, sees it live as long as any life
// of the agent. Slurm signals all processes of a step; the first process of a container is the only one that gets its
// signals.
[[nodiscard]] absl::Status GoOnInChild(const std::string& job, const WaitingProcess& waiting = {});

// Tells, in the started process, what came of its start, and closes the pipe. Has no effect if there is none.
void TellReadiness(const absl::Status& status);

}  // namespace muster
