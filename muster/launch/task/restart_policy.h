// When a task that has ended is restarted. A plain value.
#pragma once

#include "absl/time/time.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

enum class RestartWhen {
  kNever,
  kOnFailure,  // if a signal killed it or its exit code says that retrying may help (IsRetryable)
  kAlways,     // however it ended, also with 0, until its experiment ends
};

struct RestartPolicy {
  RestartWhen when = RestartWhen::kOnFailure;
  int limit = 3;  // restarts, the first start not counted
  // Pause before the second restart in a row. It doubles, up to 10 s, with every life shorter than
  // TaskSupervisorOptions::steady_life. A pause configured longer than 10 s stays as it is.
  absl::Duration pause = absl::Milliseconds(250);
};

// Sorts exit codes as TFJob does (kubeflow.org/v1, restartPolicy ExitCode). Killed by a signal, or 130, 137, 138, 143:
// worth a retry. 1, 2, 126, 127, 128, 139 (and SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGBUS: the program's own mistake) and
// any other code: not. A task that was killed for using too much memory isn't retried either, as it would do so again.
bool IsRetryable(const ExitStatus& status);

// The rule of `muster run`, which differs in two ways. 130 isn't retried: someone interrupted this one task by hand,
// and it has told the ps that it is done (docs/architecture.md, "Errors and exit codes"). Any signal is retried,
// because the user of a foreground command watches it and sees when a program that always crashes gives up.
bool IsRetryableInForeground(const ExitStatus& status);

}  // namespace muster
