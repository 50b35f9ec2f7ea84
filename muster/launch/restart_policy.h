// When a task that has ended is started again. A plain value.
#pragma once

#include "absl/time/time.h"
#include "muster/launch/exit_status.h"

namespace muster {

enum class RestartWhen {
  kNever,
  kOnFailure,  // if it was killed or its exit code says that trying again may help (IsRetryable)
  kAlways,     // whatever it ended with, 0 too, until its experiment ends
};

struct RestartPolicy {
  RestartWhen when = RestartWhen::kOnFailure;
  int limit = 3;  // lives after the first
  // Before the second restart in a row; doubles with every life shorter than SupervisorOptions::steady_life.
  absl::Duration pause = absl::Milliseconds(250);
};

// As TFJob (kubeflow.org/v1, restartPolicy ExitCode) sorts exit codes: killed by a signal, or 130, 137, 138, 143, is
// worth another try; 1, 2, 126, 127, 128, 139 (and SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGBUS: the program's own mistake)
// and any other code aren't.
bool IsRetryable(const ExitStatus& status);

}  // namespace muster
