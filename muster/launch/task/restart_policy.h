// When a task that has ended is started again. A plain value.
#pragma once

#include "absl/time/time.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

enum class RestartWhen {
  kNever,
  kOnFailure,  // if it was killed or its exit code says that trying again may help (IsRetryable)
  kAlways,     // whatever it ended with, 0 too, until its experiment ends
};

struct RestartPolicy {
  RestartWhen when = RestartWhen::kOnFailure;
  int limit = 3;  // lives after the first
  // Before the second restart in a row; doubles with every life shorter than TaskSupervisorOptions::steady_life, to 10
  // s; a longer one stays as it is.
  absl::Duration pause = absl::Milliseconds(250);
};

// As TFJob (kubeflow.org/v1, restartPolicy ExitCode) sorts exit codes: killed by a signal, or 130, 137, 138, 143, is
// worth another try; 1, 2, 126, 127, 128, 139 (and SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGBUS: the program's own mistake)
// and any other code aren't. Nor is a task that was killed for using more than its memory: it would do so again.
bool IsRetryable(const ExitStatus& status);

// What `muster run` goes by. Two things differ there: 130 says that someone has interrupted this one task by hand, and
// it has told the ps that it is done (docs/architecture.md, "Errors and exit codes"); and any signal is worth another
// try, for who runs a command in the foreground watches it, and sees a program that always crashes give up.
bool IsRetryableInForeground(const ExitStatus& status);

}  // namespace muster
